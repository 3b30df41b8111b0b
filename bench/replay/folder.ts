/**
 * Reads a folder of recorded orders: markets.json (`{market, question, outcomes}`) and orders.jsonl.gz, or orders.jsonl
 * (`{market, outcome, side, price, quantity, user}`, one per line, in sending order). Another shape, or an unknown
 * name, ends the replay with a line that names the place. The exchange decides which sides, prices and quantities are
 * valid.
 */
import { existsSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";
import { MAX_OUTCOMES, MIN_OUTCOMES } from "../../engine/limits.ts";
import { itemAt } from "../support/item-at.ts";

/** An error in the folder, with a message for its owner. */
export class FolderError extends Error {}

interface RecordedMarket {
  /** As the file names it. */
  readonly name: string;
  readonly question: string;
  readonly outcomes: readonly string[];
}

export interface RecordedOrder {
  /** In the file, from 1. */
  readonly line: number;
  /** Index in `markets`. */
  readonly market: number;
  readonly outcome: number;
  readonly side: number;
  readonly price: number;
  readonly quantity: number;
  /** Index in `users`. */
  readonly user: number;
}

export interface Recording {
  /** Of the folder, fit for slugs and addresses. */
  readonly name: string;
  readonly markets: readonly RecordedMarket[];
  /** In the order of their first orders. */
  readonly users: readonly string[];
  readonly orders: readonly RecordedOrder[];
}

/** @throws FolderError */
export function readRecording(folder: string): Recording {
  if (!existsSync(folder)) throw new FolderError(`${folder}: no such folder`);
  const markets = readMarkets(join(folder, "markets.json"));
  const name = basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return { name: name === "" ? "replay" : name, markets, ...readOrders(folder, markets) };
}

function readFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new FolderError(`${path}: ${(error as NodeJS.ErrnoException).code === "ENOENT" ? "no such file" : error}`);
  }
}

function parse(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new FolderError(`${where}: ${(error as Error).message}`);
  }
}

function isName(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

function readMarkets(path: string): RecordedMarket[] {
  const list = parse(readFile(path).toString(), path);
  if (!Array.isArray(list) || list.length === 0) throw new FolderError(`${path}: must be a list of markets`);
  const names = new Set<string>();
  return list.map((entry: unknown, i) => {
    const { market, question, outcomes } = (entry ?? {}) as Record<string, unknown>;
    const where = `${path}: market ${i + 1}`;
    if (!isName(market)) throw new FolderError(`${where}: "market" must be a number or a text`);
    const name = String(market);
    if (names.has(name)) throw new FolderError(`${where}: ${name} is listed twice`);
    names.add(name);
    if (typeof question !== "string" || question === "") {
      throw new FolderError(`${where} (${name}): "question" must be a text`);
    }
    const areTexts = Array.isArray(outcomes) && outcomes.every((text) => typeof text === "string" && text !== "");
    if (!areTexts || outcomes.length < MIN_OUTCOMES || outcomes.length > MAX_OUTCOMES) {
      throw new FolderError(`${where} (${name}): "outcomes" must be ${MIN_OUTCOMES} to ${MAX_OUTCOMES} texts`);
    }
    return { name, question, outcomes: outcomes as string[] };
  });
}

function readOrders(
  folder: string,
  markets: readonly RecordedMarket[],
): { orders: RecordedOrder[]; users: readonly string[] } {
  const zipped = join(folder, "orders.jsonl.gz");
  const plain = join(folder, "orders.jsonl");
  const path = existsSync(zipped) || !existsSync(plain) ? zipped : plain;
  const marketIndexes = new Map(markets.map(({ name }, i) => [name, i]));
  const userIndexes = new Map<string, number>();
  const orders: RecordedOrder[] = [];
  textOf(path)
    .split("\n")
    .forEach((text, i) => {
      if (text.trim() === "") return;
      const where = `${path} line ${i + 1}`;
      const fields = parse(text, where) as Record<string, unknown> | null;
      if (typeof fields !== "object" || fields === null) throw new FolderError(`${where}: must be an object`);
      const { market, outcome, side, price, quantity, user } = fields;
      if (!isName(market)) throw new FolderError(`${where}: "market" must be a number or a text`);
      if (!isName(user)) throw new FolderError(`${where}: "user" must be a number or a text`);
      for (const [name, value] of Object.entries({ outcome, side, price, quantity })) {
        if (typeof value !== "number") throw new FolderError(`${where}: "${name}" must be a number`);
      }
      const index = marketIndexes.get(String(market));
      if (index === undefined) throw new FolderError(`${where}: market ${market} is not in markets.json`);
      if (itemAt(markets, index).outcomes[outcome as number] === undefined) {
        throw new FolderError(`${where}: market ${market} has no outcome ${outcome}`);
      }
      let userIndex = userIndexes.get(String(user));
      if (userIndex === undefined) userIndexes.set(String(user), (userIndex = userIndexes.size));
      const numbers = { outcome, side, price, quantity } as Record<"outcome" | "side" | "price" | "quantity", number>;
      orders.push({ line: i + 1, market: index, user: userIndex, ...numbers });
    });
  if (orders.length === 0) throw new FolderError(`${path}: holds no orders`);
  return { orders, users: [...userIndexes.keys()] };
}

function textOf(path: string): string {
  const bytes = readFile(path);
  if (!path.endsWith(".gz")) return bytes.toString();
  try {
    return gunzipSync(bytes).toString();
  } catch (error) {
    throw new FolderError(`${path}: not a complete gzip file (${(error as Error).message})`);
  }
}
