/**
 * The lists of live orders and of recent client order ids that a start reads from the tables, packed into chunks. Starts no
 * thread: the one that reads a list loads this module.
 */
import type Database from "better-sqlite3";
import { firstIdSince, loadClientOrders, loadLiveOrders } from "../../engine/projection/load/orders.ts";
import { ClientOrderKeys } from "../trading/client-order-keys.ts";
import { type ChunkMemory, type Filled, fillChunks, NameChunk, OrderChunk } from "../trading/order-chunks.ts";

export type OrderList = "orders" | "names";

/** What decides which client order ids a start enters. */
export interface Naming {
  /** ms: ids of orders placed before are entered while these live. */
  readonly since: number;
  /** `ClientOrderKeys`. */
  readonly salt: number;
}

/** Fills one chunk after the other with a list, as long as the caller asks for the next. @throws SqliteError */
export function fillList(
  db: Database.Database,
  list: OrderList,
  memories: readonly ChunkMemory[],
  { since, salt }: Naming,
): Generator<Filled> {
  const keys = new ClientOrderKeys(salt);
  // Client order ids before it are restored only with live orders. These are nearly always, but not after each step of
  // the clock, the older ones.
  const firstNamed = firstIdSince(db, "orders", since);
  if (list === "orders") {
    const chunks = memories.map((memory) => new OrderChunk(memory));
    return fillChunks(loadLiveOrders(db), memories.length, (index, at, order) => {
      const { id, user, clientOrderId, createdAt } = order;
      const isAlone = clientOrderId !== null && (id < firstNamed || createdAt <= since);
      chunks[index]!.at(at).write(order, isAlone ? keys.of(user, clientOrderId) : 0);
    });
  }
  const chunks = memories.map((memory) => new NameChunk(memory));
  return fillChunks(loadClientOrders(db, firstNamed, since), memories.length, (index, at, row) => {
    const [id, user, name, createdAt] = row;
    chunks[index]!.at(at).write(keys.of(user, name), user, id, createdAt);
  });
}

/** What a thread of this list is started with. */
export interface OrderReaderSetup {
  readonly path: string;
  readonly list: OrderList;
  readonly memories: readonly ChunkMemory[];
  readonly naming: Naming;
  /** One word: the chunks that the gateway is done with. */
  readonly released: SharedArrayBuffer;
}

/** The thread's messages: each chunk; the end; what failed, with SQLite's code. */
export type OrderReaderMessage =
  | Filled
  | { readonly end: true }
  | { readonly failed: string; readonly code: string | undefined };
