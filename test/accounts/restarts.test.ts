/**
 * What the server promised in a response survives a kill -9 and a restart: accounts, mailed links, tokens, cookies and
 * daily activity. One server goes through kill -9, SIGTERM and another kill -9; each subject is checked after each.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectOver, PAGE_URL, Page } from "../sign-in/page.ts";
import { clockAt, expectBalanced, expectEndsWell, expectUnlogged } from "../support/checks.ts";
import type { Answer, Client } from "../support/client.ts";
import { expectUnkept, RECOUNT_HOURS, rowsOf, withDatabase } from "../support/data-dir.ts";
import {
  type CreatedPatJson,
  createPat,
  Guests,
  login,
  PASSWORD,
  phoneCode,
  register,
  resetToken,
  type SignInJson,
  type UserJson,
  verificationToken,
} from "../support/identity.ts";
import type { TestServer } from "../support/server.ts";
import { refusedUpgrade } from "../support/socket.ts";
import { BUY, cancelAll, expectRefused, post as order, SELL, terms } from "../support/trading.ts";
import { type TestMarket, USDC, type UserSpec, World } from "../support/world.ts";
import { activity, awayFromMidnight, DAY_MS, expectOverLimit, expectUsed, TEST_MS, TIER_1 } from "./daily-activity.ts";

const NEW_PASSWORD = "nine lanterns over the weir";
/** Accounts that wait for the verification of their address. */
const WAITING = ["unspent", "verifying", "late"].map((name) => `${name}@people.example`);
const DOCUMENT = { document_type: "id_card", document_number: "77", country: "FR" };
const PATS = "/me/personal-access-tokens";

let world: World;
/** Every server that ran. */
const servers: TestServer[] = [];
const guests = new Guests();
const { secrets } = guests;
secrets.add(NEW_PASSWORD);

const session = async (name: string): Promise<Client> =>
  (await guests.signIn(world.server, `${name}@example.com`)).client;
const post = <T = unknown>(path: string, body: object): Promise<Answer<T>> =>
  guests.client(world.server, null).request<T>("POST", path, { body });

async function restart(): Promise<void> {
  world.server = await world.server.restart();
  servers.push(world.server);
}

// ---------------------------------------------------------------- accounts

/** Mailed links and a phone's code, and the users who change something right before the kill. */
interface Accounts {
  /** To verify the addresses of WAITING. */
  readonly links: readonly string[];
  readonly resets: readonly string[];
  readonly phone: string;
  readonly code: string;
  readonly changing: Client;
  readonly dialing: Client;
  readonly applying: Client;
}

let accounts: Accounts;
/** The responses to a registration, to the phone's verification and to an application for tier 2. */
let made: Answer;
let dialed: Answer<UserJson>;
let applied: Answer;

async function prepareAccounts(): Promise<Accounts> {
  const { server } = world;
  for (const email of WAITING) expect((await register(server, email)).status).toBe(201);
  const links = await Promise.all(WAITING.map((email) => verificationToken(server, email)));
  const forgetful = ["forgetful@example.com", "unspent@people.example"];
  for (const email of forgetful) await post("/auth/forgot-password", { email });
  const resets = await Promise.all(forgetful.map((email) => resetToken(server, email)));
  for (const secret of [...links, ...resets]) secrets.add(secret);
  const [changing, dialing, applying] = await Promise.all([
    session("changing"),
    session("dialing"),
    session("applying"),
  ]);
  const phone = "+14155552001";
  await dialing.data("POST", "/me/phone", { phone });
  const code = await phoneCode(server, phone);
  await applying.data("POST", "/me/phone", { phone: "+14155552002" });
  return { links, resets, phone, code, changing, dialing, applying };
}

