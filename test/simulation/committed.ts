/**
 * The committed state that must be on record, derived only from what was committed: a plain ledger, all orders, all
 * updates in each user's numbering, all fills and entries. Written from section 2 of the contract; never looks at the
 * exchange's code or at its database. Recoveries are measured against it.
 */
import { isFinal, MarketStatus, MatchType, OrderStatus, Role, Side, TimeInForce } from "../../engine/constants.ts";
import type { LedgerTotals } from "../../engine/ledger.ts";
import type { LogReply } from "../../engine/log/messages.ts";
import type { LoggedRequest } from "../../engine/log/request.ts";
import { HOUSE, type Write } from "../../engine/log/writes.ts";
import * as R from "../../engine/ring/records.ts";
import type { RequestedOf } from "../../server/writes/types.ts";
import { type EngineEvent, ensure } from "../engine/book/harness.ts";
import { notional } from "../support/reference.ts";
import type { Account, CommittedMarket, CommittedOrder, Holding, OrderText, Update } from "./committed-rows.ts";

const MICRO_PER_SET = 1_000_000;
const MS_PER_DAY = 86_400_000;

interface Leg {
  readonly event: EngineEvent;
  readonly order: CommittedOrder;
  readonly id: number;
}

type PaymentKind = "deposit" | "reverseDeposit" | "withdrawFromHouse";

interface Payment {
  readonly user: number;
  readonly amount: number;
  /** The deposit that it takes back. */
  readonly reverses: number | null;
}

function paymentOf(write: RequestedOf<PaymentKind>): Payment {
  switch (write.kind) {
    case "deposit":
      return { user: write.userId, amount: write.amount, reverses: null };
    case "reverseDeposit":
      return { user: write.userId, amount: -write.amount, reverses: write.depositId };
    case "withdrawFromHouse":
      return { user: HOUSE, amount: -write.amount, reverses: null };
  }
}

export class Committed {
  readonly accounts = new Map<number, Account>();
  readonly markets = new Map<number, CommittedMarket>();
  readonly marketOf: number[] = [];
  readonly orders = new Map<number, CommittedOrder>();
  readonly live = new Map<number, CommittedOrder>();
  /** Orders that changed since their rows were last compared. */
  readonly changedOrders = new Set<number>();
  readonly updates: Update[] = [];
  /** Rows as the tables have them: columns in the order of checks.ts. */
  readonly fills: number[][] = [];
  readonly entries: (number | string | null)[][] = [];
  readonly outcomes = new Map<number, { lastPrice: number | null; volume: number; payout: number | null }>();
  readonly withdrawals = new Map<number, { user: number; amount: number; status: string }>();
  /** By reference in lower case. */
  readonly references = new Map<string, Payment>();
  /** By entry: deposits, and what is left of them to reverse. */
  readonly deposited = new Map<number, { user: number; amount: number; left: number }>();
  readonly texts = new Map<number, OrderText>();
  deposits = 0;
  paidOut = 0;
  house = 0;
  usersTotal = 0;
  collateral = 0;
  lastEntry = 0;
  lastOrder = 0;
  private lastOutcome = 0;
  /** Time on record never falls, whichever ring an event came by. */
  private lastAt = 0;
  private readonly legs = new Map<number, Leg[]>();

  account(user: number): Account {
    const found = this.accounts.get(user);
    if (found !== undefined) return found;
    const account: Account = {
      balance: 0,
      day: 0,
      used: 0,
      holdings: new Map(),
      updates: [],
      setAside: 0,
      terms: null,
    };
    this.accounts.set(user, account);
    return account;
  }

  holding(user: number, outcome: number): Holding {
    const { holdings } = this.account(user);
    let found = holdings.get(outcome);
    if (found === undefined) {
      found = { quantity: 0, cost: 0, realized: 0 };
      holdings.set(outcome, found);
    }
    return found;
  }

  private move(user: number, amount: number): void {
    const account = this.account(user);
    account.balance += amount;
    this.usersTotal += amount;
    ensure(account.balance >= 0, `user ${user} has a balance below zero`);
  }

  // ---------------------------------------------------------------- engine events

