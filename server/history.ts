/** The read side's pool: finished orders, fills, trades, candles and transactions, off the gateway's thread. */
import { openSync } from "node:fs";
import type { CandlesOptions } from "./candle-reader.ts";
import { overloaded, STOPPING } from "./errors.ts";
import type { FillsOptions, OrdersOptions, SearchTable, UpdatesOptions, UpdatesPage } from "./history-worker.ts";
import type {
  DepositsOptions,
  Payment,
  SettlementsOptions,
  TextSlice,
  TransactionsOptions,
  Withdrawal,
  WithdrawalsOptions,
} from "./ledger-reader.ts";
import type { ApplicationObject, ApplicationsOptions, AuditOptions } from "./operator-reader.ts";
import type { EndedOrder } from "./order-entry.ts";
import { type HistoryPage, pageJson } from "./paging.ts";
import { ThreadPool } from "./thread-pool.ts";

/** A page of a list as its answer. @param view makes what is shown of an item */
export async function historyPage<T extends object>(
  found: Promise<HistoryPage<T>>,
  view: (item: T) => object = (item) => item,
): Promise<string> {
  const { items, next } = await found;
  return pageJson(
    items.map((item) => JSON.stringify(view(item))),
    next,
  );
}

const THREADS = 2;
const MAX_QUEUED = 1_000;

export class History {
  private readonly pool: ThreadPool;
  /** The database file, for syncing it. Never closed: that would drop the locks that SQLite holds for this process. */
  private readonly file: number;
  private readonly reading = new Set<Promise<unknown>>();
  private isClosing = false;

  /**
   * @param path the database file; it must exist
   * @param onLost gets what a thread of the pool died of
   */
  constructor(path: string, onLost: (error: Error) => void) {
    this.file = openSync(path, "r");
    const file = new URL("./history-worker.js", import.meta.url);
    this.pool = new ThreadPool({ file, threads: THREADS, onLost, maxQueue: MAX_QUEUED, workerData: { path } });
  }

  order(userId: number, orderId: number): Promise<object | null> {
    return this.run("order", { userId, orderId });
  }

  /** What a repeat of an order's placement must know of it. */
  endedOrder(orderId: number): Promise<EndedOrder | null> {
    return this.run("endedOrder", { orderId });
  }

  /** What is credited to a builder code; null where no order came with it. */
  builder(code: string): Promise<object | null> {
    return this.run("builder", { code });
  }

  orders(options: OrdersOptions): Promise<HistoryPage> {
    return this.run("orders", options);
  }

  fills(options: FillsOptions): Promise<HistoryPage> {
    return this.run("fills", options);
  }

  trades(marketId: number, before: number, limit: number): Promise<HistoryPage> {
    return this.run("trades", { marketId, before, limit });
  }

  /** Order updates after a number of their user's sequence. */
  updates(options: UpdatesOptions): Promise<UpdatesPage> {
    return this.run("updates", options);
  }

  /** A JSON array: it is only passed on. */
  candles(options: CandlesOptions): Promise<string> {
    return this.run("candles", options);
  }

  transactions(options: TransactionsOptions): Promise<HistoryPage> {
    return this.run("transactions", options);
  }

  /** Lines of an export of transactions, without its header. */
  transactionLines(options: TransactionsOptions): Promise<TextSlice> {
    return this.run("transactionLines", options);
  }

  deposits(options: DepositsOptions): Promise<HistoryPage<Payment>> {
    return this.run("deposits", options);
  }

  /** The deposit, or payment of the house, that has a reference. */
  payment(reference: string): Promise<Payment | null> {
    return this.run("payment", { reference });
  }

  withdrawals(options: WithdrawalsOptions): Promise<HistoryPage<Withdrawal>> {
    return this.run("withdrawals", options);
  }

  withdrawal(id: number): Promise<Withdrawal | null> {
    return this.run("withdrawal", { id });
  }

  settlements(options: SettlementsOptions): Promise<HistoryPage> {
    return this.run("settlements", options);
  }

  /** Identity applications, as operators see them. */
  applications(options: ApplicationsOptions): Promise<HistoryPage> {
    return this.run("applications", options);
  }

  application(id: number): Promise<ApplicationObject | null> {
    return this.run("application", { id });
  }

  audits(options: AuditOptions): Promise<HistoryPage> {
    return this.run("audits", options);
  }

  hourlyVolumes(since: number): Promise<[marketId: number, hour: number, volume: number][]> {
    return this.run("hourlyVolumes", { since });
  }

  /** Which markets or events have all of `words`, each at a word's start: a bit an id, the lowest bit of a word first. */
  search(table: SearchTable, words: readonly string[]): Promise<Uint32Array> {
    return this.run("search", { table, words });
  }

  /** Copies the WAL's pages into the database file while the journal goes on committing. */
  checkpoint(): Promise<void> {
    return this.run("checkpoint", { file: this.file });
  }

  /** Reads that wait for a thread. */
  get queued(): number {
    return this.pool.queued;
  }

  /** Resolves when the reads under way are answered and the threads ended; whoever comes later is refused. */
  async close(): Promise<void> {
    this.isClosing = true;
    // The pool's own waiting ends too soon where one of its threads has nothing to do.
    await Promise.allSettled(this.reading);
    await this.pool.close();
  }

  private run<T>(name: string, options: object): Promise<T> {
    if (this.isClosing) return Promise.reject(overloaded(STOPPING));
    if (this.pool.queued >= MAX_QUEUED) return Promise.reject(overloaded("too many reads in flight: try again"));
    const read = this.pool.run<T>(name, options);
    this.reading.add(read);
    const ended = (): void => void this.reading.delete(read);
    read.then(ended, ended);
    return read;
  }
}
