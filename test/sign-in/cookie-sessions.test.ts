/**
 * Sessions of the web page, whose refresh token is in a cookie that no script can read. Covers sign-in by password,
 * reloads and second tabs during a refresh, stolen cookies, and requests from other sites. For sign-in through an
 * identity provider, see cookie-social-sign-in.test.ts; for sessions whose tokens are in bodies, sessions.test.ts.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE } from "../support/client.ts";
import { CLOCK_STEP_MS, MOVABLE_CLOCK, stepClock } from "../support/clock.ts";
import { expectUnkept } from "../support/data-dir.ts";
import { Guests, PASSWORD, resetToken } from "../support/identity.ts";
import { OPERATOR, operatorOf, userNamed } from "../support/operator.ts";
import { expectLimited } from "../support/rates.ts";
import { refusedUpgrade } from "../support/socket.ts";
import { CALLBACK, ThirdParty } from "../support/third-party.ts";
import { expectRefused } from "../support/trading.ts";
import { type UserSpec, World } from "../support/world.ts";
import { COOKIE, expectOver, OURS, PAGE_URL, Page, type PageTokens, REMOVED, type SessionJson } from "./page.ts";

const NEIGHBOUR = "https://blog.exchange.test";
const FOREIGN = "https://evil.example";
const REFRESH_TTL_S = 2_592_000;
const NEW_PASSWORD = "a loud harbour at noon";

const guests = new Guests();
/** Tokens, cookies, codes and states: the server must log none of them. */
const { secrets } = guests;
let world: World;

const NAMES = [
  ...["shape", "plain", "rotating", "mixed", "bad", "tabs", "racing", "late", "older", "body", "reload", "again"],
  ...["forged", "leaving", "banned", "password", "reset", "alone"],
];

beforeAll(async () => {
  const named = Object.fromEntries(NAMES.map((name): [string, UserSpec] => [name, { password: PASSWORD }]));
  const env = { ...MOVABLE_CLOCK, PUBLIC_URL: PAGE_URL, LOG_LEVEL: "trace" };
  world = await World.start({ users: 0, named: { ...named, operator: OPERATOR }, env });
});

afterAll(async () => {
  guests.close();
  expect(secrets.size).toBeGreaterThan(50);
  await expectEndsWell(world);
  expectUnlogged(secrets, world.server);
  expectUnkept(secrets, world.server.dataDir);
});

/** A browser that is not signed in yet. */
const newPage = (): Page => new Page({ world, guests });
const signIn = (user: string): Promise<Page> => Page.signIn(user, { world, guests });

const inBody = (token: string, headers = {}): Promise<Answer<PageTokens>> =>
  guests.client(world.server, null).request("POST", "/auth/refresh", { body: { refresh_token: token }, headers });