  /** Takes a committed event in; `fillId` and `sequence` as the log numbered them. @param ring that it came by */
  event(published: EngineEvent, ring: number, fillId: number, sequence: number): void {
    const event = { ...published, at: Math.max(published.at, this.lastAt) };
    if (/^order|^sets/.test(event.kind)) this.lastAt = event.at;
    switch (event.kind) {
      case "orderPlaced":
        return this.placed(event, published.at, sequence);
      case "orderFilled":
        return this.filled(event, ring, fillId, sequence);
      case "orderReduced":
        return this.changed(event, event.role === "maker", sequence);
      case "orderAmended":
        return this.changed(event, true, sequence);
      case "orderCanceled": {
        const order = this.liveOrder(event.orderId);
        this.setState(order, event);
        order.reason = R.reasonOf(event.packed);
        return this.tell(order, order.untold, event.at, sequence);
      }
      case "marketChanged":
        (this.markets.get(event.slot) as CommittedMarket).status = R.statusOf(event.packed);
        return;
      case "setsSplit":
      case "setsMerged":
        return this.setsChanged(event, fillId);
      default:
        return;
    }
  }

  private liveOrder(id: number): CommittedOrder {
    const order = this.live.get(id);
    ensure(order !== undefined, `an event of order ${id}, which isn't live`);
    return order;
  }

  private setState(order: CommittedOrder, event: EngineEvent): void {
    order.remaining = event.remaining;
    order.status = R.statusOf(event.packed);
    order.reason = 0;
    order.updatedAt = event.at;
    this.changedOrders.add(order.id);
    if (isFinal(order.status)) this.live.delete(order.id);
  }

  private placed(event: EngineEvent, createdAt: number, sequence: number): void {
    const { orderId: id, user, outcome, price, quantity, at, packed } = event;
    ensure(!this.orders.has(id), `order ${id} is placed once`);
    const order: CommittedOrder = {
      id,
      user,
      market: this.marketOf[outcome]!,
      outcome,
      side: R.sideOf(packed),
      terms: event.word7,
      flags: packed & R.ORDER_FLAGS,
      expiresAt: event.detail,
      createdAt,
      text: this.texts.get(id) ?? { clientOrderId: null, builderCode: null },
      tied: (packed & R.FLAG_CANCEL_ON_DISCONNECT) !== 0,
      price,
      quantity,
      remaining: quantity,
      status: OrderStatus.queued,
      reason: 0,
      priority: id,
      updatedAt: at,
      untold: 0,
      lastFill: 0,
    };
    this.orders.set(id, order);
    this.live.set(id, order);
    this.lastOrder = Math.max(this.lastOrder, id);
    this.setState(order, event);
    order.reason = R.reasonOf(packed);
    if (order.status !== OrderStatus.queued) this.tell(order, 0, at, sequence);
  }

  private changed(event: EngineEvent, tells: boolean, sequence: number): void {
    const order = this.liveOrder(event.orderId);
    order.price = event.price;
    order.quantity = event.quantity;
    if (event.kind === "orderAmended" && (event.packed & R.FLAG_LOST_PRIORITY) !== 0) order.priority = event.detail;
    if (event.kind === "orderAmended" && (event.packed & R.FLAG_EXTENDS) !== 0) {
      order.expiresAt = event.detail;
      const tif = event.detail === 0 ? TimeInForce.gtc : TimeInForce.gtd;
      order.terms = (order.terms & ~0xf0) | (tif << 4);
    }
    this.setState(order, event);
    if (tells) this.tell(order, 0, event.at, sequence);
  }

  private filled(event: EngineEvent, ring: number, fillId: number, sequence: number): void {
    const order = this.liveOrder(event.orderId);
    ensure(fillId === ++this.lastEntry, `fill ${fillId} is not number ${this.lastEntry}`);
    let legs = this.legs.get(ring);
    if (legs === undefined) {
      legs = [];
      this.legs.set(ring, legs);
    }
    legs.push({ event, order, id: fillId });
    if (event.role === "taker") this.settleMatch(legs);
    this.setState(order, event);
    order.lastFill = fillId;
    order.untold++;
    if (event.role === "maker") return this.tell(order, order.untold, event.at, sequence);
    legs.length = 0;
    if ((event.packed & R.FLAG_UPDATE_END) !== 0) this.tell(order, order.untold, event.at, sequence);
  }

