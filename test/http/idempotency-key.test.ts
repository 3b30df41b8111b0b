/**
 * Idempotency-Key on withdrawals, splits and merges: a repeat returns the first answer and does nothing, in flight, later,
 * over a restart and over kills in the midst of many; another body is refused; what was refused keeps no key.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { IDEMPOTENCY_KEY_MS, MAX_KEYS_PRUNED } from "../../engine/limits.ts";
import { MAX_IDEMPOTENCY_KEYS_PER_USER } from "../../server/http/limits.ts";
import { expectBalanced, expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import { type Answer, Client } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { Guests, PASSWORD } from "../support/identity.ts";
import { ADDRESS, auditOf, type WithdrawalJson } from "../support/money.ts";
import { variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { alone, expectRefused, restartWith } from "../support/trading.ts";
import { PUBLIC_URL, type TestMarket, tokenOf, USDC, World } from "../support/world.ts";

const DEPOSIT = 1_000 * USDC;
const OTHER_ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7";

const keyed = (client: Client, path: string, key: string, body: object): Promise<Answer> =>
  client.request("POST", path, { body, headers: { "Idempotency-Key": key } });
const split = (client: Client, key: string, market: TestMarket, quantity: number): Promise<Answer> =>
  keyed(client, "/wallet/split", key, { market_id: market.id, quantity });
const merge = (client: Client, key: string, market: TestMarket, quantity: number): Promise<Answer> =>
  keyed(client, "/wallet/merge", key, { market_id: market.id, quantity });
const withdraw = (client: Client, key: string, amount: number, address = ADDRESS): Promise<Answer<WithdrawalJson>> =>
  keyed(client, "/wallet/withdrawals", key, { amount, address }) as Promise<Answer<WithdrawalJson>>;

/** What the user did of a type, by the entries in the database. */
const entriesOf = (world: World, type: string): number =>
  rowsOf(world.server.dataDir, "SELECT id FROM entries WHERE type = ?", type).length;