function changeAccounts({ links, resets, code, changing, dialing, applying }: Accounts): Promise<Answer[]> {
  return Promise.all([
    register(world.server, "new@people.example"),
    dialing.request("POST", "/me/phone/verify", { body: { code } }),
    applying.request("POST", "/me/identity", { body: DOCUMENT }),
    post("/auth/verify-email", { token: links[1], password: PASSWORD }),
    post("/auth/reset-password", { token: resets[0], password: NEW_PASSWORD }),
    changing.request("POST", "/me/password", { body: { current: PASSWORD, new: NEW_PASSWORD } }),
  ]);
}

async function expectAccounts(): Promise<void> {
  const { server } = world;
  const { links, resets, phone } = accounts;
  const signInAs = async (email: string, password: string): Promise<SignInJson> => {
    const answer = await login(server, email, password);
    expect([email, answer.code]).toEqual([email, 0]);
    return answer.data;
  };
  expect((await signInAs("new@people.example", PASSWORD)).user).toEqual(made.data);
  expect((await signInAs("verifying@people.example", PASSWORD)).user.email_verified).toBe(true);
  for (const email of ["forgetful@example.com", "changing@example.com"]) {
    await signInAs(email, NEW_PASSWORD);
    expect((await login(server, email)).code).toBe(40100);
  }
  expect((await signInAs("dialing@example.com", PASSWORD)).user).toEqual(dialed.data);
  expect(dialed.data).toMatchObject({ phone, phone_verified: true });
  const { access_token } = await signInAs("applying@example.com", PASSWORD);
  const applicant = guests.client(server, access_token);
  expect(await applicant.get("/me/identity")).toEqual(applied.data);
  await expectRefused(applicant.request("POST", "/me/identity", { body: DOCUMENT }), 409, 40900);
  await expectRefused(post("/auth/verify-email", { token: links[1] }), 400, 40000, /^token/);
  await expectRefused(post("/auth/reset-password", { token: resets[0], password: PASSWORD }), 400, 40000, /^token/);
  await expectRefused(post("/auth/register", { email: "NEW@people.example", password: PASSWORD }), 409, 40900);
}

/** When the unspent links to verify an address expire: shortly after the second start. */
let linksExpireAt = 0;

/** Shortens the life of the unspent links. Those to reset a password are over. */
function shortenLinks(): void {
  linksExpireAt = Date.now() + 2_500;
  withDatabase(world.server.dataDir, (db) => {
    const shorten = db.prepare("UPDATE email_tokens SET expires_at = ? WHERE purpose = ? AND used_at IS NULL");
    expect(shorten.run(linksExpireAt, "verify_email").changes).toBeGreaterThan(0);
    expect(shorten.run(Date.now(), "reset_password").changes).toBe(1);
  });
}

// ---------------------------------------------------------------- personal access tokens

type PatRecord = Omit<CreatedPatJson, "token">;

/** The user's tokens, and a session's token that survives the restarts. */
interface Pats {
  readonly session: string;
  readonly revoked: CreatedPatJson;
  readonly expiring: CreatedPatJson;
  readonly expiresAt: number;
}

let pats: Pats;
let lasting: CreatedPatJson;
/** Valid at 192.0.2.0/24 only. */
let bound: CreatedPatJson;
let usedAt: { readonly lasting: number; readonly bound: number };

const patOf = ({ token }: CreatedPatJson): Client => guests.client(world.server, token);
const askMe = (client: Client, headers = {}): Promise<Answer> => client.request("GET", "/me", { headers });
const owner = (): Client => guests.client(world.server, pats.session);
const recordsOf = (client: Client): Promise<PatRecord[]> => client.all<PatRecord>(PATS);
const lastUseOf = async (client: Client, { id }: CreatedPatJson): Promise<number | null> =>
  (await recordsOf(client)).find((each) => each.id === id)!.last_used_at;

async function preparePats(): Promise<Pats> {
  const client = await session("keeping");
  const expiresAt = Date.now() + 2_500;
  const scopes = ["orders:write"];
  const revoked = await createPat(client, { scopes });
  const expiring = await createPat(client, { scopes, expires_at: expiresAt });
  for (const { token } of [revoked, expiring]) secrets.add(token);
  return { session: client.token!, revoked, expiring, expiresAt };
}

