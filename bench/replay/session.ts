/**
 * One replay against a running exchange: splits complete sets, sends every order, waits until WebSockets have reported
 * the state and fills of each, and compares them with REST. Counts; prints only progress.
 *
 * 1. markets and tokens exist  2. sockets  3. sets  4. orders  5. states  6. fills  7. REST  8. sums
 */
import { createHash } from "node:crypto";
import { build, type Histogram } from "hdr-histogram-js";
import { Api, dataOf, ExchangeError, type ListedMarket } from "../support/api.ts";
import { itemAt } from "../support/item-at.ts";
import { Progress } from "../support/progress.ts";
import type { Plan } from "./accounts.ts";
import type { Recording } from "./folder.ts";
import { type Fill, type HeardFill, Listener, type OrderState } from "./listener.ts";

/** Sets and reads go over this many connections, whatever the orders use. */
const HELPERS = 16;
/** How long updates may pause before missing ones count as lost. */
const SILENCE_MS = 15_000;
const POLL_MS = 20;

interface Solvency {
  readonly deposits: number;
  readonly withdrawals: number;
  readonly users_total: number;
  readonly collateral: number;
  readonly house: number;
  readonly balanced: boolean;
}

export interface Rejections {
  count: number;
  /** The words of the first one. */
  readonly message: string;
}

export interface Outcome {
  /** The accounts have fills from before. */
  readonly usedBefore: boolean;
  readonly splits: number;
  readonly splitRejections: ReadonlyMap<number, Rejections>;
  readonly accepted: number;
  /** By error code. */
  readonly rejections: ReadonlyMap<number, Rejections>;
  /** Orders by the state they ended in, with its reason. */
  readonly states: ReadonlyMap<string, number>;
  readonly matches: ReadonlyMap<string, number>;
  readonly fills: ReadonlyMap<string, number>;
  /** SHA-256 over the fills in order, without ids. */
  readonly fillsHash: string;
  /** Descriptions of all errors; empty if there is none. */
  readonly faults: readonly string[];
  readonly seconds: number;
  /** Microseconds from when a connection was free for an order to its response. */
  readonly latency: Histogram;
  readonly solvency: Solvency;
}

export class Session {
  private readonly recording: Recording;
  private readonly plan: Plan;
  private readonly api: Api;
  private readonly helpers: Api;
  private readonly listener = new Listener();
  private readonly markets: ListedMarket[] = [];
  /** By user, the newest fill before this replay. */
  private readonly firstFills: number[] = [];
  /** Line of the file by the id of the order that it became. */
  private readonly lines = new Map<number, number>();
  private readonly rejections = new Map<number, Rejections>();
  private readonly splitRejections = new Map<number, Rejections>();
  private readonly faults: string[] = [];
  private readonly latency = build({ lowestDiscernibleValue: 1, highestTrackableValue: 60_000_000 });

  constructor(recording: Recording, plan: Plan, root: string, connections: number) {
    this.recording = recording;
    this.plan = plan;
    this.api = new Api(root, connections);
    this.helpers = new Api(root, HELPERS);
  }

  /** @throws ExchangeError if the exchange can't be reached or isn't prepared for this recording */
  async run(): Promise<Outcome> {
    try {
      await this.helpers.open();
      await this.findMarkets();
      await this.listener.open(this.helpers.base, this.plan.tokens);
      await this.findFirstFills();
      await this.split();
      const seconds = await this.sendOrders();
      await this.awaitStates();
      const written = await this.readFills();
      await this.awaitFills(written);
      const fills = this.listener.fills.toSorted((a, b) => a.id - b.id);
      this.checkFills(fills, written);
      await this.checkOrders();
      const solvency = await this.helpers.get<Solvency>("/solvency");
      if (!solvency.balanced) this.faults.push("the exchange's sums don't balance");
      return {
        usedBefore: this.firstFills.some((id) => id > 0),
        splits: this.plan.sets.length,
        splitRejections: this.splitRejections,
        accepted: this.lines.size,
        rejections: this.rejections,
        states: this.countStates(),
        matches: countBy(fills, (fill) => (fill.role === "taker" ? fill.match_type : null)),
        fills: countBy(fills, (fill) => fill.match_type),
        fillsHash: this.hash(fills),
        faults: this.faults,
        seconds,
        latency: this.latency,
        solvency,
      };
    } finally {
      this.listener.close();
      this.api.close();
      this.helpers.close();
    }
  }

  // ---------------------------------------------------------------- before