describe("a sign-in with a cookie", () => {
  test("a sign-in with a cookie keeps the refresh token in a cookie that no script and no other site gets", async () => {
    const page = newPage();
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

  test("a sign-in sets a cookie only if the client asks for one", async () => {
    for (const more of [{}, { cookie: false }]) {
      const body = { email: "plain@example.com", password: PASSWORD, ...more };
      const { data, headers } = await newPage().request<{ refresh_token: string }>("POST", "/auth/login", body);
      expect([headers["set-cookie"], data.refresh_token]).toEqual([undefined, expect.stringMatching(/^pm_ref_/)]);
      secrets.add(data.refresh_token);
    }
    for (const cookie of [null, 1, "true"]) {
      const body = { email: "plain@example.com", password: PASSWORD, cookie };
      await expectRefused(newPage().request("POST", "/auth/login", body), 400, 40000, /^cookie/);
    }
  });

  test("a sign-in that fails sets no cookie", async () => {
    const page = newPage();
    const body = { email: "shape@example.com", password: `${PASSWORD}!`, cookie: true };
    const answer = await expectRefused(page.request("POST", "/auth/login", body), 401, 40100);
    expect(answer.headers["set-cookie"]).toBeUndefined();
  });

  test("a sign-in's cookie alone grants no access", async () => {
    const page = await signIn("alone");
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
  test("a refresh by cookie returns an access token and the next cookie of the same session", async () => {
    const page = await signIn("rotating");
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

  test("a refresh uses the token in the body, if there is one, and ignores the cookie", async () => {
    const [page, other] = [await signIn("mixed"), await signIn("mixed")];
    const { headers } = await expectRefused(inBody("pm_ref_none", page.cookieHeader), 401, 40100);
    expect(headers["set-cookie"]).toBeUndefined();
    const answer = await inBody(other.token!, { Cookie: `${COOKIE}=x` });
    expect([answer.code, answer.headers["set-cookie"]]).toEqual([0, undefined]);
    expect(answer.data.refresh_token).toMatch(/^pm_ref_/);
    secrets.add(answer.data.refresh_token!);
    await page.refreshed();
  });

  test("a refresh needs a cookie or a token in the body", async () => {
    const { token } = await signIn("mixed");
    const names = ["session", "__Host-session2", "__host-session", `x${COOKIE}`, "__Secure-session"];
    for (const Cookie of ["", ";", "=", COOKIE, `${COOKIE} `, ...names.map((name) => `${name}=${token}`)]) {
      const answer = await expectRefused(newPage().refresh({ Cookie }), 400, 40000, /^refresh_token: required$/);
      expect(answer.headers["set-cookie"]).toBeUndefined();
    }
    for (const body of [{ refresh_token: null }, { refresh_token: "" }, { refresh_token: 7 }]) {
      const headers = { Cookie: `${COOKIE}=${token}` };
      await expectRefused(newPage().request("POST", "/auth/refresh", body, headers), 400, 40000, /^refresh_token/);
    }
    const page = newPage();
    page.cookies.set("theme", "dark").set(COOKIE, token!).set("last", "a=b");
    await page.refreshed();
  });

  test("a refresh removes an invalid cookie", async () => {
    const page = await signIn("bad");
    const ended = await signIn("bad");
    await ended.user.data("POST", "/auth/logout");
    const party = await ThirdParty.register(world, page.user, { redirectUri: CALLBACK, secrets });
    const tokens = await party.tokens(page.user);
    const texts = ["", "x", page.accessToken.slice(0, 400), `pm_ref_${"A".repeat(67)}`, page.token!.slice(0, -1)];
    for (const text of [...texts, `${page.token}A`, `"${page.token}"`, ended.token!, tokens.refresh_token]) {
      await expectOver(page.copy(text));
    }
    // A third party's token still works at its own endpoint.
    expect((await party.refresh(tokens.refresh_token)).status).toBe(200);
    await page.refreshed();
  });
});

describe("a cookie that is sent twice", () => {
  test("a cookie that is sent twice gets the current cookie right after it was rotated", async () => {
    const page = await signIn("tabs");
    const old = page.copy();
    await page.refreshed();
    for (let n = 0; n < 3; n++) {
      const tab = old.copy();
      await tab.refreshed();
      expect(tab.token).toBe(page.token);
      expect(await tab.me()).toBe(0);
    }
    const next = page.copy();
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

  test("a cookie that is sent in parallel requests gets one new cookie in every response", async () => {
    for (let round = 0; round < 6; round++) {
      const page = await signIn("racing");
      const tabs = Array.from({ length: 2 + round }, () => page.copy());
      await Promise.all(tabs.map((tab) => tab.refreshed()));
      expect(new Set(tabs.map(({ token }) => token)).size).toBe(1);
      expect(tabs[0]!.token).not.toBe(page.token);
      for (const tab of tabs) expect(await tab.me()).toBe(0);
      await tabs[1]!.refreshed();
    }
  });

  test("a cookie sent by a page that reloads before the response arrives stays valid", async () => {
    const page = await signIn("reload");
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

  test("a cookie sent ten seconds after its rotation ends the session: somebody copied it", async () => {
    const page = await signIn("late");
    const bystander = await signIn("late");
    const old = page.copy();
    await page.refreshed();
    await stepClock(page.user);
    await expectOver(old);
    expect(await page.me()).toBe(40100);
    await expectOver(page);
    await bystander.refreshed();
  });

  test("a cookie sent two rotations later ends the session at once", async () => {
    const page = await signIn("older");
    const [old, user] = [page.copy(), page.user];
    await page.refreshed();
    await stepClock(page.user);
    await page.refreshed();
    await expectOver(old);
    expect((await user.request("GET", "/me")).code).toBe(40100);
    await expectOver(page);
  });

  test("a cookie that is sent twice has no grace period if either request carries it in the body: our page never does", async () => {
    const page = await signIn("body");
    const spent = page.token!;
    await page.refreshed();
    await expectRefused(inBody(spent), 401, 40100, /used before/);
    await expectOver(page);

    const robbed = await signIn("body");
    const { code, data } = await inBody(robbed.token!);
    secrets.add(data.refresh_token!);
    expect(code).toBe(0);
    await expectOver(robbed);
    await expectRefused(inBody(data.refresh_token!), 401, 40100);

    const between = await signIn("body");
    const first = between.copy();
    await between.refreshed();
    const taken = await inBody(between.token!);
    expect(taken.code).toBe(0);
    secrets.add(taken.data.refresh_token!);
    await expectOver(first);
    await expectRefused(inBody(taken.data.refresh_token!), 401, 40100);
  });

  test("a cookie that is sent after the session's end, or while the account is suspended, is rejected", async () => {
    const ended = await signIn("again");
    const old = ended.copy();
    await ended.refreshed();
    await ended.user.data("POST", "/auth/logout");
    await expectOver(old);

    const [page, operator] = [await signIn("banned"), await operatorOf(world.server)];
    const spent = page.copy();
    await page.refreshed();
    const { id } = await userNamed(operator, "banned");
    await operator.data("POST", `/admin/users/${id}/suspend`, {});
    await expectRefused(page.user.request("GET", "/me"), 403, 40300, /suspended/);
    const copies = [page.copy(), spent.copy()];
    for (const each of [page, spent]) await expectOver(each);
    await operator.data("POST", `/admin/users/${id}/restore`, { tokens: "restore" });
    operator.close();
    for (const each of copies) await expectOver(each);
    await expectRefused(page.user.request("GET", "/me"), 401, 40100);
  });
});

describe("the end of a session", () => {
  test("a logout removes the cookie that the request carries", async () => {
    const [page, other] = [await signIn("leaving"), await signIn("leaving")];
    const { headers } = await other.user.request("POST", "/auth/logout");
    expect(headers["set-cookie"]).toBeUndefined();
    const bearer = { Authorization: `Bearer ${page.accessToken}` };
    const old = page.copy();
    const answer = await page.request("POST", "/auth/logout", undefined, bearer);
    expect([answer.code, answer.headers["set-cookie"], page.token]).toEqual([0, [REMOVED], null]);
    for (const each of [old, other]) await expectOver(each);
  });

  test("a new password ends the other sessions' cookies, not the caller's", async () => {
    const [page, other] = [await signIn("password"), await signIn("password")];
    await page.user.data("POST", "/me/password", { current: PASSWORD, new: NEW_PASSWORD });
    await expectOver(other);
    await page.refreshed();
    expect(await page.me()).toBe(0);
  });

  test("a password reset by a mailed link ends every cookie", async () => {
    const pages = [await signIn("reset"), await signIn("reset")];
    const spent = pages[0]!.copy();
    await pages[0]!.refreshed();
    const email = "reset@example.com";
    await newPage().request("POST", "/auth/forgot-password", { email });
    const token = await resetToken(world.server, email);
    await newPage().request("POST", "/auth/reset-password", { token, password: NEW_PASSWORD });
    for (const page of [...pages, spent]) await expectOver(page);
  });
});

describe("pages of other sites", () => {
  const FORBIDDEN: readonly Record<string, string>[] = [
    { Origin: FOREIGN },
    { Origin: NEIGHBOUR },
    { Origin: "null" },
    { Origin: `${PAGE_URL}:8443` },
    { Origin: "http://exchange.test" },
    // A network attacker can impersonate our host name, but without the certificate.
    { Origin: "http://exchange.test", Host: "exchange.test", "Sec-Fetch-Site": "same-origin" },
    { Origin: FOREIGN, "Sec-Fetch-Site": "cross-site" },
    { Origin: PAGE_URL, "Sec-Fetch-Site": "cross-site" },
    { Origin: "", "Sec-Fetch-Site": "cross-site" },
  ];
  /** The content types of forms, beacons and blobs without a type. */
  const TYPES = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""];
  const OTHER_TYPES = ["application/jsonp", "text/json", "application/msgpack", "text/plain; x=application/json"];

  test("pages of other sites cannot refresh by the cookie, and their attempts end no session", async () => {
    const page = await signIn("forged");
    const before = page.token;
    for (const headers of FORBIDDEN) {
      const answer = await expectRefused(page.refresh(headers), 403, 40300, /other sites/);
      expect(answer.headers["set-cookie"]).toBeUndefined();
      expect(answer.headers["access-control-allow-origin"]).toBe(PAGE_URL);
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

  test("pages of other sites cannot sign their visitors in to somebody else's account", async () => {
    const page = newPage();
    const body = JSON.stringify({ email: "forged@example.com", password: PASSWORD, cookie: true });
    for (const headers of FORBIDDEN) await expectRefused(page.login("forged", headers), 403, 40300, /other sites/);
    for (const type of TYPES) {
      const asked = page.request("POST", "/auth/login", body, { ...OURS, "Content-Type": type });
      await expectRefused(asked, 400, 40000, /^Content-Type/);
    }
    expect(page.token).toBeNull();
  });
});

test("over plain HTTP the cookie has a plain name and expires; the rate limit counts refreshes by address", async () => {
  const ttl = CLOCK_STEP_MS / 1_000;
  const env = { ...MOVABLE_CLOCK, PUBLIC_URL: "http://exchange.test", REFRESH_TOKEN_TTL: String(ttl) };
  const limits = { RATE_LIMITS: JSON.stringify({ refresh_address: 5 }) };
  const named = { owner: { password: PASSWORD } };
  const plain = await World.start({ users: 0, named, env: { ...env, ...limits } });
  try {
    const ours = { Origin: "http://exchange.test" };
    const context = { world: plain, guests, cookie: "session" };
    const page = new Page(context);
    const { headers } = await page.login("owner", ours);
    const rules = `Max-Age=${ttl}; Path=/; HttpOnly; SameSite=Strict`;
    expect(headers["set-cookie"]).toEqual([`session=${page.token}; ${rules}`]);
    const [kept, old] = [new Page(context), page.token!];
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
