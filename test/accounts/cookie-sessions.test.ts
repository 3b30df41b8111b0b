/**
 * Sessions of the web page, whose refresh token is in a cookie that no script can read. Covers sign-in (also through
 * an identity provider), reloads and second tabs during a refresh, stolen cookies, and requests from other sites. For
 * sessions whose tokens are in bodies, see sessions.test.ts.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE, type Client } from "../support/client.ts";
import { CLOCK_STEP_MS, MOVABLE_CLOCK, stepClock } from "../support/clock.ts";
import { expectUnkept } from "../support/data-dir.ts";
import { Guests, PASSWORD, resetToken } from "../support/identity.ts";
import { type TestAccount, TestProvider } from "../support/oidc-provider.ts";
import { OPERATOR, operatorOf, userNamed } from "../support/operator.ts";
import { expectLimited } from "../support/rates.ts";
import {
  AuthenticatorApp,
  type ChallengeJson,
  type ConfirmedJson,
  claimsOf,
  type EnrolmentJson,
  FACTORS,
  type FactorsJson,
  finish,
} from "../support/second-factor.ts";
import type { TestServer } from "../support/server.ts";
import { refusedUpgrade } from "../support/socket.ts";
import { CALLBACK, ThirdParty } from "../support/third-party.ts";
import { expectRefused } from "../support/trading.ts";
import { type UserSpec, World } from "../support/world.ts";

/** In production a TLS proxy stands in front of the server. */
const PUBLIC_URL = "https://exchange.test";
const NEIGHBOUR = "https://blog.exchange.test";
const FOREIGN = "https://evil.example";
const COOKIE = "__Host-session";
const REDIRECT_URI = `${PUBLIC_URL}${API_BASE}/auth/social/one/callback`;
const REMOVED = `${COOKIE}=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Strict`;
const REFRESH_TTL_S = 2_592_000;
const NEW_PASSWORD = "a loud harbour at noon";

interface PageTokens {
  readonly access_token: string;
  readonly refresh_token: null;
}
interface SessionJson {
  readonly id: number;
  readonly method: string;
  readonly current: boolean;
  readonly user_agent: string | null;
}

const guests = new Guests();
/** Tokens, cookies, codes and states: the server must log none of them. */
const { secrets } = guests;
const people: Record<string, TestAccount> = {};
let provider: TestProvider;
let world: World;

const NAMES = [
  [
    "shape",
    "plain",
    "rotating",
    "mixed",
    "bad",
    "tabs",
    "racing",
    "late",
    "older",
    "body",
    "reload",
    "again",
    "forged",
  ],
  ["leaving", "banned", "password", "reset", "alone", "restart", "suspended-social"],
].flat();

const environment = (): Record<string, string> => ({
  ...MOVABLE_CLOCK,
  PUBLIC_URL,
  LOG_LEVEL: "trace",
  SOCIAL_PROVIDERS: JSON.stringify({
    one: { issuer: provider.issuer, client_id: provider.clientId, client_secret: provider.clientSecret },
    // No server listens on this port.
    gone: { issuer: "http://127.0.0.1:1", client_id: "x", client_secret: "y" },
  }),
});

beforeAll(async () => {
  provider = await TestProvider.start([REDIRECT_URI], 0, people);
  const named = Object.fromEntries(NAMES.map((name): [string, UserSpec] => [name, { password: PASSWORD }]));
  world = await World.start({ users: 0, named: { ...named, operator: OPERATOR }, env: environment() });
});

afterAll(async () => {
  guests.close();
  await provider.close();
  expect(secrets.size).toBeGreaterThan(50);
  await expectEndsWell(world);
  expectUnlogged([...secrets, provider.clientSecret], world.server);
  expectUnkept(secrets, world.server.dataDir);
});

/** One browser with our page open: it stores and sends the server's cookies, and holds the last access token. */
class Page {
  /** Cookies by name. */
  readonly cookies = new Map<string, string>();
  accessToken = "";
  private readonly at: { readonly server: TestServer };
  private readonly name: string;
  /** A client of the current server. */
  private client: Client | null = null;

  constructor(at: { readonly server: TestServer } = world, name = COOKIE) {
    this.at = at;
    this.name = name;
  }

  /** Signs in by password. */
  static async signIn(user: string, at: { readonly server: TestServer } = world, name = COOKIE): Promise<Page> {
    const page = new Page(at, name);
    const answer = await page.login(user);
    if (answer.code !== 0) throw new Error(`${answer.code} ${answer.msg}`);
    return page;
  }

