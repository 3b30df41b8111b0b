/**
 * The read side: finished orders, fills, trades, candles and transactions, read on pool threads instead of the gateway's.
 * Readers take turns (fair-reads.ts): users, addresses of public requests, operators, and the exchange itself.
 */

import type { SweepTimes } from "../../engine/projection/writes/sweep.ts";
import { overloaded, STOPPING } from "../errors.ts";
import type { HistoryPage, Listing } from "../http/paging.ts";
import type { Holders } from "../markets/types.ts";
import type { OrderReport } from "../orders/order-json.ts";
import type { EndedOrder } from "../trading/types.ts";
import { ThreadPool } from "../util/thread-pool.ts";
import type { ReversibleDeposit } from "../wallet/types.ts";
import { BatchedLookups } from "./batched-lookups.ts";
import type { BookDays, BookDaysOptions, BookFile, BookFileOptions, BookPieceOptions } from "./book-files.ts";
import type { CandlesOptions } from "./candle-reader.ts";
import type { LinesOptions, TextSlice } from "./export-reader.ts";
import { FairReads } from "./fair-reads.ts";
import type { LogFaults } from "./log-faults.ts";
import type { NewsOptions, NotificationObject, NotificationsOptions } from "./notification-reader.ts";
import type { ApplicationObject, ApplicationsOptions, AuditOptions } from "./operator-reader.ts";
import type { DepositsOptions, Payment, SettlementsOptions, Withdrawal, WithdrawalsOptions } from "./payment-reader.ts";
import type { PictureOptions } from "./picture-reader.ts";
import type { PortfolioHistory, PortfolioOptions } from "./portfolio-reader.ts";
import type { ProjectedReads } from "./projected-reads.ts";
import type { Trail } from "./trail-reader.ts";
import type { TransactionsOptions } from "./transaction-reader.ts";
import type {
  FillsOptions,
  KeyLookup,
  OrdersOptions,
  SearchTable,
  TradesOptions,
  UpdatesOptions,
  UpdatesPage,
} from "./types.ts";

/** The JSON of a page whose items are JSON. */
export async function textPage(listing: Listing, found: Promise<HistoryPage<string>>): Promise<string> {
  const { items, next } = await found;
  return listing.json(items, next);
}

/** The JSON of a page. @param view turns an item into the object that clients see */
export async function historyPage<T extends object>(
  listing: Listing,
  found: Promise<HistoryPage<T>>,
  view: (item: T) => object = (item) => item,
): Promise<string> {
  const { items, next } = await found;
  return listing.json(
    items.map((item) => JSON.stringify(view(item))),
    next,
  );
}

const THREADS = 2;
/** Readers that are not a user. Public reads without an address count as one reader. */
const OPERATORS = "operators";
const EXCHANGE = "exchange";
const LOOKUPS = "lookups";
const PAYMENTS = "payments";
const SEARCHES = "searches";
const userReader = (userId: number | null): string => (userId === null ? OPERATORS : `user ${userId}`);
const publicReader = (address: string): string => `address ${address}`;

/** The files that the pool's threads open. */
export interface HistoryFiles {
  readonly tables: string;
  readonly journal: string;
  /** The folder of book history, which may not exist. */
  readonly bookHistory: string;
}

export class History {
  private readonly pool: ThreadPool;
  private readonly fair = new FairReads(THREADS);
  private readonly orderLookups = new BatchedLookups<number, EndedOrder | null>((orderIds) =>
    this.run(LOOKUPS, "endedOrders", { orderIds }),
  );
  private readonly paymentLookups = new BatchedLookups<string, Payment | null>((references) =>
    this.run(PAYMENTS, "payments", { references }),
  );
  private readonly projected: ProjectedReads;
  private readonly faults: LogFaults;
  private readonly reading = new Set<Promise<unknown>>();
  private isClosing = false;

