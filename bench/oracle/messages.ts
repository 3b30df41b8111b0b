/**
 * The oracle's message file: `N,id,B|S,quantity,price[,1 = IOC]` places, `C,id` cancels, `M,id,side,quantity,price`
 * modifies; a message's sequence is its line number from 0. Reads a file, gzip or plain, into columns.
 */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { Side } from "../../engine/constants.ts";

export const MessageKind = { place: 0, cancel: 1, modify: 2 } as const;

/** The whole file; an entry a line. A cancel has only an id. */
export interface Messages {
  readonly count: number;
  readonly kinds: Uint8Array;
  readonly ids: Float64Array;
  readonly sides: Uint8Array;
  readonly quantities: Int32Array;
  readonly prices: Int32Array;
  /** 1 for an immediate-or-cancel placement. */
  readonly immediate: Uint8Array;
}

const LINE =
  /(?:(N),(\d{1,15}),([BS]),(\d{1,10}),(-?\d{1,10})(?:,([01]))?|(M),(\d{1,15}),([BS]),(\d{1,10}),(-?\d{1,10})|C,(\d{1,15}))\r?(?:\n|$)/y;

/** @throws Error if the file can't be read, or with the line number of an invalid message */
export function readMessages(path: string): Messages {
  const bytes = readFileSync(path);
  const zipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  return parseMessages((zipped ? gunzipSync(bytes) : bytes).toString("latin1"));
}

export function parseMessages(text: string): Messages {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  const kinds = new Uint8Array(lines);
  const ids = new Float64Array(lines);
  const sides = new Uint8Array(lines);
  const quantities = new Int32Array(lines);
  const prices = new Int32Array(lines);
  const immediate = new Uint8Array(lines);
  let count = 0;
  LINE.lastIndex = 0;
  for (let at = 0; at < text.length; at = LINE.lastIndex) {
    const match = LINE.exec(text);
    if (match === null) {
      if (text.slice(at).trim() === "") break;
      throw new Error(`line ${count + 1} is no message: ${text.slice(at, at + 80).split("\n", 1)[0]}`);
    }
    const [line, place, newId, newSide, newQuantity, newPrice, ioc, modify, id, side, quantity, price, cancelId] =
      match;
    ids[count] = Number(newId ?? id ?? cancelId);
    kinds[count] = place ? MessageKind.place : modify ? MessageKind.modify : MessageKind.cancel;
    if (place || modify) {
      sides[count] = (newSide ?? side) === "B" ? Side.buy : Side.sell;
      quantities[count] = int32(newQuantity ?? quantity, 1, count, line);
      prices[count] = int32(newPrice ?? price, -(2 ** 31), count, line);
      immediate[count] = ioc === "1" ? 1 : 0;
    }
    count++;
  }
  return { count, kinds, ids, sides, quantities, prices, immediate };
}

function int32(digits: string | undefined, least: number, index: number, line: string): number {
  const value = Number(digits);
  if (value >= least && value === (value | 0)) return value;
  throw new Error(`line ${index + 1} has a number out of range: ${line.trim()}`);
}
