/**
 * Users who trade at random over REST with every kind of order: all times in force and self-trade preventions, market
 * orders, amends, batches, quotes, builder codes, client order ids, complete sets. Only rejections for lack of money, shares
 * or a live order are expected. Keeps no books. Survives the server's death.
 */
import { Client, type OrderJson } from "./client.ts";
import type { Random } from "./random.ts";
import type { TestServer } from "./server.ts";
import { BUY, SELL, terms } from "./terms.ts";
import type { TestMarket } from "./world.ts";

const SETS_AT_START = 300;
const EXPECTED = [0, 4040, 40900, 42201, 42202, 42900, 42901];
/** Own orders that a user may still cancel or amend. */
const REMEMBERED = 30;

export class RandomTrading {
  /** Requests that received a response. */
  answered = 0;
  private readonly expected: readonly number[];
  private readonly random: Random;
  private readonly markets: readonly TestMarket[];
  private readonly tokens: readonly string[];
  private readonly placed: number[][];
  private clients: Client[] = [];
  private loops: Promise<void>[] = [];
  private running = false;
  private named = 0;

  /** @param expected more codes of rejections that are no fault */
  constructor(
    random: Random,
    markets: readonly TestMarket[],
    tokens: readonly string[],
    expected: readonly number[] = [],
  ) {
    this.expected = [...EXPECTED, ...expected];
    this.random = random;
    this.markets = markets;
    this.tokens = tokens;
    this.placed = tokens.map(() => []);
  }

  /** Gives every user shares of every outcome; called once. */
  async prepare(server: TestServer): Promise<void> {
    for (const token of this.tokens) {
      const client = new Client(server, token);
      for (const { id } of this.markets) {
        await client.data("POST", "/wallet/split", { market_id: id, quantity: SETS_AT_START });
      }
      client.close();
    }
  }

  start(server: TestServer): void {
    this.running = true;
    this.clients = this.tokens.map((token) => new Client(server, token, 2));
    this.loops = this.clients.flatMap((client, user) => [this.loop(client, user), this.loop(client, user)]);
    // stop() awaits them and reports their errors.
    for (const loop of this.loops) loop.catch(() => {});
  }

  /** Resolves when this many more requests have received a response. */
  async more(answers: number): Promise<void> {
    const enough = this.answered + answers;
    while (this.answered < enough && this.running) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  /** Ends the loops once requests in flight have received a response, or their connection has failed. */
  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
    for (const client of this.clients) client.close();
  }

  /** Resolves when no update can follow: after stop(), the last gtd orders still expire. */
  async expired(server: TestServer): Promise<void> {
    for (const token of this.tokens) {
      const client = new Client(server, token);
      while ((await client.all<OrderJson>("/orders")).some(({ expires_at }) => expires_at !== null));
      client.close();
    }
  }

  private async loop(client: Client, user: number): Promise<void> {
    while (this.running) {
      try {
        await this.step(client, this.placed[user]!);
        this.answered++;
      } catch (error) {
        // Once the process has ended, its connections fail; the test reports anything else.
        if ((error as NodeJS.ErrnoException).code !== undefined) return;
        this.running = false;
        throw error;
      }
    }
  }

  private async ask<T>(client: Client, method: string, path: string, body?: unknown): Promise<T | null> {
    const headers: Record<string, string> = {};
    if (method === "POST" && path.startsWith("/orders") && this.random.chance(0.3))
      headers["X-Builder-Code"] = "random";
    const { code, msg, data } = await client.request<T>(method, path, body === undefined ? {} : { body, headers });
    // On a busy machine, a request may arrive after the expiry that it asks for.
    const isLate = code === 40000 && msg === "expires_at: must lie in the future";
    if (!this.expected.includes(code) && !isLate)
      throw new Error(`${method} ${path} ${JSON.stringify(body)}: ${code} ${msg}`);
    return code === 0 ? data : null;
  }

