/**
 * Rate limits of sign-in, tokens and accounts, over real sockets: by the e-mail that a request names, by address, by user.
 * Orders and market data are rate-limits.test.ts, settings are rate-limit-settings.test.ts, the sliding window is
 * rate-limiter.test.ts. The server trusts a proxy, and each test has its own e-mails and addresses.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { MAX_ADDRESS_RATE_BUCKETS } from "../../server/http/limits.ts";
import { expectEndsWell } from "../support/checks.ts";
import type { Answer } from "../support/client.ts";
import { createPat, freshAddress, messagesTo, PASSWORD, type SignInJson } from "../support/identity.ts";
import { pack } from "../support/packed.ts";
import { expectLimited, expectRetryAfter, rateOf } from "../support/rates.ts";
import type { TestServer } from "../support/server.ts";
import { type Acknowledgement, Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { basic, FORM, ThirdParty } from "../support/third-party.ts";
import { type TestMarket, World } from "../support/world.ts";
import { AddressCaller, closeCallers } from "./address-caller.ts";
import { flood } from "./address-flood.ts";
import { expectAnswer } from "./rate-expectations.ts";

const WRONG = "not the password at all";
/** On each of five paths, an address has its own bucket. */
const FLOOD_ADDRESSES = 27_000;
const MORE_ADDRESSES = 10_000;

let world: World;
let server: TestServer;
let market: TestMarket;
let users = 0;
beforeAll(async () => {
  const named = Object.fromEntries(
    Array.from({ length: 24 }, (_, n) => [`person${n}`, { password: PASSWORD, deposit: 0 }]),
  );
  world = await World.start({ users: 0, named, env: { RATE_LIMITS: "on", TRUSTED_PROXIES: "127.0.0.1" } });
  ({ server } = world);
  market = world.market();
});
afterAll(async () => {
  closeCallers();
  await expectEndsWell(world);
});

function expectAck(answer: Acknowledgement, code: number, limit: number, remaining: number): void {
  const { rate_limit: rate } = answer;
  expect([answer.code, rate?.limit, rate?.remaining]).toEqual([code, limit, remaining]);
}

/** The e-mail of a user with a password; no other test has it. */
const freshEmail = (): string => `person${users++}@example.com`;
const anyone = (from?: string): AddressCaller => new AddressCaller(server, null, from);
const login = (caller: AddressCaller, email: string, password: string): Promise<Answer> =>
  caller.elsewhere("POST", "/auth/login", { email, password });

/** Signs in from a fresh address, with one of the ten sign-ins of its e-mail. */
async function signedIn(email: string): Promise<{ caller: AddressCaller; refreshToken: string }> {
  const { status, data } = (await login(anyone(), email, PASSWORD)) as Answer<SignInJson>;
  expect(status).toBe(200);
  return { caller: new AddressCaller(server, data.access_token), refreshToken: data.refresh_token };
}

test("one e-mail has ten sign-ins a minute, whatever its address and case, right or wrong", async () => {
  const email = freshEmail();
  const nobody = anyone();
  expectAnswer(await login(nobody, email, PASSWORD), 200, 10, 9);
  expectAnswer(await login(nobody, email.toUpperCase(), WRONG), 401, 10, 8);
  expectAnswer(await login(nobody, email.replace("person", "PeRsOn"), PASSWORD), 200, 10, 7);
  for (let n = 6; n >= 0; n--) expectAnswer(await login(nobody, email, WRONG), 401, 10, n);
  // The right password is rejected as well: a different response would give it away.
  for (const spelled of [email, email.toUpperCase()]) expectLimited(await login(nobody, spelled, PASSWORD), 10);
  expectLimited(await login(nobody, email, WRONG), 10);
});

test("an e-mail without an account counts the same", async () => {
  const nobody = anyone();
  for (let n = 9; n >= 0; n--) expectAnswer(await login(nobody, "nobody@example.com", WRONG), 401, 10, n);
  expectLimited(await login(nobody, "Nobody@Example.com", WRONG), 10);
});