  private async findMarkets(): Promise<void> {
    const { plan, recording, helpers } = this;
    const hint = "start it with SEED_FILE set to the file that --write-seed makes";
    await helpers.each(plan.slugs.length, async (i, send) => {
      const answer = await send(helpers.bytes("GET", `/markets/${plan.slugs[i]}`, null));
      if (answer.code !== 0) throw new ExchangeError(`the exchange has no market ${plan.slugs[i]}: ${hint}`);
      const market = answer.data as ListedMarket;
      if (market.outcomes.length !== itemAt(recording.markets, i).outcomes.length) {
        throw new ExchangeError(`market ${plan.slugs[i]} of the exchange has other outcomes: use a fresh DATA_DIR`);
      }
      this.markets[i] = market;
    });
    const answer = await this.helpers.get("/me/balance", itemAt(plan.tokens, 0)).catch((error: Error) => error);
    if (answer instanceof Error) throw new ExchangeError(`${answer.message}; ${hint}`);
  }

  private async findFirstFills(): Promise<void> {
    const { plan, helpers } = this;
    const path = "/me/fills?limit=1";
    await helpers.each(plan.tokens.length, async (user, send) => {
      const { items } = dataOf<{ items: Fill[] }>(
        path,
        await send(helpers.bytes("GET", path, itemAt(plan.tokens, user))),
      );
      this.firstFills[user] = items[0]?.id ?? 0;
    });
  }

  private async split(): Promise<void> {
    const { plan, helpers } = this;
    const progress = new Progress("sets", plan.sets.length);
    let done = 0;
    await helpers.each(plan.sets.length, async (i, send) => {
      const { user, market, quantity } = itemAt(plan.sets, i);
      const body = { market_id: itemAt(this.markets, market).id, quantity };
      const { code, msg } = await send(helpers.bytes("POST", "/wallet/split", itemAt(plan.tokens, user), body));
      if (code !== 0) count(this.splitRejections, code, msg);
      progress.update(++done);
    });
    progress.end();
  }

  // ---------------------------------------------------------------- orders

  /** Sends all orders in the order of the file; returns the seconds. */
  private async sendOrders(): Promise<number> {
    const { plan, api, listener } = this;
    const { orders } = this.recording;
    const progress = new Progress("orders", orders.length);
    await api.open();
    let done = 0;
    const start = performance.now();
    await api.each(orders.length, async (i, send) => {
      const { market, outcome, side, price, quantity, user, line } = itemAt(orders, i);
      const { id, outcomes } = itemAt(this.markets, market);
      const body = { market_id: id, outcome_id: itemAt(outcomes, outcome).id, side, price, quantity };
      const request = api.bytes("POST", "/orders", itemAt(plan.tokens, user), body);
      const sentAt = performance.now();
      const { code, msg, data } = await send(request);
      this.latency.recordValue(Math.round((performance.now() - sentAt) * 1_000));
      if (code === 0) this.lines.set((data as { id: number }).id, line);
      else count(this.rejections, code, msg);
      if (listener.fault !== null) throw new ExchangeError(listener.fault);
      progress.update(++done, `${listener.fills.length} fills`);
    });
    progress.end();
    return (performance.now() - start) / 1_000;
  }

  // ---------------------------------------------------------------- checks of the sockets

  /** Waits until `missing` returns 0, as long as updates keep arriving. Returns the number still missing. */
  private async await(label: string, missing: () => number): Promise<number> {
    const { listener } = this;
    let left = missing();
    const progress = new Progress(label, left);
    const total = left;
    for (let changedAt = performance.now(); left > 0 && performance.now() - changedAt < SILENCE_MS; ) {
      if (listener.fault !== null) throw new ExchangeError(listener.fault);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      const now = missing();
      if (now !== left) changedAt = performance.now();
      left = now;
      progress.update(total - left);
    }
    progress.end();
    return left;
  }

  private async awaitStates(): Promise<void> {
    const waiting = new Set(this.lines.keys());
    const missing = await this.await("states", () => {
      for (const id of waiting) {
        const state = this.listener.orders.get(id);
        if (state !== undefined && state.status !== "queued") waiting.delete(id);
      }
      return waiting.size;
    });
    if (missing > 0) this.faults.push(`${missing} accepted orders were never reported`);
  }

  private async awaitFills(written: ReadonlyMap<number, Fill>): Promise<void> {
    const missing = await this.await("fills", () => {
      if (this.listener.fills.length >= written.size) return 0;
      return written.size - this.listener.fills.length;
    });
    if (missing > 0) this.faults.push(`${missing} fills were never reported`);
    if (this.listener.gaps > 0) this.faults.push(`${this.listener.gaps} numbers are missing in order.updated`);
  }