  /**
   * @param files the tables and the log, which must exist
   * @param projected lets reads wait for the tables
   * @param faults gets what is wrong with the log
   * @param onLost gets the error that a thread of the pool died of
   */
  constructor(files: HistoryFiles, projected: ProjectedReads, faults: LogFaults, onLost: (error: Error) => void) {
    this.projected = projected;
    this.faults = faults;
    const file = new URL("./history-worker.js", import.meta.url);
    this.pool = new ThreadPool({ file, threads: THREADS, startsWith: 0, onLost, workerData: files });
  }

  /** @param clientOrderId if given, it must be the order's */
  order(userId: number, orderId: number, clientOrderId?: string): Promise<string | null> {
    return this.run(userReader(userId), "order", { userId, orderId, clientOrderId });
  }

  /** What a repeat of a placement has to know of the order. @param userId the user whose request it is */
  endedOrder(userId: number, orderId: number): Promise<EndedOrder | null> {
    return this.orderLookups.find(String(userId), orderId);
  }

  /** What is credited to a builder code; null where no order came with it. @param address of the client */
  builder(address: string, code: string): Promise<object | null> {
    return this.run(publicReader(address), "builder", { code });
  }

  orders(options: OrdersOptions): Promise<HistoryPage<string>> {
    return this.run(userReader(options.userId), "orders", options);
  }

  fills(options: FillsOptions): Promise<HistoryPage<string>> {
    return this.run(userReader(options.userId), "fills", options);
  }

  /** @param address of the client */
  trades(address: string, options: TradesOptions): Promise<HistoryPage> {
    return this.run(publicReader(address), "trades", options);
  }

  /** Order updates after a number of their user's sequence. Rejects with an ApiError 50300 where the log is damaged. */
  updates(options: UpdatesOptions): Promise<UpdatesPage<string>> {
    return this.readUpdates("updates", options);
  }

  /** The same as numbers. */
  updateReports(options: UpdatesOptions): Promise<UpdatesPage<OrderReport>> {
    return this.readUpdates("updateReports", options);
  }

  private async readUpdates<T>(task: string, options: UpdatesOptions): Promise<UpdatesPage<T>> {
    const page = await this.run<UpdatesPage<T>>(userReader(options.userId), task, options);
    if (page.damage === null) return page;
    this.faults.report(page.damage);
    throw overloaded("these order updates can't be read: the log is damaged there, and an operator must repair it");
  }

  /** A JSON array, which is passed on unread. @param address of the client */
  candles(address: string, options: CandlesOptions): Promise<string> {
    return this.run(publicReader(address), "candles", options);
  }

  /** A market's picture: a WebP file in base64; null where the market has no such picture. @param address of the client */
  picture(address: string, options: PictureOptions): Promise<string | null> {
    return this.run(publicReader(address), "picture", options);
  }

  /** The days that a market has files of book history of, and those that are missing. @param address of the client */
  bookDays(address: string, options: BookDaysOptions): Promise<BookDays> {
    return this.run(publicReader(address), "bookDays", options);
  }

  /** A file of book history; null where the market has none of that day. @param address of the client */
  bookFile(address: string, options: BookFileOptions): Promise<BookFile | null> {
    return this.run(publicReader(address), "bookFile", options);
  }

  /** A piece of such a file; null where a longer file has replaced it. @param address of the client */
  bookPiece(address: string, options: BookPieceOptions): Promise<Uint8Array | null> {
    return this.run(publicReader(address), "bookPiece", options);
  }

  transactions(options: TransactionsOptions): Promise<HistoryPage> {
    return this.run(userReader(options.userId), "transactions", options);
  }

  /** Lines of an export, without its header. */
  lines(options: LinesOptions): Promise<TextSlice> {
    return this.run(userReader(options.list.userId), "lines", options);
  }

  deposits(options: DepositsOptions): Promise<HistoryPage<Payment>> {
    return this.run(userReader(options.userId), "deposits", options);
  }

  /** The deposit, reversal, or payment of the house, that has a reference, in any case. */
  payment(reference: string): Promise<Payment | null> {
    return this.paymentLookups.find(OPERATORS, reference);
  }

  /** A user's Idempotency-Key, among those since a moment, ms. */
  idempotencyKey(userId: number, key: string, since: number): Promise<KeyLookup> {
    return this.run(userReader(userId), "idempotencyKey", { userId, key, since });
  }

