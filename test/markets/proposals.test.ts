/** Markets that users propose: their fields, limits and slugs, who decides, and who is notified. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_PENDING_PROPOSALS, MAX_PROPOSALS_PER_DAY, MAX_SLUG_LENGTH } from "../../server/markets/limits.ts";
import { slugOf } from "../../server/markets/slugs.ts";
import { eventually, expectBalanced, expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import type { Client, MarketJson } from "../support/client.ts";
import { withDatabase } from "../support/data-dir.ts";
import { messagesTo } from "../support/identity.ts";
import {
  asOperator,
  auditOf,
  type MarketRecordJson,
  newMarket,
  OPERATORS,
  type ProposalJson,
  take,
} from "../support/markets.ts";
import { Socket } from "../support/socket.ts";
import { BUY, expectRefused, post, SELL, terms } from "../support/trading.ts";
import { USDC, World } from "../support/world.ts";

const propose = (user: Client, body: object = newMarket()) =>
  user.request<MarketJson>("POST", "/markets/proposals", { body });
const decide = (operator: Client, id: number | string, decision: "approve" | "refuse", body: object = {}) =>
  operator.request<MarketJson>("POST", `/admin/proposals/${id}/${decision}`, { body });
const own = (user: Client) => user.all<ProposalJson>("/markets/proposals");

let world: World;
let operator: Client;
beforeAll(async () => {
  const named = { ...OPERATORS, proposer: { scopes: [["markets:propose"]] }, ids: {}, trader: {}, daily: {} };
  world = await World.start({ users: 20, named, markets: [2, 2] });
  operator = await asOperator(world);
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  operator.close();
  await expectEndsWell(world);
});

/** Ends the server, changes its database, starts it again and signs the operator in. */
async function restart(end: "stop" | "kill", whileDown = (): void => {}): Promise<void> {
  operator.close();
  await world.server[end]();
  whileDown();
  world.server = await world.server.restart();
  operator = await asOperator(world);
}

