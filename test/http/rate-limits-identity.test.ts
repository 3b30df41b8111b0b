/**
 * Rate limits of sign-in, tokens and accounts as clients meet them: by the e-mail that a request names, by address, by
 * user. Orders and the rest are rate-limits.test.ts, how a bucket slides is rate-limiter.test.ts. Behind a trusted proxy
 * each test here has e-mails and addresses of its own.
 */
import { connect, type Socket as NetSocket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { type Answer, API_BASE, Client } from "../support/client.ts";
import { withDatabase } from "../support/data-dir.ts";
import { createPat, freshAddress, messagesTo, PASSWORD, type SignInJson } from "../support/identity.ts";
import { pack } from "../support/packed.ts";
import { expectLimited, expectRate, expectRetryAfter, type LimitsJson, rateOf } from "../support/rates.ts";
import type { TestServer } from "../support/server.ts";
import { type Acknowledgement, Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { basic, FORM, ThirdParty } from "../support/third-party.ts";
import { type TestMarket, World, type WorldOptions } from "../support/world.ts";

const WRONG = "not the password at all";
const FLOOD_ADDRESSES = 30_000;

const worlds: World[] = [];
const clients: Client[] = [];
async function start(options: WorldOptions): Promise<World> {
  const world = await World.start(options);
  worlds.push(world);
  return world;
}
afterAll(async () => {
  for (const client of clients) client.close();
  for (const world of worlds) await expectEndsWell(world);
});

/** Status, limit and what is left; the reset lies within the minute. */
function expectAnswer(answer: Answer, status: number, limit: number, remaining: number): void {
  expect(answer.status).toBe(status);
  expectRate(rateOf(answer), limit, remaining);
}

function expectAck(answer: Acknowledgement, code: number, limit: number, remaining: number): void {
  const { rate_limit: rate } = answer;
  expect([answer.code, rate?.limit, rate?.remaining]).toEqual([code, limit, remaining]);
}

/** Requests with one token, or none, each from the address that it says. */
class Caller {
  readonly client: Client;
  from: string;

  constructor(server: TestServer, token: string | null, from = freshAddress()) {
    this.client = new Client(server, token);
    this.from = from;
    clients.push(this.client);
  }

  request<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const options = { headers: { "X-Forwarded-For": this.from, ...headers } };
    return this.client.request<T>(method, path, body === undefined ? options : { ...options, body });
  }

  /** The same from an address that nobody has used. */
  elsewhere<T = unknown>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    return this.request<T>(method, path, body, { "X-Forwarded-For": freshAddress() });
  }

  async limits(): Promise<LimitsJson["rate_limits"]> {
    return (await this.request<LimitsJson>("GET", "/me/limits")).data.rate_limits;
  }
}

