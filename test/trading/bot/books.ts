/**
 * A bot's record of its own account, built only from the venue's responses and order.updated events: every order, every
 * fill, cash to the micro-USDC, shares and holds. It checks each message against the contract's rules and throws on a
 * breach. It sends the venue nothing.
 */
import { isDeepStrictEqual } from "node:util";
import type { BalanceJson, FillJson, OrderJson, OwnFillJson, PositionJson } from "../../support/client.ts";

export const BUY = 1;
export const SELL = 2;
const MICRO_PER_SHARE = 1_000_000;
const MICRO_PER_BPS = 100;
/** Snapshots kept for balance and position events, which come a little later than the orders they reflect. */
const SNAPSHOTS = 5_000;

const FINAL_RANK = 3;
const RANKS: ReadonlyMap<string, number> = new Map([
  ["queued", 0],
  ["open", 1],
  ["partially_filled", 2],
  ...(["filled", "canceled", "expired", "rejected"] as const).map((status) => [status, FINAL_RANK] as const),
]);

export type OwnOrder = Omit<OrderJson, "trades">;

/** An order without its trades, which the books hold apart. */
export function withoutTrades({ trades: _, ...order }: OrderJson): OwnOrder {
  return order;
}

export const isFinal = (order: { readonly status: string }): boolean => rankOf(order) === FINAL_RANK;

export function expectThat(condition: boolean, what: string, ...shown: unknown[]): asserts condition {
  if (!condition) throw new Error(`${what}: ${shown.map((value) => JSON.stringify(value)).join(" | ")}`);
}

/** The account as of one order.updated sequence, complete sets apart: splits have no sequence. */
interface Snapshot {
  readonly cash: number;
  readonly held: number;
  readonly shares: ReadonlyMap<number, number>;
  readonly heldShares: ReadonlyMap<number, number>;
}

export class Books {
  readonly orders = new Map<number, OwnOrder>();
  readonly live = new Map<number, OwnOrder>();
  /** By fill id. */
  readonly fills = new Map<number, OwnFillJson>();
  readonly fillsOf = new Map<number, OwnFillJson[]>();
  lastOrderId = 0;
  lastFillId = 0;
  /** Complete sets split less those merged. */
  private sets = 0;
  private setsBefore = 0;
  private setsPending = 0;
  private readonly splits: { readonly at: number; readonly quantity: number }[] = [];
  /** micro-USDC, without what sets cost. */
  private cash: number;
  private readonly traded = new Map<number, number>();
  private readonly snapshots = new Map<number, Snapshot>();

  constructor(deposit: number) {
    this.cash = deposit;
  }

  get total(): number {
    return this.cash - this.setsCost;
  }

  /** What the complete sets cost that it holds, micro-USDC. */
  get setsCost(): number {
    return this.sets * MICRO_PER_SHARE;
  }

  get held(): number {
    let held = 0;
    for (const order of this.live.values()) if (order.side === BUY) held += notionalLeft(order);
    return held;
  }

  shares(outcome: number): number {
    return this.sets + (this.traded.get(outcome) ?? 0);
  }

  heldShares(outcome: number): number {
    let held = 0;
    for (const order of this.live.values()) {
      if (order.side === SELL && order.outcome_id === outcome) held += order.remaining;
    }
    return held;
  }

  /** Notional of the buys since `since`, of the live ones, and what was split: what counts against the daily limit. */
  activity(since: number): number {
    let sum = this.held;
    for (const fill of this.fills.values()) {
      if (fill.side === BUY && fill.created_at >= since) sum += fill.price * MICRO_PER_BPS * fill.quantity;
    }
    for (const { at, quantity } of this.splits) if (at >= since) sum += quantity * MICRO_PER_SHARE;
    return sum;
  }

  /** A 202 with the order as first acknowledged. Over REST its events may arrive first. */
  answered(order: OrderJson): void {
    expectThat(order.status === "queued" && order.trades.length === 0, "the first answer is queued", order);
    const known = this.orders.get(order.id);
    if (known === undefined) this.keep(withoutTrades(order));
    else this.checkSame(known, order);
  }

