/**
 * A user of a random flow: orders of every kind on both sides, amends, cancels, batches, quotes, in all markets, around
 * prices at which all three match types happen. Uses a WebSocket client that checks frames; keeps no books.
 */
import type { OrderJson } from "../support/client.ts";
import type { Random } from "../support/random.ts";
import type { Socket } from "../support/socket.ts";
import { BUY, quote, SELL, terms } from "../support/terms.ts";
import type { ResultJson } from "../support/trading.ts";
import type { TestMarket } from "../support/world.ts";

/** Rejections that are no error: a finished order, no money, no shares, the day's limit. */
const EXPECTED = [0, 40900, 42201, 42202, 42900, 42901];
const TICK = 10;
const TICKS = 8;
const MAX_SHARES = 9;
const GTD_MS = 500;

export class RandomTrader {
  private readonly socket: Socket;
  private readonly markets: readonly TestMarket[];
  private readonly random: Random;
  private readonly placed: number[] = [];

  constructor(socket: Socket, markets: readonly TestMarket[], random: Random) {
    this.socket = socket;
    this.markets = markets;
    this.random = random;
  }

  async step(): Promise<void> {
    const { random } = this;
    const kind = random.next();
    const market = random.pick(this.markets);
    if (kind < 0.6) this.note([(await this.ask("order.place", this.placement(market))) as OrderJson | null]);
    else if (kind < 0.7) await this.change("order.cancel", {});
    else if (kind < 0.8) await this.change("order.amend", this.amendment(market));
    else if (kind < 0.88) await this.batch();
    else if (kind < 0.97) await this.ask("quotes.replace", { market_id: market.id, quotes: this.quotes(market) });
    else await this.ask("order.cancel_all", { market_id: market.id });
  }

  private note(orders: readonly (OrderJson | null)[]): void {
    for (const order of orders) if (order !== null) this.placed.push(order.id);
  }

  private async change(op: string, fields: object): Promise<void> {
    if (this.placed.length > 0) await this.ask(op, { id: this.random.pick(this.placed), ...fields });
  }

  private async batch(): Promise<void> {
    const { random } = this;
    const operations = Array.from({ length: random.integer(1, 8) }, () => {
      if (this.placed.length > 0 && random.chance(0.4)) return { op: "cancel", id: random.pick(this.placed) };
      return { op: "place", ...this.placement(random.pick(this.markets)) };
    });
    const data = await this.ask("order.batch", { operations });
    const { results } = data as { results: ResultJson[] };
    for (const { code, msg } of results) expectCode("order.batch", code, msg);
    this.note(results.map(({ data }) => data));
  }

  private price(market: TestMarket): number {
    const even = Math.floor(10_000 / market.outcomes.length);
    return even + TICK * this.random.integer(-TICKS, TICKS);
  }

  private placement(market: TestMarket): object {
    const { random } = this;
    const outcome = random.integer(0, market.outcomes.length - 1);
    const self_trade_prevention = random.pick(["cancel_taker", "cancel_maker", "cancel_both", "decrement"]);
    const order = terms(market, outcome, random.pick([BUY, SELL]), this.price(market), random.integer(1, MAX_SHARES), {
      self_trade_prevention,
    });
    const kind = random.next();
    if (kind < 0.1) return { ...order, post_only: true };
    if (kind < 0.2) return { ...order, time_in_force: "ioc" };
    if (kind < 0.25) return { ...order, time_in_force: "fok" };
    if (kind < 0.3) return { ...order, type: "market" };
    if (kind < 0.4) return { ...order, time_in_force: "gtd", expires_at: Date.now() + GTD_MS };
    return order;
  }

  private amendment(market: TestMarket): object {
    const price = this.price(market);
    const quantity = this.random.integer(1, MAX_SHARES);
    return this.random.pick([{ price }, { quantity }, { price, quantity }]);
  }

  private quotes(market: TestMarket): object[] {
    const { random } = this;
    return Array.from({ length: random.integer(0, 6) }, () => {
      const outcome = random.integer(0, market.outcomes.length - 1);
      return quote(market, outcome, random.pick([BUY, SELL]), this.price(market), random.integer(1, MAX_SHARES));
    });
  }

  private async ask(op: string, data: object): Promise<unknown> {
    const answer = await this.socket.ask({ op, data });
    expectCode(op, answer.code, answer.msg);
    return answer.data;
  }
}

function expectCode(op: string, code: number, msg: string): void {
  if (!EXPECTED.includes(code)) throw new Error(`${op}: ${code} ${msg}`);
}
