/**
 * The messages that the gateway publishes to simulated clients, checked against the committed state: no message may
 * precede its commit, and no update may be missing or come twice.
 */
import { MarketStatus, ORDER_STATUSES, OrderType, REASONS } from "../../engine/constants.ts";
import type { Market, Trade } from "../../server/markets/types.ts";
import { type OrderReport, reportJson } from "../../server/orders/order-json.ts";
import type { Deferral, MarketListener, UserListener } from "../../server/trading/types.ts";
import { ensure } from "../engine/book/harness.ts";
import type { Update } from "./committed-rows.ts";
import type { Crowd } from "./crowd.ts";
import { same } from "./executed.ts";

/** An order as in `order.updated`. */
interface OrderMessage {
  readonly id: number;
  readonly price: number | null;
  readonly quantity: number;
  readonly remaining: number;
  readonly status: string;
  readonly reason: string | null;
  readonly trades: readonly unknown[];
}

export class ReceivedMessages implements UserListener, MarketListener {
  private readonly crowd: Crowd;
  /** By user: the last update received, and its open deferrals. */
  private readonly received: number[] = [];
  private readonly deferrals: number[] = [];

  constructor(crowd: Crowd) {
    this.crowd = crowd;
  }

  /** A new life has begun: whatever the last one published was committed. */
  begin(): void {
    const { life, record } = this.crowd;
    this.deferrals.length = 0;
    this.received.length = 0;
    for (const [user, { updates }] of record.accounts) this.received[user] = updates.length;
    for (const market of life.exchange.registry.all()) this.watch(market);
  }

  listens(userId: number): boolean {
    return userId % 4 !== 0;
  }

  orderUpdated(userId: number, sequence: number, at: number, report: OrderReport): void {
    const next = (this.received[userId] ?? 0) + 1;
    ensure(sequence === next, `user ${userId} receives update ${sequence} after ${next - 1}`);
    this.received[userId] = next;
    const update = this.crowd.record.account(userId).updates[sequence - 1];
    ensure(update !== undefined, `user ${userId} receives update ${sequence} before its commit`);
    const isUnbound = (this.crowd.record.orders.get(update.order)!.terms & 0xf) === OrderType.unboundMarket;
    expectUpdate(JSON.parse(reportJson(report)) as OrderMessage, update, isUnbound ? null : update.price);
    ensure(update.at === at, "an update carries its time");
    this.crowd.hash.add(sequence);
    this.crowd.tally.add("told", "order.updated");
  }

  tradeCreated(_market: Market, _sequence: number, { matchId }: Trade): void {
    ensure(matchId <= this.crowd.record.lastEntry, "a trade is published after its commit");
    this.crowd.tally.add("told", "trade.created");
  }

  bookUpdated(): void {
    this.crowd.tally.add("told", "book.updated");
  }

  marketChanged(market: Market): void {
    const known = this.crowd.record.markets.get(market.id);
    // A settlement is committed as a whole before its market's orders are reported as final, and nothing is reported
    // earlier.
    ensure(
      known !== undefined && known.status >= Math.min(market.status, MarketStatus.closed),
      "a market is reported before its commit",
    );
    this.watch(market);
    this.crowd.tally.add("told", "market.updated");
  }

  accountChanged(): void {
    this.crowd.tally.add("told", "balance.updated");
  }

  defer(userId: number): Deferral {
    this.deferrals[userId] = (this.deferrals[userId] ?? 0) + 1;
    return {
      release: () => {
        this.deferrals[userId]!--;
      },
    };
  }

  defers(userId: number): boolean {
    return (this.deferrals[userId] ?? 0) > 0;
  }

  afterMessages(_userId: number, callback: () => void): void {
    callback();
  }

  endBatch(): void {
    // Gathered messages would go out now.
  }

  /** Once nothing is in flight, every client has received every update. */
  expectComplete(): void {
    for (const [user, { updates }] of this.crowd.record.accounts) {
      if (this.listens(user)) same(this.received[user] ?? 0, updates.length, `the updates that user ${user} received`);
      same(this.deferrals[user] ?? 0, 0, `messages deferred for user ${user}`);
    }
  }

  private watch(market: Market): void {
    market.isWatched = true;
    for (const outcome of market.outcomes) outcome.isWatched = true;
  }
}

/** @param price the one that the message must show */
function expectUpdate(shown: OrderMessage, update: Update, price: number | null): void {
  const isSame =
    shown.id === update.order &&
    shown.price === price &&
    shown.quantity === update.quantity &&
    shown.remaining === update.remaining &&
    shown.status === ORDER_STATUSES[update.status] &&
    shown.reason === REASONS[update.reason] &&
    shown.trades.length === update.fills;
  if (!isSame) same(shown, update, "an update as published and as recorded");
}
