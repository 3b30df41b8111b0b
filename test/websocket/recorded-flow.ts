/**
 * Replays the recorded order books of ../shared/data/betfair as a flow of orders. Each level of a runner is one maker's
 * order: the flow places, amends and cancels it so that the level has the recorded size. Each increase of the traded
 * volume at a price is a taker's order there. The flow sends batches over WebSockets, several in flight, all markets in
 * parallel. It reads the folder in place and never judges the outcome of the orders.
 */
import { existsSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { WebSocket } from "ws";
import { API_BASE, type Client, type OrderJson } from "../support/client.ts";
import { BUY, SELL } from "../support/terms.ts";
import { ALL_SCOPES, tokenOf, USDC, type UserSpec, type World } from "../support/world.ts";

const FOLDER = new URL("../../../shared/data/betfair/", import.meta.url);
const HOUR_MS = 3_600_000;
/**
 * The most shares of a level: larger sizes are reduced to the remainder, so that no account runs out of money, shares or
 * daily activity. Changes stay changes, and prices stay the same.
 */
const MAX_LEVEL_SHARES = 20;
const MAX_TAKEN_SHARES = 3;
/** Complete sets of each seller. */
const SETS = 40_000;
const DEPOSIT = 2 * SETS * USDC;
const ROLES = ["buyer", "seller", "taker"] as const;
type Role = (typeof ROLES)[number];

/** Of each account's tokens: what it connects with, so that its money is no news, and what it asks REST with. */
const [CONNECTS, READS] = [0, 1];
const BATCH = 50;
const BATCHES_UNDER_WAY = 8;

/** `atb` resting sells, `atl` resting buys: absolute size of a level. `trd`: the volume traded so far. */
type Kind = "atb" | "atl" | "trd";

interface Row {
  readonly at: number;
  /** Index of the market, and of the outcome in it. */
  readonly market: number;
  readonly outcome: number;
  readonly kind: Kind;
  readonly odds: string;
  readonly price: number;
  readonly shares: number;
}

export interface Recording {
  /** The number of outcomes of each market. */
  readonly markets: readonly number[];
  /** All markets side by side, each in its own order. */
  readonly rows: readonly Row[];
  /** Recorded time, of all markets together. */
  readonly hours: number;
  /** The most rows of one market within an hour. */
  readonly busiestHour: number;
}

/** Null if the folder is missing. */
export function readRecording(): Recording | null {
  if (!existsSync(FOLDER)) return null;
  const listed = JSON.parse(readFileSync(new URL("markets.json", FOLDER), "utf8")) as {
    market_id: string;
    runners: { id: number }[];
  }[];
  const outcomes = listed.map(({ runners }) => runners.map(({ id }) => String(id)));
  const indexes = new Map(listed.map(({ market_id }, index) => [market_id, index]));
  const byMarket: Row[][] = listed.map(() => []);
  const text = gunzipSync(readFileSync(new URL("l2_deltas.csv.gz", FOLDER))).toString();
  for (const line of text.trimEnd().split("\n").slice(1)) {
    const [at, id, runner, kind, odds, , price, shares] = line.split(",") as string[];
    const market = indexes.get(id!)!;
    const outcome = outcomes[market]!.indexOf(runner!);
    const what = { at: Number(at), market, outcome, kind: kind as Kind, odds: odds! };
    byMarket[market]!.push({ ...what, price: Number(price), shares: Number(shares) });
  }
  return {
    markets: outcomes.map((runners) => runners.length),
    rows: sideBySide(byMarket),
    hours: byMarket.reduce((sum, rows) => sum + (rows.at(-1)!.at - rows[0]!.at) / HOUR_MS, 0),
    busiestHour: Math.max(...byMarket.map(busiestHour)),
  };
}

function sideBySide(byMarket: readonly (readonly Row[])[]): Row[] {
  const placed = byMarket.flatMap((rows) => rows.map((row, i) => ({ row, at: (i + 1) / rows.length })));
  return placed.sort((a, b) => a.at - b.at).map(({ row }) => row);
}

function busiestHour(rows: readonly Row[]): number {
  let most = 0;
  let first = 0;
  for (const [i, { at }] of rows.entries()) {
    while (rows[first]!.at <= at - HOUR_MS) first++;
    most = Math.max(most, i - first + 1);
  }
  return most;
}

const userName = (market: number, role: Role): string => `${role}-${market}`;

/** The traders: in each market a buyer, a seller and a taker. */
export function tradersFor({ markets }: Recording): Record<string, UserSpec> {
  const names = markets.flatMap((_, market) => ROLES.map((role) => userName(market, role)));
  const spec = { deposit: DEPOSIT, scopes: [["orders:write"], ALL_SCOPES], terms: { daily_limit: DEPOSIT } };
  return Object.fromEntries(names.map((name) => [name, spec]));
}

interface Order {
  readonly account: Account;
  readonly name: string;
  readonly level: Level;
  /** Null until the response arrives. */
  id: number | null;
  filled: number;
}

/** One price of one side in the file. */
interface Level {
  order: Order | null;
  /** For `trd`: the volume traded so far. */
  shares: number;
}

interface Result {
  readonly code: number;
  readonly msg: string;
  readonly data: OrderJson | null;
}

interface BatchAnswer {
  readonly id: number;
  readonly code: number;
  readonly msg: string;
  readonly data: { readonly results: readonly Result[] };
}

interface Operation {
  readonly json: object;
  /** Null for takers, whose orders are not needed again. */
  readonly order: Order | null;
}

/** One user's connection, with the operations that are not yet sent. */
class Account {
  operations: Operation[] = [];
  private readonly flow: RecordedFlow;
  private readonly socket: WebSocket;
  /** By the number of the batch: the response to one with lookups may follow that of the next. */
  private readonly underWay = new Map<number, readonly Operation[]>();
  private lastId = 0;

  private constructor(flow: RecordedFlow, socket: WebSocket) {
    this.flow = flow;
    this.socket = socket;
    socket.on("message", (bytes: Buffer) => this.receive(bytes.toString()));
    socket.on("close", () => flow.fail(new Error("the exchange closed a trader's connection")));
  }

  static async open(flow: RecordedFlow, root: string, token: string): Promise<Account> {
    const socket = new WebSocket(`${root.replace("http", "ws")}${API_BASE}/ws?token=${token}`);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", reject);
    });
    return new Account(flow, socket);
  }

  send(): void {
    const { operations } = this;
    this.operations = [];
    const id = ++this.lastId;
    this.underWay.set(id, operations);
    const data = { operations: operations.map(({ json }) => json) };
    this.socket.send(JSON.stringify({ op: "order.batch", data, id }));
  }

  close(): void {
    this.socket.removeAllListeners("close");
    this.socket.close();
  }

  private receive(text: string): void {
    if (text.startsWith('{"event"')) {
      // Most orders rest unchanged: ignore them.
      if (text.startsWith('{"event":"order.updated"') && !text.includes('"status":"open"')) {
        this.flow.updated((JSON.parse(text) as { data: OrderJson }).data);
      }
      return;
    }
    const { id, code, msg, data } = JSON.parse(text) as BatchAnswer;
    if (code !== 0) return this.flow.fail(new Error(`order.batch: ${code} ${msg}`));
    const operations = this.underWay.get(id)!;
    this.underWay.delete(id);
    for (const [i, operation] of operations.entries()) this.flow.answered(operation, data.results[i]!);
    this.flow.batchAnswered();
  }
}

