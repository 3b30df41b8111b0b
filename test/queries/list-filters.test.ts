/**
 * Filters of lists: status, time of creation, outcome, ids and client order id. Each filtered list, page by page, has the
 * matching items of the whole list. A cursor is good for its own list only. One read of a long history is bounded, and its
 * cursor continues. The server has restarted once, between the orders of the tests "over a restart" and all others.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OrderStatus, Reason } from "../../engine/constants.ts";
import { MAX_ROWS_WALKED } from "../../server/queries/limits.ts";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Client, MarketJson, OrderJson, OwnFillJson, TradeJson, TransactionJson } from "../support/client.ts";
import { withDatabase } from "../support/data-dir.ts";
import { BUY, batch, expectRefused, idsOf, post, SELL, terms } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

interface Page<T> {
  readonly items: T[];
  readonly next_cursor: string | null;
}

let world: World;
/** What the tests "over a restart" compare with. */
let before: {
  readonly named: ReadonlyMap<string, number>;
  readonly traded: readonly [market: TestMarket, other: TestMarket];
  readonly trades: readonly TradeJson[][];
  readonly listed: { readonly orders: readonly OrderJson[]; readonly cursor: string | null };
  readonly history: History;
};

beforeAll(async () => {
  const named = { aging: {}, maker: {}, taker: {}, lister: {}, historian: {} };
  world = await World.start({ users: 40, named, markets: [...Array<number>(25).fill(2), 3] });
  // Times rise with order ids, so the orders that age come first.
  const ids = await placeAging(world.client("aging"), world.market());
  const traded = [world.market(), world.market()] as const;
  await tradeBothOutcomes(world.client("maker"), world.client("taker"), traded[0]);
  const trades = await expectTradesByOutcome(traded);
  const listed = await firstPage(world.client("lister"), world.market());
  const outcome = world.market().outcomes[0]!;
  await world.server.stop();
  age(world.server.dataDir);
  const history = writeHistory(world.server.dataDir, outcome);
  world.server = await world.server.restart();
  before = { named: ids, traded, trades, listed, history };
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

/** Orders with and without an end, by their client order ids, which `age` reads. */
async function placeAging(user: Client, market: TestMarket): Promise<ReadonlyMap<string, number>> {
  const ids = new Map<string, number>();
  for (const name of ["old-live", "old-ended", "young-live", "young-ended"]) {
    const { id } = await user.place(terms(market, 0, BUY, 10, 1, { client_order_id: name }));
    if (name.endsWith("ended")) await user.cancel(id);
    ids.set(name, id);
  }
  return ids;
}

async function tradeBothOutcomes(maker: Client, taker: Client, market: TestMarket): Promise<void> {
  await world.split(maker, market, 50);
  for (let i = 0; i < 12; i++) {
    const outcome = i % 3 === 0 ? 1 : 0;
    await maker.place(terms(market, outcome, SELL, 5_000 + i, 1));
    await taker.place(terms(market, outcome, BUY, 5_000 + i, 1));
  }
}

/** The trades of each outcome are those of the whole list; returns that list, and one by outcome and time. */
async function expectTradesByOutcome([market, other]: readonly [TestMarket, TestMarket]): Promise<TradeJson[][]> {
  const path = `/markets/${market.id}/trades`;
  const reader = world.anonymous();
  const all = await reader.all<TradeJson>(path);
  for (const outcome of market.outcomes) {
    const wanted = all.filter(({ outcome_id }) => outcome_id === outcome);
    for (const limit of [1, 3, 200]) expect(await reader.all(`${path}?outcome_id=${outcome}`, limit)).toEqual(wanted);
  }
  const refused = reader.request("GET", `${path}?outcome_id=${other.outcomes[0]}`);
  await expectRefused(refused, 400, 40000, /^outcome_id/);
  return [all, await reader.all(`${path}?outcome_id=${market.outcomes[1]}&from=${all[5]!.created_at}`)];
}

/** Three orders, and the cursor behind the newest. */
async function firstPage(user: Client, market: TestMarket): Promise<{ orders: OrderJson[]; cursor: string | null }> {
  const body = terms(market, 0, BUY, 10, 1);
  const orders = [await post(user, body), await post(user, body), await post(user, body)].map(({ data }) => data);
  const { next_cursor } = await user.get<Page<OrderJson>>("/orders?side=1&limit=1");
  return { orders, cursor: next_cursor };
}

const HOUR_MS = 3_600_000;

/** Orders named "old" are now 25 hours old, and all others 20 hours. */
function age(dataDir: string): void {
  withDatabase(dataDir, (db) => {
    const hours = "iif(client_order_id LIKE 'old%', 25, 20)";
    db.exec(`UPDATE orders SET created_at = created_at - ${HOUR_MS} * ${hours}`);
  });
}

/** A user's long history: ids and times of its orders. */
interface History {
  /** The order before the first one. */
  readonly base: number;
  /** When the first one would have a predecessor. */
  readonly start: number;
}

const HISTORY_LENGTH = 3 * MAX_ROWS_WALKED;
/** The history lasts 17 hours: less than the age of the orders before it. */
const STEP_MS = 2_000;

/** Writes canceled orders, with every 5,000th expired, one each two seconds, as the projector would. */
function writeHistory(dataDir: string, outcome: number): History {
  const start = Date.now() - (HISTORY_LENGTH + 1_000) * STEP_MS;
  let base = 0;
  withDatabase(dataDir, (db) => {
    base = Number(db.prepare("SELECT last_order_id FROM totals").pluck().get());
    const user = Number(db.prepare("SELECT id FROM users WHERE email = 'historian@example.com'").pluck().get());
    db.prepare(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @count)
       INSERT INTO orders (id, user_id, outcome_id, side, type, time_in_force, self_trade_prevention, post_only, pat, price,
         quantity, remaining, status, reason, created_at, updated_at, previous_of_user)
       SELECT @base + i, @user, @outcome, 1, 0, 0, 0, 0, 1, 100, 1, 1,
         iif(i % 5000 = 0, ${OrderStatus.expired}, ${OrderStatus.canceled}),
         iif(i % 5000 = 0, ${Reason.expired}, ${Reason.user}), @start + i * ${STEP_MS}, @start + i * ${STEP_MS},
         iif(i = 1, 0, @base + i - 1) FROM n`,
    ).run({ base, user, count: HISTORY_LENGTH, outcome, start });
    const last = base + HISTORY_LENGTH;
    db.exec(`UPDATE totals SET last_order_id = ${last};
      INSERT OR REPLACE INTO newest_of_user (user_id, order_id, fill_id) VALUES (${user}, ${last}, 0)`);
  });
  return { base, start };
}

/** Waits until the server's clock shows another millisecond, so that the next order is later than the last one. */
async function nextMillisecond(client: Client): Promise<number> {
  const { now } = await client.get<{ now: number }>("/time");
  for (;;) {
    const later = (await client.get<{ now: number }>("/time")).now;
    if (later > now) return later;
  }
}

/** Gives the user an order of every state, oldest first, each of its own millisecond, and trades. */
async function everyState(market: TestMarket, user: Client, other: Client): Promise<void> {
  await world.split(other, market, 20);
  const place = async (price: number, quantity: number, more: object = {}): Promise<OrderJson> => {
    await nextMillisecond(user);
    return user.place(terms(market, 0, BUY, price, quantity, more));
  };
  const sell = async (quantity: number): Promise<void> => {
    await nextMillisecond(user);
    await other.place(terms(market, 0, SELL, 1, quantity, { time_in_force: "ioc" }));
  };
  await place(5_000, 2);
  await sell(2);
  const expiring = await place(4_000, 1, { time_in_force: "gtd", expires_at: Date.now() + 300 });
  await user.cancel((await place(4_100, 1)).id);
  await place(4_200, 1, { valid_until: 1 });
  await place(4_900, 5);
  await sell(3);
  await place(10, 1);
  await place(11, 1);
  await place(4_300, 4, { time_in_force: "ioc" });
  for (;;) if ((await user.order(expiring.id)).status === "expired") return;
}

describe("orders", () => {
  let [market, user, other]: [TestMarket | null, Client | null, Client | null] = [null, null, null];
  let all: OrderJson[];
  beforeAll(async () => {
    [market, user, other] = [world.market(), world.user(), world.user()];
    await everyState(market, user, other);
    all = await user.all<OrderJson>("/orders?status=all");
  });

  test("orders of a single state, page by page, are those of all orders that are in it", async () => {
    const states = ["queued", "open", "partially_filled", "filled", "canceled", "expired", "rejected"];
    const counts: Record<string, number> = {};
    for (const status of states) {
      const wanted = all.filter((order) => order.status === status).map((order) => ({ ...order, trades: [] }));
      counts[status] = wanted.length;
      for (const limit of [1, 2, 200]) {
        expect(await user!.all(`/orders?status=${status}`, limit)).toEqual(wanted);
      }
      expect(await user!.all(`/orders?status=${status}&side=2`)).toEqual([]);
    }
    expect(counts).toEqual({
      ...{ queued: 0, open: 2, partially_filled: 1, filled: 1, canceled: 2, expired: 1, rejected: 1 },
    });
    await expectRefused(user!.request("GET", "/orders?status=open,filled"), 400, 40000, /^status/);
    await expectRefused(user!.request("GET", "/orders?status=done"), 400, 40000, /^status/);
  });

  test("orders created from one time to another, both included, of any state", async () => {
    const times = all.map(({ created_at }) => created_at).toReversed();
    for (const status of ["active", "all", "canceled", "open"]) {
      const listed = await user!.all<OrderJson>(`/orders?status=${status}`);
      for (const [from, to] of [[0, 3], [2, 5], [4, 4], [6, 7]] as const) {
        const [since, until] = [times[from]!, times[to]!];
        const wanted = listed.filter(({ created_at }) => created_at >= since && created_at <= until);
        const query = `/orders?status=${status}&from=${since}&to=${until}`;
        for (const limit of [1, 200]) expect(idsOf(await user!.all(query, limit)), query).toEqual(idsOf(wanted));
      } // biome-ignore format: one pair each
      expect(idsOf(await user!.all(`/orders?status=${status}&from=${times.at(-1)! + 1}`))).toEqual([]);
      expect(idsOf(await user!.all(`/orders?status=${status}&to=${times[0]! - 1}`))).toEqual([]);
      expect(idsOf(await user!.all(`/orders?status=${status}&from=0&to=${2 ** 52}`))).toEqual(idsOf(listed));
      await expectRefused(user!.request("GET", `/orders?status=${status}&from=2&to=1`), 400, 40000, /^from/);
    }
  });

  test("fills, trades and transactions filter by time too, and fills by order", async () => {
    const [fills, trades, transactions] = [
      await user!.all<OwnFillJson>("/me/fills"),
      await user!.all<TradeJson>(`/markets/${market!.id}/trades`),
      await other!.all<TransactionJson>("/wallet/transactions"),
    ];
    expect([fills.length, trades.length]).toEqual([2, 2]);
    const lists: [Client, string, readonly { id: number; created_at: number }[]][] = [
      [user!, "/me/fills?", fills],
      [user!, `/me/fills?order_id=${fills[0]!.order_id}&`, fills.slice(0, 1)],
      [world.anonymous(), `/markets/${market!.id}/trades?`, trades],
      [other!, "/wallet/transactions?", transactions],
      [other!, "/wallet/transactions?type=fee&", transactions.filter(({ type }) => type === "fee")],
    ];
    for (const [client, path, items] of lists) {
      for (const since of items.map(({ created_at }) => created_at)) {
        const of = async (query: string): Promise<number[]> => {
          return (await client.all<{ id: number }>(path + query, 1)).map(({ id }) => id);
        };
        const idsWhere = (fits: (at: number) => boolean): number[] =>
          items.filter(({ created_at }) => fits(created_at)).map(({ id }) => id);
        expect(await of(`from=${since}`)).toEqual(idsWhere((at) => at >= since));
        expect(await of(`to=${since - 1}`)).toEqual(idsWhere((at) => at < since));
        expect(await of(`from=${since}&to=${since}`)).toEqual(idsWhere((at) => at === since));
      }
      await expectRefused(client.request("GET", `${path}from=2&to=1`), 400, 40000, /^from/);
    }
  });
});

test("markets filter by their ids and by several states", async () => {
  const client = world.anonymous();
  const all = await client.all<MarketJson>("/markets?status=all");
  const ids = all.map(({ id }) => id);
  const some = [ids[3]!, ids[0]!, ids[7]!, 999_999, 2 ** 49];
  const wanted = [ids[0]!, ids[3]!, ids[7]!];
  const listed = async (query: string, limit = 200): Promise<number[]> =>
    (await client.all<MarketJson>(`/markets?${query}`, limit)).map(({ id }) => id);
  for (const limit of [1, 2, 200]) expect(await listed(`ids=${some.join()}`, limit)).toEqual(wanted);
  expect(await listed(`ids=${some.join()}&status=all&sort=created_at`)).toEqual(wanted);
  expect(await listed(`ids=${some.join()}&status=closed,resolved`)).toEqual([]);
  expect(await listed(`ids=${some.join()}&status=halted,open,open`)).toEqual(wanted);
  expect(await listed("ids=999999")).toEqual([]);
  const many = Array.from({ length: 201 }, (_, i) => i + 1);
  expect(await listed(`ids=${many.slice(1).join()}&status=all`)).toEqual(ids.filter((id) => id > 1));
  await expectRefused(client.request("GET", `/markets?ids=${many.join()}`), 400, 40000, /^ids: at most 200/);
  for (const wrong of ["", "0", "1,", ",1", "1,,2", "-1", "1.5", "a", "01", "1 ,2"]) {
    await expectRefused(client.request("GET", `/markets?ids=${encodeURIComponent(wrong)}`), 400, 40000, /^ids/);
  }
  for (const wrong of ["", "open,", "all,open", "opened", "open;closed"]) {
    await expectRefused(client.request("GET", `/markets?status=${encodeURIComponent(wrong)}`), 400, 40000, /^status/);
  }
});

describe("by client order id", () => {
  const path = (name: string): string => `/orders/by-client-id/${encodeURIComponent(name)}`;

  test("by client order id, an order is found and canceled just as by its id", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    const name = "A.b_c:1-2";
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 4, { client_order_id: name }));
    await user.place(terms(market, 0, BUY, 5_000, 4, { client_order_id: "another" }));
    expect(await user.get(path(name))).toEqual(await user.order(id));
    expect(await user.get(`/orders/by-client-id/${name}`)).toMatchObject({ id, status: "open" });
    await world.split(other, market, 1);
    await other.place(terms(market, 0, SELL, 5_000, 1));
    expect(await user.get(path(name))).toEqual(await user.order(id));
    expect(await user.get(path(name))).toMatchObject({ filled: 1, trades: [{ quantity: 1 }] });
    for (const method of ["GET", "DELETE"]) {
      for (const wrong of ["none", "a".repeat(65), "a b", "é", "1/2"]) {
        await expectRefused(user.request(method, path(wrong)), 404, 4040);
      }
      await expectRefused(other.request(method, path(name)), 404, 4040);
    }
    expect(await user.data<OrderJson>("DELETE", path(name))).toMatchObject({ id, status: "partially_filled" });
    expect(await user.get(path(name))).toEqual(await user.order(id));
    expect(await user.get(path(name))).toMatchObject({ status: "canceled", reason: "user", filled: 1 });
    await expectRefused(user.request("DELETE", path(name)), 409, 40900, /finished/);
  });

  test("a lookup by client order id waits for a placement in flight", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await world.socket(user);
    const reader = world.client(user.token!.split("-")[1]!, 0, 10);
    for (let round = 0; round < 20; round++) {
      const name = `way-${round}`;
      const placed = socket.ask({ op: "order.place", data: terms(market, 0, BUY, 10, 1, { client_order_id: name }) });
      const looked = reader.request<OrderJson>("GET", path(name));
      const { id } = (await placed).data as OrderJson;
      // It arrived before the placement, or it has the order.
      const { status, data } = await looked;
      expect(status === 404 || data.id === id, `${status}`).toBe(true);
      expect(await reader.get(path(name))).toMatchObject({ id });
    }
    await socket.close();
  });
});

describe("cursors", () => {
  test("cursors continue their own list with its filters, and no other", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    const place = { op: "place", ...terms(market, 0, BUY, 10, 1) };
    await batch(user, [place, place, place, place, { ...place, price: 5_000 }, { ...place, price: 5_100 }]);
    await world.split(other, market, 10);
    await other.place(terms(market, 0, SELL, 5_000, 2));
    await user.data("POST", "/wallet/split", { market_id: market.id, quantity: 1 });
    await user.cancel((await user.place(terms(market, 0, BUY, 10, 1))).id);
    await user.cancel((await user.place(terms(market, 0, BUY, 10, 1))).id);
    const since = (await user.all<OrderJson>("/orders"))[0]!.created_at - 60_000;
    /** Each list with filters that make it another one. */
    const lists: [path: string, others: string[]][] = [
      ["/orders?", ["side=1", "status=all", "status=open", `from=${since}`, `market_id=${market.id}`]],
      ["/orders?status=all&", ["side=1", "to=9999999999999"]],
      ["/orders?status=canceled&", [`outcome_id=${market.outcomes[0]}`]],
      ["/me/fills?", [`market_id=${market.id}`, `from=${since}`]],
      ["/wallet/transactions?", ["type=trade", `to=${Date.now() + 60_000}`]],
      ["/me/positions?", [`market_id=${market.id}`]],
      [`/markets/${market.id}/trades?`, [`outcome_id=${market.outcomes[0]}`, `from=${since}`]],
      ["/markets?", ["sort=volume", "status=all", "ids=1,2,3", "q=question"]],
      ["/events?", ["sort=volume"]],
      ["/me/events?", []],
    ];
    const cursors = new Map<string, string>();
    for (const [path] of lists) {
      const { next_cursor } = await user.get<Page<object>>(`${path}limit=1`);
      if (path === "/events?") continue;
      expect(next_cursor, path).not.toBeNull();
      cursors.set(path, next_cursor!);
    }
    for (const [path, others] of lists) {
      for (const [from, cursor] of cursors) {
        const given = user.request("GET", `${path}limit=2&cursor=${cursor}`);
        if (from === path) expect((await given).code).toBe(0);
        else await expectRefused(given, 400, 40000, /^cursor/);
      }
      for (const more of cursors.has(path) ? others : []) {
        const elsewhere = user.request("GET", `${path}${more}&cursor=${cursors.get(path)}`);
        await expectRefused(elsewhere, 400, 40000, /^cursor: belongs to another list/);
      }
    }
    // A default that is spelled out makes no other list; another user does.
    expect((await user.request("GET", `/orders?status=active&cursor=${cursors.get("/orders?")}`)).code).toBe(0);
    await expectRefused(other.request("GET", `/orders?cursor=${cursors.get("/orders?")}`), 400, 40000, /^cursor/);
    // Order updates continue after a number, which the request may repeat beside the cursor.
    const { next_cursor: next } = await user.get<Page<object>>("/me/events?after=1&limit=1");
    for (const [query, code] of [["", 0], ["&after=1", 0], ["&after=2", 40000], ["&after=0", 40000]] as const) {
      expect((await user.request("GET", `/me/events?cursor=${next}${query}`)).code).toBe(code);
    } // biome-ignore format: one each
  });
});

describe("over a restart", () => {
  test("trades of one outcome are the same from memory and, over a restart, from the database", async () => {
    expect(before.trades[0]).toHaveLength(12);
    expect(await expectTradesByOutcome(before.traded)).toEqual(before.trades);
  });

  test("over a restart, client order ids find live orders of any age and those of the last 24 hours", async () => {
    const user = world.client("aging");
    const path = (name: string): string => `/orders/by-client-id/${name}`;
    for (const name of ["old-live", "young-live", "young-ended"]) {
      expect(await user.get(path(name))).toMatchObject({ id: before.named.get(name), client_order_id: name });
    }
    await expectRefused(user.request("GET", path("old-ended")), 404, 4040);
    await expectRefused(user.request("DELETE", path("old-ended")), 404, 4040);
    await expectRefused(user.request("DELETE", path("young-ended")), 409, 40900);
    await user.data("DELETE", path("old-live"));
    await expectRefused(user.request("GET", path("old-live")), 404, 4040);
  });

  test("cursors stay good over a restart", async () => {
    const { orders, cursor } = before.listed;
    const { items } = await world.client("lister").get<Page<OrderJson>>(`/orders?side=1&cursor=${cursor}`);
    expect(idsOf(items)).toEqual([orders[1]!.id, orders[0]!.id]);
  });

  test("one read of a long history looks at a bounded number of rows, and its cursor continues behind them", async () => {
    const user = world.client("historian");
    const { base, start } = before.history;
    const timeOf = (n: number): number => start + n * STEP_MS;
    /** Positions in the history. */
    const found = (orders: readonly OrderJson[]): number[] => idsOf(orders).map((id) => id - base);
    const pages: number[][] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const more: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const page: Page<OrderJson> = await user.get(`/orders?status=expired&limit=200${more}`);
      pages.push(found(page.items));
      cursor = page.next_cursor;
    }
    expect(pages.flat()).toEqual(Array.from({ length: HISTORY_LENGTH / 5_000 }, (_, i) => HISTORY_LENGTH - i * 5_000));
    expect(pages.slice(0, 3).map(({ length }) => length)).toEqual([2, 2, 2]);
    // A read of a time span far back starts near its end: its first page is full.
    const span = `/orders?status=all&from=${timeOf(4_000)}&to=${timeOf(4_999)}`;
    const page = await user.get<Page<OrderJson>>(`${span}&limit=200`);
    expect(found(page.items)).toEqual(Array.from({ length: 200 }, (_, i) => 4_999 - i));
    expect(found(await user.all(span))).toEqual(Array.from({ length: 1_000 }, (_, i) => 4_999 - i));
    expect(found(await user.all(`/orders?status=all&to=${timeOf(3)}`))).toEqual([3, 2, 1]);
  });
});