function changePats({ revoked }: Pats): Promise<Answer[]> {
  const client = owner();
  const scopes = ["portfolio:read"];
  const create = (body: object): Promise<Answer> => client.request("POST", PATS, { body: { ...body, scopes } });
  return Promise.all([
    create({ name: "lasting", expires_at: Date.now() + DAY_MS }),
    create({ name: "bound", allowed_ips: ["192.0.2.0/24"] }),
    client.request("DELETE", `${PATS}/${revoked.id}`),
  ]);
}

async function expectPats(): Promise<void> {
  await expectRefused(askMe(patOf(pats.revoked)), 401, 40100);
  await expectRefused(patOf(lasting).request("POST", "/orders", { body: {} }), 403, 40300);
  await expectRefused(askMe(patOf(bound)), 403, 40300);
}

// ---------------------------------------------------------------- daily activity

/** A user of tier 1 and one of tier 2 who trade in a market of their own. */
class Pair {
  private readonly name: string;
  readonly market: TestMarket;

  constructor(name: string) {
    this.name = name;
    this.market = world.market();
  }

  get one(): Client {
    return world.client(`${this.name}-one`);
  }

  get two(): Client {
    return world.client(`${this.name}-two`);
  }

  /** Creates 20 USDC from a split, 10 from a purchase, and 50 USDC of live buys, one of them partially filled. */
  async trade(): Promise<void> {
    const { one, two, market } = this;
    await world.split(one, market, 20);
    await world.split(two, market, 50);
    await one.place(terms(market, 0, SELL, 5_000, 10));
    await two.place(terms(market, 0, BUY, 5_000, 10));
    await one.place(terms(market, 1, BUY, 2_000, 100));
    await two.place(terms(market, 1, SELL, 2_000, 50));
    await one.place(terms(market, 0, SELL, 8_000, 10));
    await one.place(terms(market, 0, BUY, 4_000, 100));
    await expectUsed(one, 80 * USDC);
    await expectUsed(two, 55 * USDC);
  }

  /** Expects what a tier 1 user with `used` USDC may still do. */
  async expectLeft(used: number): Promise<void> {
    const { one, market } = this;
    expect(await activity(one)).toEqual({ used: used * USDC, limit: TIER_1 });
    const cents = (100 - used) * 100;
    await expectOverLimit(one, () => order(one, terms(market, 0, BUY, 1, cents * 100 + 1)));
    const { id } = await one.place(terms(market, 0, BUY, 1, cents * 100));
    expect(await activity(one)).toEqual({ used: TIER_1, limit: TIER_1 });
    await one.cancel(id);
    await expectUsed(one, used * USDC);
  }

  async expectUnchanged(): Promise<void> {
    await expectUsed(this.two, 55 * USDC);
    await this.expectLeft(80);
  }
}

const PAIRS = ["yesterday", "today", "canceling"];
/** This pair traded on the day before the second start. */
let yesterday: Pair;
/** This pair only trades before the kill. */
let today: Pair;
/** This pair cancels its orders after the second start. */
let canceling: Pair;
/** The first pair has traded by then, the others have not. */
let boundary = 0;

async function prepareActivity(): Promise<void> {
  [yesterday, today, canceling] = PAIRS.map((name) => new Pair(name)) as [Pair, Pair, Pair];
  await yesterday.trade();
  boundary = Date.now() + 1;
  await clockAt(boundary);
  for (const pair of [today, canceling]) await pair.trade();
}