describe("on one server", () => {
  let world: World;
  let market: TestMarket;
  let user: Client;
  const guests = new Guests();
  beforeAll(async () => {
    const named = {
      payee: { password: PASSWORD, deposit: DEPOSIT },
      other: { deposit: DEPOSIT },
      poor: { deposit: USDC },
    };
    world = await World.start({ users: 0, named, env: { PUBLIC_URL } });
    market = world.market();
    user = world.client("payee", 0, 8);
  });
  afterAll(async () => {
    await expectBalanced(world.anonymous());
    guests.close();
    await expectEndsWell(world);
  });

  test("a repeat returns the first answer and does nothing; another body, or another route, is refused", async () => {
    const first = await split(user, "split-1", market, 10);
    expect(first.status).toBe(200);
    const again = await split(user, "split-1", market, 10);
    expect([again.status, again.data]).toEqual([first.status, first.data]);
    expect(auditOf(world.server.dataDir, again)).toEqual([]);
    const text = /^Idempotency-Key: already used with another request/;
    await expectRefused(split(user, "split-1", market, 11), 409, 40900, text);
    await expectRefused(merge(user, "split-1", market, 10), 409, 40900, text);
    expect((await user.position(market.outcomes[0]!))!.quantity).toBe(10);
    // The order of fields, and the encoding, make no other request of it.
    const swapped = await user.request("POST", "/wallet/split", {
      body: `{ "quantity": 10, "market_id": ${market.id} }`,
      headers: { "Idempotency-Key": "split-1", "Content-Type": "application/json" },
    });
    expect(swapped.data).toEqual(first.data);
    const merged = await merge(user, "merge-1", market, 4);
    expect((await merge(user, "merge-1", market, 4)).data).toEqual(merged.data);
    expect((await user.position(market.outcomes[0]!))!.quantity).toBe(6);
    // Keys are each user's own, and none is needed.
    expect((await split(world.client("other"), "split-1", market, 3)).code).toBe(0);
    for (let i = 0; i < 2; i++) await user.data("POST", "/wallet/split", { market_id: market.id, quantity: 1 });
    expect((await user.position(market.outcomes[0]!))!.quantity).toBe(8);
    const rows = rowsOf(world.server.dataDir, "SELECT key FROM idempotency_keys WHERE user_id = 1 ORDER BY key");
    expect(rows).toEqual([{ key: "merge-1" }, { key: "split-1" }]);
  });

  test("a withdrawal is answered as at first, whatever became of it", async () => {
    const session = (await guests.signIn(world.server, "payee@example.com")).client;
    const first = await withdraw(session, "out", 5 * USDC);
    expect(first.status).toBe(201);
    await session.data("DELETE", `/wallet/withdrawals/${first.data.id}`);
    const again = await withdraw(session, "out", 5 * USDC);
    expect([again.status, again.data]).toEqual([201, first.data]);
    expect(again.data.status).toBe("pending");
    await expectRefused(withdraw(session, "out", 5 * USDC, OTHER_ADDRESS), 409, 40900, /another request/);
    expect(await session.all("/wallet/withdrawals")).toHaveLength(1);
    expect((await session.balance()).held).toBe(0);
  });

  test("many at once with one key are one, and all get its answer; one with another body among them gets 40900", async () => {
    const before = await user.balance();
    const sent = Array.from({ length: 8 }, (_, i) => split(user, "race", market, i === 5 ? 2 : 1));
    const answers = await Promise.all(sent);
    const won = answers.find(({ code }) => code === 0)!;
    const quantity = (won.data as { quantity: number }).quantity;
    expect(answers.filter(({ code }) => code === 0)).toHaveLength(quantity === 1 ? 7 : 1);
    for (const { code, data } of answers) expect([code, data]).toEqual(code === 0 ? [0, won.data] : [40900, null]);
    expect((await user.balance()).total).toBe(before.total - quantity * USDC);
    const session = (await guests.signIn(world.server, "payee@example.com")).client;
    const wide = guests.client(world.server, session.token!, 8);
    const asked = await Promise.all(Array.from({ length: 8 }, () => withdraw(wide, "race out", USDC)));
    expect(asked.map(({ code }) => code)).toEqual(new Array(8).fill(40000));
    const made = await Promise.all(Array.from({ length: 8 }, () => withdraw(wide, "race-out", USDC)));
    expect(new Set(made.map(({ data }) => data.id)).size).toBe(1);
    await session.data("DELETE", `/wallet/withdrawals/${made[0]!.data.id}`);
  });

  test("a request that was refused had no effect, and its key is free", async () => {
    const poor = world.client("poor");
    await expectRefused(split(poor, "again", market, 2), 422, 42201);
    await expectRefused(split(poor, "again", { ...market, id: 999 }, 1), 404, 4040);
    expect((await split(poor, "again", market, 1)).code).toBe(0);
    await expectRefused(merge(poor, "sell", market, 2), 422, 42202);
    expect((await merge(poor, "sell", market, 1)).code).toBe(0);
    // The answer comes again also where the request would be refused by now.
    expect((await merge(poor, "sell", market, 1)).code).toBe(0);
    expect((await poor.position(market.outcomes[0]!))?.quantity ?? 0).toBe(0);
  });

  test("a key is 1 to 64 visible ASCII characters", async () => {
    const before = await user.balance();
    for (const key of ["x".repeat(65), "a b", "a\tb", "\u00fc"]) {
      await expectRefused(split(user, key, market, 1), 400, 40000, /^Idempotency-Key: 1 to 64 visible ASCII/);
    }
    for (const keys of [["a", "a"], [""], ["", "a"]]) {
      const headers = { "Idempotency-Key": keys as unknown as string };
      const twice = user.request("POST", "/wallet/split", { body: { market_id: market.id, quantity: 1 }, headers });
      await expectRefused(twice, 400, 40000, /^Idempotency-Key: (given twice|1 to 64 visible ASCII)/);
    }
    expect(await user.balance()).toEqual(before);
    for (const key of ["!~", "x".repeat(64), `"'{}%\\`]) {
      expect((await split(user, key, market, 1)).code).toBe(0);
      expect((await split(user, key, market, 1)).code).toBe(0);
    }
    expect((await user.balance()).total).toBe(before.total - 3 * USDC);
  });
});