// First: these tests expect which outcome ids are free.
describe("over restarts", () => {
  const outcomeIds = ({ outcomes }: Pick<MarketJson, "outcomes">): number[] => outcomes.map(({ id }) => id);
  const three = (): object => newMarket({ outcomes: ["A", "B", "C"] });
  const decisions = async (user: Client): Promise<unknown[]> =>
    (await own(user)).map(({ market, decision }) => [market.id, market.status, decision]);
  let first: MarketJson;
  let two: MarketJson;

  test("a refused proposal returns its outcome ids", async () => {
    const user = world.client("ids");
    first = (await propose(user, three())).data;
    const kept = (await propose(user)).data;
    const socket = await Socket.open(world.server, user.token);
    expect((await socket.ask({ op: "subscribe", channel: "book", market_id: first.id })).code).toBe(42203);
    await socket.close();
    await decide(operator, first.id, "refuse", { note: "no" });
    // Three free ids are too few for four outcomes, and enough for two.
    const four = (await propose(user, newMarket({ outcomes: ["A", "B", "C", "D"] }))).data;
    expect(Math.min(...outcomeIds(four))).toBe(Math.max(...outcomeIds(kept)) + 1);
    two = (await propose(user)).data;
    expect(outcomeIds(two)).toEqual(outcomeIds(first).slice(0, 2));
  });

  test("one user may propose so many markets a day", async () => {
    const user = world.client("daily");
    for (let i = 0; i < MAX_PROPOSALS_PER_DAY; i++) {
      const { data } = await propose(user);
      await decide(operator, data.id, i % 2 === 0 ? "refuse" : "approve");
    }
    const { headers } = await expectRefused(propose(user), 429, 42900, /a day/);
    expect(Number(headers["retry-after"])).toBeGreaterThan(86_400 - 120);
  });

  test.each(["stop", "kill"] as const)(
    "after a %s an id names one outcome at most, and free ids are reused",
    async (end) => {
      let user = world.client("ids");
      const [{ market: shown }] = (await own(user)).filter(({ market }) => market.id === first.id) as [ProposalJson];
      expect([shown.status, shown.outcomes.map(({ name }) => name)]).toEqual(["rejected", ["A", "B", "C"]]);
      const all: number[] = [];
      for (const status of ["open", "proposed", "rejected"]) {
        all.push(...(await user.all<MarketJson>(`/markets?status=${status}`)).flatMap(outcomeIds));
      }
      expect(all.length).toBeGreaterThan(10);
      expect(new Set(all).size).toBe(all.length);
      await restart(end);
      user = world.client("ids");
      const again = (await propose(user, three())).data;
      await decide(operator, again.id, "refuse");
      expect(outcomeIds((await propose(user, three())).data)).toEqual(outcomeIds(again));
    },
  );

  test("the limit of proposals a day outlives kill -9", async () => {
    await expectRefused(propose(world.client("daily")), 429, 42900, /a day/);
  });

  describe("a day later, after kill -9", () => {
    let before: unknown[];
    const bought = () => ({ market_id: two.id, outcome_id: outcomeIds(two)[0]!, side: BUY, price: 4_000, quantity: 2 });
    beforeAll(async () => {
      // A reused id trades like any other.
      const [user, trader] = [world.client("ids"), world.client("trader")];
      expect((await decide(operator, two.id, "approve")).code).toBe(0);
      await world.split(user, { ...two, outcomes: outcomeIds(two) }, 3);
      await user.place({ ...bought(), side: SELL, quantity: 3 });
      await trader.place(bought());
      await eventually(async () => expect((await trader.position(bought().outcome_id))?.quantity).toBe(2));
      const proposals = await own(world.client("daily"));
      before = await decisions(world.client("daily"));
      await restart("kill", () => {
        // Earlier markets too: times rise with ids.
        withDatabase(world.server.dataDir, (db) => {
          const sql = "UPDATE markets SET created_at = created_at - 86400000 WHERE id <= ?";
          db.prepare(sql).run(proposals.at(-1)!.market.id);
        });
      });
    });

    test("positions in a reused outcome id are as before after a kill -9, a day later", async () => {
      expect((await world.client("trader").position(bought().outcome_id))?.quantity).toBe(2);
    });

    test("a day later, after a kill -9, the user may propose as many as were proposed a day before", async () => {
      const user = world.client("daily");
      expect(await decisions(user)).toEqual(before);
      const { data } = await propose(user);
      await expectRefused(propose(user), 429, 42900, /a day/);
      await decide(operator, data.id, "approve");
    });
  });
});

