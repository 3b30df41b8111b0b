/**
 * Who holds the connections of a port: uWebSockets.js says that one closed, but not whose it was, so the system is asked.
 * Linux only: /proc/net/tcp and tcp6 (https://www.kernel.org/doc/Documentation/networking/proc_net_tcp.txt).
 */
import { createReadStream } from "node:fs";
import { endianness } from "node:os";
import { createInterface } from "node:readline";
import { clientOf, normalAddress } from "./client-address.ts";

const TABLES = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
const ESTABLISHED = "01";
/** ` sl: local:port remote:port state`: an address is one word of 32 bits, or four. */
const CONNECTION = /^ *\d+: [\dA-F]+:([\dA-F]{4}) ([\dA-F]+):[\dA-F]{4} ([\dA-F]{2}) /;
const MAPPED = /^0000000000000000(?:FFFF0000|0000FFFF)/;
const IS_LITTLE = endianness() === "LE";

/** A word of an address, in the order of the network. */
function wordOf(hex: string): Buffer {
  const word = Buffer.from(hex, "hex");
  return IS_LITTLE ? word.reverse() : word;
}

/** The client that an address of the table counts as. */
function clientOfHex(hex: string): string {
  if (hex.length === 8) return wordOf(hex).join(".");
  const words = hex.match(/.{8}/g)!.map((word) => wordOf(word).toString("hex"));
  return clientOf(normalAddress(words.join("").match(/.{4}/g)!.join(":")));
}

/**
 * The clients that hold at least `least` connections of the port, and how many; WebSockets count too. The text is read in
 * pieces, a turn of the event loop each: 20,000 connections are 3 MB.
 * @throws Error where the system has no such tables
 */
export async function countClients(port: number, least: number): Promise<Map<string, number>> {
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  const counts = new Map<string, number>();
  for (const table of TABLES) {
    for await (const line of createInterface({ input: createReadStream(table) })) {
      const found = CONNECTION.exec(line);
      if (found === null || found[1] !== hexPort || found[3] !== ESTABLISHED) continue;
      // A client of IPv6 is a /64: the first two words.
      const hex = found[2]!;
      const key = hex.length === 8 || MAPPED.test(hex) ? hex.slice(-8) : hex.slice(0, 16).padEnd(32, "0");
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  const most = [...counts].filter(([, count]) => count >= least);
  return new Map(most.map(([key, count]) => [clientOfHex(key), count]));
}
