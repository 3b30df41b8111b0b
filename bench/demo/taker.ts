/**
 * A trader of the demo: arrives at random intervals, buys or sells some shares at the available prices, within a bound
 * around the fair value, sometimes rests an order for a while, and sells its shares again.
 */
import { randomUUID } from "node:crypto";
import { itemAt } from "../support/item-at.ts";
import { listAll } from "./list-all.ts";
import type { Caller, Position, Reply, TradedMarket } from "./types.ts";

const BUY = 1;
const SELL = 2;
const MAX_PRICE = 9_999;
/** BPS that it pays beyond the value. */
const SLIPPAGE = 350;
const RESTING_SHARE = 0.15;
/**
 * Short and far from the value: makers only add liquidity, and can't quote through an order that the value has passed.
 */
const REST_MS = { least: 8_000, range: 25_000 };
const REST_DISTANCE = { least: 60, range: 120 };
/** From this many shares of one outcome on, the taker prefers to sell. */
const PLENTY = 800;
/** The taker refreshes its positions after this many orders. */
const LOOK_EVERY = 6;

export class Taker {
  readonly api: Caller;
  private readonly random: () => number;
  private readonly now: () => number;
  private held = new Map<number, number>();
  private orders = 0;

  constructor(api: Caller, random: () => number, now: () => number) {
    this.api = api;
    this.random = random;
    this.now = now;
  }

  /** @param mayRest false: the order is always immediate-or-cancel */
  async trade({ id, outcomes, fair }: TradedMarket, mayRest: boolean): Promise<Reply<unknown>> {
    if (this.orders++ % LOOK_EVERY === 0) await this.look();
    const { random } = this;
    const at = Math.floor(random() * outcomes.length);
    const outcome_id = itemAt(outcomes, at);
    const value = itemAt(fair.prices(), at);
    const held = this.held.get(outcome_id) ?? 0;
    // Mostly small ones; some go through several levels.
    const wanted = 5 + Math.floor(160 * random() ** 2 + 900 * random() ** 12);
    const isSale = held > 0 && random() < (held > PLENTY ? 0.9 : 0.45);
    const rests = mayRest && random() < RESTING_SHARE;
    // A resting order improves on the value for its owner; the others cross.
    const distance = rests ? -REST_DISTANCE.least - REST_DISTANCE.range * random() : SLIPPAGE;
    const price = Math.round(isSale ? value - distance : value + distance);
    const order = {
      market_id: id,
      outcome_id,
      side: isSale ? SELL : BUY,
      price: Math.min(MAX_PRICE, Math.max(1, price)),
      quantity: isSale ? Math.min(held, wanted) : wanted,
      // Makes retries idempotent.
      client_order_id: randomUUID(),
      ...(rests
        ? { time_in_force: "gtd", expires_at: this.now() + Math.round(REST_MS.least + REST_MS.range * random()) }
        : { time_in_force: "ioc" }),
    };
    if (isSale) this.held.set(outcome_id, held - order.quantity);
    return this.api.call("POST", "/orders", order);
  }

  private async look(): Promise<void> {
    const positions = await listAll<Position>(this.api, "/me/positions");
    this.held = new Map(positions.map(({ outcome_id, quantity, held }) => [outcome_id, quantity - held]));
  }
}
