/**
 * Reads live orders and recent client order ids from the tables at a start. Where there are many, two threads read them
 * while the gateway enters them: SQLite's rows take longer than slots, holds and books.
 */
import type { Worker } from "node:worker_threads";
import type Database from "better-sqlite3";
import { firstIdSince, hasManyOrders } from "../../engine/projection/load/orders.ts";
import {
  CHUNK_ORDERS,
  type ChunkMemory,
  createNameChunk,
  createOrderChunk,
  type Filled,
  NameChunk,
  OrderChunk,
} from "../trading/order-chunks.ts";
import {
  fillList,
  type Naming,
  type OrderList,
  type OrderReaderMessage,
  type OrderReaderSetup,
} from "./order-lists.ts";
import { startThread, threadLoaded } from "./threads.ts";

/** Chunks that a thread may be ahead of the gateway, plus one. */
const THREAD_CHUNKS = 8;

/** A chunk is the caller's until it asks for the next. */
export interface OrderSource {
  /** Resolves once its threads have loaded their modules. */
  readonly loaded: Promise<void>;
  /** Live orders by id. The key is that of an id that `names` doesn't have. */
  orders(): AsyncIterable<{ readonly chunk: OrderChunk; readonly count: number }>;
  /** Ids of orders placed since, the oldest first. */
  names(): AsyncIterable<{ readonly chunk: NameChunk; readonly count: number }>;
}

/** The memory of `count` chunks of a list. */
function createMemories(list: OrderList, count: number): ChunkMemory[] {
  return Array.from({ length: count }, list === "orders" ? createOrderChunk : createNameChunk);
}

/** Begins to read where threads do. @param path of the tables @param naming of the gateway's own ids */
export function openOrderSource(db: Database.Database, path: string, naming: Naming): OrderSource {
  const firstNamed = firstIdSince(db, "orders", naming.since);
  // What fits a chunk isn't worth a thread.
  return hasManyOrders(db, CHUNK_ORDERS, firstNamed) ? readInThreads(path, naming) : readHere(db, naming);
}

/** Reads in the caller's thread. */
export function readHere(db: Database.Database, naming: Naming): OrderSource {
  return {
    loaded: Promise.resolve(),
    async *orders() {
      const [memory] = createMemories("orders", 1);
      const chunk = new OrderChunk(memory!);
      for (const { count } of fillList(db, "orders", [memory!], naming)) yield { chunk, count };
    },
    async *names() {
      const [memory] = createMemories("names", 1);
      const chunk = new NameChunk(memory!);
      for (const { count } of fillList(db, "names", [memory!], naming)) yield { chunk, count };
    },
  };
}

function readInThreads(path: string, naming: Naming): OrderSource {
  const [orders, names] = [new OrderReader("orders", path, naming), new OrderReader("names", path, naming)];
  return {
    loaded: Promise.all([orders.loaded, names.loaded]).then(() => {}),
    async *orders() {
      const chunks = orders.memories.map((memory) => new OrderChunk(memory));
      for await (const { index, count } of orders.filled()) yield { chunk: chunks[index]!, count };
    },
    async *names() {
      const chunks = names.memories.map((memory) => new NameChunk(memory));
      for await (const { index, count } of names.filled()) yield { chunk: chunks[index]!, count };
    },
  };
}

/** A thread that reads one list. */
class OrderReader {
  readonly memories: readonly ChunkMemory[];
  private readonly released = new Int32Array(new SharedArrayBuffer(4));
  private readonly messages: OrderReaderMessage[] = [];
  private readonly worker: Worker;
  private readonly ended: Promise<unknown>;
  readonly loaded: Promise<void>;
  private wake: () => void = () => {};

  constructor(list: OrderList, path: string, naming: Naming) {
    this.memories = createMemories(list, THREAD_CHUNKS);
    const setup: OrderReaderSetup = {
      ...{ path, list, memories: this.memories, naming },
      released: this.released.buffer as SharedArrayBuffer,
    };
    this.worker = startThread("order-reader-worker", setup, []);
    this.ended = new Promise((resolve) => this.worker.once("exit", resolve));
    this.loaded = threadLoaded(this.worker);
    this.worker.on("message", (message: OrderReaderMessage) => this.take(message));
    this.worker.on("error", ({ stack, message }) => this.take({ failed: stack ?? message, code: undefined }));
  }

  private take(message: OrderReaderMessage): void {
    this.messages.push(message);
    this.wake();
  }

  async *filled(): AsyncGenerator<Filled> {
    for (;;) {
      while (this.messages.length === 0) await new Promise<void>((resolve) => (this.wake = resolve));
      const message = this.messages.shift()!;
      if ("failed" in message) throw Object.assign(new Error(message.failed), { code: message.code });
      if ("end" in message) break;
      yield message;
      Atomics.add(this.released, 0, 1);
      Atomics.notify(this.released, 0);
    }
    // A process that exits while one of its threads does can abort.
    await this.ended;
  }
}