export class RecordedFlow {
  operations = 0;
  /** Rejections, by code. */
  readonly refused = new Map<number, number>();
  private readonly recording: Recording;
  private readonly world: World;
  private readonly pace: () => Promise<void>;
  /** By their users' names. */
  private readonly accounts = new Map<string, Account>();
  private readonly levels = new Map<string, Level>();
  private readonly orders = new Map<string, Order>();
  private names = 0;
  private batchesUnderWay = 0;
  private fault: Error | null = null;
  private wake: () => void = () => {};

  /** @param pace awaited before each batch, so that followers can keep up */
  constructor(world: World, recording: Recording, pace: () => Promise<void>) {
    this.world = world;
    this.recording = recording;
    this.pace = pace;
  }

  /** Sends the whole recording; resolves with the last response. @throws Error if a batch or a connection failed */
  async run(): Promise<void> {
    for (const row of this.recording.rows) {
      if (row.kind === "trd") await this.trade(row);
      else await this.setLevel(row);
    }
    for (const account of this.accounts.values()) if (account.operations.length > 0) await this.send(account);
    await this.until(() => this.batchesUnderWay === 0);
  }

  /** REST clients of all traders. */
  traders(): Client[] {
    return [...this.accounts.keys()].map((name) => this.world.client(name, READS));
  }