  /** The refresh token. */
  get token(): string | null {
    return this.cookies.get(this.name) ?? null;
  }

  set token(value: string) {
    this.cookies.set(this.name, value);
  }

  get user(): Client {
    return guests.client(this.at.server, this.accessToken);
  }

  get cookieHeader(): Record<string, string> {
    if (this.cookies.size === 0) return {};
    return { Cookie: [...this.cookies].map((pair) => pair.join("=")).join("; ") };
  }

  async request<T>(method: string, path: string, body?: unknown, headers = {}): Promise<Answer<T>> {
    if (this.client?.server !== this.at.server) this.client = guests.client(this.at.server, null, 8);
    const options = { headers: { "User-Agent": "a browser", ...this.cookieHeader, ...headers } };
    const answer = await this.client.request<T>(method, path, body === undefined ? options : { ...options, body });
    this.store(answer);
    return answer;
  }

  login(user: string, headers = {}): Promise<Answer<PageTokens>> {
    const body = { email: `${user}@example.com`, password: PASSWORD, cookie: true };
    return this.taking(this.request<PageTokens>("POST", "/auth/login", body, { ...OURS, ...headers }));
  }

  refresh(headers = {}): Promise<Answer<PageTokens>> {
    return this.taking(this.request<PageTokens>("POST", "/auth/refresh", {}, { ...OURS, ...headers }));
  }

  /** Fails if the server rejects the cookie. */
  async refreshed(): Promise<void> {
    const { code, msg, data } = await this.refresh();
    expect([code, msg]).toEqual([0, "ok"]);
    expect(data).toEqual({ access_token: expect.any(String), refresh_token: null });
  }

  /** Sends a request with the last access token. */
  async me(): Promise<number> {
    return (await this.user.request("GET", "/me")).code;
  }

  private async taking(asked: Promise<Answer<PageTokens>>): Promise<Answer<PageTokens>> {
    const answer = await asked;
    if (answer.code !== 0) return answer;
    this.accessToken = answer.data.access_token;
    secrets.add(this.accessToken);
    return answer;
  }

  private store({ headers }: Answer): void {
    for (const line of headers["set-cookie"] ?? []) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (/; Max-Age=0\b/.test(line)) this.cookies.delete(name!);
      else {
        this.cookies.set(name!, value!);
        secrets.add(value!);
      }
    }
  }
}

/** The headers that a browser adds to a request from our own page. */
const OURS = { Origin: PUBLIC_URL, "Sec-Fetch-Site": "same-origin" };

/** Another browser with the same cookie. */
function copyOf(page: Page, token = page.token!): Page {
  const copy = new Page();
  copy.token = token;
  return copy;
}

/** The server rejects and removes the cookie, and ends its session. */
async function expectOver(page: Page): Promise<void> {
  const answer = await expectRefused(page.refresh(), 401, 40100);
  expect(answer.headers["set-cookie"]).toEqual([REMOVED]);
  expect(page.token).toBeNull();
}

const inBody = (token: string, headers = {}): Promise<Answer<PageTokens>> =>
  guests.client(world.server, null).request("POST", "/auth/refresh", { body: { refresh_token: token }, headers });