test("a malformed body counts by its e-mail all the same, in any encoding", async () => {
  const email = freshEmail();
  const caller = anyone();
  const bodies: object[] = [
    { email },
    { email, password: "" },
    { email, password: 7 },
    { email, password: PASSWORD, code: "1" },
    { email, password: "x".repeat(1_025) },
  ];
  let left = 10;
  for (const body of bodies) expectAnswer(await caller.elsewhere("POST", "/auth/login", body), 400, 10, --left);
  const packed = { "Content-Type": "application/msgpack" };
  const bytes = pack({ email: email.toUpperCase(), password: WRONG });
  expectAnswer(await caller.request("POST", "/auth/login", bytes, packed), 401, 10, --left);
  expectAnswer(await login(caller, email, PASSWORD), 200, 10, --left);
  while (left > 0) expectAnswer(await caller.elsewhere("POST", "/auth/login", { email }), 400, 10, --left);
  // The limit comes before the check of the body.
  for (const body of bodies) expectLimited(await caller.elsewhere("POST", "/auth/login", body), 10);
});

test("a body without an e-mail counts by address, a hundred a minute", async () => {
  const caller = anyone();
  const bodies: [what: string, body: unknown, headers?: Record<string, string>][] = [
    ["no e-mail", { password: PASSWORD }],
    ["an e-mail that is no text", { email: 1, password: PASSWORD }],
    ["an e-mail longer than any", { email: `${"x".repeat(250)}@example.com`, password: PASSWORD }],
    ["a list", []],
    ["null", "null"],
    ["no JSON", "{"],
    ["nothing", ""],
    ["no MessagePack", Buffer.from([0xc1]), { "Content-Type": "application/msgpack" }],
    ["another content type", "email=a", { "Content-Type": "text/plain" }],
  ];
  let left = 100;
  for (const [what, body, headers] of bodies) {
    const answer = await caller.request("POST", "/auth/login", body, headers);
    expect([what, answer.status, rateOf(answer)]).toMatchObject([what, 400, { limit: 100, remaining: --left }]);
  }
  while (left > 0) expectAnswer(await caller.request("POST", "/auth/login", {}), 400, 100, --left);
  for (const [, body, headers] of bodies) {
    expectLimited(await caller.request("POST", "/auth/login", body, headers), 100);
  }
  // That rejects all sign-ins from the address, and neither the e-mail nor another address.
  const email = freshEmail();
  expectLimited(await caller.request("POST", "/auth/login", { email, password: WRONG }), 100);
  expectAnswer(await login(caller, email, WRONG), 401, 10, 9);
  expectAnswer(await caller.elsewhere("POST", "/auth/login", {}), 400, 100, 99);
  expectAnswer(await caller.request("POST", "/auth/register", {}), 400, 20, 19);
});

test("a body that is too large counts by address too", async () => {
  const caller = anyone();
  const body = JSON.stringify({ email: "large@example.com", password: "x".repeat(65 * 1_024) });
  const chunked = { "Transfer-Encoding": "chunked" };
  expectAnswer(await caller.request("POST", "/auth/login", body), 413, 100, 99);
  expectAnswer(await caller.request("POST", "/auth/login", body, chunked), 413, 100, 98);
});

test("registrations count by e-mail in their own bucket: 201, 409 and 400 alike", async () => {
  const caller = anyone();
  const email = "new@example.com";
  const register = (spelled: string, password: string): Promise<Answer> =>
    caller.elsewhere("POST", "/auth/register", { email: spelled, password });
  expectAnswer(await register(email, "1234567890"), 400, 10, 9);
  expectAnswer(await register(email, PASSWORD), 201, 10, 8);
  expectAnswer(await register(email.toUpperCase(), PASSWORD), 409, 10, 7);
  expectAnswer(await register(email, "short"), 400, 10, 6);
  for (let n = 5; n >= 0; n--) expectAnswer(await register(email, PASSWORD), 409, 10, n);
  expectLimited(await register(email, PASSWORD), 10);
  expectLimited(await register("NEW@example.com", "short"), 10);
  // Sign-ins and requests for mails are other buckets of the same e-mail.
  expectAnswer(await login(caller, email, PASSWORD), 200, 10, 9);
  expectAnswer(await caller.elsewhere("POST", "/auth/forgot-password", { email }), 202, 10, 9);
  expectAnswer(await caller.elsewhere("POST", "/auth/resend-verification", { email }), 202, 10, 9);
});

test("an address registers 20 accounts a minute, whatever their e-mails", async () => {
  const caller = anyone();
  const register = (i: number): Promise<Answer> =>
    caller.request("POST", "/auth/register", { email: `many${i}@example.com`, password: "short" });
  for (let i = 0; i < 20; i++) expect((await register(i)).status).toBe(400);
  expectLimited(await register(20), 20);
});

