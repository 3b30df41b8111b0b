/**
 * A full command ring: the server rejects new work with 50300 at once and still takes cancels, and money stays exact. Each
 * test holds the database's lock, so that nothing commits, until its flood has filled the ring.
 */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { COMMAND_RING_RECORDS } from "../../engine/limits.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { eventually, expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import type { Acknowledgement, Socket } from "../support/socket.ts";
import { BUY, quote, terms } from "../support/terms.ts";
import { type TestMarket, World } from "../support/world.ts";

interface Result {
  readonly code: number;
  readonly msg: string;
  readonly data: OrderJson | null;
  readonly trace_id?: string;
}

interface Results {
  readonly results: readonly Result[];
}

/** The log waits this long for the database's lock before it gives up. */
const JOURNAL_WAITS_MS = 5_000;
const FLOODERS = 24;
const BATCH = 50;
/** Orders tied to one connection: more than the ring has room for cancels. */
const TIED = 1_250;

class FullRing {
  readonly world: World;
  readonly market: TestMarket;
  /** They fill the ring. */
  readonly flooders: readonly { readonly user: Client; readonly socket: Socket }[];
  readonly rest: Client;
  readonly canceler: { readonly user: Client; readonly socket: Socket };
  readonly mixed: { readonly user: Client; readonly socket: Socket };
  /** Its connection ends while its orders are tied to it. */
  readonly leaver: { readonly user: Client; readonly socket: Socket };
  readonly flood: { readonly socket: Socket; readonly id: number }[] = [];

  private constructor(world: World, members: readonly { readonly user: Client; readonly socket: Socket }[]) {
    this.world = world;
    this.market = world.market();
    const [canceler, mixed, leaver, ...flooders] = members;
    this.flooders = flooders;
    this.rest = world.user();
    this.canceler = canceler!;
    this.mixed = mixed!;
    this.leaver = leaver!;
  }

  static async start(threads: number): Promise<FullRing> {
    const env = { ENGINE_THREADS: String(threads) };
    const world = await World.start({ users: FLOODERS + 4, markets: [2], env });
    const users = Array.from({ length: FLOODERS + 3 }, () => world.user());
    const members = await Promise.all(users.map(async (user) => ({ user, socket: await world.socket(user) })));
    return new FullRing(world, members);
  }

  restingOrder(user: Client, price: number): Promise<OrderJson> {
    return user.place(terms(this.market, 1, BUY, price, 1, { client_order_id: `before-${price}` }));
  }

  async tieOrders(): Promise<void> {
    const { socket } = this.leaver;
    await socket.tie();
    const operations = Array.from({ length: BATCH }, (_, n) => ({
      op: "place",
      ...terms(this.market, 1, BUY, 1 + n, 1),
    }));
    for (let n = 0; n < TIED; n += BATCH) await socket.data("order.batch", { operations });
  }

  /** Without a commit nobody gets an update. */
  updates(): number {
    return this.mixed.socket.of("order.updated").length + this.canceler.socket.of("order.updated").length;
  }

  /** Floods the ring, at most until `deadline`. Returns the first rejected batch: before a commit no other gets a response. */
  async fill(deadline: number): Promise<Acknowledgement | undefined> {
    const rejected = (): Acknowledgement | undefined =>
      this.flooders.flatMap(({ socket }) => socket.acknowledgements).find(({ data }) => "results" in (data as object));
    for (let n = 0; rejected() === undefined && Date.now() < deadline; n++) {
      for (const [i, { socket }] of this.flooders.entries()) {
        const operations = Array.from({ length: BATCH }, (_, k) => {
          const client_order_id = `${i}.${n}.${k}`;
          return { op: "place", ...terms(this.market, 0, BUY, 1 + ((n + k) % 90), 1), client_order_id };
        });
        this.flood.push({ socket, id: socket.post({ op: "order.batch", data: { operations } }) });
      }
      // The gateway has read this wave: the next one meets the rest of the ring.
      await Promise.all(this.flooders.map(({ socket }) => socket.fence()));
    }
    return rejected();
  }