describe("a sign-in with a cookie", () => {
  test("keeps the refresh token in a cookie that no script and no other site gets", async () => {
    const page = new Page();
    const { status, data, headers } = await page.login("shape");
    expect([status, headers["cache-control"]]).toEqual([200, "no-store"]);
    expect(data).toMatchObject({ access_token: expect.any(String), refresh_token: null });
    expect(data).toMatchObject({ user: { email: "shape@example.com" } });
    const rules = `Max-Age=${REFRESH_TTL_S}; Path=/; HttpOnly; Secure; SameSite=Strict`;
    expect(page.token).toMatch(/^pm_ref_[A-Za-z0-9_-]{67}$/);
    expect(headers["set-cookie"]).toEqual([`${COOKIE}=${page.token}; ${rules}`]);
    const [session, ...others] = await page.user.all<SessionJson>("/me/sessions");
    expect(others).toEqual([]);
    expect(session).toMatchObject({ method: "password", current: true, user_agent: "a browser" });
  });

  test("is asked for: without it nothing changes", async () => {
    for (const more of [{}, { cookie: false }]) {
      const body = { email: "plain@example.com", password: PASSWORD, ...more };
      const { data, headers } = await new Page().request<{ refresh_token: string }>("POST", "/auth/login", body);
      expect([headers["set-cookie"], data.refresh_token]).toEqual([undefined, expect.stringMatching(/^pm_ref_/)]);
      secrets.add(data.refresh_token);
    }
    for (const cookie of [null, 1, "true"]) {
      const body = { email: "plain@example.com", password: PASSWORD, cookie };
      await expectRefused(new Page().request("POST", "/auth/login", body), 400, 40000, /^cookie/);
    }
  });

  test("that fails leaves none", async () => {
    const page = new Page();
    const body = { email: "shape@example.com", password: `${PASSWORD}!`, cookie: true };
    const answer = await expectRefused(page.request("POST", "/auth/login", body), 401, 40100);
    expect(answer.headers["set-cookie"]).toBeUndefined();
  });

  test("gives access to nothing by the cookie alone", async () => {
    const page = await Page.signIn("alone");
    for (const [method, path] of [
      ["GET", "/me"],
      ["GET", "/me/sessions"],
      ["POST", "/auth/logout"],
    ] as const) {
      // biome-ignore format: one line
      const answer = await expectRefused(page.request(method, path), 401, 40100);
      expect(answer.headers["set-cookie"]).toBeUndefined();
    }
    const wish = { name: "bot", scopes: ["orders:write"] };
    await expectRefused(page.request("POST", "/me/personal-access-tokens", wish), 401, 40100);
    expect(await refusedUpgrade(world.server, page.token!)).toEqual([401, 40100]);
    await page.refreshed();
  });
});

describe("a refresh by cookie", () => {
  test("gives an access token and the next cookie, of the same session", async () => {
    const page = await Page.signIn("rotating");
    const [session] = await page.user.all<SessionJson>("/me/sessions");
    const seen = [page.token];
    for (const body of [{}, "", undefined]) {
      const type = { "Content-Type": "application/json; charset=utf-8" };
      const answer = await page.request<PageTokens>("POST", "/auth/refresh", body, { ...OURS, ...type });
      const { access_token: accessToken, ...rest } = answer.data;
      expect([answer.status, rest]).toEqual([200, { refresh_token: null }]);
      const rules = `Max-Age=${REFRESH_TTL_S}; Path=/; HttpOnly; Secure; SameSite=Strict`;
      expect(answer.headers["set-cookie"]).toEqual([`${COOKIE}=${page.token}; ${rules}`]);
      expect(seen).not.toContain(page.token);
      seen.push(page.token);
      page.accessToken = accessToken;
      await stepClock(page.user);
      const sessions = await page.user.all<SessionJson>("/me/sessions");
      expect(sessions.map(({ id, current }) => [id, current])).toEqual([[session!.id, true]]);
    }
  });

  test("is one by body where the body has a token, whatever the cookie", async () => {
    const [page, other] = [await Page.signIn("mixed"), await Page.signIn("mixed")];
    const { headers } = await expectRefused(inBody("pm_ref_none", page.cookieHeader), 401, 40100);
    expect(headers["set-cookie"]).toBeUndefined();
    const answer = await inBody(other.token!, { Cookie: `${COOKIE}=x` });
    expect([answer.code, answer.headers["set-cookie"]]).toEqual([0, undefined]);
    expect(answer.data.refresh_token).toMatch(/^pm_ref_/);
    secrets.add(answer.data.refresh_token!);
    await page.refreshed();
  });

  test("needs one of both", async () => {
    const { token } = await Page.signIn("mixed");
    const names = ["session", "__Host-session2", "__host-session", `x${COOKIE}`, "__Secure-session"];
    for (const Cookie of ["", ";", "=", COOKIE, `${COOKIE} `, ...names.map((name) => `${name}=${token}`)]) {
      const answer = await expectRefused(new Page().refresh({ Cookie }), 400, 40000, /^refresh_token: required$/);
      expect(answer.headers["set-cookie"]).toBeUndefined();
    }
    for (const body of [{ refresh_token: null }, { refresh_token: "" }, { refresh_token: 7 }]) {
      const headers = { Cookie: `${COOKIE}=${token}` };
      await expectRefused(new Page().request("POST", "/auth/refresh", body, headers), 400, 40000, /^refresh_token/);
    }
    const page = new Page();
    page.cookies.set("theme", "dark").set(COOKIE, token!).set("last", "a=b");
    await page.refreshed();
  });

  test("takes a cookie away that isn't good", async () => {
    const page = await Page.signIn("bad");
    const ended = await Page.signIn("bad");
    await ended.user.data("POST", "/auth/logout");
    const party = await ThirdParty.register(world, page.user, { redirectUri: CALLBACK, secrets });
    const tokens = await party.tokens(page.user);
    const texts = ["", "x", page.accessToken.slice(0, 400), `pm_ref_${"A".repeat(67)}`, page.token!.slice(0, -1)];
    for (const text of [...texts, `${page.token}A`, `"${page.token}"`, ended.token!, tokens.refresh_token]) {
      await expectOver(copyOf(page, text));
    }
    // A third party's token still works at its own endpoint.
    expect((await party.refresh(tokens.refresh_token)).status).toBe(200);
    await page.refreshed();
  });
});