test("keys count for 24 hours over a restart, then are anybody's; each user has so many, and old ones are taken away", async () => {
  await alone({ users: 2, markets: [2], env: { PUBLIC_URL } }, async (world) => {
    const market = world.market();
    const count = (): number => rowsOf(world.server.dataDir, "SELECT key FROM idempotency_keys").length;
    let [user, other] = [world.client("user0"), world.client("user1")];
    const first = await split(user, "a", market, 1);
    await split(user, "b", market, 1);
    // A minute from its end, and a second past it.
    const [young, old] = [IDEMPOTENCY_KEY_MS - 60_000, IDEMPOTENCY_KEY_MS + 1_000];
    const sql = `UPDATE idempotency_keys SET created_at = created_at - iif(key = 'a', ${young}, ${old})`;
    await restartWith(world, sql);
    [user, other] = [world.client("user0"), world.client("user1")];
    expect((await split(user, "a", market, 1)).data).toEqual(first.data);
    await expectRefused(split(user, "a", market, 2), 409, 40900);
    expect((await split(user, "b", market, 5)).code).toBe(0);
    expect((await user.position(market.outcomes[0]!))!.quantity).toBe(7);
    expect(count()).toBe(2);
    // As many as one may have, of which some are old.
    const many = (user: number, keys: number, at: number): string =>
      `WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${keys})
       INSERT INTO idempotency_keys SELECT ${user}, 'many ' || i, 'POST /wallet/split {}',
         (SELECT max(id) FROM entries WHERE user_id = 1), 0, ${at} FROM n`;
    const room = MAX_IDEMPOTENCY_KEYS_PER_USER - 2;
    await restartWith(world, many(1, room, Date.now() - 3_600_000));
    await restartWith(world, many(2, 3 * MAX_KEYS_PRUNED, Date.now() - old));
    [user, other] = [world.client("user0"), world.client("user1")];
    const refused = await expectRefused(split(user, "c", market, 1), 429, 42900, /^at most 10000 Idempotency-Keys/);
    // The oldest is the one that is a minute from its end.
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect(Number(refused.headers["retry-after"])).toBeLessThanOrEqual(60);
    expect((await split(user, "a", market, 1)).data).toEqual(first.data);
    expect((await user.request("POST", "/wallet/split", { body: { market_id: market.id, quantity: 1 } })).code).toBe(0);
    // Another user has room, and each key of theirs takes old ones away.
    const before = count();
    expect((await split(other, "c", market, 1)).code).toBe(0);
    expect(count()).toBe(before + 1 - MAX_KEYS_PRUNED);
    await restartWith(world, "DELETE FROM idempotency_keys WHERE key LIKE 'many %'");
  });
});

describe.each(variants([1], [3]))("with ENGINE_THREADS=%i", (threads) => {
  test("over kills amid many requests, those that are sent until they are answered are each done once", async () => {
    const random = Random.printed(`keys over kills on ${threads}`);
    const env = { PUBLIC_URL, ENGINE_THREADS: String(threads) };
    const named = { payee: { password: PASSWORD, deposit: DEPOSIT } };
    await alone({ users: 0, named, markets: [2, 3], env }, async (world) => {
      const guests = new Guests();
      const { accessToken } = await guests.signIn(world.server, "payee@example.com");
      type Wanted = { key: string; path: string; body: object; answer: unknown };
      const all: Wanted[] = [];
      const make = (): Wanted => {
        const n = all.length;
        const market = random.pick(world.markets);
        const [path, body] =
          random.next() < 0.3 && n < 18
            ? ["/wallet/withdrawals", { amount: n + 1, address: ADDRESS }]
            : ["/wallet/split", { market_id: market.id, quantity: 1 }];
        const wanted = { key: `key-${n}`, path, body, answer: null };
        all.push(wanted);
        return wanted;
      };
      for (let round = 0; round < 4; round++) {
        const clients = [tokenOf("payee"), accessToken].map((token) => new Client(world.server, token, 4));
        const send = async (wanted: Wanted): Promise<void> => {
          const client = clients[wanted.path === "/wallet/withdrawals" ? 1 : 0]!;
          const answer = await keyed(client, wanted.path, wanted.key, wanted.body).catch(() => null);
          if (answer?.code !== 0) return;
          if (wanted.answer !== null) expect([wanted.key, answer.data]).toEqual([wanted.key, wanted.answer]);
          wanted.answer = answer.data;
        };
        const sent = Array.from({ length: 24 }, () => {
          const wanted = random.next() < 0.3 && all.length > 0 ? random.pick(all) : make();
          return send(wanted);
        });
        const kill = random.integer(1, 24);
        await Promise.all(sent.slice(0, kill));
        await world.server.kill();
        await Promise.all(sent);
        for (const client of clients) client.close();
        expectSoundDatabase(world.server.dataDir);
        world.server = await world.server.restart();
      }
      const client = new Client(world.server, tokenOf("payee"), 4);
      const session = new Client(world.server, accessToken, 4);
      const answered = all.filter(({ answer }) => answer !== null).length;
      for (const { key, path, body, answer } of all) {
        const by = path === "/wallet/withdrawals" ? session : client;
        const last = await keyed(by, path, key, body);
        expect([key, last.code]).toEqual([key, 0]);
        if (answer !== null) expect([key, last.data]).toEqual([key, answer]);
      }
      const splits = all.filter(({ path }) => path === "/wallet/split").length;
      expect([random.seed, answered > 0, entriesOf(world, "split")]).toEqual([random.seed, true, splits]);
      const made = await session.all<WithdrawalJson>("/wallet/withdrawals");
      expect(new Set(made.map(({ amount }) => amount)).size).toBe(all.length - splits);
      expect(made).toHaveLength(all.length - splits);
      const held = made.reduce((sum, { amount }) => sum + amount, 0);
      expect(await session.balance()).toMatchObject({ total: DEPOSIT - splits * USDC, held });
      for (const each of [client, session]) each.close();
      guests.close();
    });
  });
});