  /** All sides of a match: its rebates come out of its fees, in the order of its fills. */
  private settleMatch(legs: readonly Leg[]): void {
    const match = legs[0]!.id;
    const before = this.house;
    let left = legs.reduce((sum, { event, order }) => sum + this.feeOf(event, order), 0);
    for (const leg of legs) left -= this.settle(leg, match, left);
    ensure(this.house >= before, `match ${match} lowers the house`);
  }

  private feeOf({ price, quantity }: EngineEvent, { user, side }: CommittedOrder): number {
    return side === Side.buy ? 0 : part(notional(price, quantity), this.account(user).terms?.tradingFee ?? 150, true);
  }

  /** Moves the money and shares of one side of a match; returns its rebate. @param most the rebate's bound */
  private settle({ event, order, id }: Leg, match: number, most: number): number {
    const { user, outcome, side, market } = order;
    const { price, quantity, at } = event;
    const n = notional(price, quantity);
    const account = this.account(user);
    const pat = (order.flags & R.FLAG_PAT) !== 0;
    const isMaker = event.role === "maker";
    const fee = this.feeOf(event, order);
    const rebateBps = pat ? (account.terms?.patRebate ?? 10) : (account.terms?.makerRebate ?? 5);
    const rebate = isMaker ? Math.min(most, part(n, rebateBps, false)) : 0;
    const holding = this.holding(user, outcome);
    if (side === Side.buy) {
      holding.quantity += quantity;
      holding.cost += n;
      enter(account, n, at);
    } else this.dispose(holding, quantity, n - fee);
    holding.realized += rebate;
    const change = (side === Side.buy ? -n : n - fee) + rebate;
    this.move(user, change);
    this.house -= change;
    const type = R.matchTypeOf(event.packed);
    if (!isMaker) {
      const sets = type === MatchType.mint ? quantity : type === MatchType.merge ? -quantity : 0;
      this.changeSets(market, sets);
      this.house -= sets * MICRO_PER_SET;
      const seen = this.outcomes.get(outcome)!;
      seen.lastPrice = price;
      seen.volume += quantity;
    }
    const role = isMaker ? Role.maker : Role.taker;
    this.fills.push([
      id, match, user, order.id, outcome, side, price, quantity, role, type, fee, rebate, account.balance, at,
    ]); // biome-ignore format: one row
    return rebate;
  }

  private changeSets(market: number, sets: number): void {
    this.markets.get(market)!.sets += sets;
    this.collateral += sets * MICRO_PER_SET;
  }

  private dispose(holding: Holding, quantity: number, proceeds: number): void {
    const removed = Number((BigInt(holding.cost) * BigInt(quantity)) / BigInt(holding.quantity));
    holding.quantity -= quantity;
    holding.cost -= removed;
    holding.realized += proceeds - removed;
    ensure(holding.quantity >= 0, "no more is sold than there was");
  }

  private setsChanged(event: EngineEvent, id: number): void {
    const { user, slot: market, quantity, at } = event;
    ensure(id === ++this.lastEntry, `entry ${id} is not number ${this.lastEntry}`);
    const { first, count } = this.markets.get(market)!;
    const amount = quantity * MICRO_PER_SET;
    const isSplit = event.kind === "setsSplit";
    // The merge fee comes with the request, in BPS per set.
    const fee = isSplit ? 0 : part(amount, event.price, true);
    this.move(user, isSplit ? -amount : amount - fee);
    this.house += fee;
    if (isSplit) enter(this.account(user), amount, at);
    this.changeSets(market, isSplit ? quantity : -quantity);
    for (let i = 0; i < count; i++) {
      const partOf = (whole: number): number => Math.floor(whole / count) + (i < whole % count ? 1 : 0);
      const share = quantity * partOf(MICRO_PER_SET) - partOf(fee);
      const holding = this.holding(user, first + i);
      if (isSplit) {
        holding.quantity += quantity;
        holding.cost += share;
      } else this.dispose(holding, quantity, share);
    }
    this.enter(id, user, isSplit ? "split" : "merge", isSplit ? -amount : amount, market, null, null, at, fee);
    if (fee > 0) this.enter(++this.lastEntry, user, "fee", -fee, market, null, null, at);
  }