  /** Every way in is rejected, with nothing held; resting orders stay. */
  async expectRejections(body: object, restingId: number): Promise<void> {
    const { rest, market } = this;
    const heldBefore = (await rest.balance()).held;
    const rejections = [
      await rest.request("POST", "/orders", { body }),
      await rest.request("PATCH", `/orders/${restingId}`, { body: { price: 20 } }),
      await rest.request("PUT", `/quotes/${market.id}`, { body: { quotes: [quote(market, 0, BUY, 6, 1)] } }),
      await rest.request("POST", "/wallet/split", { body: { market_id: market.id, quantity: 1 } }),
    ];
    for (const rejection of rejections) expect(rejection).toMatchObject({ status: 503, code: 50300, data: null });
    expect((await rest.balance()).held).toBe(heldBefore);
    const overSocket = await this.mixed.socket.ask({ op: "order.place", data: body });
    expect(overSocket).toMatchObject({ code: 50300, data: null, trace_id: expect.stringMatching(/./) });
    const batch = await rest.data<Results>("POST", "/orders/batch", { operations: [{ op: "place", ...body }] });
    expect(batch.results).toEqual([{ code: 50300, msg: expect.any(String), data: null, trace_id: expect.any(String) }]);
  }

  /** All responses to the flood: each order is accepted with its money held, or 50300. Returns the accepted ones. */
  async expectFloodDone(): Promise<{ accepted: OrderJson[]; rejected: number }> {
    const accepted: OrderJson[] = [];
    let rejected = 0;
    const heldBySocket = new Map<Socket, number>();
    for (const { socket, id } of this.flood) {
      const answer = await socket.answer(id);
      expect(answer).toMatchObject({ code: 0 });
      const found = (answer.data as Results).results;
      expect(found).toHaveLength(BATCH);
      for (const { code, data, trace_id } of found) {
        if (code === 0) {
          accepted.push(data!);
          heldBySocket.set(socket, (heldBySocket.get(socket) ?? 0) + data!.price * 100);
          continue;
        }
        rejected++;
        expect([code, data, typeof trace_id]).toEqual([50300, null, "string"]);
      }
    }
    for (const { user, socket } of this.flooders) {
      const held = heldBySocket.get(socket)!;
      const { total, ...rest } = await user.balance();
      expect(rest).toEqual({ held, available: total - held });
    }
    const { user, socket } = this.flooders[0]!;
    const listed = await user.all<OrderJson>("/orders");
    expect(listed.reduce((sum, { price, remaining }) => sum + price * 100 * remaining, 0)).toBe(
      heldBySocket.get(socket),
    );
    return { accepted, rejected };
  }

  /** The tied orders ended with their connection. */
  async expectTiedOrdersCanceled(): Promise<void> {
    const { user } = this.leaver;
    await eventually(async () => expect((await user.balance()).held).toBe(0));
    const left = await user.all<OrderJson>("/orders?status=all");
    expect(left.map(({ status, reason }) => `${status} ${reason}`)).toEqual(
      Array(TIED).fill("canceled cancel_on_disconnect"),
    );
  }

  /** Ends the server. Its database has every accepted order and no rejected one. */
  async expectStored(accepted: readonly OrderJson[]): Promise<void> {
    await expectBalanced(this.world.anonymous());
    await expectEndsWell(this.world);
    const db = openSqlite(join(this.world.server.dataDir, "exchange.db"), { readonly: true });
    const flooded = db.prepare("SELECT id, client_order_id FROM orders WHERE client_order_id GLOB '*.*.*' ORDER BY id");
    const named = accepted.map(({ id, client_order_id }) => ({ id, client_order_id })).sort((a, b) => a.id - b.id);
    expect(flooded.all()).toEqual(named);
    db.close();
  }
}