describe("a browser that comes twice", () => {
  test("with the cookie that it has just spent gets the one that it missed", async () => {
    const page = await Page.signIn("tabs");
    const old = copyOf(page);
    await page.refreshed();
    for (let n = 0; n < 3; n++) {
      const tab = copyOf(old);
      await tab.refreshed();
      expect(tab.token).toBe(page.token);
      expect(await tab.me()).toBe(0);
    }
    const next = copyOf(page);
    // Among many users, one could hold a token spent two rotations ago: the server does not rotate again so soon.
    await next.refreshed();
    expect(next.token).toBe(page.token);
    await stepClock(page.user);
    await next.refreshed();
    expect(next.token).not.toBe(page.token);
    // That token is now the last spent one.
    await page.refreshed();
    expect(page.token).toBe(next.token);
    expect(await page.user.all<SessionJson>("/me/sessions")).toHaveLength(1);
  });

  test("at the same instant has two answers and one cookie", async () => {
    for (let round = 0; round < 6; round++) {
      const page = await Page.signIn("racing");
      const tabs = Array.from({ length: 2 + round }, () => copyOf(page));
      await Promise.all(tabs.map((tab) => tab.refreshed()));
      expect(new Set(tabs.map(({ token }) => token)).size).toBe(1);
      expect(tabs[0]!.token).not.toBe(page.token);
      for (const tab of tabs) expect(await tab.me()).toBe(0);
      await tabs[1]!.refreshed();
    }
  });

  test("because it reloads before the answer is there is still signed in", async () => {
    const page = await Page.signIn("reload");
    for (let round = 0; round < 8; round++) {
      const socket = connect(world.server.port, "127.0.0.1");
      await once(socket, "connect");
      const head = [
        `POST ${API_BASE}/auth/refresh HTTP/1.1`,
        "Host: exchange.test",
        `Cookie: ${COOKIE}=${page.token}`,
        "Content-Type: application/json",
        "Content-Length: 2",
      ];
      await new Promise<void>((resolve) => socket.write(`${head.join("\r\n")}\r\n\r\n{}`, () => resolve()));
      // In some rounds the response arrives, but the client does not read it.
      if (round % 2 === 1) await once(socket, "readable");
      socket.destroy();
      await page.refreshed();
      expect(await page.me()).toBe(0);
    }
    expect(await page.user.all<SessionJson>("/me/sessions")).toHaveLength(1);
  });

  test("ten seconds later is a thief, or was robbed: the session ends", async () => {
    const page = await Page.signIn("late");
    const bystander = await Page.signIn("late");
    const old = copyOf(page);
    await page.refreshed();
    await stepClock(page.user);
    await expectOver(old);
    expect(await page.me()).toBe(40100);
    await expectOver(page);
    await bystander.refreshed();
  });

  test("with a cookie older than the last ends the session at once", async () => {
    const page = await Page.signIn("older");
    const [old, user] = [copyOf(page), page.user];
    await page.refreshed();
    await stepClock(page.user);
    await page.refreshed();
    await expectOver(old);
    expect((await user.request("GET", "/me")).code).toBe(40100);
    await expectOver(page);
  });

  test("has no leeway where one of both came in a body: no page of ours sends it there", async () => {
    const page = await Page.signIn("body");
    const spent = page.token!;
    await page.refreshed();
    await expectRefused(inBody(spent), 401, 40100, /used before/);
    await expectOver(page);

    const robbed = await Page.signIn("body");
    const { code, data } = await inBody(robbed.token!);
    secrets.add(data.refresh_token!);
    expect(code).toBe(0);
    await expectOver(robbed);
    await expectRefused(inBody(data.refresh_token!), 401, 40100);

    const between = await Page.signIn("body");
    const first = copyOf(between);
    await between.refreshed();
    const taken = await inBody(between.token!);
    expect(taken.code).toBe(0);
    secrets.add(taken.data.refresh_token!);
    await expectOver(first);
    await expectRefused(inBody(taken.data.refresh_token!), 401, 40100);
  });

  test("after the session's end, or while the account is suspended, gets nothing", async () => {
    const ended = await Page.signIn("again");
    const old = copyOf(ended);
    await ended.refreshed();
    await ended.user.data("POST", "/auth/logout");
    await expectOver(old);

    const [page, operator] = [await Page.signIn("banned"), await operatorOf(world.server)];
    const spent = copyOf(page);
    await page.refreshed();
    const { id } = await userNamed(operator, "banned");
    await operator.data("POST", `/admin/users/${id}/suspend`, {});
    for (const each of [page, spent]) {
      const { headers } = await expectRefused(each.refresh(), 403, 40300, /suspended/);
      expect(headers["set-cookie"]).toBeUndefined();
    }
    await operator.data("POST", `/admin/users/${id}/restore`, {});
    operator.close();
    await spent.refreshed();
    expect(spent.token).toBe(page.token);
    await page.refreshed();
  });
});