  /** @param later the part of the balance that belongs to the next entry */
  private enter(
    id: number,
    user: number,
    type: string,
    amount: number,
    market: number | null,
    outcome: number | null,
    reference: string | null,
    at: number,
    later = 0,
  ): void {
    const balance = (user === HOUSE ? this.house : this.account(user).balance) + later;
    this.entries.push([id, user, type, amount, balance, market, outcome, reference, at]);
  }

  /** The next order.updated of the order's owner. */
  private tell(order: CommittedOrder, fills: number, at: number, sequence: number): void {
    const { id, user, price, quantity, remaining, status, reason } = order;
    const { updates } = this.account(user);
    ensure(sequence === updates.length + 1, `user ${user}: update ${sequence} after ${updates.length}`);
    const lastFill = fills === 0 ? 0 : order.lastFill;
    const update = { user, sequence, order: id, price, quantity, remaining, status, reason, fills, lastFill, at };
    updates.push(update);
    this.updates.push(update);
    order.untold = 0;
  }

  // ---------------------------------------------------------------- writes

  /** Applies a committed request. @param reply null if the log died before it replied */
  writes(request: LoggedRequest, reply: LogReply | null): void {
    this.lastAt = Math.max(this.lastAt, request.at);
    const before = this.lastEntry;
    for (const write of request.writes) {
      this.expectAdmissible(write);
      this.write(write);
    }
    const first = this.lastEntry === before ? 0 : before + 1;
    ensure(reply === null || reply.firstEntry === first, `first entry ${reply?.firstEntry}, not ${first}`);
  }

  /** Nothing that the gateway posts could be rejected, and its ids follow each other. */
  private expectAdmissible(write: Write): void {
    switch (write.kind) {
      case "createUser":
        return ensure(write.id === this.accounts.size + 1, `user ${write.id} after ${this.accounts.size}`);
      case "createMarket":
        ensure(write.id === this.markets.size + 1, `market ${write.id} after ${this.markets.size}`);
        return ensure(write.firstOutcomeId === this.lastOutcome + 1, "outcomes follow each other");
      case "insert":
        return ensure(write.row.id === this.withdrawals.size + 1, `row ${write.row.id} after ${this.withdrawals.size}`);
      case "deposit":
        return ensure(!this.references.has(write.reference.toLowerCase()), "a reference counts once");
      case "reverseDeposit": {
        ensure(!this.references.has(write.reference.toLowerCase()), "a reference counts once");
        const deposit = this.deposited.get(write.depositId);
        ensure(deposit?.user === write.userId, "a reversal is of a deposit to the same account");
        return ensure(write.amount <= deposit!.left, "no deposit is reversed beyond its amount");
      }
      case "withdrawFromHouse":
        ensure(!this.references.has(write.reference.toLowerCase()), "a reference counts once");
        return ensure(write.amount <= this.house, "the house pays what it has");
      default:
    }
  }

  /** The result that a payment must have. */
  fateOf(write: RequestedOf<PaymentKind>): "new" | "there" | "refused" {
    const { user, amount, reverses } = paymentOf(write);
    const known = this.references.get(write.reference.toLowerCase());
    if (known === undefined) return "new";
    return known.user === user && known.amount === amount && known.reverses === reverses ? "there" : "refused";
  }

  private write(write: Write): void {
    switch (write.kind) {
      case "createUser":
        this.account(this.accounts.size + 1);
        return;
      case "createMarket":
        return this.addMarket(write.outcomes.length);
      case "deposit":
      case "reverseDeposit":
      case "withdrawFromHouse":
        return this.pay(write);
      case "insert":
        if (write.table === "withdrawals") {
          const { userId, amount } = write.row as { userId: number; amount: number };
          this.account(userId).setAside += amount;
          this.withdrawals.set(this.withdrawals.size + 1, { user: userId, amount, status: "pending" });
        }
        return;
      case "update":
        if (write.table === "orders") this.tie(write.id, write.set.tied === 1);
        if (write.table === "withdrawals") this.endWithdrawal(write.id, String(write.set.status));
        return;
      case "payWithdrawal":
        this.endWithdrawal(write.id, "paid");
        this.move(write.userId, -write.amount);
        this.paidOut += write.amount;
        return this.enter(++this.lastEntry, write.userId, "withdrawal", -write.amount, null, null, null, write.at);
      case "setTerms":
        this.account(write.userId).terms = write;
        return;
      case "settleMarket":
        return this.settleMarket(write);
      default:
        ensure(false, `the simulation knows no ${write.kind}`);
    }
  }

