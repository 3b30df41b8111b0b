/**
 * Idempotency-Key on withdrawals, splits and merges: a repeat gets the first response and has no effect, while the first
 * request is in flight, later, over a restart, and over kills under load. Another body is a conflict, and a rejected
 * request leaves its key free. One server runs all tests in turn; the last ones kill and restart it.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { IDEMPOTENCY_KEY_MS, MAX_KEYS_PRUNED } from "../../engine/limits.ts";
import { MAX_IDEMPOTENCY_KEYS_PER_USER } from "../../server/http/limits.ts";
import { expectBalanced, expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import { type Answer, Client } from "../support/client.ts";
import { rowsOf, withDatabase } from "../support/data-dir.ts";
import { Guests, PASSWORD } from "../support/identity.ts";
import { ADDRESS, auditOf, type WithdrawalJson } from "../support/money.ts";
import { variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { expectRefused } from "../support/trading.ts";
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

let world: World;
let market: TestMarket;
const guests = new Guests();
beforeAll(async () => {
  const named = {
    payee: { password: PASSWORD, deposit: DEPOSIT },
    other: { deposit: DEPOSIT },
    poor: { deposit: USDC },
    killed: { password: PASSWORD, deposit: DEPOSIT },
    aging: {},
    full: {},
    spender: {},
  };
  world = await World.start({ users: 0, named, markets: [2, 3], env: { PUBLIC_URL } });
  market = world.market();
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  guests.close();
  await expectEndsWell(world);
});

/** How many entries of a type the user has, by the database. */
const entriesOf = (userId: number, type: string): number =>
  rowsOf(world.server.dataDir, "SELECT id FROM entries WHERE user_id = ? AND type = ?", userId, type).length;

