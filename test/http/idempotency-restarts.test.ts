/**
 * client_order_id as idempotency key over the lives of one server: it stops, is killed twice, and stops again. After each
 * start, a repeated placement gets its first response. An id is free 24 hours after its order was placed, unless the order
 * still lives. A retry storm leaves one order for each id.
 */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectBalanced, expectEndsWell } from "../support/checks.ts";
import { API_BASE, type Client, type OrderJson } from "../support/client.ts";
import { Random } from "../support/random.ts";
import { amend, BUY, expectRefused, post, rawPlacement, restartWith, SELL, terms } from "../support/trading.ts";
import { type TestMarket, tokenOf, World } from "../support/world.ts";

const DAY_MS = 86_400_000;

let world: World;
/** Bodies with their first responses. */
let kept: [body: string, response: string][];
/** The first orders of the ids that age. */
const first = new Map<string, OrderJson>();
let agingMarket: TestMarket;

beforeAll(async () => {
  const named = { aging: {}, keeper: {}, counterparty: {}, storm: {}, taker: {} };
  world = await World.start({ users: 0, named, markets: [2, 2, 2] });
  agingMarket = world.market();
  // Times rise with order ids, so the orders that age are the oldest.
  await placeAging(world.client("aging"));
  kept = await history(world.client("keeper"), world.client("counterparty"), world.market());
  await restartWith(
    world,
    `UPDATE orders SET created_at = created_at - ?
       - CASE WHEN client_order_id LIKE 'old%' THEN 60000 ELSE -60000 END
     WHERE client_order_id LIKE 'old%' OR client_order_id LIKE 'young%'`,
    DAY_MS,
  );
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

/** Kills the server and starts it again. */
async function kill(): Promise<void> {
  await world.server.kill();
  world.server = await world.server.restart();
}

const agingBody = (name: string): object => terms(agingMarket, 0, BUY, 10, 1, { client_order_id: name });

async function placeAging(user: Client): Promise<void> {
  for (const name of ["old-live", "old-ended", "old-late", "young-live", "young-ended"]) {
    const order = await user.place({ ...agingBody(name), ...(name === "old-late" ? { valid_until: 1 } : {}) });
    if (name.endsWith("ended")) await user.cancel(order.id);
    first.set(name, order);
  }
}

/** Placements of every kind and fate, each with its own id; returns their bodies and responses. */
async function history(user: Client, other: Client, market: TestMarket): Promise<[body: string, response: string][]> {
  await world.split(user, market, 10);
  await world.split(other, market, 10);
  const made: [string, string][] = [];
  const place = async (name: string, price: number | null, more: object = {}): Promise<OrderJson> => {
    const body = JSON.stringify({ ...terms(market, 0, BUY, 1, 2, { client_order_id: name, ...more }), price });
    const response = await rawPlacement(user, body, { "X-Builder-Code": "kept" });
    expect(response).toMatch(/^202 /);
    made.push([body, response]);
    return (JSON.parse(response.slice(4)) as { data: OrderJson }).data;
  };
  await place("filled", 5_000);
  const gone = await place("canceled", 4_900);
  const part = await place("partly", 4_800, { quantity: 5 });
  await other.place(terms(market, 0, SELL, 4_801, 2));
  await user.cancel(gone.id);
  await other.place(terms(market, 0, SELL, 4_800, 3));
  expect(await user.order(part.id)).toMatchObject({ status: "partially_filled", remaining: 2 });
  await place("live", 4_000, { self_trade_prevention: "decrement", post_only: true });
  await amend(user, (await place("amended", 4_000)).id, { price: 4_100, quantity: 7 });
  await place("market", null, { type: "market" });
  await place("bound", 17, { type: "market", time_in_force: "fok" });
  await place("late", 4_000, { valid_until: 5 });
  await place("gtd", 4_000, { time_in_force: "gtd", expires_at: Date.now() + DAY_MS });
  const { id } = await place("expired", 4_000, { time_in_force: "gtd", expires_at: Date.now() + 200 });
  await eventually(async () => expect(await user.order(id)).toMatchObject({ status: "expired" }));
  await place("sold", 9_000, { side: SELL, outcome_id: market.outcomes[1] });
  return made;
}

/** Every repeat gets its first response, another body is a conflict, and neither changes anything. */
async function expectFirstResponses(): Promise<void> {
  const user = world.client("keeper");
  const before = [await user.balance(), await user.all("/orders?status=all")];
  for (const [body, response] of kept) {
    expect(await rawPlacement(user, body)).toBe(response);
    const { quantity, ...rest } = JSON.parse(body) as { quantity: number };
    await expectRefused(post(user, { ...rest, quantity: quantity + 1 }), 409, 40900, /client_order_id/);
  }
  expect([await user.balance(), await user.all("/orders?status=all")]).toEqual(before);
  expect(before[1]).toHaveLength(kept.length);
}

describe("after a stop", () => {
  test("after a stop, a repeat gets its first response", expectFirstResponses);

  test("a client order id is free after 24 hours, but not while its order lives, over a kill -9 too", async () => {
    const user = world.client("aging");
    const idOf = async (name: string): Promise<number> => (await user.place(agingBody(name))).id;
    for (const name of ["old-live", "young-live", "young-ended"]) {
      expect([name, await idOf(name)]).toEqual([name, first.get(name)!.id]);
      await expectRefused(post(user, { ...agingBody(name), price: 11 }), 409, 40900);
    }
    for (const name of ["old-ended", "old-late"]) {
      const other = await user.place({ ...agingBody(name), price: 11 });
      expect(other.id).toBeGreaterThan(first.get("young-ended")!.id);
      expect((await post(user, { ...agingBody(name), price: 11 })).data).toEqual(other);
      await expectRefused(post(user, agingBody(name)), 409, 40900);
      const found = await user.all<OrderJson>(`/orders?status=all&client_order_id=${name}`);
      expect(found.map(({ id }) => id)).toEqual([other.id, first.get(name)!.id]);
    }
    // An order that outlives its 24 hours keeps its id until it ends, and no longer.
    await user.cancel(first.get("old-live")!.id);
    await user.cancel(first.get("young-live")!.id);
    expect(await idOf("young-live")).toBe(first.get("young-live")!.id);
    const next = await idOf("old-live");
    expect(next).toBeGreaterThan(first.get("old-live")!.id);
    await kill();
    const after = world.client("aging");
    expect((await after.place(agingBody("old-live"))).id).toBe(next);
    expect((await after.place(agingBody("young-ended"))).id).toBe(first.get("young-ended")!.id);
  });
});

describe("after a kill -9", () => {
  const ORDERS = 150;
  const CLIENTS = 12;

  test("after a kill -9, a repeat gets its first response", expectFirstResponses);

  /** Sends a placement; disconnects right after it, or waits. Returns the order's id, null without a response. */
  function attempt(port: number, body: string, impatient: boolean): Promise<number | null> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      let got = "";
      const end = (id: number | null): void => {
        socket.destroy();
        resolve(id);
      };
      socket.on("error", () => end(null));
      socket.on("close", () => end(null));
      socket.on("data", (chunk: Buffer) => {
        got += chunk.toString();
        const text = got.split("\r\n\r\n")[1];
        if (text?.endsWith("}") !== true) return;
        if (got.startsWith("HTTP/1.1 202")) end((JSON.parse(text) as { data: OrderJson }).data.id);
        else reject(new Error(got));
      });
      const head = `POST ${API_BASE}/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tokenOf("storm")}\r\n`;
      socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`, () => {
        if (impatient) socket.resetAndDestroy();
      });
    });
  }

  /** Clients which repeat each placement until they have a response; returns the orders' ids. */
  async function storm(market: TestMarket, random: Random, prefix: string): Promise<Map<string, number>> {
    const waiting = Array.from({ length: ORDERS }, (_, i) => `${prefix}-${i}`);
    const ids = new Map<string, number>();
    const retry = async (): Promise<void> => {
      for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
        const side = name.endsWith("0") ? SELL : BUY;
        const price = side === BUY ? 4_000 + (Number(name.split("-")[1]) % 7) * 100 : 3_900;
        const body = JSON.stringify(terms(market, 0, side, price, 1 + (name.length % 3), { client_order_id: name }));
        let id: number | null = null;
        while (id === null) id = await attempt(world.server.port, body, random.chance(0.75));
        ids.set(name, id);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, retry));
    return ids;
  }

  test("a retry storm leaves exactly one order for each id, also when the server is killed in between", async () => {
    const random = Random.printed("retry storm");
    const market = world.market();
    const [user, taker] = [world.client("storm"), world.client("taker")];
    await world.split(user, market, 200);
    await world.split(taker, market, 200);
    let storming = true;
    const trade = async (): Promise<void> => {
      while (storming) {
        await taker.place(terms(market, 0, random.pick([BUY, SELL]), 4_300, 2, { time_in_force: "ioc" }));
      }
    };
    const trading = trade();
    const ids = await storm(market, random, "calm");
    storming = false;
    await trading;
    await expectOnce(user, ids);
    // A second storm, with a kill -9 in the middle: the responses before it and after it name the same orders.
    const killed = storm(market, random, "killed");
    await eventually(async () => expect((await user.all("/orders?status=all")).length).toBeGreaterThan(ORDERS * 1.4));
    await kill();
    await expectOnce(world.client("storm"), new Map([...ids, ...(await killed)]));
  });

  async function expectOnce(user: Client, ids: ReadonlyMap<string, number>): Promise<void> {
    const orders = await user.all<OrderJson>("/orders?status=all");
    const found = orders.map(({ client_order_id, id }) => [client_order_id, id] as [string, number]);
    expect(new Map(found)).toEqual(ids);
    expect(found).toHaveLength(ids.size);
    const fills = await user.all<{ quantity: number }>("/me/fills");
    const filled = orders.reduce((sum, order) => sum + order.filled, 0);
    expect(fills.reduce((sum, { quantity }) => sum + quantity, 0)).toBe(filled);
    expect(filled).toBeGreaterThan(0);
  }
});

describe("after a second kill -9", () => {
  test("after a second kill -9, a repeat gets its first response", expectFirstResponses);
});

describe("after a second stop", () => {
  test("after a second stop, a repeat gets its first response", async () => {
    await world.server.stop();
    world.server = await world.server.restart();
    await expectFirstResponses();
  });
});