describe.each([1, 2])("a full command ring, ENGINE_THREADS=%i", (threads) => {
  test("a full command ring rejects at once with 50300, does nothing by halves, takes cancels, and does all that it accepted", async () => {
    // 1. Resting orders of all kinds.
    const ring = await FullRing.start(threads);
    const { world, market, rest, canceler, mixed, leaver } = ring;
    const onlooker = world.anonymous();
    const [byRest, byMixed] = [await ring.restingOrder(rest, 10), await ring.restingOrder(mixed.user, 10)];
    for (const price of [11, 12, 13]) await ring.restingOrder(canceler.user, price);
    const [quoted] = (await rest.data<Results>("PUT", `/quotes/${market.id}`, { quotes: [quote(market, 1, BUY, 5, 1)] })).results; // biome-ignore format: one answer
    await ring.tieOrders();
    await canceler.socket.fence();
    expect(ring.updates()).toBe(4);

    // 2. While the log cannot commit, the ring fills up: a whole batch is rejected, at once.
    const lock = openSqlite(join(world.server.dataDir, "journal.db"));
    lock.exec("BEGIN IMMEDIATE");
    const since = Date.now();
    const first = await ring.fill(since + 4_000);
    const fullMs = Date.now() - since;
    expect(first, "a batch that was rejected as a whole").toBeDefined();
    expect((first!.data as Results).results.map(({ code }) => code)).toEqual(Array(BATCH).fill(50300));
    const body = terms(market, 0, BUY, 100, 1, { client_order_id: "refused" });
    await ring.expectRejections(body, byRest.id);
    // 3. It still takes cancels.
    const operations = [
      { op: "place", ...body },
      { op: "cancel", id: byMixed.id },
      { op: "place", ...body, price: 1 },
    ];
    const mixedId = mixed.socket.post({ op: "order.batch", data: { operations } });
    const allId = canceler.socket.post({ op: "order.cancel_all", data: {} });
    const canceled = rest.request<OrderJson>("DELETE", `/orders/${byRest.id}`);
    // It arrives before the many cancels of the ended connection, which take all the room reserved for cancels.
    for (let n = 0; n < 3; n++) await onlooker.get("/time");
    leaver.socket.socket.terminate();
    await leaver.socket.closed;
    for (const { socket } of [mixed, canceler]) await socket.fence();
    expect(ring.updates()).toBe(4);
    // 4. After the commit, everything accepted is done, and nothing rejected.
    lock.exec("ROLLBACK");
    lock.close();
    expect(Date.now() - since).toBeLessThan(JOURNAL_WAITS_MS);

    expect(await canceled).toMatchObject({ status: 202, data: { id: byRest.id } });
    const all = (await canceler.socket.answer(allId)).data as { order_ids: number[] };
    expect(all.order_ids).toHaveLength(3);
    const { results } = (await mixed.socket.answer(mixedId)).data as Results;
    expect(results.map(({ code }) => code)).toEqual([50300, 0, 50300]);
    const { accepted, rejected } = await ring.expectFloodDone();
    process.stdout.write(
      `${threads} engine threads: ${accepted.length} accepted, ${rejected} rejected, full after ${fullMs} ms\n`,
    );
    expect(accepted.length).toBeGreaterThan(COMMAND_RING_RECORDS - 1_024 - 100);
    await ring.expectTiedOrdersCanceled();
    expect(await canceler.user.all("/orders")).toEqual([]);
    for (const { user } of [canceler, mixed]) expect((await user.balance()).held).toBe(0);
    expect((await rest.all<OrderJson>("/orders")).map(({ id }) => id)).toEqual([quoted!.data!.id]);
    // A rejected placement doesn't use up its client order id.
    expect(await rest.place({ ...body, price: 7 })).toMatchObject({ client_order_id: "refused", price: 7 });
    for (const { socket } of [...ring.flooders, canceler, mixed]) await socket.close();
    await ring.expectStored(accepted);
  });
});
