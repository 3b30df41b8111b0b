/**
 * The other users of a simulated market: each trades at random against resting orders, rests its own, splits and merges,
 * independently and at its own pace. Keeps no books; can be paused.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type OrderJson } from "../../support/client.ts";
import type { Random } from "../../support/random.ts";
import type { TestServer } from "../../support/server.ts";
import type { TestMarket } from "../../support/world.ts";

const SPLIT = 60;
const MAX_PAUSE_MS = 25;
/** Rejections that are no error: a finished order, no money, no shares, the day's limit. */
const EXPECTED = [0, 40900, 42201, 42202, 42900, 42901];
const ACTIVITY_EXCEEDED = 42901;

export interface FlowOptions {
  readonly market: TestMarket;
  /** One account after the other, as the day's limit of each is reached. */
  readonly tokens: readonly string[];
  readonly random: Random;
  /** Fair price of each outcome, as everyone sees it now. */
  readonly fair: readonly number[];
  /** Returns the running server; waits while it is down. */
  readonly server: () => Promise<TestServer>;
}

export class Trader {
  private readonly options: FlowOptions;
  private account = 0;
  private client: Client | null = null;
  private running: Promise<void> | null = null;
  private stopping = false;
  private still: Promise<void> | null = null;
  private release: () => void = () => {};
  /** Resolves when the pending request has received its response. */
  private busy: Promise<unknown> = Promise.resolve();

  constructor(options: FlowOptions) {
    this.options = options;
  }

  start(): void {
    this.running = this.run();
    // finish() awaits this and reports its error.
    this.running.catch(() => {});
  }

  stop(): void {
    this.stopping = true;
    this.release();
  }

  /** Pauses it after the pending request's response, or resumes it. */
  async pause(still: boolean): Promise<void> {
    if (still && this.still === null) {
      this.still = new Promise((resolve) => {
        this.release = resolve;
      });
    } else if (!still) {
      this.release();
      this.still = null;
    }
    if (still) await this.busy;
  }

  /** Cancels its orders; returns the clients of its accounts. @throws any earlier error of its loop */
  async finish(): Promise<Client[]> {
    this.stop();
    await this.running;
    this.client?.close();
    const server = await this.options.server();
    const clients = this.options.tokens.slice(0, this.account + 1).map((token) => new Client(server, token));
    for (const client of clients) await client.data("DELETE", "/orders");
    return clients;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      if (this.still !== null) await this.still;
      this.busy = this.act();
      await this.busy;
      await sleep(this.options.random.integer(1, MAX_PAUSE_MS));
    }
  }

  private async act(): Promise<void> {
    const server = await this.options.server();
    const token = this.options.tokens[this.account];
    if (token === undefined) throw new Error("no account is left whose daily limit isn't reached");
    const isFresh = this.client === null || this.client.server !== server || this.client.token !== token;
    if (isFresh) {
      this.client?.close();
      this.client = new Client(server, token);
    }
    const client = this.client!;
    const [method, path, body] = this.choose();
    try {
      const { code, msg } = await client.request<OrderJson>(method, path, body === undefined ? {} : { body });
      if (code === ACTIVITY_EXCEEDED) await this.nextAccount(client);
      else if (code === 42202) await this.split(client);
      else if (!EXPECTED.includes(code) && code !== 50300) throw new Error(`${method} ${path}: ${code} ${msg}`);
    } catch (error) {
      // The server went down with the request; another comes up.
      if (server.alive && !isBroken(error)) throw error;
    }
  }

  private async nextAccount(client: Client): Promise<void> {
    await client.request("DELETE", "/orders");
    this.account++;
  }

  private async split(client: Client): Promise<void> {
    const body = { market_id: this.options.market.id, quantity: SPLIT };
    const { code, msg } = await client.request("POST", "/wallet/split", { body });
    if (!EXPECTED.includes(code) && code !== 50300) throw new Error(`split: ${code} ${msg}`);
  }

  private choose(): [method: string, path: string, body?: object] {
    const { market, random } = this.options;
    const kind = random.next();
    if (kind < 0.05) return ["DELETE", `/orders?outcome_id=${random.pick(market.outcomes)}`];
    if (kind < 0.08) return ["POST", "/wallet/split", { market_id: market.id, quantity: random.integer(1, 10) }];
    if (kind < 0.1) return ["POST", "/wallet/merge", { market_id: market.id, quantity: random.integer(1, 10) }];
    return ["POST", "/orders", kind < 0.45 ? this.resting() : this.taking()];
  }

  private resting(): object {
    const { random } = this.options;
    const side = random.pick([1, 2]);
    return { ...this.order(side, side === 1 ? -random.integer(0, 30) : random.integer(0, 30)), post_only: true };
  }

  private taking(): object {
    const { random } = this.options;
    const side = random.pick([1, 2]);
    const away = random.integer(2, 40);
    const order = this.order(side, side === 1 ? away : -away);
    const kind = random.next();
    if (kind < 0.2) return { ...order, type: "market" };
    return { ...order, time_in_force: kind < 0.7 ? "ioc" : kind < 0.85 ? "fok" : "gtc" };
  }

  private order(side: number, ticks: number): object {
    const { market, random, fair } = this.options;
    const index = random.integer(0, market.outcomes.length - 1);
    const price = Math.min(9_999, Math.max(1, fair[index]! + ticks * 10));
    return { market_id: market.id, outcome_id: market.outcomes[index], side, price, quantity: random.integer(1, 6) };
  }
}

function isBroken(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === "ECONNRESET" || code === "ECONNREFUSED" || code === "EPIPE";
}