test("password resets and verification links count by e-mail, known or not, each in its own bucket", async () => {
  const caller = anyone();
  const known = freshEmail();
  for (const path of ["/auth/forgot-password", "/auth/resend-verification"]) {
    for (const email of [known, `unknown-to${path.slice(5)}@example.com`]) {
      const ask = (spelled: string): Promise<Answer> => caller.elsewhere("POST", path, { email: spelled });
      expectAnswer(await ask(email.toUpperCase()), 202, 10, 9);
      expectAnswer(await caller.elsewhere("POST", path, { email, more: 1 }), 400, 10, 8);
      for (let n = 7; n >= 0; n--) expectAnswer(await ask(email), 202, 10, n);
      expectLimited(await ask(email), 10);
      expectLimited(await ask(email.toUpperCase()), 10);
    }
  }
  expectAnswer(await login(caller, known, PASSWORD), 200, 10, 9);
  expect(messagesTo(server, known).length).toBeLessThanOrEqual(5);
});

test("requests for mails count by address as well: a hundred e-mails a minute from one address", async () => {
  const caller = anyone();
  const ask = (by: AddressCaller, n: number): Promise<Answer> =>
    by.request("POST", "/auth/forgot-password", { email: `many${n}@example.com` });
  // The headers show the nearer of the two limits.
  for (let n = 0; n < 91; n++) expectAnswer(await ask(caller, n), 202, 10, 9);
  for (let n = 91; n < 100; n++) expectAnswer(await ask(caller, n), 202, 100, 99 - n);
  for (const n of [0, 100]) expectLimited(await ask(caller, n), 100);
  // A rejection by address takes nothing from the e-mail's ten, from another route or from another address.
  expectAnswer(await ask(anyone(), 100), 202, 10, 9);
  expectAnswer(await ask(anyone(), 0), 202, 10, 8);
  expectAnswer(await caller.request("POST", "/auth/resend-verification", { email: "many0@example.com" }), 202, 10, 9);
  // A rejection by e-mail takes nothing from the address's hundred.
  const other = anyone();
  for (let n = 9; n >= 0; n--) expectAnswer(await ask(other, 200), 202, 10, n);
  for (let n = 0; n < 120; n++) expectLimited(await ask(other, 200), 10);
  expectAnswer(await ask(other, 201), 202, 10, 9);
});

test("one e-mail at its limit leaves another e-mail from the same address alone", async () => {
  const [one, other] = [freshEmail(), freshEmail()];
  const caller = anyone();
  const ask = (email: string): Promise<Answer> => caller.request("POST", "/auth/login", { email, password: WRONG });
  for (let n = 9; n >= 0; n--) expectAnswer(await ask(one), 401, 10, n);
  for (let n = 0; n < 5; n++) expectLimited(await ask(one), 10);
  expectAnswer(await ask(other), 401, 10, 9);
  expectAnswer(await caller.request("POST", "/auth/login", { email: other, password: PASSWORD }), 200, 10, 8);
  // The address has sent twelve: rejections took nothing.
  expectAnswer(await caller.request("POST", "/auth/login", {}), 400, 100, 87);
});

test("a refused sign-in takes nothing: the wait only gets shorter", async () => {
  const email = freshEmail();
  const caller = anyone();
  for (let n = 9; n >= 0; n--) expectAnswer(await login(caller, email, WRONG), 401, 10, n);
  let last = { after: 60, reset: 60 };
  for (let n = 0; n < 200; n++) {
    const answer = await caller.request("POST", "/auth/login", { email, password: WRONG });
    expectLimited(answer, 10);
    const now = { after: Number(answer.headers["retry-after"]), reset: rateOf(answer)!.reset };
    expect([now.after <= last.after, now.reset <= last.reset]).toEqual([true, true]);
    last = now;
  }
  // Two hundred rejections leave the address its hundred, too.
  expectAnswer(await caller.request("POST", "/auth/login", {}), 400, 100, 99);
});