/** The test cannot move the clock, so it moves the first pair's activity in the database to yesterday. */
function moveToYesterday(): void {
  withDatabase(world.server.dataDir, (db) => {
    const days = db.prepare("SELECT DISTINCT activity_day FROM accounts WHERE activity_used > 0").pluck().all();
    expect(days).toEqual([Math.floor(Date.now() / DAY_MS)]);
    const users = "(SELECT id FROM users WHERE email LIKE 'yesterday-%')";
    const moved = db.prepare(`UPDATE accounts SET activity_day = activity_day - 1 WHERE user_id IN ${users}`).run();
    expect(moved.changes).toBe(2);
    for (const table of ["fills", "entries"]) {
      db.prepare(`UPDATE ${table} SET created_at = created_at - ? WHERE created_at < ?`).run(DAY_MS, boundary);
    }
    db.exec(RECOUNT_HOURS);
    const candles = db.prepare("UPDATE candles SET open_time = open_time - ? WHERE outcome_id IN (?, ?)");
    expect(candles.run(DAY_MS, ...yesterday.market.outcomes).changes).toBeGreaterThan(0);
  });
}

// ---------------------------------------------------------------- the server

let page: Page;
/** The cookie before its last rotation. */
let spent: Page;

beforeAll(async () => {
  await awayFromMidnight(3 * TEST_MS);
  const owned: UserSpec = { password: PASSWORD };
  const named: Record<string, UserSpec> = {
    ...{ changing: owned, forgetful: owned, page: owned, keeping: { ...owned, scopes: [] } },
    ...{ dialing: { ...owned, tier: 0 }, applying: { ...owned, tier: 1 } },
    ...Object.fromEntries(
      PAIRS.flatMap((name) => [
        [`${name}-one`, { tier: 1 }],
        [`${name}-two`, { tier: 2 }],
      ]),
    ),
  };
  const env = { PUBLIC_URL: PAGE_URL, TRUSTED_PROXIES: "127.0.0.1", LOG_LEVEL: "trace" };
  world = await World.start({ users: 0, named, markets: PAIRS.map(() => 2), env });
  servers.push(world.server);
  await prepareActivity();
  accounts = await prepareAccounts();
  page = await Page.signIn("page", { world, guests });
  pats = await preparePats();
  await page.refreshed();
  const [changed, issued] = await Promise.all([changeAccounts(accounts), changePats(pats)]);
  await world.server.kill();
  expect([...changed, ...issued].map(({ code }) => code)).toEqual(Array(9).fill(0));
  [made, dialed, applied] = changed as [Answer, Answer<UserJson>, Answer];
  [lasting, bound] = issued.map(({ data }) => data) as [CreatedPatJson, CreatedPatJson];
  for (const { token } of [lasting, bound]) secrets.add(token);
  await restart();
});

afterAll(async () => {
  guests.close();
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
  for (const server of servers) expectUnlogged(secrets, server);
  expectUnkept(secrets, world.server.dataDir);
});

describe("after kill -9", () => {
  test(
    "after kill -9, accounts, passwords, spent links, the phone and applications are what the responses said",
    expectAccounts,
  );

  test("after kill -9, a phone's code is lost, and an unspent link still works", async () => {
    const applicant = await session("applying");
    const late = applicant.request("POST", "/me/phone/verify", { body: { code: "123456" } });
    await expectRefused(late, 409, 40900);
    const body = { token: accounts.links[0], password: PASSWORD };
    const { data } = await post<UserJson>("/auth/verify-email", body);
    expect(data).toMatchObject({ email: "unspent@people.example", email_verified: true });
  });

  test("after kill -9, personal access tokens keep their bounds, and a revoked one stays revoked", async () => {
    const records = [bound, lasting, pats.expiring].toSorted((a, b) => b.id - a.id);
    expect(await recordsOf(owner())).toEqual(records.map(({ token: _, ...rest }) => rest));
    await expectPats();
    expect((await askMe(patOf(bound), { "X-Forwarded-For": "192.0.2.200" })).code).toBe(0);
    const uses = await Promise.all([lasting, bound].map((pat) => lastUseOf(owner(), pat)));
    usedAt = { lasting: uses[0]!, bound: uses[1]! };
    expect([usedAt.lasting > 0, usedAt.bound > 0]).toEqual([true, true]);
  });

  test("after kill -9, a cookie still refreshes", () => page.refreshed());

  test("after kill -9, the day's activity is unchanged", () => today.expectUnchanged());
});