  close(): void {
    for (const account of this.accounts.values()) account.close();
  }

  fail(error: Error): void {
    this.fault ??= error;
    this.wake();
  }

  private level({ market, outcome, odds }: Row, kind: Kind): Level {
    const key = `${market}/${outcome}/${kind}/${odds}`;
    const known = this.levels.get(key);
    if (known !== undefined) return known;
    const level = { order: null, shares: 0 };
    this.levels.set(key, level);
    return level;
  }

  private async trade(row: Row): Promise<void> {
    const level = this.level(row, "trd");
    const more = row.shares - level.shares;
    level.shares = row.shares;
    if (more <= 0) return;
    const account = await this.accountOf(row.market, "taker");
    const side = this.level(row, "atb").order === null ? SELL : BUY;
    const order = this.terms(row, side, 1 + (more % MAX_TAKEN_SHARES));
    await this.put(account, { json: { op: "place", ...order, time_in_force: "ioc" }, order: null });
  }

  private async setLevel(row: Row): Promise<void> {
    const level = this.level(row, row.kind);
    const { order } = level;
    const wanted = row.shares === 0 ? 0 : 1 + ((row.shares - 1) % MAX_LEVEL_SHARES);
    if (order !== null && order.id !== null && wanted > 0) {
      const json = { op: "amend", id: order.id, quantity: order.filled + wanted };
      return this.put(order.account, { json, order });
    }
    if (order !== null) {
      level.order = null;
      await this.put(order.account, { json: { op: "cancel", client_order_id: order.name }, order });
    }
    if (wanted > 0) await this.place(row, level, wanted);
  }

  private async place(row: Row, level: Level, quantity: number): Promise<void> {
    const account = await this.accountOf(row.market, row.kind === "atb" ? "seller" : "buyer");
    const name = `level-${++this.names}`;
    const order = { account, name, level, id: null, filled: 0 };
    level.order = order;
    this.orders.set(name, order);
    const side = row.kind === "atb" ? SELL : BUY;
    await this.put(account, {
      json: { op: "place", ...this.terms(row, side, quantity), client_order_id: name },
      order,
    });
  }

  private terms({ market, outcome, price }: Row, side: number, quantity: number): object {
    const { id, outcomes } = this.world.markets[market]!;
    return { market_id: id, outcome_id: outcomes[outcome], side, price, quantity };
  }

  private async accountOf(market: number, role: Role): Promise<Account> {
    const name = userName(market, role);
    const known = this.accounts.get(name);
    if (known !== undefined) return known;
    const { world } = this;
    if (role !== "buyer") await world.split(world.client(name, READS), world.markets[market]!, SETS);
    const account = await Account.open(this, world.server.root, tokenOf(name, CONNECTS));
    this.accounts.set(name, account);
    return account;
  }

  private async put(account: Account, operation: Operation): Promise<void> {
    account.operations.push(operation);
    if (account.operations.length === BATCH) await this.send(account);
  }

  private async send(account: Account): Promise<void> {
    await this.pace();
    await this.until(() => this.batchesUnderWay < BATCHES_UNDER_WAY);
    this.batchesUnderWay++;
    this.operations += account.operations.length;
    account.send();
  }

  private async until(isSo: () => boolean): Promise<void> {
    while (!isSo() && this.fault === null) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    if (this.fault !== null) throw this.fault;
  }

  batchAnswered(): void {
    this.batchesUnderWay--;
    this.wake();
  }

  answered({ order }: Operation, { code, data }: Result): void {
    if (code === 0) {
      if (order !== null && data !== null) order.id = data.id;
      return;
    }
    this.refused.set(code, (this.refused.get(code) ?? 0) + 1);
    if (order?.level.order === order) order!.level.order = null;
  }

  /** An own order changed other than by starting to rest. */
  updated({ client_order_id, filled, status }: OrderJson): void {
    const order = this.orders.get(client_order_id ?? "");
    if (order === undefined) return;
    order.filled = filled;
    if (status === "partially_filled") return;
    this.orders.delete(order.name);
    if (order.level.order === order) order.level.order = null;
  }
}