  private tie(id: number, tied: boolean): void {
    this.orders.get(id)!.tied = tied;
    this.changedOrders.add(id);
  }

  private endWithdrawal(id: number, status: string): void {
    const withdrawal = this.withdrawals.get(id)!;
    ensure(withdrawal.status === "pending", "a withdrawal ends once");
    withdrawal.status = status;
    this.account(withdrawal.user).setAside -= withdrawal.amount;
  }

  private pay(write: Write & { kind: PaymentKind }): void {
    const { reference, at } = write;
    const payment = paymentOf(write);
    const { user, amount, reverses } = payment;
    this.references.set(reference.toLowerCase(), payment);
    if (user === HOUSE) this.house += amount;
    else this.move(user, amount);
    const id = ++this.lastEntry;
    if (reverses !== null) this.deposited.get(reverses)!.left += amount;
    else if (amount > 0) this.deposited.set(id, { user, amount, left: amount });
    if (write.kind === "withdrawFromHouse") this.paidOut -= amount;
    else this.deposits += amount;
    const type = write.kind === "withdrawFromHouse" ? "withdrawal" : "deposit";
    this.enter(id, user, type, amount, null, null, reference, at);
  }

  private addMarket(count: number): void {
    const id = this.markets.size + 1;
    const first = this.lastOutcome + 1;
    this.lastOutcome += count;
    this.markets.set(id, { id, first, count, status: MarketStatus.open, sets: 0 });
    for (let i = 0; i < count; i++) {
      this.marketOf[first + i] = id;
      this.outcomes.set(first + i, { lastPrice: null, volume: 0, payout: null });
    }
  }

  private settleMarket({ marketId, payouts, status, at }: Write & { kind: "settleMarket" }): void {
    const market = this.markets.get(marketId)!;
    ensure(market.status === MarketStatus.closed, "only a closed market is settled");
    for (const user of [...this.accounts.keys()].sort((a, b) => a - b)) {
      for (let i = 0; i < market.count; i++) {
        const outcome = market.first + i;
        const holding = this.account(user).holdings.get(outcome);
        if (holding === undefined || holding.quantity === 0) continue;
        const amount = notional(payouts[i]!, holding.quantity);
        holding.realized += amount - holding.cost;
        holding.quantity = 0;
        holding.cost = 0;
        this.move(user, amount);
        this.house -= amount;
        this.enter(++this.lastEntry, user, "settlement", amount, marketId, outcome, null, at);
      }
    }
    this.house += market.sets * MICRO_PER_SET;
    this.changeSets(marketId, -market.sets);
    market.status = status;
    payouts.forEach((payout, i) => {
      this.outcomes.get(market.first + i)!.payout = payout;
    });
  }

  /** Checks that all holdings equal deposits less withdrawals. @param totals the exchange's own, if they are known */
  expectBalanced(totals: LedgerTotals | null = null): void {
    const { deposits, paidOut, usersTotal, collateral, house } = this;
    ensure(deposits - paidOut === usersTotal + collateral + house, "the reference balances");
    if (totals === null) return;
    const expected = { deposits, withdrawals: paidOut, usersTotal, collateral, house };
    for (const [name, value] of Object.entries(expected)) {
      ensure(
        totals[name as keyof LedgerTotals] === value,
        `sums: the exchange has ${JSON.stringify(totals)}, the reference ${JSON.stringify(expected)}`,
      );
    }
  }
}

/** Counts the amount that entered a position on the UTC day of `at`. */
function enter(account: Account, amount: number, at: number): void {
  const day = Math.floor(at / MS_PER_DAY);
  if (day > account.day) {
    account.day = day;
    account.used = 0;
  }
  if (day === account.day) account.used += amount;
}

/** `bps` of an amount, rounded up or down. */
function part(amount: number, bps: number, up: boolean): number {
  const product = BigInt(amount) * BigInt(bps);
  return Number(up ? (product + 9_999n) / 10_000n : product / 10_000n);
}