test("ten wrong passwords a minute from strangers don't lock the owner out at a known address", async () => {
  const [email, other] = [freshEmail(), freshEmail()];
  const home = anyone();
  const signIn = (by: AddressCaller, password = PASSWORD, who = email): Promise<Answer> =>
    by.request("POST", "/auth/login", { email: who, password });
  expectAnswer(await signIn(home), 200, 10, 9);
  const strangers = async (who: string, more: number): Promise<void> => {
    for (let n = more - 1; n >= 0; n--) expectAnswer(await login(anyone(), who, WRONG), 401, 10, n);
    expectLimited(await login(anyone(), who, PASSWORD), 10);
  };
  await strangers(email, 9);
  expectAnswer(await signIn(home), 200, 10, 9);
  for (let n = 8; n >= 0; n--) expectAnswer(await signIn(home, n % 2 === 0 ? WRONG : PASSWORD), n % 2 === 0 ? 401 : 200, 10, n); // biome-ignore format: one line
  expectLimited(await signIn(home), 10);
  // The address is known to this account only; a wrong password makes no address known.
  expectAnswer(await signIn(home, WRONG, other), 401, 10, 9);
  expectAnswer(await signIn(home, WRONG, other.toUpperCase()), 401, 10, 8);
  await strangers(other, 8);
  expectLimited(await signIn(home, PASSWORD, other), 10);
  const { data } = (await login(anyone(), freshEmail(), PASSWORD)) as Answer<SignInJson>;
  expect((await new AddressCaller(server, data.access_token).limits()).find(({ route }) => route === "POST /auth/login")?.scope).toBe("identifier"); // biome-ignore format: one line
});

test("of an IPv6 address, the subscriber's network is known, and no other", async () => {
  const email = freshEmail();
  const at = (from: string, password = PASSWORD): Promise<Answer> =>
    anyone(from).request("POST", "/auth/login", { email, password });
  expectAnswer(await at("2001:db8:77:1::5"), 200, 10, 9);
  expectAnswer(await at("2001:db8:77:1:9:8:7:6"), 200, 10, 9);
  expectAnswer(await at("2001:0db8:0077:0001::ffff", WRONG), 401, 10, 8);
  expectAnswer(await at("2001:db8:77:2::5", WRONG), 401, 10, 8);
  expectAnswer(await at("2001:db8:78:1::5", WRONG), 401, 10, 7);
});

test("one address has a hundred sign-ins a minute, whatever they name, known accounts included", async () => {
  const email = freshEmail();
  const caller = anyone();
  const sign = (who: string, password: string): Promise<Answer> =>
    caller.request("POST", "/auth/login", { email: who, password });
  expectAnswer(await sign(email, PASSWORD), 200, 10, 9);
  // A missing password costs no hash, and counts as well.
  for (let n = 0; n < 98; n++) {
    const { status } = await caller.request("POST", "/auth/login", { email: `nobody-${n}@example.com` });
    expect(status).toBe(400);
  }
  expectAnswer(await sign(email, PASSWORD), 200, 100, 0);
  for (const who of [email, "nobody-1@example.com", "fresh@example.com"]) expectLimited(await sign(who, PASSWORD), 100);
  expectLimited(await caller.request("POST", "/auth/login", {}), 100);
  // Rejections took nothing from the e-mails.
  expectAnswer(await login(caller, "fresh@example.com", WRONG), 401, 10, 9);
  // Another route still has its hundred.
  expectAnswer(await caller.request("GET", "/time"), 200, 100, 99);
});

test("a third party's code exchange makes no address known to the account", async () => {
  const email = freshEmail();
  const { caller } = await signedIn(email);
  const party = await ThirdParty.register(world, caller.client);
  const pending = await party.consent(caller.client);
  expect((await party.exchange(pending)).status).toBe(200);
  // Without the header, the third party has the proxy's own address.
  const answer = await caller.client.request("POST", "/auth/login", { body: { email, password: WRONG } });
  expectAnswer(answer, 401, 10, 8);
});

test("one address has twenty refreshes a minute, whoever sends them; a refused one doesn't use up the token", async () => {
  const { caller, refreshToken } = await signedIn(freshEmail());
  const address = freshAddress();
  const nobody = anyone(address);
  caller.from = address;
  let token = refreshToken;
  const refresh = (by: AddressCaller, body: object): Promise<Answer> => by.request("POST", "/auth/refresh", body);
  for (let left = 19; left >= 0; left -= 4) {
    for (const [by, n] of [
      [nobody, left],
      [caller, left - 1],
    ] as const) {
      const answer = await refresh(by, { refresh_token: token });
      expectAnswer(answer, 200, 20, n);
      token = (answer.data as { refresh_token: string }).refresh_token;
    }
    expectAnswer(await refresh(nobody, { refresh_token: "pm_ref_none" }), 401, 20, left - 2);
    expectAnswer(await refresh(caller, {}), 400, 20, left - 3);
  }
  for (const by of [nobody, caller]) expectLimited(await refresh(by, { refresh_token: token }), 20);
  // The token is still good from another address, which has its own limit.
  const answer = await caller.elsewhere("POST", "/auth/refresh", { refresh_token: token });
  expectAnswer(answer, 200, 20, 19);
});

