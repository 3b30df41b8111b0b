/**
 * Addresses of EVM chains: 0x and 40 hexadecimal digits; mixed-case letters are a checksum (EIP-55). Pure: the server and
 * the web page share it.
 */
import { keccak_256 } from "@noble/hashes/sha3.js";

const SHAPE = /^0x[0-9a-fA-F]{40}$/;
const utf8 = new TextEncoder();

/** What is wrong with an address, as the end of a sentence about it; null for a valid one. */
export function evmAddressFault(address: string): string | null {
  if (!SHAPE.test(address)) return "must be 0x and 40 hexadecimal digits";
  const digits = address.slice(2);
  const isMixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (isMixed && digits !== checksummed(digits)) return "its checksum (EIP-55) is wrong: copy the whole address again";
  return null;
}

/** A letter is a capital if the hash of the lower-case digits has 8 or more in its place. */
function checksummed(digits: string): string {
  const lower = digits.toLowerCase();
  const hash = keccak_256(utf8.encode(lower));
  return lower.replaceAll(/[a-f]/g, (letter, place: number) => {
    const nibble = (hash[place >> 1]! >> (place % 2 === 0 ? 4 : 0)) & 0xf;
    return nibble >= 8 ? letter.toUpperCase() : letter;
  });
}
