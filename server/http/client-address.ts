/**
 * The client address of a request: the socket's address, or the one that trusted proxies report. Never believes a header
 * that the client could have written.
 */
import type { HttpResponse } from "uWebSockets.js";
import { BlockList, isIP, SocketAddress } from "node:net";
import { BoundedMap } from "../util/bounded-map.ts";
import { MAX_CACHED_ADDRESSES } from "./limits.ts";

/** The sender's address of a request. */
export interface ClientAddress {
  /** The IP address, in normal form. */
  readonly address: string;
  /** The address that rate limits count: an IPv4 address, or the /64 of an IPv6 address. */
  readonly client: string;
}

export const NO_ADDRESS: ClientAddress = { address: "", client: "" };

export type AddressReader = (peerAddress: string, xForwardedFor: string) => ClientAddress;

export interface AddressOptions {
  readonly addressOf: AddressReader;
  /** X-Forwarded-For counts where the peer is a trusted proxy. */
  readonly hasProxies: boolean;
}

/** The client's address of a request over HTTP, while its response is open. */
export function clientAddress(
  res: HttpResponse,
  forwardedFor: string,
  { addressOf, hasProxies }: AddressOptions,
): ClientAddress {
  const peer = Buffer.from(res.getRemoteAddressAsText()).toString("latin1");
  return addressOf(peer, hasProxies ? forwardedFor : "");
}

interface Hop extends ClientAddress {
  readonly trusted: boolean;
}

/**
 * @param trustedProxies addresses and CIDR ranges, each an `isAddressRange`
 * @returns a function of the socket's address and all values of X-Forwarded-For, joined by commas in their order
 *   ("" for none): some proxies add a line of their own below the client's
 */
export function createAddressReader(trustedProxies: readonly string[]): AddressReader {
  const trusted = trustedProxies.length === 0 ? null : addressListOf(trustedProxies);
  const known = new BoundedMap<string, Hop>(MAX_CACHED_ADDRESSES);

  /** Undefined where the text isn't an address. */
  const hopOf = (text: string): Hop | undefined => {
    const found = known.get(text);
    if (found !== undefined || !isAddress(text)) return found;
    const address = normalAddress(text);
    const hop = {
      address,
      client: clientOf(address),
      trusted: trusted !== null && isListed(trusted, address),
    };
    // A copy: a slice of a header would keep the whole header alive.
    known.set(Buffer.from(text, "latin1").toString("latin1"), hop);
    return hop;
  };

  return (peerAddress, xForwardedFor) => {
    let hop = hopOf(peerAddress);
    if (hop === undefined) return { address: peerAddress, client: peerAddress };
    // From the nearest hop on: each entry is reported by the hop to its right, and counts while that hop is trusted.
    let end = xForwardedFor.length;
    while (hop.trusted && end > 0) {
      const comma = xForwardedFor.lastIndexOf(",", end - 1);
      const next = hopOf(xForwardedFor.slice(comma + 1, end).trim());
      // Junk names nobody: the last known hop is the client.
      if (next === undefined) break;
      hop = next;
      end = comma;
    }
    return hop;
  };
}

/** True for an IPv4 or IPv6 address, or a CIDR range of such. */
export function isAddressRange(text: string): boolean {
  const slash = text.indexOf("/");
  if (slash === -1) return isAddress(text);
  const bits = text.slice(slash + 1);
  const address = text.slice(0, slash);
  return isAddress(address) && /^\d{1,3}$/.test(bits) && Number(bits) <= (isIP(address) === 4 ? 32 : 128);
}

/** Not with a zone (`fe80::1%eth0`), which has a meaning on one machine only. */
function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes("%");
}

/** True where a range of the list contains the address. */
export function isListed(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}

/** @param ranges each an `isAddressRange` */
export function addressListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    const family = isIP(address) === 4 ? "ipv4" : "ipv6";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

const MAPPED_PREFIX = "::ffff:";

/** The normal form of an address; IPv4 addresses mapped to IPv6 (`::ffff:1.2.3.4`) become IPv4. */
export function normalAddress(text: string): string {
  const { address } = new SocketAddress({ address: text, family: isIP(text) === 4 ? "ipv4" : "ipv6" });
  return address.startsWith(MAPPED_PREFIX) && address.includes(".") ? address.slice(MAPPED_PREFIX.length) : address;
}

/**
 * The address that rate limits count. A subscriber gets a whole /64, and its machines pick new addresses in it at will: a
 * limit per single IPv6 address would limit nobody.
 * @param address in normal form
 */
export function clientOf(address: string): string {
  if (isIP(address) === 4) return address;
  // "::" stands for as many zeros as are missing of eight groups.
  const [start = [], end = []] = address.split("::").map((part) => (part === "" ? [] : part.split(":")));
  const zeros = new Array<string>(8 - start.length - end.length).fill("0");
  const prefix = [...start, ...zeros, ...end].slice(0, 4);
  return `${normalAddress(`${prefix.join(":")}::`)}/64`;
}