describe("the end of a session", () => {
  test("a logout takes the cookie away where the request brings one", async () => {
    const [page, other] = [await Page.signIn("leaving"), await Page.signIn("leaving")];
    const { headers } = await other.user.request("POST", "/auth/logout");
    expect(headers["set-cookie"]).toBeUndefined();
    const bearer = { Authorization: `Bearer ${page.accessToken}` };
    const old = copyOf(page);
    const answer = await page.request("POST", "/auth/logout", undefined, bearer);
    expect([answer.code, answer.headers["set-cookie"], page.token]).toEqual([0, [REMOVED], null]);
    for (const each of [old, other]) await expectOver(each);
  });

  test("another password ends the others' cookies, not one's own", async () => {
    const [page, other] = [await Page.signIn("password"), await Page.signIn("password")];
    await page.user.data("POST", "/me/password", { current: PASSWORD, new: NEW_PASSWORD });
    await expectOver(other);
    await page.refreshed();
    expect(await page.me()).toBe(0);
  });

  test("a password that is set by a mailed link ends them all", async () => {
    const pages = [await Page.signIn("reset"), await Page.signIn("reset")];
    const spent = copyOf(pages[0]!);
    await pages[0]!.refreshed();
    const email = "reset@example.com";
    await new Page().request("POST", "/auth/forgot-password", { email });
    const token = await resetToken(world.server, email);
    await new Page().request("POST", "/auth/reset-password", { token, password: NEW_PASSWORD });
    for (const page of [...pages, spent]) await expectOver(page);
  });
});

