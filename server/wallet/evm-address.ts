/**
 * Addresses of EVM chains: 0x and 40 hexadecimal digits, whose letters' case is a checksum where it is mixed (EIP-55).
 * Pure: the exchange and its web page both check with it.
 */
import { keccak_256 } from "@noble/hashes/sha3.js";

const SHAPE = /^0x[0-9a-fA-F]{40}$/;
const utf8 = new TextEncoder();

/** What is wrong with an address, as the end of a sentence about it; null where nothing is. */
export function evmAddressFault(address: string): string | null {
  if (!SHAPE.test(address)) return "must be 0x and 40 hexadecimal digits";
  const digits = address.slice(2);
  const isMixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (isMixed && digits !== checksummed(digits)) return "its checksum (EIP-55) is wrong: copy the whole address again";
  return null;
}

/** Letters are capitals where the hash of the digits in lower case has 8 or more at their place. */
function checksummed(digits: string): string {
  const lower = digits.toLowerCase();
  const hash = keccak_256(utf8.encode(lower));
  return lower.replaceAll(/[a-f]/g, (letter, place: number) => {
    const nibble = (hash[place >> 1]! >> (place % 2 === 0 ? 4 : 0)) & 0xf;
    return nibble >= 8 ? letter.toUpperCase() : letter;
  });
}