  private async step(client: Client, placed: number[]): Promise<void> {
    const { random } = this;
    const market = random.pick(this.markets);
    const kind = random.next();
    if (kind < 0.12 && placed.length > 0) await this.ask(client, "DELETE", `/orders/${random.pick(placed)}`);
    else if (kind < 0.3 && placed.length > 0)
      await this.ask(client, "PATCH", `/orders/${random.pick(placed)}`, this.amendment());
    else if (kind < 0.36) await this.batch(client, market, placed);
    else if (kind < 0.42) await this.ask(client, "PUT", `/quotes/${market.id}`, { quotes: this.quotes(market) });
    else if (kind < 0.43) await this.ask(client, "DELETE", `/orders?market_id=${market.id}`);
    else if (kind < 0.45) {
      const body = { market_id: market.id, quantity: random.integer(1, 3) };
      await this.ask(client, "POST", `/wallet/${random.pick(["split", "merge"])}`, body);
    } else this.remember(placed, await this.ask<OrderJson>(client, "POST", "/orders", this.placement(market)));
  }

  private remember(placed: number[], order: { id: number } | null): void {
    if (order === null) return;
    placed.push(order.id);
    if (placed.length > REMEMBERED) placed.shift();
  }

  private price(market: TestMarket): number {
    return Math.floor(10_000 / market.outcomes.length) + 10 * this.random.integer(-5, 5);
  }

  private placement(market: TestMarket): object {
    const { random } = this;
    const outcome = random.integer(0, market.outcomes.length - 1);
    const side = random.pick([BUY, SELL]);
    const named = random.chance(0.5)
      ? { client_order_id: `c:${++this.named}.${"x".repeat(random.integer(0, 40))}` }
      : {};
    const more = {
      ...named,
      self_trade_prevention: random.pick(["cancel_taker", "cancel_maker", "cancel_both", "decrement", "decrement"]),
    };
    if (random.chance(0.1)) {
      const { price: _, ...rest } = terms(market, outcome, side, 1, random.integer(1, 12), more);
      return { ...rest, type: "market", time_in_force: random.pick(["ioc", "fok"]) };
    }
    // Some orders sweep many others.
    if (random.chance(0.05)) return terms(market, outcome, side, side === BUY ? 6_500 : 3_000, 60, more);
    const tif = random.pick(["gtc", "gtc", "gtc", "gtd", "ioc", "fok"]);
    return {
      ...terms(market, outcome, side, this.price(market), random.integer(1, 8), more),
      time_in_force: tif,
      ...(tif === "gtd" ? { expires_at: Date.now() + random.integer(100, 600) } : {}),
      ...(tif === "gtc" && random.chance(0.2) ? { post_only: true } : {}),
    };
  }

  private amendment(): object {
    const { random } = this;
    const price = this.price(random.pick(this.markets));
    const quantity = random.integer(1, 10);
    return random.pick<object>([{ price }, { quantity }, { price, quantity }]);
  }

  private quotes(market: TestMarket): object[] {
    const { random } = this;
    return Array.from({ length: random.integer(0, 4) }, () => {
      const quantity = random.integer(1, 5);
      return {
        outcome_id: random.pick(market.outcomes),
        side: random.pick([BUY, SELL]),
        price: this.price(market),
        quantity,
      };
    });
  }

  private async batch(client: Client, market: TestMarket, placed: number[]): Promise<void> {
    const { random } = this;
    const operations = Array.from({ length: random.integer(1, 8) }, () => {
      if (placed.length > 0 && random.chance(0.2)) return { op: "cancel", id: random.pick(placed) };
      if (placed.length > 0 && random.chance(0.2)) return { op: "amend", id: random.pick(placed), ...this.amendment() };
      return { op: "place", ...this.placement(market) };
    });
    const answer = await this.ask<{ results: { data: OrderJson | null }[] }>(client, "POST", "/orders/batch", {
      operations,
    });
    for (const { data } of answer?.results ?? []) this.remember(placed, data);
  }
}
