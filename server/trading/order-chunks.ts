/**
 * The live orders and the recent client order ids of the tables, in chunks of numbers: a million of them cross from the
 * threads that read them to the gateway without a value of JavaScript for each column. A chunk's memory is shared and used
 * again: its reader writes it, then the gateway owns it until it is done with it.
 */
import type { LiveOrder } from "../../engine/projection/load/orders.ts";
import { OrderTexts } from "../../engine/ring/order-texts.ts";
import { FLAG_TEXT } from "../../engine/ring/records.ts";

/** Orders, or client order ids, of a chunk at most. */
export const CHUNK_ORDERS = 4_096;

/** The doubles of a live order. */
const D_ID = 0;
const D_USER = 1;
const D_OUTCOME = 2;
const D_TERMS = 3;
const D_PRICE = 4;
const D_QUANTITY = 5;
const D_REMAINING = 6;
const D_STATUS = 7;
const D_EXPIRES_AT = 8;
const D_CREATED_AT = 9;
const D_UPDATED_AT = 10;
const D_PRIORITY = 11;
/** 0 where the order's client order id isn't to be entered with it. */
const D_KEY = 12;
const ORDER_DOUBLES = 13;

/** The doubles of a client order id: its key, and the order that it names. */
const D_NAME_KEY = 0;
const D_NAME_USER = 1;
const D_NAME_ORDER = 2;
const D_NAME_AT = 3;
const NAME_DOUBLES = 4;

export interface ChunkMemory {
  readonly numbers: SharedArrayBuffer;
  readonly texts: SharedArrayBuffer;
}

/** Memory for a chunk of live orders, with their texts in the layout of `OrderTexts`: order `i` has slot `i`. */
export function createOrderChunk(): ChunkMemory {
  return {
    numbers: new SharedArrayBuffer(CHUNK_ORDERS * ORDER_DOUBLES * 8),
    texts: new OrderTexts(CHUNK_ORDERS).buffer,
  };
}

/** Memory for a chunk of client order ids. */
export function createNameChunk(): ChunkMemory {
  return { numbers: new SharedArrayBuffer(CHUNK_ORDERS * NAME_DOUBLES * 8), texts: new SharedArrayBuffer(0) };
}

/** Live orders of a chunk: `at(i)` moves to the order at index `i`, whose fields the others return. */
export class OrderChunk {
  readonly texts: OrderTexts;
  index = 0;
  private readonly numbers: Float64Array;
  private base = 0;

  constructor({ numbers, texts }: ChunkMemory) {
    this.numbers = new Float64Array(numbers);
    this.texts = new OrderTexts(texts);
  }

  at(index: number): this {
    this.index = index;
    this.base = index * ORDER_DOUBLES;
    return this;
  }

  /** @param key of its client order id where that is to be entered with the order, else 0 */
  write(order: LiveOrder, key: number): void {
    const { numbers, base } = this;
    numbers[base + D_ID] = order.id;
    numbers[base + D_USER] = order.user;
    numbers[base + D_OUTCOME] = order.outcome;
    numbers[base + D_TERMS] = order.terms;
    numbers[base + D_PRICE] = order.price;
    numbers[base + D_QUANTITY] = order.quantity;
    numbers[base + D_REMAINING] = order.remaining;
    numbers[base + D_STATUS] = order.status;
    numbers[base + D_EXPIRES_AT] = order.expiresAt;
    numbers[base + D_CREATED_AT] = order.createdAt;
    numbers[base + D_UPDATED_AT] = order.updatedAt;
    numbers[base + D_PRIORITY] = order.priority;
    numbers[base + D_KEY] = key;
    if ((order.terms & FLAG_TEXT) === 0) return;
    this.texts.write(this.index, order.clientOrderId, order.builderCode, order.fingerprint ?? 0);
  }

  get id(): number {
    return this.numbers[this.base + D_ID]!;
  }

  get user(): number {
    return this.numbers[this.base + D_USER]!;
  }

  get outcome(): number {
    return this.numbers[this.base + D_OUTCOME]!;
  }

  get terms(): number {
    return this.numbers[this.base + D_TERMS]!;
  }

  get price(): number {
    return this.numbers[this.base + D_PRICE]!;
  }

  get quantity(): number {
    return this.numbers[this.base + D_QUANTITY]!;
  }

  get remaining(): number {
    return this.numbers[this.base + D_REMAINING]!;
  }

  get status(): number {
    return this.numbers[this.base + D_STATUS]!;
  }

  get expiresAt(): number {
    return this.numbers[this.base + D_EXPIRES_AT]!;
  }

  get createdAt(): number {
    return this.numbers[this.base + D_CREATED_AT]!;
  }

  get updatedAt(): number {
    return this.numbers[this.base + D_UPDATED_AT]!;
  }

  get priority(): number {
    return this.numbers[this.base + D_PRIORITY]!;
  }

  get key(): number {
    return this.numbers[this.base + D_KEY]!;
  }
}

/** Client order ids of a chunk, like `OrderChunk`. */
export class NameChunk {
  private readonly numbers: Float64Array;
  private base = 0;

  constructor({ numbers }: ChunkMemory) {
    this.numbers = new Float64Array(numbers);
  }

  at(index: number): this {
    this.base = index * NAME_DOUBLES;
    return this;
  }

  write(key: number, user: number, order: number, at: number): void {
    const { numbers, base } = this;
    numbers[base + D_NAME_KEY] = key;
    numbers[base + D_NAME_USER] = user;
    numbers[base + D_NAME_ORDER] = order;
    numbers[base + D_NAME_AT] = at;
  }

  get key(): number {
    return this.numbers[this.base + D_NAME_KEY]!;
  }

  get user(): number {
    return this.numbers[this.base + D_NAME_USER]!;
  }

  get order(): number {
    return this.numbers[this.base + D_NAME_ORDER]!;
  }

  /** When it was placed, ms. */
  get createdAt(): number {
    return this.numbers[this.base + D_NAME_AT]!;
  }
}

/** A chunk that is full, or the last: the index of its memory, and how many entries it has. */
export interface Filled {
  readonly index: number;
  readonly count: number;
}

/** Fills the memory of one chunk after the other with `entries`, as the memories' owner lets it. */
export function* fillChunks<T>(
  entries: Iterable<T>,
  memories: number,
  write: (memory: number, at: number, entry: T) => void,
): Generator<Filled> {
  let [index, count] = [0, 0];
  for (const entry of entries) {
    write(index, count++, entry);
    if (count < CHUNK_ORDERS) continue;
    yield { index, count };
    index = (index + 1) % memories;
    count = 0;
  }
  if (count > 0) yield { index, count };
}