test("the OAuth endpoints count by address, whoever calls, and refuse in the format of RFC 6749", async () => {
  const { caller } = await signedIn(freshEmail());
  const party = await ThirdParty.register(world, caller.client, { confidential: true });
  const credentials = basic(party.clientId, party.secret!);
  for (const [path, status] of [
    ["/oauth/token", 400],
    ["/oauth/revoke", 200],
    ["/oauth/introspect", 200],
  ] as const) {
    const address = freshAddress();
    const body = path === "/oauth/token" ? "grant_type=authorization_code&code=x" : "token=x";
    const ask = (more: Record<string, string>, by = anyone(address)): Promise<Answer> =>
      by.request("POST", path, body, { ...FORM, ...more });
    caller.from = address;
    const nobody = anyone(address);
    expectAnswer(await ask(credentials, nobody), status, 100, 99);
    expectAnswer(await ask({}, nobody), 401, 100, 98);
    // A user's token is not a client's, and the address still counts.
    expect(rateOf(await ask({}, caller))).toMatchObject({ limit: 100, remaining: 97 });
    expectAnswer(await ask({ "Content-Type": "application/json" }, nobody), 400, 100, 96);
    for (let n = 95; n >= 0; n--) expectAnswer(await ask(credentials, nobody), status, 100, n);
    for (const by of [nobody, caller]) {
      const answer = await ask(by === nobody ? credentials : {}, by);
      expectAnswer(answer, 429, 100, 0);
      expect(answer.data).toEqual({
        error: expect.stringMatching(/^[a-z_]+$/),
        error_description: expect.any(String),
      });
      expectRetryAfter(answer);
    }
    expectAnswer(await ask(credentials, anyone()), status, 100, 99);
    const shown = (await caller.limits()).filter(({ route }) => route === `POST ${path}`);
    expect(shown).toMatchObject([{ scope: "address", limit: 100, remaining: 0 }]);
  }
});

test("all of a user's tokens, of any kind and from any address, share a hundred a minute on each path", async () => {
  const { caller: session } = await signedIn(freshEmail());
  const pat = await patOf(session, ["portfolio:read"]);
  const oauth = await thirdPartyOf(session, ["portfolio:read", "orders:write"]);
  const all = [session, pat, oauth];
  for (let n = 99; n >= 0; n--) expectAnswer(await all[n % 3]!.elsewhere("GET", "/me"), 200, 100, n);
  for (const each of all) expectLimited(await each.elsewhere("GET", "/me"), 100);
  // Other paths have other buckets, and rejections for the scope or the kind of token count.
  expectAnswer(await session.request("GET", "/wallet/balance"), 200, 100, 99);
  expectAnswer(await oauth.request("GET", "/wallet/balance"), 200, 100, 98);
  expectAnswer(await pat.request("GET", "/me/sessions"), 403, 100, 99);
  expectAnswer(await oauth.request("GET", "/me/sessions"), 403, 100, 98);
  expectAnswer(await session.request("GET", "/me/sessions"), 200, 100, 97);
  const { caller: other } = await signedIn(freshEmail());
  other.from = session.from;
  expectAnswer(await other.request("GET", "/me"), 200, 100, 99);
  // A request without a token counts by address, and takes nothing from the user.
  expectAnswer(await anyone(session.from).request("GET", "/me"), 401, 100, 99);
});

test("WebSocket operations take from the buckets of REST, whichever token opened the connection", async () => {
  const { caller: session } = await signedIn(freshEmail());
  const pat = await patOf(session, ["orders:write"]);
  const oauth = await thirdPartyOf(session, ["orders:write"]);
  const data = terms(market, 0, BUY, 1, 1);
  const sockets: Socket[] = [];
  for (const { client, from } of [session, pat, oauth]) {
    sockets.push(await Socket.open(server, client.token, { headers: { "X-Forwarded-For": from } }));
  }
  let left = 30;
  while (left > 0) {
    // Nobody here has money: an operation that fails counts as well.
    for (const socket of sockets) expectAck(await socket.ask({ op: "order.place", data }), 42201, 30, --left);
    for (const each of [session, pat]) expectAnswer(await each.elsewhere("POST", "/orders", data), 422, 30, --left);
  }
  for (const socket of sockets) expectAck(await socket.ask({ op: "order.place", data }), 42900, 30, 0);
  for (const each of [session, pat, oauth]) expectLimited(await each.elsewhere("POST", "/orders", data), 30);
  for (const socket of sockets) await socket.close();
});

