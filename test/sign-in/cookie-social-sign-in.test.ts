/**
 * Sign-in of the web page through an identity provider: the callback sets the session's cookie and redirects to our own
 * page. For the cookie itself, see cookie-sessions.test.ts; for sign-ins that return tokens, social-sign-in.test.ts.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { API_BASE } from "../support/client.ts";
import { expectUnkept } from "../support/data-dir.ts";
import { Guests, PASSWORD } from "../support/identity.ts";
import { type TestAccount, TestProvider } from "../support/oidc-provider.ts";
import { OPERATOR, operatorOf, userNamed } from "../support/operator.ts";
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
import { expectRefused } from "../support/trading.ts";
import { World } from "../support/world.ts";
import { PAGE_URL, Page, type PageTokens, REDIRECT_URI, type SessionJson } from "./page.ts";

const guests = new Guests();
/** Tokens, cookies, codes and states: the server must log none of them. */
const { secrets } = guests;
/** The provider's users, by name. */
const people: Record<string, TestAccount> = {};
let provider: TestProvider;
let world: World;

beforeAll(async () => {
  provider = await TestProvider.start([REDIRECT_URI], 0, people);
  const providers = {
    one: { issuer: provider.issuer, client_id: provider.clientId, client_secret: provider.clientSecret },
    // No server listens on this port.
    gone: { issuer: "http://127.0.0.1:1", client_id: "x", client_secret: "y" },
  };
  const env = { PUBLIC_URL: PAGE_URL, LOG_LEVEL: "trace", SOCIAL_PROVIDERS: JSON.stringify(providers) };
  world = await World.start({
    users: 0,
    named: { "suspended-social": { password: PASSWORD }, operator: OPERATOR },
    env,
  });
});

afterAll(async () => {
  guests.close();
  await provider.close();
  expect(secrets.size).toBeGreaterThan(20);
  await expectEndsWell(world);
  expectUnlogged([...secrets, provider.clientSecret], world.server);
  expectUnkept(secrets, world.server.dataDir);
});

const newPage = (): Page => new Page({ world, guests });

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
  expect([origin, pathname, page.token]).toEqual([PAGE_URL, "/sign-in", null]);
  expect([...searchParams.keys()]).toEqual(["error", "message"]);
  expect(searchParams.get("error")).toBe(String(code));
  for (const secret of secrets) expect(search).not.toContain(secret);
  return searchParams.get("message")!;
}

test("a sign-in ends at the page, signed in by the cookie, with no token in a URL", async () => {
  person("ada");
  for (const path of ["/", "/markets/1?outcome=2#book", "/a b&to=/x", "/ä/日本", `/${"x".repeat(499)}`]) {
    const page = newPage();
    const done = await comeBack(page, await callbackFor(page, "ada", returnTo(path)));
    expect(done.href).toBe(`${PAGE_URL}/sign-in/done?to=${encodeURIComponent(path)}`);
    expect(page.token).toMatch(/^pm_ref_/);
    await page.refreshed();
    const [session] = await page.user.all<SessionJson>("/me/sessions");
    expect(session).toMatchObject({ method: "social:one", current: true, user_agent: "a browser" });
    expect(await page.user.get("/me")).toMatchObject({ email: "ada@example.com" });
  }
});

test("a sign-in that no page started returns JSON; a return path in the callback is ignored", async () => {
  person("ben");
  const page = newPage();
  const callback = await callbackFor(page, "ben", "");
  const { status, data } = await page.request<PageTokens>("GET", `${callback}&return_to=%2Fmarkets`);
  expect([status, page.token]).toEqual([200, null]);
  expect(data.refresh_token).toMatch(/^pm_ref_/);
  secrets.add(data.access_token).add(data.refresh_token!);
  const other = newPage();
  const asked = await callbackFor(other, "ben", returnTo("/mine"));
  const done = await comeBack(other, `${asked}&return_to=${encodeURIComponent("//evil.example")}`);
  expect(done.searchParams.get("to")).toBe("/mine");
});

