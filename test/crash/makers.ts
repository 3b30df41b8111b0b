/**
 * Two market makers over WebSockets, in a market of their own. They send quotes, batches of placements, amends and
 * cancels, and record every response. After a crash, `expectKept` checks a restarted server against the record. The
 * makers then resend the requests that received no response.
 */
import assert from "node:assert/strict";
import { Client, type OrderJson } from "../support/client.ts";
import type { Random } from "../support/random.ts";
import type { TestServer } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { type TestMarket, tokenOf } from "../support/world.ts";
import { expectHolds, placeAgain } from "./traffic.ts";

const SETS_AT_START = 500;
/** A maker amends and cancels only this many of its newest orders. */
const REMEMBERED = 12;
const SHUTTING_DOWN = 50300;

interface Result {
  readonly code: number;
  readonly data: OrderJson | null;
}
/** An order's amends: the last one the server accepted, and one that may be pending. */
interface Terms {
  readonly price?: number;
  readonly quantity?: number;
}

class Maker {
  readonly name: string;
  readonly sent = new Set<string>();
  /** Placements that ended without a response, by client order id. */
  readonly open = new Map<string, object>();
  /** As the last response described them. */
  readonly orders = new Map<number, OrderJson>();
  readonly amending = new Map<number, Terms>();
  /** Orders that the server canceled on request, and quotes that newer quotes replaced. */
  readonly ended = new Set<number>();
  quotes = new Set<number>();
  /** A replacement of quotes is pending, so quotes that the maker has no response for may be live. */
  quoting = false;
  readonly told = new Set<number>();
  /** Orders that the maker may amend and cancel, newest last. */
  readonly own: number[] = [];

  constructor(name: string) {
    this.name = name;
  }

  take(order: OrderJson): void {
    this.orders.set(order.id, order);
    this.told.add(order.id);
  }
}

export class Makers {
  /** Operations that received a response. */
  answered = 0;
  retried = 0;
  private readonly random: Random;
  private readonly market: TestMarket;
  private readonly makers: readonly Maker[];
  private sockets: Socket[] = [];
  private loops: Promise<void>[] = [];
  private running = false;
  private names = 0;

  constructor(random: Random, market: TestMarket, users: readonly string[]) {
    this.random = random;
    this.market = market;
    this.makers = users.map((name) => new Maker(name));
  }

  /** Gives each maker shares, once. */
  async prepare(server: TestServer): Promise<void> {
    for (const { name } of this.makers) {
      const client = new Client(server, tokenOf(name));
      await client.data("POST", "/wallet/split", { market_id: this.market.id, quantity: SETS_AT_START });
      client.close();
    }
  }

  async start(server: TestServer): Promise<void> {
    this.running = true;
    for (const maker of this.makers) {
      const socket = await Socket.open(server, tokenOf(maker.name));
      this.sockets.push(socket);
      const loop = this.loop(socket, maker);
      // end() awaits these loops and reports their errors.
      loop.catch(() => {});
      this.loops.push(loop);
    }
  }

  /** Resolves when the loops have ended: each pending request received a response or lost its connection. */
  async end(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
    for (const { socket } of this.sockets) socket.terminate();
    this.loops = [];
    this.sockets = [];
  }

  async retry(server: TestServer): Promise<void> {
    for (const maker of this.makers) {
      const client = new Client(server, tokenOf(maker.name));
      for (const [name, body] of maker.open) {
        const order = await placeAgain(client, name, body);
        if (order !== null) maker.take(await client.order(order.id));
        maker.open.delete(name);
        this.retried++;
      }
      client.close();
    }
  }

  /** @param isFull checks the whole record, else only what the makers recorded since the last check */
  async expectKept(server: TestServer, isFull: boolean): Promise<void> {
    for (const maker of this.makers) {
      const client = new Client(server, tokenOf(maker.name), 4);
      const ids = isFull ? maker.orders.keys() : maker.told;
      await Promise.all([...ids].map(async (id) => expectKept(maker, await client.order(id))));
      const live = await client.all<OrderJson>("/orders");
      for (const { id, client_order_id } of live) {
        if (client_order_id === null) assert(maker.quoting || maker.quotes.has(id), `order ${id} is quoted`);
        else assert(maker.sent.has(client_order_id), `somebody placed ${client_order_id}`);
      }
      await expectHolds(client, live);
      maker.told.clear();
      client.close();
    }
  }