describe("pages of other sites", () => {
  const FORBIDDEN: readonly Record<string, string>[] = [
    { Origin: FOREIGN },
    { Origin: NEIGHBOUR },
    { Origin: "null" },
    { Origin: `${PUBLIC_URL}:8443` },
    { Origin: "http://exchange.test" },
    // A network attacker can impersonate our host name, but without the certificate.
    { Origin: "http://exchange.test", Host: "exchange.test", "Sec-Fetch-Site": "same-origin" },
    { Origin: FOREIGN, "Sec-Fetch-Site": "cross-site" },
    { Origin: PUBLIC_URL, "Sec-Fetch-Site": "cross-site" },
    { Origin: "", "Sec-Fetch-Site": "cross-site" },
  ];
  /** The content types of forms, beacons and blobs without a type. */
  const TYPES = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""];
  const OTHER_TYPES = ["application/jsonp", "text/json", "application/msgpack", "text/plain; x=application/json"];

  test("have no use of the cookie, and harm no session with it", async () => {
    const page = await Page.signIn("forged");
    const before = page.token;
    for (const headers of FORBIDDEN) {
      const answer = await expectRefused(page.refresh(headers), 403, 40300, /other sites/);
      expect(answer.headers["set-cookie"]).toBeUndefined();
      expect(answer.headers["access-control-allow-origin"]).toBe(PUBLIC_URL);
    }
    for (const type of [...TYPES, ...OTHER_TYPES]) {
      for (const body of ["", "{}"]) {
        const headers = { ...OURS, "Content-Type": type };
        const bytes = type === "application/msgpack" ? Buffer.from(body === "" ? [] : [0x80]) : body;
        const asked = page.request("POST", "/auth/refresh", bytes, headers);
        const answer = await expectRefused(asked, 400, 40000, /^Content-Type/);
        expect(answer.headers["set-cookie"]).toBeUndefined();
      }
    }
    expect(page.token).toBe(before);
    // None of these requests spent the token: one more rotation in between would end the session.
    await page.refreshed();
    for (const headers of [{ Origin: "", "Sec-Fetch-Site": "none" }, { "Sec-Fetch-Site": "same-site" }]) {
      expect((await page.refresh(headers)).code).toBe(0);
    }
  });

  test("cannot sign their visitors in to somebody else's account", async () => {
    const page = new Page();
    const body = JSON.stringify({ email: "forged@example.com", password: PASSWORD, cookie: true });
    for (const headers of FORBIDDEN) await expectRefused(page.login("forged", headers), 403, 40300, /other sites/);
    for (const type of TYPES) {
      const asked = page.request("POST", "/auth/login", body, { ...OURS, "Content-Type": type });
      await expectRefused(asked, 400, 40000, /^Content-Type/);
    }
    expect(page.token).toBeNull();
  });
});

test("cookies outlive the server, and the last spent one's leeway doesn't", async () => {
  const page = await Page.signIn("restart");
  await page.refreshed();
  await world.server.kill();
  world.server = await world.server.restart();
  await page.refreshed();
  await world.server.stop();
  world.server = await world.server.restart();
  const spent = copyOf(page);
  await page.refreshed();
  expect(await page.me()).toBe(0);
  await world.server.kill();
  world.server = await world.server.restart();
  await expectOver(spent);
  await expectOver(page);
});

test("by plain HTTP the cookie has its plain name; it is over in time; refreshes by cookie are counted by address", async () => {
  const ttl = CLOCK_STEP_MS / 1_000;
  const env = { ...MOVABLE_CLOCK, PUBLIC_URL: "http://exchange.test", REFRESH_TOKEN_TTL: String(ttl) };
  const limits = { RATE_LIMITS: JSON.stringify({ refresh_address: 5 }) };
  const named = { owner: { password: PASSWORD } };
  const plain = await World.start({ users: 0, named, env: { ...env, ...limits } });
  try {
    const ours = { Origin: "http://exchange.test" };
    const page = new Page(plain, "session");
    const { headers } = await page.login("owner", ours);
    const rules = `Max-Age=${ttl}; Path=/; HttpOnly; SameSite=Strict`;
    expect(headers["set-cookie"]).toEqual([`session=${page.token}; ${rules}`]);
    const [kept, old] = [new Page(plain, "session"), page.token!];
    for (let left = 4; left > 1; left--) {
      const answer = await page.refresh(ours);
      expect([answer.code, answer.headers["ratelimit-remaining"]]).toEqual([0, String(left)]);
    }
    await stepClock(page.user);
    kept.token = old;
    for (const each of [page, kept]) {
      const answer = await expectRefused(each.refresh(ours), 401, 40100, /not valid/);
      expect(answer.headers["set-cookie"]).toEqual(["session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"]);
    }
    expectLimited(await page.refresh(ours), 5);
  } finally {
    await expectEndsWell(plain);
    expectUnlogged(secrets, plain.server);
  }
});