describe("on one server", () => {
  test("no operator decides on their own proposal, or what it or their own shares pay", async () => {
    const second = await asOperator(world, "second");
    const { id } = (await propose(operator)).data;
    const path = `/admin/markets/${id}`;
    const text = /^the proposal is your own: another operator/;
    for (const decision of ["approve", "refuse"] as const) {
      await expectRefused(decide(operator, id, decision), 403, 40300, text);
    }
    await expectRefused(operator.request("POST", `${path}/open`, { body: {} }), 403, 40300, text);
    const { outcomes } = (await decide(second, id, "approve")).data;
    await second.data("POST", "/admin/deposits", { user_id: 1, amount: USDC, reference: "for a share" });
    await operator.data("POST", "/wallet/split", { market_id: id, quantity: 1 });
    // Other steps of its life move no money.
    for (const step of ["halt", "resume", "close"]) await take(operator, { id }, step);
    const resolution = { outcome_id: outcomes[0]!.id };
    const resolve = (by: Client) => by.request("POST", `${path}/resolve`, { body: resolution });
    await expectRefused(resolve(operator), 403, 40300, /^you proposed this market: another operator/);
    expect((await resolve(second)).code).toBe(0);
    const market = world.market();
    await operator.data("POST", "/wallet/split", { market_id: market.id, quantity: 1 });
    await take(operator, market, "close");
    for (const [end, body] of [
      ["resolve", { payouts: [10_000, 0] }],
      ["void", {}],
    ] as const) {
      const asked = operator.request("POST", `/admin/markets/${market.id}/${end}`, { body });
      await expectRefused(asked, 403, 40300, /^you hold shares of this market: another operator/);
    }
    await take(second, market, "void");
    // Who sold or merged every share isn't impartial either.
    const traded = world.market();
    await operator.data("POST", "/wallet/split", { market_id: traded.id, quantity: 1 });
    await operator.data("POST", "/wallet/merge", { market_id: traded.id, quantity: 1 });
    await take(operator, traded, "close");
    for (const [end, body] of [
      ["resolve", { payouts: [10_000, 0] }],
      ["void", {}],
    ] as const) {
      const asked = operator.request("POST", `/admin/markets/${traded.id}/${end}`, { body });
      await expectRefused(asked, 403, 40300, /^you traded shares of this market: another operator/);
    }
    await take(second, traded, "void");
    second.close();
  });

  test("an approved proposal is a market like any other, and its proposer is notified", async () => {
    // 1. The proposal is answered.
    const user = world.client("proposer");
    const texts = {
      question: "Will the Þing – at Ñuñoa's café – meet in 2030?",
      description: "It counts\nif it does.",
      category: "civics",
      outcomes: ["Ja", "Nein", "Vielleicht"],
      closes_at: 4_000_000_000_000,
    };
    const answer = await propose(user, texts);
    expect(answer.status).toBe(201);
    const proposal = answer.data;
    expect(proposal).toMatchObject({ ...texts, status: "proposed", opens_at: null, event_id: null, open_interest: 0, outcomes: [{ name: "Ja" }, { name: "Nein" }, { name: "Vielleicht" }] }); // biome-ignore format: one object
    expect(proposal.slug).toBe("will-the-ing-at-nunoas-cafe-meet-in-2030");
    // 2. It is listed by its status and by its slug alone, and cannot be traded.
    const ids = async (path: string): Promise<number[]> => (await user.all<MarketJson>(path)).map(({ id }) => id);
    expect(await ids("/markets?status=proposed")).toContain(proposal.id);
    expect(await ids("/markets")).not.toContain(proposal.id);
    expect(await user.get(`/markets/${proposal.slug}`)).toEqual(proposal);
    const feed = async (): Promise<number[]> =>
      (await user.get<{ items: { id: number }[] }>("/feed?category=civics")).items.map(({ id }) => id);
    expect(await feed()).toEqual([]);
    const trader = world.user();
    const outcomes = proposal.outcomes.map(({ id }) => id);
    const market = { id: proposal.id, slug: proposal.slug, outcomes };
    await expectRefused(post(trader, terms(market, 0, BUY, 100, 1)), 422, 42203, /proposed/);
    await expectRefused(trader.request("POST", "/wallet/split", { body: { market_id: market.id, quantity: 1 } }), 422, 42203); // biome-ignore format: one call
    expect(await own(user)).toEqual([{ market: proposal, decision: null }]);
    const [record] = await operator.all<MarketRecordJson>("/admin/proposals");
    expect(record).toMatchObject({ id: proposal.id, decision: null, approval: null });

    // 3. An approval opens the market, and tells subscribers.
    const socket = await Socket.open(world.server, null);
    await socket.ask({ op: "subscribe", channel: "markets" });
    const { data: opened } = await decide(operator, proposal.slug, "approve", { note: "Well put.\nThank you." });
    expect(opened).toMatchObject({ id: proposal.id, status: "open" });
    expect(opened.opens_at).toBeGreaterThanOrEqual(proposal.created_at);
    await socket.frame<MarketJson>("market.updated", ({ id, status }) => id === proposal.id && status === "open");
    // 4. It is found, listed and traded.
    expect(await ids("/markets?q=vielleicht")).toEqual([proposal.id]);
    expect(await feed()).toEqual([proposal.id]);
    await trader.place(terms(market, 2, BUY, 100, 1));
    // 5. The proposer sees the decision and gets a mail; the audit log has both.
    const decision = { note: "Well put.\nThank you.", decided_at: opened.opens_at };
    expect((await own(user))[0]).toMatchObject({ market: { status: "open" }, decision });
    expect(await operator.get(`/admin/markets/${proposal.id}`)).toMatchObject({ proposed_by: record!.proposed_by, decision }); // biome-ignore format: one line
    const mails = await mailsTo("proposer@example.com", 1);
    expect(mails[0]).toMatch(/^Subject: Your Prediction Exchange proposal was approved$/m);
    expect(mails[0]).toContain("Thank you.");
    expect(auditOf(world, proposal)).toMatchObject([
      {
        action: "market.propose",
        actor: expect.stringMatching(/^user \d+ by pat \d+$/),
        details: { slug: proposal.slug },
      },
      { action: "market.approve", actor: expect.stringMatching(/^operator \d+$/), details: { note: decision.note } },
    ]);
    await socket.close();
  });

  async function mailsTo(email: string, count: number): Promise<string[]> {
    let found: string[] = [];
    await eventually(async () => {
      found = messagesTo(world.server, email);
      expect(found).toHaveLength(count);
    });
    return found;
  }

  test("a refused proposal stays visible to its proposer with the reason, and its slug stays taken", async () => {
    const user = world.user();
    const { data: first } = await propose(user, newMarket({ slug: "refused-one" }));
    const { data: second } = await propose(user);
    const { data: refused } = await decide(operator, first.id, "refuse", { note: "Not this one." });
    expect(refused).toMatchObject({ status: "rejected", opens_at: null });
    await decide(operator, second.id, "refuse");
    expect((await own(user)).map(({ market, decision }) => [market.id, market.status, decision?.note])).toEqual([
      [second.id, "rejected", null],
      [first.id, "rejected", "Not this one."],
    ]);
    const listed = await operator.all<MarketRecordJson>("/admin/proposals?status=rejected", 1);
    expect(listed.map(({ id }) => id).slice(0, 2)).toEqual([second.id, first.id]);
    await expectRefused(propose(user, newMarket({ slug: "refused-one" })), 409, 40900, /^slug: already taken/);
    for (const decision of ["approve", "refuse"] as const) {
      await expectRefused(decide(operator, first.id, decision), 409, 40900, /the market is rejected/);
    }
    await expectRefused(operator.request("PATCH", `/admin/markets/${first.id}`, { body: { category: "x" } }), 409, 40900); // biome-ignore format: one call
    expect(auditOf(world, first).map(({ action }) => action)).toEqual(["market.propose", "market.refuse"]);
    await eventually(async () => {
      const sent = messagesTo(world.server, "user1@example.com");
      expect(sent.filter((text) => text.includes("proposal was refused"))).toHaveLength(2);
      expect(sent.filter((text) => text.includes("Not this one."))).toHaveLength(1);
    });
  });

  test("a refused proposal is not published on the markets channel", async () => {
    const socket = await Socket.open(world.server, null);
    await socket.ask({ op: "subscribe", channel: "markets" });
    const { data: spam } = await propose(world.user());
    await decide(operator, spam.id, "refuse");
    const { id } = await operator.data<MarketJson>("POST", "/admin/markets", newMarket());
    const update = await socket.frame<MarketJson>("market.updated", () => true);
    expect(update.data.id).toBe(id);
    await socket.close();
  });

  test("of two concurrent decisions one wins", async () => {
    const user = world.user();
    const second = await asOperator(world, "second");
    for (const rival of ["approve", "refuse"] as const) {
      const { data: market } = await propose(user);
      const answers = await Promise.all([decide(operator, market.id, "approve"), decide(second, market.id, rival)]);
      expect(answers.map(({ code }) => code).sort((a, b) => a - b)).toEqual([0, 40900]);
      const { data } = answers.find(({ code }) => code === 0)!;
      expect(await user.get(`/markets/${market.id}`)).toMatchObject({ status: data.status });
      expect(auditOf(world, market)).toHaveLength(2);
    }
    second.close();
  });

  test("only proposals can be decided, and none can be opened after its closes_at", async () => {
    for (const id of [1, 999_999, "nothing"]) await expectRefused(decide(operator, id, "approve"), 404, 4040);
    const { data: market } = await propose(world.user(), newMarket({ closes_at: 4_000_000_000_000 }));
    await operator.data("PATCH", `/admin/markets/${market.id}`, { closes_at: 1_000 });
    await expectRefused(decide(operator, market.id, "approve"), 409, 40900, /closes_at has passed/);
    await operator.data("PATCH", `/admin/markets/${market.id}`, { closes_at: null });
    expect((await take(operator, market, "open")).status).toBe("open");
  });

  test("slugs of proposals derive from questions, with a number if taken; concurrent proposals get distinct ones", async () => {
    const user = world.user();
    const body = { question: "Is it  SO?", outcomes: ["Yes", "No"] };
    const answers = await Promise.all(Array.from({ length: 3 }, () => propose(world.client("user5", 0, 3), body)));
    expect(answers.map(({ data }) => data.slug).sort()).toEqual(["is-it-so", "is-it-so-2", "is-it-so-3"]);
    const slugs: string[] = [];
    for (const question of ["2031?!", "明天会下雨吗？", "proposals", `${"a".repeat(299)}?`]) {
      slugs.push((await propose(user, { ...body, question })).data.slug);
    }
    expect(slugs.slice(0, 3)).toEqual(["market-2031", "market", "market-proposals"]);
    expect(slugs[3]!.length).toBeLessThanOrEqual(MAX_SLUG_LENGTH);
    // A user takes the slug that would be derived next.
    await propose(user, newMarket({ slug: "market-2" }));
    expect((await propose(user, { ...body, question: "не завтра ли" })).data.slug).toBe("market-3");
  });

  test.each([
    [{ question: "Why?" }, /^question/],
    [{ question: `${"x".repeat(301)}` }, /^question/],
    [{ question: "     " }, /^question/],
    [{ question: "two\nlines here" }, /^question/],
    [{ question: "lone \ud800 half" }, /^question/],
    [{ question: 12_345 }, /^question/],
    [{ description: "" }, /^description/],
    [{ description: "x".repeat(5_001) }, /^description/],
    [{ description: "bell \u0007" }, /^description/],
    [{ category: "x".repeat(65) }, /^category/],
    [{ category: "" }, /^category/],
    [{ outcomes: ["Yes"] }, /^outcomes/],
    [{ outcomes: Array.from({ length: 33 }, (_, i) => `Outcome ${i}`) }, /^outcomes/],
    [{ outcomes: ["Yes", ""] }, /^outcomes\.1/],
    [{ outcomes: ["Yes", " Yes"] }, /^outcomes\.1/],
    [{ outcomes: ["Yes", "x".repeat(101)] }, /^outcomes\.1/],
    [{ outcomes: ["Yes", "No", "Yes"] }, /^outcomes\.2: another outcome/],
    [{ outcomes: ["Ｙes", "No", "yes"] }, /^outcomes\.2: another outcome/],
    [{ outcomes: undefined }, /^outcomes: required/],
    [{ closes_at: 1_000 }, /^closes_at: must be in the future/],
    [{ closes_at: 1.5 }, /^closes_at/],
    [{ event_id: 999_999 }, /^event_id: no such event/],
    [{ event_id: 0 }, /^event_id/],
    [{ slug: "Upper" }, /^slug/],
    [{ slug: "a--b" }, /^slug/],
    [{ slug: "-a" }, /^slug/],
    [{ slug: "12345" }, /^slug/],
    [{ slug: "proposals" }, /^slug/],
    [{ slug: "x".repeat(101) }, /^slug/],
    [{ slug: "" }, /^slug/],
    [{ status: "open" }, /^status: unknown field/],
    [{ opens_at: 1 }, /^opens_at: unknown field/],
  ])("a proposal's %j is rejected with a message that names the field", async (more, message) => {
    const user = world.client("user6");
    await expectRefused(propose(user, newMarket(more)), 400, 40000, message);
    expect(await own(user)).toEqual([]);
  });

  test("a user may have so many pending proposals, and one more after a decision; other users are not affected", async () => {
    const user = world.client("user7", 0, 8);
    const answers = await Promise.all(Array.from({ length: MAX_PENDING_PROPOSALS + 5 }, () => propose(user)));
    const made = answers.filter(({ code }) => code === 0);
    expect(made).toHaveLength(MAX_PENDING_PROPOSALS);
    for (const answer of answers) {
      if (answer.code !== 0)
        expect([answer.code, answer.msg]).toEqual([42900, expect.stringMatching(/wait for a decision/)]);
    }
    expect(await own(user)).toHaveLength(MAX_PENDING_PROPOSALS);
    expect((await user.all("/markets/proposals", 7)).length).toBe(MAX_PENDING_PROPOSALS);
    expect((await propose(world.client("user8"))).code).toBe(0);
    await decide(operator, made[0]!.data.id, "refuse");
    expect((await propose(user)).code).toBe(0);
    await expectRefused(propose(user), 429, 42900, /wait for a decision/);
  });
});