test("an account with a second factor is led to the second step, with the challenge in the URL's fragment", async () => {
  person("fay");
  const first = newPage();
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

  const second = newPage();
  const led = await comeBack(second, await callbackFor(second, "fay", returnTo("/wallet?show=deposits#a")));
  expect([led.origin, led.pathname, second.token]).toEqual([PAGE_URL, "/sign-in", null]);
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

  const plain = newPage();
  const answer = await plain.request<ChallengeJson>("GET", await callbackFor(plain, "fay", ""));
  expect(answer.data).toEqual({
    ...asked,
    challenge: expect.stringMatching(/^pm_chl_/),
    expires_at: expect.any(Number),
  });
  secrets.add(answer.data.challenge);
});

test("a return path that leaves our own page is rejected", async () => {
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
    ...["javascript:alert(1)", "?to=/", "#", " /markets", "/\t/evil.example", "/a\r\nSet-Cookie: x=y", "/\0", "/\x7f"],
    ...["/\x85", `/${"x".repeat(500)}`],
  ];
  for (const path of wrong) {
    const page = newPage();
    const asked = page.request("GET", `/auth/social/one${returnTo(path)}`);
    const answer = await expectRefused(asked, 400, 40000, /^return_to: /);
    expect([answer.headers.location, page.cookies.size]).toEqual([undefined, 0]);
  }
  const twice = newPage().request("GET", "/auth/social/one?return_to=/a&return_to=/b");
  await expectRefused(twice, 400, 40000, /^return_to: /);
});

test("a failed sign-in tells the page why, and signs nobody in", async () => {
  const denied = newPage();
  const refused = await comeBack(denied, await callbackFor(denied, null, returnTo("/x")));
  expect(expectFailed(denied, refused, 40100)).toMatch(/denied/);

  person("cleo", { email_verified: false });
  const unverified = newPage();
  const closed = await comeBack(unverified, await callbackFor(unverified, "cleo", returnTo("/x")));
  expect(expectFailed(unverified, closed, 40300)).toMatch(/verified an email/);

  person("suspended-social");
  const operator = await operatorOf(world.server);
  const { id } = await userNamed(operator, "suspended-social");
  await operator.data("POST", `/admin/users/${id}/suspend`, {});
  operator.close();
  const shut = newPage();
  const suspended = await comeBack(shut, await callbackFor(shut, "suspended-social", returnTo("/x")));
  expect(expectFailed(shut, suspended, 40300)).toMatch(/suspended/);

  await expectRefused(newPage().request("GET", `/auth/social/gone${returnTo("/x")}`), 503, 50300);
});

test("a callback from another browser, used before, or with a wrong code is rejected", async () => {
  person("dora");
  const [attacker, victim] = [newPage(), newPage()];
  const stolen = await callbackFor(attacker, "dora", returnTo("/x"));
  expect(expectFailed(victim, await comeBack(victim, stolen), 40100)).toMatch(/no such sign-in/);
  // The attempt spends the state, and the server forgets its return address.
  await expectRefused(attacker.request("GET", stolen), 401, 40100, /no such sign-in/);
  const page = newPage();
  const callback = await callbackFor(page, "dora", returnTo("/x"));
  const spoilt = callback.replace(/code=[^&]+/, "code=x");
  expect(expectFailed(page, await comeBack(page, spoilt), 40100)).toMatch(/failed/);
});

test("a failure outside a sign-in redirects a browser to our page, and returns JSON to a program", async () => {
  const browser = { Accept: "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Site": "cross-site" };
  const faults = [
    ["/auth/social/one/callback?state=unknown&code=x", 40100],
    ["/auth/social/one/callback?state=a&state=b", 40000],
    [`/auth/social/gone${returnTo("/x")}`, 50300],
    [`/auth/social/none${returnTo("/x")}`, 4040],
    [`/auth/social/one${returnTo("//evil.example")}`, 40000],
  ] as const;
  for (const [path, code] of faults) {
    const page = newPage();
    const { status, headers } = await page.request("GET", path, undefined, browser);
    expect([path, status, headers["cache-control"]]).toEqual([path, 302, "no-store"]);
    expectFailed(page, new URL(headers.location!), code);
    expect(page.cookies.size).toBe(0);
  }
  for (const accept of ["application/json", "*/*", "text/html;q=0.1, application/json"]) {
    const asked = newPage().request("GET", faults[0][0], undefined, { Accept: accept });
    await expectRefused(asked, 401, 40100, /no such sign-in/);
  }
});