describe("sign-in at an identity provider", () => {
  /** Adds a user at the provider. */
  function person(name: string, more: Partial<TestAccount> = {}): void {
    people[name] = { sub: name, email: `${name}@example.com`, email_verified: true, ...more };
  }

  /** Goes to the provider's page and returns the callback's address. */
  async function callbackFor(page: Page, account: string | null, query: string): Promise<string> {
    const answer = await page.request("GET", `/auth/social/one${query}`);
    const { location = "" } = answer.headers;
    if (location === "") throw new Error(`${answer.code} ${answer.msg}`);
    secrets.add(new URL(location).searchParams.get("state")!);
    const { searchParams, pathname } = new URL(await provider.signInAt(location, account));
    if (searchParams.has("code")) secrets.add(searchParams.get("code")!);
    return `${pathname.slice(API_BASE.length)}?${searchParams}`;
  }

  /** Returns the page's final address after the provider redirects back. */
  async function comeBack(page: Page, callback: string): Promise<URL> {
    const answer = await page.request("GET", callback, undefined, { "Sec-Fetch-Site": "cross-site" });
    expect([answer.status, answer.headers["cache-control"]]).toEqual([302, "no-store"]);
    return new URL(answer.headers.location!);
  }

  const returnTo = (path: string): string => `?return_to=${encodeURIComponent(path)}`;

  function expectFailed(page: Page, { origin, pathname, search, searchParams }: URL, code: number): string {
    expect([origin, pathname, page.token]).toEqual([PUBLIC_URL, "/sign-in", null]);
    expect([...searchParams.keys()]).toEqual(["error", "message"]);
    expect(searchParams.get("error")).toBe(String(code));
    for (const secret of secrets) expect(search).not.toContain(secret);
    return searchParams.get("message")!;
  }

  test("ends at the page, which is signed in by the cookie, with no token in a URL", async () => {
    person("ada");
    for (const path of ["/", "/markets/1?outcome=2#book", "/a b&to=/x", "/ä/日本", `/${"x".repeat(499)}`]) {
      const page = new Page();
      const done = await comeBack(page, await callbackFor(page, "ada", returnTo(path)));
      expect(done.href).toBe(`${PUBLIC_URL}/sign-in/done?to=${encodeURIComponent(path)}`);
      expect(page.token).toMatch(/^pm_ref_/);
      await page.refreshed();
      const [session] = await page.user.all<SessionJson>("/me/sessions");
      expect(session).toMatchObject({ method: "social:one", current: true, user_agent: "a browser" });
      expect(await page.user.get("/me")).toMatchObject({ email: "ada@example.com" });
    }
  });

  test("answers JSON where no page asked, and heeds no path that only the callback brings", async () => {
    person("ben");
    const page = new Page();
    const callback = await callbackFor(page, "ben", "");
    const { status, data } = await page.request<PageTokens>("GET", `${callback}&return_to=%2Fmarkets`);
    expect([status, page.token]).toEqual([200, null]);
    expect(data.refresh_token).toMatch(/^pm_ref_/);
    secrets.add(data.access_token).add(data.refresh_token!);
    const other = new Page();
    const asked = await callbackFor(other, "ben", returnTo("/mine"));
    const done = await comeBack(other, `${asked}&return_to=${encodeURIComponent("//evil.example")}`);
    expect(done.searchParams.get("to")).toBe("/mine");
  });

  test("leads an account with a second factor to the second step, with the challenge where no server sees it", async () => {
    person("fay");
    const first = new Page();
    await comeBack(first, await callbackFor(first, "fay", returnTo("/")));
    await first.refreshed();
    // Without a password, the recent sign-in is the proof.
    expect(await first.user.get<FactorsJson>(FACTORS)).toMatchObject({ items: [], proof: null });
    const begun = await first.user.data<EnrolmentJson>("POST", FACTORS, { kind: "totp" });
    const app = new AuthenticatorApp(begun.secret!);
    secrets.add(app.secret);
    const body = { code: app.next() };
    const { recovery_codes } = await first.user.data<ConfirmedJson>("POST", `${FACTORS}/${begun.id}/confirm`, body);
    for (const code of recovery_codes!) secrets.add(code);

    const second = new Page();
    const led = await comeBack(second, await callbackFor(second, "fay", returnTo("/wallet?show=deposits#a")));
    expect([led.origin, led.pathname, second.token]).toEqual([PUBLIC_URL, "/sign-in", null]);
    expect([...led.searchParams]).toEqual([["to", "/wallet?show=deposits#a"]]);
    const asked = JSON.parse(decodeURIComponent(led.hash.slice(1))) as ChallengeJson;
    expect(asked).toMatchObject({ methods: ["totp", "recovery_code"], passkey: null });
    secrets.add(asked.challenge);
    const { data } = await finish(world.server, asked.challenge, { code: app.next() });
    secrets.add(data.access_token).add(data.refresh_token);
    expect(claimsOf(data.access_token).amr).toEqual(["otp", "mfa"]);
    const session = guests.client(world.server, data.access_token);
    const [own] = await session.all<SessionJson & { second_factor: boolean }>("/me/sessions");
    expect(own).toMatchObject({ method: "social:one", current: true, second_factor: true });

    const plain = new Page();
    const answer = await plain.request<ChallengeJson>("GET", await callbackFor(plain, "fay", ""));
    expect(answer.data).toEqual({
      ...asked,
      challenge: expect.stringMatching(/^pm_chl_/),
      expires_at: expect.any(Number),
    });
    secrets.add(answer.data.challenge);
  });

  test("leads nowhere but to our own page", async () => {
    const wrong = [
      ...[
        "",
        "markets",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example",
      ],
      ...[
        "javascript:alert(1)",
        "?to=/",
        "#",
        " /markets",
        "/\t/evil.example",
        "/a\r\nSet-Cookie: x=y",
        "/\0",
        "/\x7f",
      ],
      ...["/\x85", `/${"x".repeat(500)}`],
    ];
    for (const path of wrong) {
      const page = new Page();
      const asked = page.request("GET", `/auth/social/one${returnTo(path)}`);
      const answer = await expectRefused(asked, 400, 40000, /^return_to: /);
      expect([answer.headers.location, page.cookies.size]).toEqual([undefined, 0]);
    }
    const twice = new Page().request("GET", "/auth/social/one?return_to=/a&return_to=/b");
    await expectRefused(twice, 400, 40000, /^return_to: /);
  });

  test("tells the page what went wrong, and signs nobody in", async () => {
    const denied = new Page();
    const refused = await comeBack(denied, await callbackFor(denied, null, returnTo("/x")));
    expect(expectFailed(denied, refused, 40100)).toMatch(/denied/);

    person("cleo", { email_verified: false });
    const unverified = new Page();
    const closed = await comeBack(unverified, await callbackFor(unverified, "cleo", returnTo("/x")));
    expect(expectFailed(unverified, closed, 40300)).toMatch(/verified an email/);

    person("suspended-social");
    const operator = await operatorOf(world.server);
    const { id } = await userNamed(operator, "suspended-social");
    await operator.data("POST", `/admin/users/${id}/suspend`, {});
    operator.close();
    const shut = new Page();
    const suspended = await comeBack(shut, await callbackFor(shut, "suspended-social", returnTo("/x")));
    expect(expectFailed(shut, suspended, 40300)).toMatch(/suspended/);

    await expectRefused(new Page().request("GET", `/auth/social/gone${returnTo("/x")}`), 503, 50300);
  });

  test("begun in another browser, used before, or with a code that isn't the provider's is none", async () => {
    person("dora");
    const [attacker, victim] = [new Page(), new Page()];
    const stolen = await callbackFor(attacker, "dora", returnTo("/x"));
    expect(expectFailed(victim, await comeBack(victim, stolen), 40100)).toMatch(/no such sign-in/);
    // The attempt spends the state, and the server forgets its return address.
    await expectRefused(attacker.request("GET", stolen), 401, 40100, /no such sign-in/);
    const page = new Page();
    const callback = await callbackFor(page, "dora", returnTo("/x"));
    const spoilt = callback.replace(/code=[^&]+/, "code=x");
    expect(expectFailed(page, await comeBack(page, spoilt), 40100)).toMatch(/failed/);
  });

  test("shows a person its page where nothing is known of the sign-in, and programs JSON", async () => {
    const browser = { Accept: "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Site": "cross-site" };
    const faults = [
      ["/auth/social/one/callback?state=unknown&code=x", 40100],
      ["/auth/social/one/callback?state=a&state=b", 40000],
      [`/auth/social/gone${returnTo("/x")}`, 50300],
      [`/auth/social/none${returnTo("/x")}`, 4040],
      [`/auth/social/one${returnTo("//evil.example")}`, 40000],
    ] as const;
    for (const [path, code] of faults) {
      const page = new Page();
      const { status, headers } = await page.request("GET", path, undefined, browser);
      expect([path, status, headers["cache-control"]]).toEqual([path, 302, "no-store"]);
      expectFailed(page, new URL(headers.location!), code);
      expect(page.cookies.size).toBe(0);
    }
    for (const accept of ["application/json", "*/*", "text/html;q=0.1, application/json"]) {
      const asked = new Page().request("GET", faults[0][0], undefined, { Accept: accept });
      await expectRefused(asked, 401, 40100, /no such sign-in/);
    }
  });
});