  /** An order.updated event. */
  apply(order: OrderJson, sequence: number): void {
    this.checkChange(this.orders.get(order.id), order);
    for (const trade of order.trades) this.book(order, trade);
    this.keep(withoutTrades(order));
    this.takeSnapshot(sequence);
  }

  /** An order as REST shows it and the fills that REST has of it, after a gap in the events. */
  adopt(order: OrderJson, fills: readonly OwnFillJson[]): void {
    const known = this.orders.get(order.id);
    if (known !== undefined) {
      this.checkSame(known, order);
      expectThat(rankOf(order) >= rankOf(known) && order.filled >= known.filled, "goes on", known, order);
      if (isFinal(known)) expectThat(isDeepStrictEqual(known, withoutTrades(order)), "stays ended", known, order);
    }
    for (const fill of fills) if (!this.fills.has(fill.id)) this.book(order, fill, false);
    expectThat(this.filledOf(order.id) === order.filled, "fills make up filled", order, fills);
    checkOrder(order);
    this.keep(withoutTrades(order));
  }

  /** The total of an order's booked fills. */
  filledOf(orderId: number): number {
    return (this.fillsOf.get(orderId) ?? []).reduce((sum, fill) => sum + fill.quantity, 0);
  }

  /** A split (or a merge, negative) is about to be sent: from now on its balance event may arrive. */
  changeSets(quantity: number): void {
    this.setsPending = quantity;
  }

  /** Whether the last split or merge took effect. */
  changedSets(done: boolean): void {
    this.setsBefore = this.sets;
    if (done) this.sets += this.setsPending;
    if (done && this.setsPending > 0) this.splits.push({ at: Date.now(), quantity: this.setsPending });
    this.setsPending = 0;
  }

  /** After a gap, earlier sequences are no longer known. */
  forgetSnapshots(): void {
    this.snapshots.clear();
  }

  /**
   * balance.updated: the total is exactly that of the sequence it carries. `held` may be higher, for requests in flight;
   * without any (`quiet`), it is exact too.
   */
  checkBalance(balance: BalanceJson, sequence: number, quiet: boolean): void {
    expectThat(balance.available + balance.held === balance.total, "available + held = total", balance);
    const at = this.snapshots.get(sequence);
    if (at === undefined) return;
    const totals = this.setsPossible().map((sets) => at.cash - sets * MICRO_PER_SHARE);
    expectThat(totals.includes(balance.total), `the total as of ${sequence}`, balance, totals);
    const fits = quiet ? balance.held === at.held : balance.held >= at.held;
    expectThat(fits, `held as of ${sequence}`, balance, at.held);
  }

  /** position.updated: the same rules. */
  checkPosition(position: PositionJson, sequence: number, quiet: boolean): void {
    const at = this.snapshots.get(sequence);
    if (at === undefined) return;
    const traded = at.shares.get(position.outcome_id) ?? 0;
    const quantities = this.setsPossible().map((sets) => sets + traded);
    expectThat(quantities.includes(position.quantity), `the position as of ${sequence}`, position, quantities);
    const held = at.heldShares.get(position.outcome_id) ?? 0;
    const fits = quiet ? position.held === held : position.held >= held;
    expectThat(fits, `held shares as of ${sequence}`, position, held);
  }

  private setsPossible(): number[] {
    return [this.sets, this.setsBefore, this.sets + this.setsPending];
  }

  private checkChange(known: OwnOrder | undefined, order: OrderJson): void {
    checkOrder(order);
    const filledBefore = known?.filled ?? 0;
    if (known !== undefined) {
      this.checkSame(known, order);
      expectThat(!isFinal(known), "nothing comes after the end", known, order);
      expectThat(rankOf(order) >= rankOf(known), "states go one way", known, order);
    }
    const traded = order.trades.reduce((sum, trade) => sum + trade.quantity, 0);
    expectThat(order.filled === filledBefore + traded, "filled grows by the trades", known, order);
  }

  /** The fields that no event may change. */
  private checkSame(known: OwnOrder, order: OrderJson): void {
    const names = ["client_order_id", "market_id", "outcome_id", "side", "type", "time_in_force", "post_only"] as const;
    for (const name of names) expectThat(known[name] === order[name], `${name} stays`, known, order);
    const same = known.created_at === order.created_at && known.expires_at === order.expires_at;
    expectThat(same && known.self_trade_prevention === order.self_trade_prevention, "terms stay", known, order);
  }