  // ---------------------------------------------------------------- checks of REST

  private async readFills(): Promise<Map<number, Fill>> {
    const { plan, helpers } = this;
    const written = new Map<number, Fill>();
    const progress = new Progress("accounts", plan.tokens.length);
    let done = 0;
    await helpers.each(plan.tokens.length, async (user, send) => {
      for (const fill of await helpers.all<Fill>(send, "/me/fills", itemAt(plan.tokens, user))) {
        if (fill.id > itemAt(this.firstFills, user)) written.set(fill.id, fill);
      }
      progress.update(++done);
    });
    progress.end();
    return written;
  }

  /** Compares fills: the sockets reported every fill of REST once, and every match has all its fills. */
  private checkFills(heard: readonly HeardFill[], written: ReadonlyMap<number, Fill>): void {
    const text = (fill: Fill) =>
      [fill.match_id, fill.order_id, fill.outcome_id, fill.side, fill.price, fill.quantity, fill.role].join();
    let different = 0;
    const legs = new Map<number, number>();
    heard.forEach((fill, i) => {
      const other = written.get(fill.id);
      if (other === undefined || text(other) !== text(fill) || heard[i - 1]?.id === fill.id) different++;
      legs.set(fill.match_id, (legs.get(fill.match_id) ?? 0) + 1);
    });
    if (different > 0) this.faults.push(`${different} fills over WebSockets are not as /me/fills has them`);
    const sizes = new Map(this.markets.map(({ id, outcomes }) => [id, outcomes.length]));
    const broken = heard.filter(({ role, match_type, match_id, market_id }) => {
      return role === "taker" && legs.get(match_id) !== (match_type === "direct" ? 2 : sizes.get(market_id));
    });
    if (broken.length > 0) this.faults.push(`${broken.length} matches lack a fill`);
  }

  /** Compares orders: GET /orders has each accepted order in the state that the sockets reported last. */
  private async checkOrders(): Promise<void> {
    const { plan, helpers, listener } = this;
    const text = ({ status, reason, filled }: OrderState) => [status, reason, filled].join();
    let found = 0;
    let different = 0;
    await helpers.each(plan.tokens.length, async (user, send) => {
      for (const order of await helpers.all<OrderState>(send, "/orders", itemAt(plan.tokens, user), {
        status: "all",
      })) {
        if (!this.lines.has(order.id)) continue;
        found++;
        const heard = listener.orders.get(order.id);
        if (heard !== undefined && text(heard) !== text(order)) different++;
      }
    });
    if (found < this.lines.size) this.faults.push(`${this.lines.size - found} accepted orders are not in GET /orders`);
    if (different > 0) this.faults.push(`${different} orders ended otherwise than order.updated said`);
  }

  // ---------------------------------------------------------------- sums

  private countStates(): Map<string, number> {
    return countBy(
      [...this.lines.keys()].map((id) => this.listener.orders.get(id)),
      (state) => (state === undefined ? "unknown" : state.status + (state.reason === null ? "" : ` ${state.reason}`)),
    );
  }

  /** The content of the fills in order, without ids: a second run of the same recording repeats it. */
  private hash(fills: readonly HeardFill[]): string {
    const { recording } = this;
    const outcomes = new Map<number, string>();
    this.markets.forEach((market, i) => {
      market.outcomes.forEach(({ id }, index) => {
        outcomes.set(id, `${itemAt(recording.markets, i).name} ${index}`);
      });
    });
    const matches = new Map<number, number>();
    const sha256 = createHash("sha256");
    for (const { match_id, outcome_id, side, price, quantity, role, match_type, user, order_id } of fills) {
      let match = matches.get(match_id);
      if (match === undefined) matches.set(match_id, (match = matches.size));
      const order = this.lines.get(order_id) ?? "earlier";
      const what = [outcomes.get(outcome_id), side, price, quantity, role, match_type, match];
      sha256.update(`${JSON.stringify([...what, recording.users[user], order])}\n`);
    }
    return sha256.digest("hex");
  }
}

function count(rejections: Map<number, Rejections>, code: number, message: string): void {
  const found = rejections.get(code);
  if (found === undefined) rejections.set(code, { count: 1, message });
  else found.count++;
}

/** The number of items per key, most frequent first; null keys don't count. */
function countBy<T>(items: readonly T[], key: (item: T) => string | null): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) {
    const name = key(item);
    if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return new Map([...counts].sort((a, b) => b[1] - a[1]));
}