describe("after SIGTERM", () => {
  beforeAll(async () => {
    await clockAt(pats.expiresAt);
    await world.server.stop();
    moveToYesterday();
    shortenLinks();
    await restart();
  });

  test("after SIGTERM, accounts, passwords, spent links, the phone and applications are unchanged", expectAccounts);

  test("after SIGTERM, links that were spent or expired are rejected", async () => {
    const reset = { token: accounts.resets[1], password: NEW_PASSWORD };
    await expectRefused(post("/auth/reset-password", reset), 400, 40000, /^token/);
    await expectRefused(post("/auth/verify-email", { token: accounts.links[0] }), 400, 40000, /^token/);
  });

  test("after SIGTERM, personal access tokens keep their last use, and one has expired", async () => {
    const { expiring } = pats;
    const uses = (await recordsOf(owner())).map(({ id, last_used_at }) => [id, last_used_at]);
    const expected = { [bound.id]: usedAt.bound, [lasting.id]: usedAt.lasting, [expiring.id]: null };
    expect(Object.fromEntries(uses)).toEqual(expected);
    await expectPats();
    await expectRefused(askMe(patOf(expiring)), 401, 2002);
    expect(await refusedUpgrade(world.server, expiring.token)).toEqual([401, 2002]);
    // The server does not record a second use within the minute.
    expect((await askMe(patOf(lasting))).code).toBe(0);
    expect(await lastUseOf(owner(), lasting)).toBe(usedAt.lasting);
  });

  test("after SIGTERM, a cookie still refreshes", async () => {
    spent = page.copy();
    await page.refreshed();
    expect(await page.me()).toBe(0);
  });

  test("after SIGTERM, the day's activity is unchanged", () => today.expectUnchanged());

  test("cancels release the live buys of a restarted server", async () => {
    expect(await cancelAll(canceling.one)).toHaveLength(3);
    await expectUsed(canceling.one, 30 * USDC);
  });

  test("fills of the day before no longer count after 00:00 UTC, and live buys still do", async () => {
    const { one, two, market } = yesterday;
    await expectUsed(two, 0);
    await yesterday.expectLeft(50);
    // The first entry of the day starts from zero; a sale is not an entry.
    await two.place(terms(market, 0, SELL, 4_000, 10));
    await expectUsed(one, 50 * USDC);
    await expectUsed(two, 0);
    expect(await cancelAll(one)).toHaveLength(3);
    await expectUsed(one, 4 * USDC);
    await world.split(two, market, 3);
  });

  test("a link expires at its time while the server runs", async () => {
    await clockAt(linksExpireAt);
    await expectRefused(post("/auth/verify-email", { token: accounts.links[2] }), 400, 40000, /^token/);
  });
});

describe("after another kill -9", () => {
  beforeAll(async () => {
    await world.server.kill();
    await restart();
  });

  test("after another kill -9, the day's activity is unchanged, released or counted from 00:00 UTC on", async () => {
    await today.expectUnchanged();
    await canceling.expectLeft(30);
    await expectUsed(yesterday.two, 3 * USDC);
    await yesterday.expectLeft(4);
  });

  test("after another kill -9, a spent cookie's grace period is over: it ends the session", async () => {
    await expectOver(spent);
    await expectOver(page);
  });

  test("after another kill -9, the audit log has each creation and revocation of a token once", () => {
    const user = "(SELECT id FROM users WHERE email = 'keeping@example.com')";
    const lines = `FROM audit_log WHERE action LIKE 'pat.%' AND user_id = ${user}`;
    const sql = `SELECT action, count(*) AS count ${lines} GROUP BY action`;
    expect(rowsOf(world.server.dataDir, sql)).toEqual([
      { action: "pat.create", count: 4 },
      { action: "pat.revoke", count: 1 },
    ]);
  });
});
