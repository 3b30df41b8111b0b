/** JSON off the wire. */
import { isAscii } from "node:buffer";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** @throws Error on malformed UTF-8 or JSON */
export function parseJson(bytes: Buffer): unknown {
  // Most messages are ASCII, which needs neither a check for malformed UTF-8 nor a decoder.
  return JSON.parse(isAscii(bytes) ? bytes.toString("latin1") : utf8.decode(bytes));
}