  private book(order: OrderJson, fill: FillJson | OwnFillJson, atOrdersPrice = true): void {
    expectThat(!this.fills.has(fill.id), "a fill is reported once", order, fill);
    checkFill(order, fill, atOrdersPrice);
    const { market_id, outcome_id, side, builder_code } = order;
    const own: OwnFillJson = { ...fill, order_id: order.id, market_id, outcome_id, side, builder_code };
    this.fills.set(fill.id, own);
    this.lastFillId = Math.max(this.lastFillId, fill.id);
    const list = this.fillsOf.get(order.id);
    if (list === undefined) this.fillsOf.set(order.id, [own]);
    else list.push(own);
    const notional = fill.price * MICRO_PER_BPS * fill.quantity;
    const sign = side === BUY ? 1 : -1;
    this.cash += -sign * notional - fill.fee + fill.rebate;
    this.traded.set(outcome_id, (this.traded.get(outcome_id) ?? 0) + sign * fill.quantity);
  }

  private keep(order: OwnOrder): void {
    this.orders.set(order.id, order);
    this.lastOrderId = Math.max(this.lastOrderId, order.id);
    if (isFinal(order)) this.live.delete(order.id);
    else this.live.set(order.id, order);
  }

  private takeSnapshot(sequence: number): void {
    // The sequence doesn't reflect an acknowledged order without an event yet.
    let held = 0;
    const heldShares = new Map<number, number>();
    for (const order of this.live.values()) {
      if (order.status === "queued") continue;
      if (order.side === BUY) held += notionalLeft(order);
      else heldShares.set(order.outcome_id, (heldShares.get(order.outcome_id) ?? 0) + order.remaining);
    }
    this.snapshots.set(sequence, { cash: this.cash, held, shares: new Map(this.traded), heldShares });
    this.snapshots.delete(sequence - SNAPSHOTS);
  }
}

function rankOf({ status }: { readonly status: string }): number {
  const rank = RANKS.get(status);
  expectThat(rank !== undefined, "a state of the contract", status);
  return rank;
}

function notionalLeft(order: OwnOrder): number {
  return (order.price ?? (order.side === BUY ? 9_999 : 1)) * MICRO_PER_BPS * order.remaining;
}

/** Invariants of a single order. */
function checkOrder(order: OrderJson): void {
  const { status, reason, filled, remaining, quantity } = order;
  expectThat(remaining === quantity - filled && filled >= 0 && remaining >= 0, "remaining = quantity - filled", order);
  const hasReason = status === "canceled" || status === "expired" || status === "rejected";
  expectThat((reason !== null) === hasReason, "a reason on canceled, expired and rejected only", order);
  expectThat((status === "filled") === (remaining === 0 && !hasReason), "filled when nothing remains", order);
  if (status === "open") expectThat(filled === 0, "open before any fill", order);
  if (status === "partially_filled") expectThat(filled > 0, "partially filled after one", order);
}

/** The contract's rules of price, fee and rebate; the bot's orders are all placed with a PAT. */
function checkFill(order: OrderJson, fill: FillJson, atOrdersPrice: boolean): void {
  const { price, quantity, role, match_type, fee, rebate } = fill;
  const notional = price * MICRO_PER_BPS * quantity;
  expectThat(quantity >= 1 && price >= 1 && price <= 9_999, "a fill of a share or more", order, fill);
  expectThat(fee === (order.side === SELL ? Math.ceil((notional * 150) / 10_000) : 0), "the fee", order, fill);
  const isRebated = role === "maker" && match_type !== "mint";
  expectThat(rebate === (isRebated ? Math.floor((notional * 10) / 10_000) : 0), "the rebate", order, fill);
  // REST doesn't tell the price at the time of the fill: the order may have been amended since.
  if (!atOrdersPrice || order.price === null) return;
  if (role === "maker") expectThat(price === order.price, "the resting order's own price", order, fill);
  else expectThat(order.side === BUY ? price <= order.price : price >= order.price, "within the bound", order, fill);
}