describe("when few outcome ids are left", () => {
  let world: World;
  beforeAll(async () => {
    world = await World.start({ users: 4, named: OPERATORS, markets: [2] });
  });
  afterAll(async () => {
    await expectBalanced(world.anonymous());
    await world.stop();
    // Proposals made by SQL have times that don't rise with their ids.
    withDatabase(world.server.dataDir, (db) => db.exec("UPDATE markets SET created_at = 1"));
    expectSoundDatabase(world.server.dataDir);
  });

  /** Inserts pending proposals of the first user by SQL; the server must be down. */
  function insertProposals(count: number, createdAt: number): void {
    withDatabase(world.server.dataDir, (db) => {
      const [market, outcome] = db.prepare("SELECT (SELECT max(id) FROM markets), (SELECT max(id) FROM outcomes WHERE id < 1073741824)").raw().get() as [number, number]; // biome-ignore format: one query
      const each = "WITH RECURSIVE each (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM each WHERE k < @count)";
      const given = { count, market, outcome, createdAt };
      db.prepare(
        `${each} INSERT INTO markets (id, slug, question, status, sets, created_at, proposed_by)
         SELECT @market + k, 'slug-' || (@market + k), 'Question?', 0, 0, @createdAt, 1 FROM each`,
      ).run(given);
      for (const position of [0, 1]) {
        db.prepare(
          `${each} INSERT INTO outcomes (id, market_id, position, name, volume)
           SELECT @outcome + 2 * k - 1 + ${position}, @market + k, ${position}, 'Outcome ${position}', 0 FROM each`,
        ).run(given);
      }
      db.prepare(`${each} INSERT INTO market_words (rowid, words) SELECT @market + k, 'question' FROM each`).run(given);
    });
  }

  test("the fewer ids are left, the fewer proposals one account may have", async () => {
    const few = world.user();
    for (let i = 0; i < 5; i++) expect((await propose(few)).code).toBe(0);
    await world.server.stop();
    insertProposals(5_000, Date.now());
    world.server = await world.server.restart();
    await expectRefused(propose(world.client("user0")), 429, 42900, /at most 5 proposals/);
    const one = world.client("user1");
    for (let i = 0; i < 5; i++) expect((await propose(one)).code).toBe(0);
    await expectRefused(propose(one), 429, 42900, /at most 5/);
  });

  test("with few outcome ids left, the exchange rejects proposals without a decision for 30 days", async () => {
    await world.server.stop();
    insertProposals(4_000, Date.now() - 31 * 86_400_000);
    withDatabase(world.server.dataDir, (db) => db.exec("UPDATE markets SET created_at = 1 WHERE status = 0 AND slug LIKE 'slug-%' AND id % 2 = 0")); // biome-ignore format: one call
    world.server = await world.server.restart();
    const newcomer = world.client("user2");
    expect((await propose(newcomer)).code).toBe(0);
    // The oldest go first, a hundred at a time.
    const rejected = async (): Promise<MarketJson[]> =>
      (await newcomer.get<{ items: MarketJson[] }>("/markets?status=rejected&limit=200")).items;
    await eventually(async () => expect((await rejected()).length).toBeGreaterThan(50));
    const [refused] = await rejected();
    expect(auditOf(world, refused!).at(-1)).toMatchObject({
      ...{ action: "market.refuse", actor: "exchange", details: { note: "no decision within 30 days" } },
    });
  });
});

test("a derived slug is free, well-formed and within the length limit", () => {
  const taken = new Set<string>();
  for (const text of [
    "One more time?",
    "ONE more-time",
    "",
    "!!",
    "7",
    "proposals",
    "x".repeat(200),
    "word ".repeat(60),
  ]) {
    for (let i = 0; i < 12; i++) {
      const slug = slugOf(text, (each) => taken.has(each));
      expect(taken.has(slug)).toBe(false);
      expect(slug).toMatch(/^(?!\d+$)[a-z0-9]+(-[a-z0-9]+)*$/);
      expect([slug.length <= MAX_SLUG_LENGTH, slug === "proposals"]).toEqual([true, false]);
      taken.add(slug);
    }
  }
});