  private async loop(socket: Socket, maker: Maker): Promise<void> {
    while (this.running) {
      try {
        if (this.random.chance(0.4)) await this.quote(socket, maker);
        else await this.batch(socket, maker);
        this.answered++;
      } catch (error) {
        // A closed socket means that the process is gone. The test reports any earlier error.
        if (error instanceof assert.AssertionError || socket.socket.readyState === socket.socket.OPEN) throw error;
        return;
      }
    }
  }

  private price(): number {
    return 5_000 + 10 * this.random.integer(-6, 6);
  }

  private async quote(socket: Socket, maker: Maker): Promise<void> {
    const { random, market } = this;
    const quotes = Array.from({ length: random.integer(0, 6) }, () => {
      const outcome_id = random.pick(market.outcomes);
      return { outcome_id, side: random.pick([1, 2]), price: this.price(), quantity: random.integer(1, 5) };
    });
    maker.quoting = true;
    const answer = await socket.ask({ op: "quotes.replace", data: { market_id: market.id, quotes } });
    if (answer.code === 0) {
      const placed = (answer.data as { results: Result[] }).results.flatMap(({ data }) => data ?? []);
      const kept = new Set(placed.map(({ id }) => id));
      for (const id of maker.quotes) {
        if (kept.has(id)) continue;
        maker.ended.add(id);
        maker.told.add(id);
      }
      maker.quotes = kept;
      for (const order of placed) maker.take(order);
      maker.quoting = false;
    } else if (answer.code !== SHUTTING_DOWN) maker.quoting = false;
  }

  private async batch(socket: Socket, maker: Maker): Promise<void> {
    const { random } = this;
    const operations = Array.from({ length: random.integer(1, 12) }, () => this.operation(maker));
    const answer = await socket.ask({ op: "order.batch", data: { operations } });
    // The server rejected the whole request, so none of it took effect.
    const results = answer.code === 0 ? (answer.data as { results: Result[] }).results : [];
    for (const [i, operation] of operations.entries()) {
      const { code, data } = results[i] ?? { code: answer.code, data: null };
      if (operation.op === "place") maker.open.delete(operation.client_order_id);
      else if (operation.op === "amend") maker.amending.delete(operation.id);
      else if (code === 0) maker.ended.add(operation.id);
      if (code !== 0 || data === null) continue;
      maker.take(data);
      if (operation.op === "place") maker.own.push(data.id);
    }
    maker.own.splice(0, maker.own.length - REMEMBERED);
  }

  private operation(maker: Maker) {
    const { random, market } = this;
    const kind = random.next();
    const id = maker.own.length === 0 ? null : random.pick(maker.own);
    if (id !== null && kind < 0.2) return { op: "cancel", id } as const;
    if (id !== null && kind < 0.4 && !maker.amending.has(id)) {
      const terms: Terms = random.chance(0.5) ? { price: this.price() } : { quantity: random.integer(1, 9) };
      maker.amending.set(id, terms);
      return { op: "amend", id, ...terms } as const;
    }
    const client_order_id = `${maker.name}.${++this.names}`;
    const placement = {
      market_id: market.id,
      outcome_id: random.pick(market.outcomes),
      side: random.pick([1, 2]),
      price: this.price(),
      quantity: random.integer(1, 8),
      client_order_id,
      time_in_force: random.pick(["gtc", "gtc", "ioc"]),
    };
    maker.sent.add(client_order_id);
    maker.open.set(client_order_id, placement);
    return { op: "place", ...placement } as const;
  }
}

/** Checks an order against the maker's record; any difference must be the maker's last pending request. */
function expectKept(maker: Maker, order: OrderJson): void {
  const { id, price, quantity } = order;
  const known = maker.orders.get(id)!;
  for (const name of ["client_order_id", "outcome_id", "side", "time_in_force", "created_at"] as const) {
    assert.equal(order[name], known[name], `${name} of order ${id}`);
  }
  const asked = maker.amending.get(id);
  const possible = [known, { ...known, ...asked }].map((terms) => `${terms.quantity} at ${terms.price}`);
  assert(possible.includes(`${quantity} at ${price}`), `order ${id}: ${quantity} at ${price}, not ${possible}`);
  maker.amending.delete(id);
  assert(order.filled >= known.filled, `order ${id}: what was filled stays filled`);
  const isLive = order.status === "open" || order.status === "partially_filled";
  assert(!isLive || !maker.ended.has(id), `order ${id} has ended`);
  assert.equal(
    order.trades.reduce((sum, fill) => sum + fill.quantity, 0),
    order.filled,
    `fills of order ${id}`,
  );
  maker.orders.set(id, order);
}