test("GET /me/limits shows the rest: by the caller's own e-mail, and by address for refreshes", async () => {
  const email = freshEmail();
  const { caller } = await signedIn(email);
  await login(caller, email.toUpperCase(), WRONG);
  await caller.elsewhere("POST", "/auth/register", { email, password: PASSWORD });
  await caller.elsewhere("POST", "/auth/login", { email: "someone-else@example.com", password: WRONG });
  await caller.request("POST", "/auth/refresh", { refresh_token: "x" });
  await caller.elsewhere("POST", "/auth/refresh", { refresh_token: "x" });
  await caller.request("GET", "/me");
  const shown = (await caller.limits()).map(({ route, scope, limit, remaining }) => [route, scope, limit, remaining]);
  const of = (route: string): unknown[] => shown.filter(([name]) => name === route);
  expect(of("POST /auth/login")).toEqual([
    ["POST /auth/login", "identifier", 10, 8],
    ["POST /auth/login", "address", 100, 100],
  ]);
  // Its body has no e-mail.
  expect(of("POST /auth/login/second-factor")).toEqual([["POST /auth/login/second-factor", "address", 100, 100]]);
  expect(of("POST /auth/register")).toEqual([
    ["POST /auth/register", "identifier", 10, 9],
    ["POST /auth/register", "address", 20, 20],
  ]);
  expect(of("POST /auth/forgot-password")).toEqual([
    ["POST /auth/forgot-password", "identifier", 10, 10],
    ["POST /auth/forgot-password", "address", 100, 100],
  ]);
  expect(of("POST /auth/refresh")).toEqual([["POST /auth/refresh", "address", 20, 19]]);
  expect(of("GET /me")).toEqual([["GET /me", "user", 100, 99]]);
  expect(of("GET /me/limits")).toEqual([["GET /me/limits", "user", 100, 99]]);
  expect(new Set(shown.map(([name, scope]) => `${name} ${scope}`)).size).toBe(shown.length);
});

test("a flood of addresses resets nobody's limits, and takes bounded memory", async () => {
  const email = freshEmail();
  const { caller } = await signedIn(email);
  for (let n = 8; n >= 0; n--) expectAnswer(await login(caller, email, WRONG), 401, 10, n);
  for (let n = 99; n >= 0; n--) expectAnswer(await caller.request("GET", "/me"), 200, 100, n);
  const before = server.residentBytes;
  const paths = ["/time", "/solvency", "/me", "/wallet/balance", "/auth/social"];
  expect(paths.length * FLOOD_ADDRESSES).toBeGreaterThan(MAX_ADDRESS_RATE_BUCKETS);
  await flood(server, "2001:db8:1", paths, FLOOD_ADDRESSES);
  const full = server.residentBytes;
  await flood(server, "2001:db8:2", paths.slice(0, 1), MORE_ADDRESSES);
  const after = server.residentBytes;
  expectLimited(await login(caller, email, PASSWORD), 10);
  expectLimited(await caller.request("GET", "/me"), 100);
  // The first flood fills all buckets of addresses, so the second one takes no more memory.
  const grown = [full - before, after - full].map((bytes) => Math.round(bytes / 2 ** 20));
  const requests = paths.length * FLOOD_ADDRESSES + MORE_ADDRESSES;
  process.stdout.write(`flood of ${requests} requests: grown by ${grown.join(", ")} MiB\n`);
  expect(grown[0]).toBeLessThan(200);
  expect(grown[1]).toBeLessThan(80);
});

async function patOf(session: AddressCaller, scopes: string[]): Promise<AddressCaller> {
  return new AddressCaller(server, (await createPat(session.client, { scopes })).token);
}

/** A third party with the user's consent. */
async function thirdPartyOf(session: AddressCaller, scopes: string[]): Promise<AddressCaller> {
  const party = await ThirdParty.register(world, session.client);
  return new AddressCaller(server, (await party.tokens(session.client, scopes.join(" "))).access_token);
}