describe("RATE_LIMITS=on behind a trusted proxy", () => {
  let world: World;
  let server: TestServer;
  let market: TestMarket;
  let users = 0;
  beforeAll(async () => {
    const named = Object.fromEntries(
      Array.from({ length: 24 }, (_, n) => [`person${n}`, { password: PASSWORD, deposit: 0 }]),
    );
    const env = { RATE_LIMITS: "on", TRUSTED_PROXIES: "127.0.0.1" };
    world = await start({ users: 0, named, env });
    ({ server } = world);
    market = world.market();
  });

  /** The e-mail of a user with a password that no other test has. */
  const freshEmail = (): string => `person${users++}@example.com`;
  const anyone = (from?: string): Caller => new Caller(server, null, from);
  const login = (caller: Caller, email: string, password: string): Promise<Answer> =>
    caller.elsewhere("POST", "/auth/login", { email, password });

  /** Signs in from an address of its own; one of the ten of its e-mail is gone with it. */
  async function signedIn(email: string): Promise<{ caller: Caller; refreshToken: string }> {
    const { status, data } = (await login(anyone(), email, PASSWORD)) as Answer<SignInJson>;
    expect(status).toBe(200);
    return { caller: new Caller(server, data.access_token), refreshToken: data.refresh_token };
  }

  test("ten sign-ins a minute with one e-mail, whatever the address and the case, right or wrong", async () => {
    const email = freshEmail();
    const nobody = anyone();
    expectAnswer(await login(nobody, email, PASSWORD), 200, 10, 9);
    expectAnswer(await login(nobody, email.toUpperCase(), WRONG), 401, 10, 8);
    expectAnswer(await login(nobody, email.replace("person", "PeRsOn"), PASSWORD), 200, 10, 7);
    for (let n = 6; n >= 0; n--) expectAnswer(await login(nobody, email, WRONG), 401, 10, n);
    // The right password is refused as well: else it would be the one answer that differs.
    for (const spelled of [email, email.toUpperCase()]) expectLimited(await login(nobody, spelled, PASSWORD), 10);
    expectLimited(await login(nobody, email, WRONG), 10);
  });

  test("an address that has no account is counted just so", async () => {
    const nobody = anyone();
    for (let n = 9; n >= 0; n--) expectAnswer(await login(nobody, "nobody@example.com", WRONG), 401, 10, n);
    expectLimited(await login(nobody, "Nobody@Example.com", WRONG), 10);
  });

  test("what is wrong with the rest of the body takes from the e-mail all the same, in any encoding", async () => {
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
    // Refused before anything is said of the body.
    for (const body of bodies) expectLimited(await caller.elsewhere("POST", "/auth/login", body), 10);
  });

  test("a body that names no e-mail counts by address, a hundred a minute", async () => {
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
    // All sign-ins from there are meant, and neither the e-mail itself nor another address.
    const email = freshEmail();
    expectLimited(await caller.request("POST", "/auth/login", { email, password: WRONG }), 100);
    expectAnswer(await login(caller, email, WRONG), 401, 10, 9);
    expectAnswer(await caller.elsewhere("POST", "/auth/login", {}), 400, 100, 99);
    expectAnswer(await caller.request("POST", "/auth/register", {}), 400, 100, 99);
  });

  test("a body that is too large counts by address too", async () => {
    const caller = anyone();
    const body = JSON.stringify({ email: "large@example.com", password: "x".repeat(65 * 1_024) });
    const chunked = { "Transfer-Encoding": "chunked" };
    expectAnswer(await caller.request("POST", "/auth/login", body), 413, 100, 99);
    expectAnswer(await caller.request("POST", "/auth/login", body, chunked), 413, 100, 98);
  });

  test("registering counts by e-mail in a bucket of its own: 201, 409 and 400 alike", async () => {
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
    // Signing in, and asking for mails, are other buckets of the same e-mail.
    expectAnswer(await login(caller, email, PASSWORD), 200, 10, 9);
    expectAnswer(await caller.elsewhere("POST", "/auth/forgot-password", { email }), 202, 10, 9);
    expectAnswer(await caller.elsewhere("POST", "/auth/resend-verification", { email }), 202, 10, 9);
  });

  test("forgotten passwords and verification links count by e-mail, known or not, each in its own bucket", async () => {
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

  test("what sends mails counts by address as well: a hundred e-mails a minute from one", async () => {
    const caller = anyone();
    const ask = (by: Caller, n: number): Promise<Answer> =>
      by.request("POST", "/auth/forgot-password", { email: `many${n}@example.com` });
    // The nearer of the two limits is told.
    for (let n = 0; n < 91; n++) expectAnswer(await ask(caller, n), 202, 10, 9);
    for (let n = 91; n < 100; n++) expectAnswer(await ask(caller, n), 202, 100, 99 - n);
    for (const n of [0, 100]) expectLimited(await ask(caller, n), 100);
    // What the address refused took nothing of the e-mail's ten, nor has it taken from another route or address.
    expectAnswer(await ask(anyone(), 100), 202, 10, 9);
    expectAnswer(await ask(anyone(), 0), 202, 10, 8);
    expectAnswer(await caller.request("POST", "/auth/resend-verification", { email: "many0@example.com" }), 202, 10, 9);
    // And what the e-mail refuses takes nothing of the address's hundred.
    const other = anyone();
    for (let n = 9; n >= 0; n--) expectAnswer(await ask(other, 200), 202, 10, n);
    for (let n = 0; n < 120; n++) expectLimited(await ask(other, 200), 10);
    expectAnswer(await ask(other, 201), 202, 10, 9);
  });

  test("one e-mail at its limit does nothing to another from the same address", async () => {
    const [one, other] = [freshEmail(), freshEmail()];
    const caller = anyone();
    const ask = (email: string): Promise<Answer> => caller.request("POST", "/auth/login", { email, password: WRONG });
    for (let n = 9; n >= 0; n--) expectAnswer(await ask(one), 401, 10, n);
    for (let n = 0; n < 5; n++) expectLimited(await ask(one), 10);
    expectAnswer(await ask(other), 401, 10, 9);
    expectAnswer(await caller.request("POST", "/auth/login", { email: other, password: PASSWORD }), 200, 10, 8);
    // The address has had twelve: what was refused took nothing.
    expectAnswer(await caller.request("POST", "/auth/login", {}), 400, 100, 87);
  });

  test("a refused sign-in takes nothing: what is told of the wait only gets shorter", async () => {
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
    // Two hundred refusals have left the address its hundred, too.
    expectAnswer(await caller.request("POST", "/auth/login", {}), 400, 100, 99);
  });

  test("ten wrong passwords a minute from strangers keep nobody out at an address known to the account", async () => {
    const [email, other] = [freshEmail(), freshEmail()];
    const home = anyone();
    const signIn = (by: Caller, password = PASSWORD, who = email): Promise<Answer> =>
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
    // Known to this account only; a wrong password makes no address known.
    expectAnswer(await signIn(home, WRONG, other), 401, 10, 9);
    expectAnswer(await signIn(home, WRONG, other.toUpperCase()), 401, 10, 8);
    await strangers(other, 8);
    expectLimited(await signIn(home, PASSWORD, other), 10);
    const { data } = (await login(anyone(), freshEmail(), PASSWORD)) as Answer<SignInJson>;
    expect((await new Caller(server, data.access_token).limits()).find(({ route }) => route === "POST /auth/login")?.scope).toBe("identifier"); // biome-ignore format: one line
  });

  test("of IPv6 addresses the network of a subscriber is known, and no other", async () => {
    const email = freshEmail();
    const at = (from: string, password = PASSWORD): Promise<Answer> =>
      anyone(from).request("POST", "/auth/login", { email, password });
    expectAnswer(await at("2001:db8:77:1::5"), 200, 10, 9);
    expectAnswer(await at("2001:db8:77:1:9:8:7:6"), 200, 10, 9);
    expectAnswer(await at("2001:0db8:0077:0001::ffff", WRONG), 401, 10, 8);
    expectAnswer(await at("2001:db8:77:2::5", WRONG), 401, 10, 8);
    expectAnswer(await at("2001:db8:78:1::5", WRONG), 401, 10, 7);
  });

  test("from one address a hundred sign-ins a minute, whatever they name, known accounts among them", async () => {
    const email = freshEmail();
    const caller = anyone();
    const sign = (who: string, password: string): Promise<Answer> =>
      caller.request("POST", "/auth/login", { email: who, password });
    expectAnswer(await sign(email, PASSWORD), 200, 10, 9);
    // A password that is missing costs no hash, and counts as well.
    for (let n = 0; n < 98; n++) {
      const { status } = await caller.request("POST", "/auth/login", { email: `nobody-${n}@example.com` });
      expect(status).toBe(400);
    }
    expectAnswer(await sign(email, PASSWORD), 200, 100, 0);
    for (const who of [email, "nobody-1@example.com", "fresh@example.com"])
      expectLimited(await sign(who, PASSWORD), 100);
    expectLimited(await caller.request("POST", "/auth/login", {}), 100);
    // The refused ones took nothing of the names.
    expectAnswer(await login(caller, "fresh@example.com", WRONG), 401, 10, 9);
    // Of another route there is as much as ever.
    expectAnswer(await caller.request("GET", "/time"), 200, 100, 99);
  });

  test("what a third party gets for a code makes no address known to the account", async () => {
    const email = freshEmail();
    const { caller } = await signedIn(email);
    const party = await ThirdParty.register(world, caller.client);
    const pending = await party.consent(caller.client);
    expect((await party.exchange(pending)).status).toBe(200);
    // Without the header the third party comes from the proxy's own address.
    const answer = await caller.client.request("POST", "/auth/login", { body: { email, password: WRONG } });
    expectAnswer(answer, 401, 10, 8);
  });

  test("twenty refreshes a minute from one address, whoever asks; a refused one doesn't spend the token", async () => {
    const { caller, refreshToken } = await signedIn(freshEmail());
    const address = freshAddress();
    const nobody = anyone(address);
    caller.from = address;
    let token = refreshToken;
    const refresh = (by: Caller, body: object): Promise<Answer> => by.request("POST", "/auth/refresh", body);
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
    // Still good elsewhere, where the same user starts anew.
    const answer = await caller.elsewhere("POST", "/auth/refresh", { refresh_token: token });
    expectAnswer(answer, 200, 20, 19);
  });

  test("the OAuth endpoints count by address whoever asks, and refuse in the shape of RFC 6749", async () => {
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
      // A user's token is no client's, and makes the request nobody else's.
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

  test("all of a user's tokens, of whatever kind and from wherever, share a hundred a minute on each path", async () => {
    const { caller: session } = await signedIn(freshEmail());
    const pat = await patOf(session, ["portfolio:read"]);
    const oauth = await thirdPartyOf(session, ["portfolio:read", "orders:write"]);
    const all = [session, pat, oauth];
    for (let n = 99; n >= 0; n--) expectAnswer(await all[n % 3]!.elsewhere("GET", "/me"), 200, 100, n);
    for (const each of all) expectLimited(await each.elsewhere("GET", "/me"), 100);
    // Other paths are other buckets, and refusals for want of rights count: the scope, the kind of token.
    expectAnswer(await session.request("GET", "/wallet/balance"), 200, 100, 99);
    expectAnswer(await oauth.request("GET", "/wallet/balance"), 200, 100, 98);
    expectAnswer(await pat.request("GET", "/me/sessions"), 403, 100, 99);
    expectAnswer(await oauth.request("GET", "/me/sessions"), 403, 100, 98);
    expectAnswer(await session.request("GET", "/me/sessions"), 200, 100, 97);
    const { caller: other } = await signedIn(freshEmail());
    other.from = session.from;
    expectAnswer(await other.request("GET", "/me"), 200, 100, 99);
    // Who has no token is counted by address, and has used up nothing of the user's.
    expectAnswer(await anyone(session.from).request("GET", "/me"), 401, 100, 99);
  });

  test("the WebSocket's operations take from the buckets of REST, whichever token opened it", async () => {
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
      // Nobody here has money: what fails later has counted.
      for (const socket of sockets) expectAck(await socket.ask({ op: "order.place", data }), 42201, 30, --left);
      for (const each of [session, pat]) expectAnswer(await each.elsewhere("POST", "/orders", data), 422, 30, --left);
    }
    for (const socket of sockets) expectAck(await socket.ask({ op: "order.place", data }), 42900, 30, 0);
    for (const each of [session, pat, oauth]) expectLimited(await each.elsewhere("POST", "/orders", data), 30);
    for (const socket of sockets) await socket.close();
  });

  test("GET /me/limits shows what is left: by the caller's own e-mail, and by the address for refreshes", async () => {
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
    // It names no e-mail.
    expect(of("POST /auth/login/second-factor")).toEqual([["POST /auth/login/second-factor", "address", 100, 100]]);
    expect(of("POST /auth/register")).toEqual([
      ["POST /auth/register", "identifier", 10, 9],
      ["POST /auth/register", "address", 100, 100],
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

  test("a flood of addresses gives nobody their requests back, and the memory that it takes is bounded", async () => {
    const email = freshEmail();
    const { caller } = await signedIn(email);
    for (let n = 8; n >= 0; n--) expectAnswer(await login(caller, email, WRONG), 401, 10, n);
    for (let n = 99; n >= 0; n--) expectAnswer(await caller.request("GET", "/me"), 200, 100, n);
    const before = server.residentBytes;
    const paths = ["/time", "/solvency", "/me", "/wallet/balance", "/auth/social"];
    await flood(server, "2001:db8:1", paths);
    const full = server.residentBytes;
    await flood(server, "2001:db8:2", paths.slice(0, 1));
    const after = server.residentBytes;
    expectLimited(await login(caller, email, PASSWORD), 10);
    expectLimited(await caller.request("GET", "/me"), 100);
    // 150,000 buckets of addresses are more than are kept: the second flood finds no room that the first didn't.
    const grown = [full - before, after - full].map((bytes) => Math.round(bytes / 2 ** 20));
    process.stdout.write(
      `flood of ${(paths.length + 1) * FLOOD_ADDRESSES} requests: grown by ${grown.join(", ")} MiB\n`,
    );
    expect(grown[0]).toBeLessThan(200);
    expect(grown[1]).toBeLessThan(80);
  });

  async function patOf(session: Caller, scopes: string[]): Promise<Caller> {
    return new Caller(server, (await createPat(session.client, { scopes })).token);
  }

  /** A third party that the user lets in. */
  async function thirdPartyOf(session: Caller, scopes: string[]): Promise<Caller> {
    const party = await ThirdParty.register(world, session.client);
    return new Caller(server, (await party.tokens(session.client, scopes.join(" "))).access_token);
  }
});

/**
 * Asks for each path once from each of many /64 networks. A hundred requests at a time, and then their answers, so that
 * each lot is read in one piece; where that takes the exchange so long that it cuts the connection off, others come in
 * its place.
 */
async function flood(server: TestServer, prefix: string, paths: readonly string[]): Promise<void> {
  const perLot = 100 / paths.length;
  const lots = FLOOD_ADDRESSES / perLot;
  let socket = connect(server.port, "127.0.0.1");
  for (let lot = 0, done = 0; done < lots; lot++) {
    let requests = "";
    for (let at = lot * perLot; at < (lot + 1) * perLot; at++) {
      const from = `${prefix}:${at.toString(16)}::1`;
      for (const path of paths) {
        requests += `GET ${API_BASE}${path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${from}\r\n\r\n`;
      }
    }
    if (await answersFirst(socket, requests, 100)) done++;
    else socket = connect(server.port, "127.0.0.1");
    expect(lot).toBeLessThan(2 * lots);
  }
  socket.destroy();
}

/** Sends the requests; resolves when all are answered, each as the first of its address, or with false where the peer ends. */
function answersFirst(socket: NetSocket, requests: string, expected: number): Promise<boolean> {
  return new Promise((resolve) => {
    let answers = "";
    const end = (all: boolean): void => {
      socket.removeAllListeners();
      socket.on("error", () => {});
      if (!all) socket.destroy();
      resolve(all);
    };
    socket.setEncoding("latin1");
    socket.on("data", (more: string) => {
      answers += more;
      if (answers.split("RateLimit-Remaining: 99\r\n").length - 1 >= expected) end(true);
    });
    socket.on("close", () => end(false));
    socket.on("error", () => end(false));
    socket.write(requests);
  });
}

describe("known addresses after a restart", () => {
  const DAY_MS = 86_400_000;
  test("are those of the last 30 days, of sessions that ended or expired too", async () => {
    // The oldest first, as times rise with ids.
    const names = ["old", "expired", "out", "killed"];
    const named = Object.fromEntries(names.map((name) => [name, { password: PASSWORD }]));
    const env = { RATE_LIMITS: JSON.stringify({ auth_identifier: 1 }), TRUSTED_PROXIES: "127.0.0.1" };
    const own = await start({ users: 0, named, env });
    const sign = (name: string, from: string, password = PASSWORD): Promise<Answer<SignInJson>> =>
      new Caller(own.server, null, from).request("POST", "/auth/login", { email: `${name}@example.com`, password });
    const home = (name: string, host = 1): string => `2001:db8:${names.indexOf(name) + 1}::${host}`;
    const isKnown = async (name: string): Promise<boolean> => {
      // The one that strangers have.
      expect((await sign(name, freshAddress(), WRONG)).status).toBe(401);
      expect((await sign(name, freshAddress(), WRONG)).status).toBe(429);
      const { status } = await sign(name, home(name, 2));
      expect([200, 429]).toContain(status);
      return status === 200;
    };
    const tokens = new Map<string, string>();
    for (const name of names) tokens.set(name, (await sign(name, home(name))).data.access_token);
    await new Client(own.server, tokens.get("out")!).data("POST", "/auth/logout");
    await own.server.kill();
    const set = (column: string, name: string, at: number): void =>
      withDatabase(own.server.dataDir, (db) => {
        const id = "(SELECT id FROM users WHERE email = ?)";
        const run = db.prepare(`UPDATE sessions SET ${column} = ? WHERE user_id = ${id}`);
        expect(run.run(at, `${name}@example.com`).changes).toBe(1);
      });
    set("expires_at", "expired", Date.now() - DAY_MS);
    set("created_at", "expired", Date.now() - 29 * DAY_MS);
    set("created_at", "old", Date.now() - 30 * DAY_MS - 1);
    own.server = await own.server.restart();
    const found = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await isKnown(name)])));
    expect(found).toEqual({ out: true, killed: true, expired: true, old: false });
  });
});

describe("RATE_LIMITS with other numbers", () => {
  test("auth_identifier and refresh_address are overridden, the others stay", async () => {
    const limits = { auth_identifier: 3, refresh_address: 4 };
    const env = { RATE_LIMITS: JSON.stringify(limits), TRUSTED_PROXIES: "127.0.0.1" };
    const { server } = await start({ users: 0, named: { person: { password: PASSWORD } }, env });
    const nobody = new Caller(server, null);
    const body = { email: "person@example.com", password: PASSWORD };
    const { data, ...first } = await nobody.request<SignInJson>("POST", "/auth/login", body);
    expectAnswer({ ...first, data }, 200, 3, 2);
    for (const path of ["/auth/register", "/auth/forgot-password", "/auth/resend-verification"]) {
      const given = path === "/auth/register" ? body : { email: body.email };
      const status = path === "/auth/register" ? 409 : 202;
      for (let n = 2; n >= 0; n--) expectAnswer(await nobody.elsewhere("POST", path, given), status, 3, n);
      expectLimited(await nobody.elsewhere("POST", path, given), 3);
    }
    for (let n = 1; n >= 0; n--) expectAnswer(await nobody.elsewhere("POST", "/auth/login", body), 200, 3, n);
    expectLimited(await nobody.elsewhere("POST", "/auth/login", body), 3);
    const refresh = { refresh_token: "x" };
    for (let n = 3; n >= 0; n--) expectAnswer(await nobody.request("POST", "/auth/refresh", refresh), 401, 4, n);
    expectLimited(await nobody.request("POST", "/auth/refresh", refresh), 4);
    expectAnswer(await nobody.request("POST", "/auth/login", {}), 400, 100, 98);
    const caller = new Caller(server, data.access_token, nobody.from);
    expectAnswer(await caller.request("GET", "/me"), 200, 100, 99);
    const shown = (await caller.limits()).filter(({ route }) => /(login|refresh)$/.test(route));
    expect(shown.map(({ scope, limit, remaining }) => [scope, limit, remaining])).toEqual([
      ["identifier", 3, 0],
      ["known_address", 3, 3],
      ["address", 100, 98],
      ["address", 4, 0],
    ]);
  });

  test("off: no number on any sign-in", async () => {
    const { server } = await start({
      users: 0,
      named: { person: { password: PASSWORD } },
      env: { RATE_LIMITS: "off" },
    });
    const nobody = new Caller(server, null);
    for (let n = 0; n < 15; n++) {
      const body = { email: "person@example.com", password: PASSWORD };
      const { status, headers } = await nobody.request("POST", "/auth/login", body);
      expect([status, headers["ratelimit-limit"]]).toEqual([200, undefined]);
    }
    for (let n = 0; n < 25; n++) {
      const { status, headers } = await nobody.request("POST", "/auth/refresh", { refresh_token: "x" });
      expect([status, headers["ratelimit-limit"]]).toEqual([401, undefined]);
    }
  });
});