describe("before any restart", () => {
  let user: Client;
  beforeAll(() => {
    user = world.client("payee", 0, 8);
  });

  test("a repeat with an idempotency key gets the first response and has no effect; another body, or another route, is a conflict", async () => {
    const first = await split(user, "split-1", market, 10);
    expect(first.status).toBe(200);
    const again = await split(user, "split-1", market, 10);
    expect([again.status, again.data]).toEqual([first.status, first.data]);
    expect(auditOf(world.server.dataDir, again)).toEqual([]);
    const text = /^Idempotency-Key: already used with another request/;
    await expectRefused(split(user, "split-1", market, 11), 409, 40900, text);
    await expectRefused(merge(user, "split-1", market, 10), 409, 40900, text);
    expect((await user.position(market.outcomes[0]!))!.quantity).toBe(10);
    // Another order of the fields is the same request.
    const swapped = await user.request("POST", "/wallet/split", {
      body: `{ "quantity": 10, "market_id": ${market.id} }`,
      headers: { "Idempotency-Key": "split-1", "Content-Type": "application/json" },
    });
    expect(swapped.data).toEqual(first.data);
    const merged = await merge(user, "merge-1", market, 4);
    expect((await merge(user, "merge-1", market, 4)).data).toEqual(merged.data);
    expect((await user.position(market.outcomes[0]!))!.quantity).toBe(6);
    // Each user has its own keys, and a request needs none.
    expect((await split(world.client("other"), "split-1", market, 3)).code).toBe(0);
    for (let i = 0; i < 2; i++) await user.data("POST", "/wallet/split", { market_id: market.id, quantity: 1 });
    expect((await user.position(market.outcomes[0]!))!.quantity).toBe(8);
    const rows = rowsOf(world.server.dataDir, "SELECT key FROM idempotency_keys WHERE user_id = 1 ORDER BY key");
    expect(rows).toEqual([{ key: "merge-1" }, { key: "split-1" }]);
  });

  test("a repeated withdrawal gets its first response, even after a cancel", async () => {
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

  test("many requests at once with one idempotency key are one, and all get its response; one with another body gets 40900", async () => {
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

  test("a rejected request has no effect, and its idempotency key stays free", async () => {
    const poor = world.client("poor");
    await expectRefused(split(poor, "again", market, 2), 422, 42201);
    await expectRefused(split(poor, "again", { ...market, id: 999 }, 1), 404, 4040);
    expect((await split(poor, "again", market, 1)).code).toBe(0);
    await expectRefused(merge(poor, "sell", market, 2), 422, 42202);
    expect((await merge(poor, "sell", market, 1)).code).toBe(0);
    // A repeat gets the response even where a new request would be rejected.
    expect((await merge(poor, "sell", market, 1)).code).toBe(0);
    expect((await poor.position(market.outcomes[0]!))?.quantity ?? 0).toBe(0);
  });

  test("an idempotency key is 1 to 64 visible ASCII characters", async () => {
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

describe.each(variants([1], [3]))("with ENGINE_THREADS=%i", (threads) => {
  test("over kills under load, each request that is repeated until it has a response has one effect", async () => {
    const random = Random.printed(`keys over kills on ${threads}`);
    const { accessToken, user } = await guests.signIn(world.server, "killed@example.com");
    const log = new RequestLog(random);
    for (let round = 0; round < 4; round++) {
      const clients = clientsOf(accessToken);
      const sent = Array.from({ length: 24 }, () => log.sendNext(clients));
      await Promise.all(sent.slice(0, random.integer(1, 24)));
      await world.server.kill();
      await Promise.all(sent);
      for (const client of Object.values(clients)) client.close();
      expectSoundDatabase(world.server.dataDir);
      world.server = await world.server.restart();
    }
    const clients = clientsOf(accessToken);
    const answered = log.wanted.filter(({ answer }) => answer !== null).length;
    await log.expectAll(clients);
    const splits = log.wanted.filter(({ path }) => path === "/wallet/split").length;
    expect([random.seed, answered > 0, entriesOf(user.id, "split")]).toEqual([random.seed, true, splits]);
    const made = await clients.session.all<WithdrawalJson>("/wallet/withdrawals");
    expect(new Set(made.map(({ amount }) => amount)).size).toBe(log.wanted.length - splits);
    expect(made).toHaveLength(log.wanted.length - splits);
    const held = made.reduce((sum, { amount }) => sum + amount, 0);
    expect(await clients.session.balance()).toMatchObject({ total: DEPOSIT - splits * USDC, held });
    for (const client of Object.values(clients)) client.close();
  });

  interface Clients {
    readonly pat: Client;
    readonly session: Client;
  }

  const clientsOf = (accessToken: string): Clients => ({
    pat: new Client(world.server, tokenOf("killed"), 4),
    session: new Client(world.server, accessToken, 4),
  });

  /** One request with its key, and its response as soon as there is one. */
  interface Wanted {
    readonly key: string;
    readonly path: string;
    readonly body: object;
    answer: unknown;
  }

  /** All requests so far: a new one has a new key, a repeat must get the first response. */
  class RequestLog {
    readonly wanted: Wanted[] = [];
    private readonly random: Random;

    constructor(random: Random) {
      this.random = random;
    }

    /** Sends a new request, or repeats one; a kill may leave it without a response. */
    async sendNext(clients: Clients): Promise<void> {
      const isRepeat = this.random.next() < 0.3 && this.wanted.length > 0;
      const wanted = isRepeat ? this.random.pick(this.wanted) : this.make();
      const answer = await this.send(clients, wanted).catch(() => null);
      if (answer?.code !== 0) return;
      if (wanted.answer !== null) expect([wanted.key, answer.data]).toEqual([wanted.key, wanted.answer]);
      wanted.answer = answer.data;
    }

    /** Each request succeeds now, with its first response where it had one. */
    async expectAll(clients: Clients): Promise<void> {
      for (const wanted of this.wanted) {
        const { key, answer } = wanted;
        const last = await this.send(clients, wanted);
        expect([key, last.code]).toEqual([key, 0]);
        if (answer !== null) expect([key, last.data]).toEqual([key, answer]);
      }
    }

    private send({ pat, session }: Clients, { path, key, body }: Wanted): Promise<Answer> {
      // Only a session may withdraw.
      return keyed(path === "/wallet/withdrawals" ? session : pat, path, key, body);
    }

    private make(): Wanted {
      const n = this.wanted.length;
      const { id } = this.random.pick(world.markets);
      const [path, body] =
        this.random.next() < 0.3 && n < 18
          ? ["/wallet/withdrawals", { amount: n + 1, address: ADDRESS }]
          : ["/wallet/split", { market_id: id, quantity: 1 }];
      const wanted = { key: `key-${n}`, path, body, answer: null };
      this.wanted.push(wanted);
      return wanted;
    }
  }
});

describe("keys of the last 24 hours", () => {
  /** A minute short of 24 hours, and a second past them. */
  const [YOUNG, OLD] = [IDEMPOTENCY_KEY_MS - 60_000, IDEMPOTENCY_KEY_MS + 1_000];
  const AGE = `iif(key = 'a', ${YOUNG}, ${OLD})`;
  const first = new Map<string, Answer>();
  const count = (): number => rowsOf(world.server.dataDir, "SELECT key FROM idempotency_keys").length;
  const idOf = (email: string): string => `(SELECT id FROM users WHERE email = '${email}@example.com')`;

  /** SQL for so many more keys of a user, all of one age. */
  const manyKeys = (name: string, keys: number, at: number): string =>
    `WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${keys})
     INSERT INTO idempotency_keys SELECT ${idOf(name)}, 'many ' || i, 'POST /wallet/split {}',
       (SELECT max(id) FROM entries WHERE type = 'split' AND user_id = ${idOf(name)}), 0, ${at} FROM n`;

  beforeAll(async () => {
    for (const name of ["aging", "full", "spender"]) first.set(name, await split(world.client(name), "a", market, 1));
    await split(world.client("aging"), "b", market, 1);
    await split(world.client("other"), "first", market, 1);
    await world.server.stop();
    withDatabase(world.server.dataDir, (db) => {
      const users = `${idOf("aging")}, ${idOf("full")}`;
      db.exec(`UPDATE idempotency_keys SET created_at = created_at - ${AGE} WHERE user_id IN (${users})`);
      db.exec(manyKeys("full", MAX_IDEMPOTENCY_KEYS_PER_USER - 1, Date.now() - 3_600_000));
      db.exec(manyKeys("spender", MAX_IDEMPOTENCY_KEYS_PER_USER - 4, Date.now() - 3_600_000));
      db.exec(manyKeys("other", 3 * MAX_KEYS_PRUNED, Date.now() - OLD));
    });
    world.server = await world.server.restart();
  });

  test("idempotency keys of the last 24 hours count over a restart, and older ones are free", async () => {
    const aging = world.client("aging");
    const before = count();
    expect((await split(aging, "a", market, 1)).data).toEqual(first.get("aging")!.data);
    await expectRefused(split(aging, "a", market, 2), 409, 40900);
    expect(count()).toBe(before);
    // The request removes the oldest keys, the old one among them, and creates it again.
    expect((await split(aging, "b", market, 5)).code).toBe(0);
    expect((await aging.position(market.outcomes[0]!))!.quantity).toBe(7);
    expect(count()).toBe(before + 1 - MAX_KEYS_PRUNED);
    expect((await split(aging, "b", market, 5)).code).toBe(0);
    expect((await aging.position(market.outcomes[0]!))!.quantity).toBe(7);
  });

  test("idempotency keys are at most so many of one user, and each new key removes some older ones of all users", async () => {
    const full = world.client("full");
    const refused = await expectRefused(split(full, "c", market, 1), 429, 42900, /^at most 10000 Idempotency-Keys/);
    // The oldest key expires in a minute.
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect(Number(refused.headers["retry-after"])).toBeLessThanOrEqual(60);
    expect((await split(full, "a", market, 1)).data).toEqual(first.get("full")!.data);
    const body = { market_id: market.id, quantity: 1 };
    expect((await full.request("POST", "/wallet/split", { body })).code).toBe(0);
    // Another user has room.
    const before = count();
    expect((await split(world.client("other"), "c", market, 1)).code).toBe(0);
    expect(count()).toBe(before + 1 - MAX_KEYS_PRUNED);
  });

  test("idempotency keys count while they are in flight: three have room, six are sent at once", async () => {
    const nearly = world.client("spender");
    const codes = await Promise.all(
      [1, 2, 3, 4, 5, 6].map(async (n) => (await split(nearly, `n${n}`, market, 1)).code),
    );
    expect(codes.sort()).toEqual([0, 0, 0, 42900, 42900, 42900]);
  });
});
