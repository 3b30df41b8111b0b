/**
 * The life of a market for operators and traders: what each state allows, the updates and audit lines of each step, and
 * concurrent steps. For restarts, see lifecycle-restarts.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clockAt, eventually, expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Client, MarketJson, OrderJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import {
  ask,
  asOperator,
  auditOf,
  type MarketRecordJson,
  NEXT_STATUS,
  newMarket,
  OPERATORS,
  type Status,
  take,
} from "../support/markets.ts";
import { Socket } from "../support/socket.ts";
import {
  amend,
  BUY,
  books,
  cancelAll,
  expectRefused,
  patch,
  post,
  putQuotes,
  quote,
  SELL,
  terms,
} from "../support/trading.ts";
import { World } from "../support/world.ts";

const UNKNOWN = 999_999;

describe("on one server", () => {
  let world: World;
  let operator: Client;
  beforeAll(async () => {
    world = await World.start({ users: 20, named: OPERATORS, markets: [2] });
    operator = await asOperator(world);
  });
  afterAll(async () => {
    await expectBalanced(world.anonymous());
    operator.close();
    await expectEndsWell(world);
  });

  /** A market of its own that is open. */
  const made = (more: object = {}): Promise<MarketJson> => operator.data("POST", "/admin/markets", newMarket(more));
  const tradable = (market: MarketJson) => ({
    id: market.id,
    slug: market.slug,
    outcomes: market.outcomes.map(({ id }) => id),
  });
  const propose = (user: Client): Promise<MarketJson> => user.data("POST", "/markets/proposals", newMarket());
  const statusOf = async ({ id }: { id: number }): Promise<string> =>
    (await world.anonymous().get<MarketJson>(`/markets/${id}`)).status;

  const WAYS: Readonly<Record<string, readonly string[]>> = {
    proposed: [],
    open: ["open"],
    halted: ["open", "halt"],
    closed: ["open", "close"],
    resolved: ["open", "close", "resolve"],
    voided: ["open", "close", "void"],
  };
  const bodyOf = (step: string): object => (step === "resolve" ? { payouts: [2_500, 7_500] } : {});

  test.each(Object.entries({ ...WAYS, rejected: [] }))(
    "from %s only the steps of the contract lead a market on",
    async (from, way) => {
      const user = world.user();
      for (const [step, allowed] of Object.entries(NEXT_STATUS)) {
        const market = await propose(user);
        for (const each of way) await take(operator, market, each, bodyOf(each));
        if (from === "rejected") await operator.data("POST", `/admin/proposals/${market.id}/refuse`, {});
        expect(await statusOf(market)).toBe(from);
        const before = await operator.get<MarketRecordJson>(`/admin/markets/${market.id}`);
        const answer = await ask<{ status?: string; market?: MarketJson }>(operator, market, step, bodyOf(step));
        const to = allowed[from as Status];
        if (to !== undefined) {
          expect(answer.code).toBe(0);
          expect((answer.data.market ?? answer.data).status).toBe(to);
          expect(await statusOf(market)).toBe(to);
          continue;
        }
        await expectRefused(Promise.resolve(answer), 409, 40900, new RegExp(`the market is ${from}`));
        if (step === "resolve" && (from === "open" || from === "halted"))
          expect(answer.msg).toContain("close it first");
        expect(await operator.get(`/admin/markets/${market.id}`)).toEqual(before);
      }
    },
  );

  test("each step of a market is published on the channel of one market and of all, and shows in the lists by status", async () => {
    const market = await propose(world.user());
    const [one, all] = [await Socket.open(world.server, null), await Socket.open(world.server, null)];
    await one.subscribe("markets", market.id);
    await all.ask({ op: "subscribe", channel: "markets" });
    const steps = ["open", "halt", "resume", "halt", "open", "close", "resolve"];
    const expected = ["open", "halted", "open", "halted", "open", "closed", "resolved"];
    const own = (socket: Socket) => socket.of<MarketJson>("market.updated").filter(({ data }) => data.id === market.id);
    for (const [i, step] of steps.entries()) {
      const after = await take(operator, market, step, step === "resolve" ? { outcome_id: market.outcomes[1]!.id, note: "it did" } : {}); // biome-ignore format: one call
      if (step !== "resolve") expect(after.status).toBe(expected[i]);
      for (const socket of [one, all]) await socket.until(() => own(socket).find(({ data }) => data.status === expected[i]), step); // biome-ignore format: one loop
      const listed = await world.anonymous().all<MarketJson>(`/markets?status=${expected[i]}`);
      expect(listed.map(({ id }) => id)).toContain(market.id);
    }
    // The first that one hears is the state at its subscription.
    expect(own(one).map(({ data }) => data.status)).toEqual(["proposed", ...expected]);
    expect(own(all).map(({ data }) => data.status)).toEqual(expected);
    const sequences = own(one).map(({ sequence }) => sequence);
    expect(sequences).toEqual(sequences.map((_, i) => sequences[0]! + i));
    expect(own(all).at(-1)!.data.resolution).toMatchObject({ payouts: [0, 10_000], outcome_id: market.outcomes[1]!.id, note: "it did" }); // biome-ignore format: one object
    for (const socket of [one, all]) await socket.close();
  });

  test("each step of a market leaves an audit line with actor, note and request id; a rejected step leaves none", async () => {
    const user = world.user();
    const market = await propose(user);
    const { user_id } = rowsOf<{ user_id: number }>(
      world.server.dataDir,
      "SELECT proposed_by AS user_id FROM markets WHERE id = ?",
      market.id,
    )[0]!;
    const steps = ["open", "halt", "resume", "close", "void"];
    for (const step of steps) await take(operator, market, step, { note: `${step} it` });
    for (const step of steps) expect((await ask(operator, market, step)).code).toBe(40900);
    const lines = auditOf(world, market);
    const actor = expect.stringMatching(/^operator \d+$/);
    const of = (action: string, details: object) => ({ action, actor, subject: market.id, details, request_id: expect.stringMatching(/^test-/) }); // biome-ignore format: one line
    expect(lines).toEqual([
      { ...of("market.propose", { slug: market.slug }), actor: expect.stringContaining(`user ${user_id}`) },
      of("market.approve", { note: "open it" }),
      of("market.halt", { note: "halt it" }),
      of("market.resume", { note: "resume it" }),
      of("market.close", { note: "close it" }),
      of("market.void", { payouts: [5_000, 5_000], note: "void it" }),
    ]);
    // Each request has its own "test-" number.
    expect(new Set(lines.map(({ request_id }) => request_id)).size).toBe(lines.length);
  });

  test("a halted market keeps its orders and matches nothing; cancels work, and the rest trades after it resumes", async () => {
    const market = tradable(await made());
    const [maker, taker] = [world.user(), world.user()];
    await world.split(maker, market, 50);
    const first = await maker.place(terms(market, 0, SELL, 6_000, 10));
    const [two, three] = [
      await maker.place(terms(market, 0, SELL, 6_100, 5)),
      await taker.place(terms(market, 0, BUY, 5_000, 5)),
    ];
    const four = await taker.place(terms(market, 1, BUY, 3_000, 5));
    const [standing] = await quote(maker, market, [[1, SELL, 8_000, 4]]);
    const socket = await Socket.open(world.server, null);
    await socket.subscribe("markets", market.id);
    expect((await take(operator, market, "halt", { note: "news" })).status).toBe("halted");
    await socket.frame<MarketJson>("market.updated", ({ status }) => status === "halted");
    const before = await books(taker, market);
    await expectRefused(post(taker, terms(market, 0, BUY, 6_000, 1)), 422, 42203, /halted/);
    await expectRefused(post(taker, terms(market, 0, BUY, 100, 1)), 422, 42203, /halted/);
    await expectRefused(patch(taker, three.id, { price: 6_000 }), 422, 42203, /halted/);
    await expectRefused(putQuotes(maker, market, [[1, SELL, 7_000, 4]]), 422, 42203, /halted/);
    expect(await books(taker, market)).toEqual(before);
    await amend(taker, three.id, { quantity: 4 });
    await maker.cancel(two.id);
    await quote(maker, market, []);
    expect(await cancelAll(taker, `?outcome_id=${market.outcomes[1]}`)).toEqual([four.id]);
    expect((await maker.order(standing!.id)).status).toBe("canceled");
    expect(await books(taker, market)).toEqual([
      { bids: [[5_000, 4]], asks: [[6_000, 10]] },
      { bids: [], asks: [] },
    ]);
    // Sets can still be made and dissolved: nothing of it is a trade.
    await world.split(taker, market, 3);
    await taker.data("POST", "/wallet/merge", { market_id: market.id, quantity: 3 });
    expect((await take(operator, market, "resume")).status).toBe("open");
    await socket.frame<MarketJson>("market.updated", ({ status }) => status === "open");
    const bought = await taker.place(terms(market, 0, BUY, 6_000, 3));
    await eventually(async () => expect((await taker.order(bought.id)).status).toBe("filled"));
    expect(await maker.order(first.id)).toMatchObject({ status: "partially_filled", remaining: 7 });
    expect(await taker.order(three.id)).toMatchObject({ status: "open", remaining: 4 });
    await socket.close();
  });

  test("closing cancels resting orders, notifies their owners, and allows only merges", async () => {
    const market = tradable(await made());
    const user = world.user();
    await world.split(user, market, 20);
    const socket = await world.socket(user);
    const orders = [
      await user.place(terms(market, 0, BUY, 4_000, 5)),
      await user.place(terms(market, 0, SELL, 6_000, 5)),
      await user.place(terms(market, 1, SELL, 9_000, 5)),
    ];
    const closed = await take(operator, market, "close");
    expect(closed).toMatchObject({ status: "closed", open_interest: 20, resolution: null });
    expect(closed.outcomes.map(({ best_bid, best_ask }) => [best_bid, best_ask])).toEqual([[null, null], [null, null]]); // biome-ignore format: outcomes
    for (const { id } of orders) {
      await socket.frame<OrderJson>("order.updated", (each) => each.id === id && each.status === "canceled");
      expect(await user.order(id)).toMatchObject({ status: "canceled", reason: "market_closed" });
    }
    expect(await user.balance()).toMatchObject({ held: 0 });
    expect(await books(user, market)).toEqual([{ bids: [], asks: [] }, { bids: [], asks: [] }]); // biome-ignore format: books
    await expectRefused(post(user, terms(market, 0, BUY, 4_000, 1)), 422, 42203, /closed/);
    const sets = { market_id: market.id, quantity: 1 };
    await expectRefused(user.request("POST", "/wallet/split", { body: sets }), 422, 42203, /closed/);
    await user.data("POST", "/wallet/merge", sets);
    expect(await operator.get<MarketJson>(`/markets/${market.id}`)).toMatchObject({ open_interest: 19 });
    await socket.close();
  });

  test("of two concurrent steps of a market one wins, and the other is rejected or follows it", async () => {
    const second = await asOperator(world, "second");
    const rounds: [way: string[], step: string, rival: string][] = [
      [[], "halt", "halt"],
      [[], "halt", "close"],
      [["halt"], "resume", "close"],
      [["close"], "resolve", "resolve"],
      [["close"], "resolve", "void"],
    ];
    const done = (answers: readonly { code: number }[]): number[] =>
      answers.map(({ code }) => code).sort((a, b) => a - b);
    for (const [way, step, rival] of rounds) {
      const market = await made();
      for (const each of way) await take(operator, market, each);
      const body = (name: string): object => (name === "resolve" ? { payouts: [10_000, 0] } : {});
      const answers = await Promise.all([
        ask(operator, market, step, body(step)),
        ask(second, market, rival, body(rival)),
      ]);
      const codes = done(answers);
      // A market can be closed after the other step, if that was over by then; nothing else follows what it was tried beside.
      const isInTurn = rival === "close" && codes[1] === 0;
      expect([step, rival, codes]).toEqual([step, rival, isInTurn ? [0, 0] : [0, 40900]]);
      expect(auditOf(world, market)).toHaveLength(1 + way.length + (isInTurn ? 2 : 1));
      if (isInTurn) expect(await operator.get(`/markets/${market.id}`)).toMatchObject({ status: "closed" });
    }
    const market = await made({ description: "before", category: "old" });
    const change = (who: Client, body: object) => who.request("PATCH", `/admin/markets/${market.id}`, { body });
    const answers = await Promise.all([
      change(operator, { description: "after" }),
      change(second, { category: "new" }),
    ]);
    expect([
      [0, 40900],
      [0, 0],
    ]).toContainEqual(done(answers));
    for (const [i, { code }] of answers.entries()) {
      if (code !== 0) await operator.data("PATCH", `/admin/markets/${market.id}`, i === 0 ? { description: "after" } : { category: "new" }); // biome-ignore format: one call
    }
    expect(await operator.get(`/markets/${market.id}`)).toMatchObject({ description: "after", category: "new" });
    second.close();
  });

  test("an operator's market is open at once and listed everywhere; its slug is unique", async () => {
    const event = await operator.data<{ id: number; markets: unknown[] }>("POST", "/admin/events", {
      slug: "the-race",
      title: "The race of the year",
      category: "sport",
    });
    expect(event).toMatchObject({ slug: "the-race", closes_at: null, markets: [], market_count: 0, volume: 0 });
    const socket = await Socket.open(world.server, null);
    await socket.ask({ op: "subscribe", channel: "markets" });
    const texts = {
      description: "The first\nbeyond the line.",
      category: "sport",
      event_id: event.id,
      closes_at: 4_000_000_000_000,
    };
    const market = await made({
      question: "Who wins the unprecedented race?",
      outcomes: ["Ann", "Ben", "Cem"],
      ...texts,
    });
    expect(market).toMatchObject({
      slug: "who-wins-the-unprecedented-race",
      status: "open",
      ...texts,
      opens_at: market.created_at,
    });
    await socket.frame<MarketJson>("market.updated", ({ id }) => id === market.id);
    const ids = async (path: string): Promise<number[]> => (await operator.all<MarketJson>(path)).map(({ id }) => id);
    expect(await ids("/markets?q=unprecedented")).toEqual([market.id]);
    expect(await ids(`/markets?event_id=${event.id}`)).toEqual([market.id]);
    expect(await operator.get("/events/the-race")).toMatchObject({ id: event.id, markets: [{ id: market.id }] });
    const feed = await operator.get<{ items: { slug: string }[] }>("/feed?category=sport");
    expect(feed.items.map(({ slug }) => slug).sort()).toEqual(["the-race", market.slug]);
    const user = world.user();
    await user.place(terms(tradable(market), 2, BUY, 3_000, 1));
    // The next search finds changed texts, and no longer the old ones.
    await operator.data("PATCH", `/admin/markets/${market.slug}`, {
      description: "Unheard-of rules.",
      category: "games",
    });
    await socket.frame<MarketJson>("market.updated", ({ category }) => category === "games");
    expect(await ids("/markets?q=beyond")).toEqual([]);
    expect(await ids("/markets?q=unheard")).toEqual([market.id]);
    expect(await ids("/markets?category=games")).toEqual([market.id]);
    const cleared = await operator.data<MarketJson>("PATCH", `/admin/markets/${market.id}`, { description: null, category: null, closes_at: null }); // biome-ignore format: one call
    expect(cleared).toMatchObject({ description: null, category: null, closes_at: null, question: market.question });
    const actions = auditOf(world, market).map(({ action }) => action);
    expect(actions).toEqual(["market.create", "market.describe", "market.describe"]);
    const post = (path: string, body: object) => operator.request("POST", path, { body });
    await expectRefused(
      post("/admin/events", { slug: "the-race", title: "Another one" }),
      409,
      40900,
      /^slug: already taken/,
    );
    await expectRefused(post("/admin/markets", newMarket({ slug: market.slug })), 409, 40900, /^slug: already taken/);
    const twins = await Promise.all([1, 2].map(() => asOperator(world)));
    const answers = await Promise.all(twins.map((twin) => twin.request("POST", "/admin/markets", { body: newMarket({ slug: "twins" }) }))); // biome-ignore format: one call
    expect(answers.map(({ code }) => code).sort((a, b) => a - b)).toEqual([0, 40900]);
    for (const twin of twins) twin.close();
    await socket.close();
  });

  test.each([
    ["POST", "/admin/events", { slug: "a b", title: "A title" }, /^slug/],
    ["POST", "/admin/events", { slug: "fine", title: "A" }, /^title/],
    ["POST", "/admin/events", { title: "A title" }, /^slug: required/],
    ["POST", "/admin/events", { slug: "fine", title: "A title", closes_at: 1 }, /^closes_at: must be in the future/],
    ["POST", "/admin/markets", newMarket({ outcomes: ["One"] }), /^outcomes/],
    ["POST", "/admin/markets", newMarket({ outcomes: ["Yes", "yes"] }), /^outcomes\.1: another outcome/],
    ["POST", "/admin/markets", newMarket({ event_id: UNKNOWN }), /^event_id: no such event/],
    ["PATCH", "/admin/markets/1", {}, /^description, category, closes_at, picture: at least one/],
    ["PATCH", "/admin/markets/1", { question: "Another one?" }, /^question: unknown field/],
    ["PATCH", "/admin/markets/1", { category: " sport" }, /^category/],
    ["PATCH", "/admin/markets/1", { closes_at: -1 }, /^closes_at/],
    ["POST", "/admin/markets/1/halt", { note: "" }, /^note/],
    ["POST", "/admin/markets/1/halt", { note: "x".repeat(1_001) }, /^note/],
    ["POST", "/admin/markets/1/resolve", {}, /^payouts, outcome_id: exactly one/],
    [
      "POST",
      "/admin/markets/1/resolve",
      { payouts: [5_000, 5_000], outcome_id: 1 },
      /^payouts, outcome_id: exactly one/,
    ],
    ["POST", "/admin/markets/1/resolve", { payouts: [10_000] }, /^payouts/],
    [
      "POST",
      "/admin/markets/1/resolve",
      { payouts: [10_000, 0, 0] },
      /^payouts: one for each of the 2 outcomes, not 3/,
    ],
    ["POST", "/admin/markets/1/resolve", { payouts: [5_000, 4_999] }, /^payouts: must sum to 10000, not 9999/],
    ["POST", "/admin/markets/1/resolve", { payouts: [10_001, -1] }, /^payouts\.0/],
    ["POST", "/admin/markets/1/resolve", { payouts: [0.5, 9_999.5] }, /^payouts\.0/],
    ["POST", "/admin/markets/1/resolve", { outcome_id: UNKNOWN }, /^outcome_id: not an outcome of this market/],
  ] as const)("a market's step: %s %s %j is rejected in words", async (method, path, body, message) => {
    await expectRefused(operator.request(method, path, { body }), 400, 40000, message);
  });

  test("an unknown market is 4040, for every step", async () => {
    for (const id of [UNKNOWN, "no-such-market", 0, "-1", "1.5"]) {
      for (const step of ["open", "halt", "resume", "close", "void"]) {
        await expectRefused(operator.request("POST", `/admin/markets/${id}/${step}`, { body: {} }), 404, 4040);
      }
      await expectRefused(operator.request("PATCH", `/admin/markets/${id}`, { body: { category: "x" } }), 404, 4040);
      await expectRefused(operator.request("GET", `/admin/markets/${id}`), 404, 4040);
    }
  });

  test("closes_at closes markets without an operator, exactly at its time; changed times count", async () => {
    const user = world.user();
    const at = Date.now() + 3_000;
    const [due, halted, later, earlier] = (await Promise.all(
      [at, at, at, at + 3_600_000].map((closes_at) =>
        operator.data<MarketJson>("POST", "/admin/markets", newMarket({ closes_at })),
      ),
    )) as [MarketJson, MarketJson, MarketJson, MarketJson];
    await take(operator, halted, "halt");
    await operator.data("PATCH", `/admin/markets/${later.id}`, { closes_at: at + 3_600_000 });
    await operator.data("PATCH", `/admin/markets/${earlier.id}`, { closes_at: at });
    const resting = await user.place(terms(tradable(due), 0, BUY, 4_000, 10));
    const socket = await Socket.open(world.server, null);
    await socket.ask({ op: "subscribe", channel: "markets" });
    await clockAt(at);
    // Faster than any tick: the order that comes first after the time is refused.
    await expectRefused(post(user, terms(tradable(due), 0, BUY, 4_000, 1)), 422, 42203, /closed/);
    await expectRefused(patch(user, resting.id, { price: 4_100 }), 422, 42203, /closed/).catch(async (error) => {
      // Or the tick was faster still.
      if ((await user.order(resting.id)).status !== "canceled") throw error;
    });
    await expectRefused(putQuotes(user, tradable(due), [[0, BUY, 1, 1]]), 422, 42203, /closed/);
    const body = { market_id: due.id, quantity: 1 };
    await expectRefused(user.request("POST", "/wallet/split", { body }), 422, 42203, /closed/);
    for (const { id } of [due, halted, earlier]) {
      await socket.frame<MarketJson>("market.updated", (market) => market.id === id && market.status === "closed");
    }
    expect(await user.order(resting.id)).toMatchObject({ status: "canceled", reason: "market_closed" });
    expect((await user.get<MarketJson>(`/markets/${later.id}`)).status).toBe("open");
    await user.place(terms(tradable(later), 0, BUY, 4_000, 1));
    for (const market of [due, halted, earlier]) {
      const line = { action: "market.close", actor: "exchange", details: { closes_at: at }, request_id: null };
      expect(auditOf(world, market).filter(({ action }) => action === "market.close")).toEqual([expect.objectContaining(line)]); // biome-ignore format: one line
    }
    // A time that is over closes at the next tick.
    await operator.data("PATCH", `/admin/markets/${later.id}`, { closes_at: 1_000 });
    await socket.frame<MarketJson>("market.updated", ({ id, status }) => id === later.id && status === "closed");
    await socket.close();
  });
});