  withdrawals(options: WithdrawalsOptions): Promise<HistoryPage<Withdrawal>> {
    return this.run(userReader(options.userId), "withdrawals", options);
  }

  withdrawal(id: number): Promise<Withdrawal | null> {
    return this.run(OPERATORS, "withdrawal", { id });
  }

  /** The deposit with this id; null if there is none, and for a reversal. */
  reversibleDeposit(id: number): Promise<ReversibleDeposit | null> {
    return this.run(PAYMENTS, "reversibleDeposit", { id });
  }

  /** The withdrawal that was paid with this reference, in any case. */
  withdrawalPaidWith(reference: string): Promise<number | null> {
    return this.run(PAYMENTS, "withdrawalPaidWith", { reference });
  }

  /** The positions with shares of `count` outcomes from `first` on, ordered by user and outcome. */
  holders(first: number, count: number): Promise<Holders> {
    return this.run(EXCHANGE, "holders", { first, count });
  }

  /** True if a sweep would delete rows. */
  hasObsoleteRows(times: SweepTimes): Promise<boolean> {
    return this.run(EXCHANGE, "hasObsoleteRows", times);
  }

  settlements(options: SettlementsOptions): Promise<HistoryPage> {
    return this.run(userReader(options.userId), "settlements", options);
  }

  notifications(options: NotificationsOptions): Promise<NotificationObject[]> {
    return this.run(userReader(options.userId), "notifications", options);
  }

  /** Ids of users, ascending, who got a deposit or a payout. */
  usersWithNews(options: NewsOptions): Promise<number[]> {
    return this.run(EXCHANGE, "usersWithNews", options);
  }

  portfolio(options: PortfolioOptions): Promise<PortfolioHistory> {
    return this.run(userReader(options.userId), "portfolio", options);
  }

  /** Identity applications, as operators see them. */
  applications(options: ApplicationsOptions): Promise<HistoryPage> {
    return this.run(OPERATORS, "applications", options);
  }

  application(id: number): Promise<ApplicationObject | null> {
    return this.run(OPERATORS, "application", { id });
  }

  /** The trail of a user's account: deposits, terms, identity. */
  trail(userId: number): Promise<Trail> {
    return this.run(OPERATORS, "trail", { userId });
  }

  audits(options: AuditOptions): Promise<HistoryPage> {
    return this.run(OPERATORS, "audits", options);
  }

  hourlyVolumes(since: number): Promise<[marketId: number, hour: number, volume: number][]> {
    return this.run(EXCHANGE, "hourlyVolumes", { since });
  }

  /**
   * The price at the end of each hour since a moment, and the last one before it, of the outcomes that can be traded.
   * @returns outcome id, hour and BPS in turn; ascending by hour for each outcome
   */
  hourlyPrices(since: number): Promise<Int32Array> {
    return this.run(EXCHANGE, "hourlyPrices", { since });
  }

  /** The markets or events that have all of `words`, each at a word's start: one bit per id, the lowest bit first. */
  search(table: SearchTable, words: readonly string[]): Promise<Uint32Array> {
    return this.run(SEARCHES, "search", { table, words });
  }

  /** Reads that wait for a thread. */
  get queued(): number {
    return this.fair.queued;
  }

  /** Resolves once running reads are done and the threads have ended; later reads are rejected. */
  async close(): Promise<void> {
    this.isClosing = true;
    // The pool's own wait ends too soon where one of its threads is idle.
    await Promise.allSettled(this.reading);
    await this.pool.close();
  }

  private run<T>(reader: string, name: string, options: object): Promise<T> {
    if (this.isClosing) return Promise.reject(overloaded(STOPPING));
    const behind = this.projected.caughtUp();
    const start = (): Promise<T> => this.fair.run(reader, () => this.pool.run<T>(name, options));
    const read = behind === undefined ? start() : behind.then(start);
    this.reading.add(read);
    const ended = (): void => void this.reading.delete(read);
    read.then(ended, ended);
    return read;
  }
}
