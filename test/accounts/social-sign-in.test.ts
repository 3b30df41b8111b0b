/**
 * Sign-in at an identity provider, from the browser's side: the running server, a real provider, cookies. The tests
 * check which account a user gets, and what happens to an account that a squatter created with another person's
 * address. For the protocol, see social-providers.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell, expectQuiet, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE, type Client } from "../support/client.ts";
import {
  Guests,
  login,
  PASSWORD,
  register,
  resetToken,
  type SignedIn,
  type SignInJson,
  type UserJson,
  verificationToken,
} from "../support/identity.ts";
import { type TestAccount, TestProvider } from "../support/oidc-provider.ts";
import { Socket } from "../support/socket.ts";
import { ThirdParty } from "../support/third-party.ts";
import { alone, expectRefused, restartWith } from "../support/trading.ts";
import { World } from "../support/world.ts";

/** The server's public address. In production a TLS proxy stands in front of it. */
const PUBLIC_URL = "https://exchange.test";
const REDIRECT_URIS = ["one", "local", "other"].map((name) => `${PUBLIC_URL}${API_BASE}/auth/social/${name}/callback`);
const NOT_BEGUN = /started no such sign-in/;
const NEW_PASSWORD = "a loud harbour at noon";

interface SessionJson {
  readonly method: string;
  readonly current: boolean;
}

/** The users of the first provider and of the other one; tests add their own. */
const people: Record<string, TestAccount> = {};
const others: Record<string, TestAccount> = {};
const guests = new Guests();
/** Codes, states, cookies and tokens: the server must log none of them. */
const { secrets } = guests;

/** Adds a user with this name and address at the first provider. */
function person(name: string, more: Partial<TestAccount> = {}): string {
  people[name] = { sub: name, email: `${name}@example.com`, email_verified: true, ...more };
  return `${name}@example.com`;
}

let one: TestProvider;
let other: TestProvider;
let world: World;

/** A client that the tests close at the end. */
const clientOf = (token: string | null, at = world): Client => guests.client(at.server, token);

/** Stores the server's cookies, and follows redirects. */
class Browser {
  readonly cookies = new Map<string, string>();
  private readonly world: World;

  constructor(at: World = world) {
    this.world = at;
  }

  /** Goes to the provider's page. */
  async start(name = "one", query = ""): Promise<Answer & { location: string }> {
    const answer = await clientOf(null, this.world).request("GET", `/auth/social/${name}${query}`);
    for (const line of answer.headers["set-cookie"] ?? []) {
      const [, cookie, value] = /^([^=]+)=([^;]+)/.exec(line)!;
      this.cookies.set(cookie!, value!);
      secrets.add(value!);
    }
    const { location = "" } = answer.headers;
    if (location !== "") secrets.add(new URL(location).searchParams.get("state")!);
    return { ...answer, location };
  }

  /** Goes through the provider's pages and returns the callback's address. */
  async signInAt(account: string | null, name = "one", query = ""): Promise<string> {
    const { location, code, msg } = await this.start(name, query);
    if (location === "") throw new Error(`${code} ${msg}`);
    const back = await (name === "other" ? other : one).signInAt(location, account);
    const given = new URL(back).searchParams.get("code");
    if (given !== null) secrets.add(given);
    return back;
  }

  /** Returns to the server. */
  async finish(callback: string): Promise<Answer<SignInJson>> {
    const { origin, pathname, search } = new URL(callback);
    expect(origin).toBe(PUBLIC_URL);
    const headers: Record<string, string> = { "User-Agent": "a browser" };
    if (this.cookies.size > 0) headers["Cookie"] = [...this.cookies].map((pair) => pair.join("=")).join("; ");
    const path = pathname.slice(API_BASE.length) + search;
    const answer = await clientOf(null, this.world).request<SignInJson>("GET", path, { headers });
    if (answer.code === 0)
      for (const token of [answer.data.access_token, answer.data.refresh_token]) secrets.add(token);
    return answer;
  }
}

/** Runs the whole flow in a new browser. */
async function comeIn(account: string, name = "one", at = world): Promise<{ user: UserJson; client: Client }> {
  const browser = new Browser(at);
  const answer = await browser.finish(await browser.signInAt(account, name));
  if (answer.code !== 0) throw new Error(`${answer.code} ${answer.msg}`);
  const { user, access_token } = answer.data;
  return { user, client: clientOf(access_token, at) };
}

const me = (token: string, at = world): Promise<Answer<UserJson>> => clientOf(token, at).request("GET", "/me");

const signInWith = (email: string, password = PASSWORD, at = world): Promise<SignedIn> =>
  guests.signIn(at.server, email, password);

/** Registers an account with an address whose mail the squatter cannot read. */
async function squat(email: string, at = world): Promise<SignedIn> {
  expect((await register(at.server, email)).code).toBe(0);
  return signInWith(email, PASSWORD, at);
}

const environment = (): Record<string, string> => ({
  PUBLIC_URL,
  LOG_LEVEL: "trace",
  SOCIAL_PROVIDERS: JSON.stringify({
    one: { issuer: one.issuer, client_id: one.clientId, client_secret: one.clientSecret },
    local: {
      issuer: one.issuer,
      client_id: one.clientId,
      client_secret: one.clientSecret,
      jurisdictions: ["DE", "FR"],
    },
    other: { issuer: other.issuer, client_id: other.clientId, client_secret: other.clientSecret },
    // No server listens on this port.
    gone: { issuer: "http://127.0.0.1:1", client_id: "x", client_secret: "y" },
  }),
});

beforeAll(async () => {
  [one, other] = await Promise.all([
    TestProvider.start(REDIRECT_URIS, 0, people),
    TestProvider.start(REDIRECT_URIS, 0, others),
  ]);
  const named = { bob: { password: PASSWORD }, carol: { password: PASSWORD }, developer: { password: PASSWORD } };
  world = await World.start({ users: 0, named, env: environment() });
});

function expectUntold({ server }: World): void {
  expectQuiet(server);
  expectUnlogged([...secrets, one.clientSecret, other.clientSecret], server);
}

afterAll(async () => {
  guests.close();
  await Promise.all([one.close(), other.close()]);
  expect(secrets.size).toBeGreaterThan(50);
  await expectEndsWell(world);
  expectUntold(world);
});

describe("providers", () => {
  test("are offered by jurisdiction", async () => {
    const everywhere = { providers: ["one", "other", "gone"], jurisdictions: ["DE", "FR"] };
    const here = { ...everywhere, providers: ["one", "local", "other", "gone"] };
    const client = clientOf(null);
    expect(await client.get("/auth/social")).toEqual(everywhere);
    expect(await client.get("/auth/social?jurisdiction=US")).toEqual(everywhere);
    for (const country of ["DE", "FR"]) expect(await client.get(`/auth/social?jurisdiction=${country}`)).toEqual(here);
    for (const wrong of ["", "de", "D", "DEU", "DE,FR", "**"]) {
      for (const path of ["/auth/social", "/auth/social/local", "/auth/social/one"]) {
        await expectRefused(client.request("GET", `${path}?jurisdiction=${wrong}`), 400, 40000);
      }
    }
    await expectRefused(client.request("GET", "/auth/social?jurisdiction=DE&jurisdiction=FR"), 400, 40000);
  });

  test("open only where they are offered", async () => {
    person("ludwig");
    const browser = new Browser();
    await expectRefused(browser.start("local"), 400, 40000, /jurisdiction/);
    await expectRefused(browser.start("local", "?jurisdiction=US"), 403, 40300);
    expect(browser.cookies.size).toBe(0);
    const { data } = await browser.finish(await browser.signInAt("ludwig", "local", "?jurisdiction=FR"));
    expect(data.user.email).toBe("ludwig@example.com");
  });

  test("that are not there are not found", async () => {
    for (const name of ["unknown", "ONE", "constructor", "__proto__", "%00"]) {
      await expectRefused(new Browser().start(name), 404, 4040);
    }
    await expectRefused(clientOf(null).request("POST", "/auth/social/one"), 405, 40500);
  });

  test("get the browser with a cookie that only this server reads, and that no script does", async () => {
    const { status, headers, location } = await new Browser().start();
    expect([status, headers["cache-control"]]).toEqual([302, "no-store"]);
    expect(new URL(location).origin).toBe(one.issuer);
    expect(new URL(location).searchParams.get("redirect_uri")).toBe(REDIRECT_URIS[0]);
    const [cookie, ...rest] = headers["set-cookie"]!;
    expect(rest).toEqual([]);
    const attributes = cookie!.split(";").map((part) => part.trim().toLowerCase());
    expect(attributes).toEqual(expect.arrayContaining(["httponly", "samesite=lax", "max-age=600"]));
    expect(attributes.filter((part) => part.startsWith("domain="))).toEqual([]);
  });

  test("the cookie goes over HTTPS only where that is how the server is reached", async () => {
    const { headers } = await new Browser().start();
    expect(headers["set-cookie"]![0]).toMatch(/; *secure/i);
  });
});

describe("whose account it is", () => {
  test("a new one, with the verified address, of tier 0", async () => {
    person("alice", { email: "Alice@Example.com" });
    const browser = new Browser();
    const { status, headers, data } = await browser.finish(await browser.signInAt("alice"));
    expect([status, headers["cache-control"]]).toEqual([200, "no-store"]);
    const expected = { email: "alice@example.com", email_verified: true, phone: null, kyc_tier: 0, role: "user" };
    expect(data.user).toMatchObject(expected);
    expect((await me(data.access_token)).data).toEqual(data.user);
    const body = { refresh_token: data.refresh_token };
    const renewed = await clientOf(null).data<{ access_token: string }>("POST", "/auth/refresh", body);
    expect((await me(renewed.access_token)).code).toBe(0);
    const order = { market_id: 1, outcome_id: 1, side: 1, price: 100, quantity: 1 };
    await expectRefused(clientOf(data.access_token).request("POST", "/orders", { body: order }), 403, 40300, /tier/);
  });

  test("the same one each time, from any browser, and its sessions say where they come from", async () => {
    person("erin");
    const [first, second] = [await comeIn("erin"), await comeIn("erin")];
    expect(second.user).toEqual(first.user);
    const sessions = await second.client.all<SessionJson>("/me/sessions");
    expect(sessions.map(({ method, current }) => [method, current])).toEqual([["social:one", true], ["social:one", false]]); // biome-ignore format: pairs
    expect(sessions[0]).toMatchObject({ user_agent: "a browser", address: "127.0.0.1" });
    await second.client.data("POST", "/auth/logout");
    expect((await second.client.request("GET", "/me")).code).toBe(40100);
    expect((await first.client.request("GET", "/me")).code).toBe(0);
  });

  test("the one that has the verified address already: all that was good before stays", async () => {
    person("bob", { email: "BOB@example.com" });
    const before = await signInWith("bob@example.com");
    const { user, client } = await comeIn("bob");
    expect(user).toEqual(before.user);
    expect(user).toMatchObject({ kyc_tier: 2, email_verified: true });
    expect((await before.client.request("GET", "/me")).code).toBe(0);
    const after = await signInWith("bob@example.com");
    expect(after.user.id).toBe(user.id);
    const methods = (await client.all<SessionJson>("/me/sessions")).map(({ method }) => method);
    expect(methods).toEqual(["password", "social:one", "password"]);
  });

  test("who it is goes by the provider's name for it, not by the address", async () => {
    person("heidi");
    const { user } = await comeIn("heidi");
    // The same user now has another address, or an unverified one.
    for (const change of [{ email: "new@example.com" }, { email_verified: false }]) {
      person("heidi", change);
      expect((await comeIn("heidi")).user).toEqual(user);
    }
    // Another provider's "heidi" is a different user.
    others["heidi"] = { sub: "heidi", email: "mallory@example.com", email_verified: true };
    const stranger = await comeIn("heidi", "other");
    expect(stranger.user.id).not.toBe(user.id);
    expect(stranger.user.email).toBe("mallory@example.com");
  });

  test("two providers that vouch for one address lead to one account", async () => {
    person("frank");
    others["f"] = { sub: "f", email: "frank@example.com", email_verified: true };
    const [here, there] = [await comeIn("frank"), await comeIn("f", "other")];
    expect(there.user).toEqual(here.user);
    const methods = (await there.client.all<SessionJson>("/me/sessions")).map(({ method }) => method);
    expect(methods).toEqual(["social:other", "social:one"]);
  });

  test("nobody's where the provider doesn't vouch for an address", async () => {
    people["mailless"] = { sub: "mailless" };
    person("unverified", { email_verified: false });
    // The address belongs to another user's account.
    person("carol", { sub: "carol", email_verified: false });
    for (const name of ["unverified", "mailless", "carol"]) {
      const browser = new Browser();
      await expectRefused(browser.finish(await browser.signInAt(name)), 403, 40300, /verified/);
    }
    expect((await register(world.server, "unverified@example.com")).status).toBe(201);
    const { client } = await signInWith("carol@example.com");
    expect((await client.all<SessionJson>("/me/sessions")).map(({ method }) => method)).toEqual(["password"]);
    // Once the provider verifies the address, the sign-in succeeds.
    person("carol");
    expect((await comeIn("carol")).user.email).toBe("carol@example.com");
  });

  test("one that was made here has a password once its owner has set one by mail", async () => {
    const email = person("grace");
    const { user, client } = await comeIn("grace");
    for (const password of [PASSWORD, "grace", email, "null"]) {
      await expectRefused(login(world.server, email, password), 401, 40100, /wrong email or password/);
    }
    for (const current of ["null", PASSWORD]) {
      const body = { current, new: NEW_PASSWORD };
      await expectRefused(client.request("POST", "/me/password", { body }), 403, 40300);
    }
    await expectRefused(register(world.server, email), 409, 40900);
    await clientOf(null).data("POST", "/auth/forgot-password", { email });
    const token = await resetToken(world.server, email);
    await clientOf(null).data("POST", "/auth/reset-password", { token, password: NEW_PASSWORD });
    expect((await client.request("GET", "/me")).code).toBe(40100);
    expect((await signInWith(email, NEW_PASSWORD)).user.id).toBe(user.id);
    expect((await comeIn("grace")).user.id).toBe(user.id);
  });
});

describe("one browser, one attempt", () => {
  test("the callback needs the cookie of the browser that began", async () => {
    person("ivan");
    const attacker = new Browser();
    const victims = [new Browser(), new Browser()];
    await victims[1]!.start();
    for (const victim of victims) {
      // The attacker signs in with their own account and makes the victim's browser finish.
      const callback = await attacker.signInAt("ivan");
      const answer = await expectRefused(victim.finish(callback), 401, 40100, NOT_BEGUN);
      expect(answer.data).toBeNull();
      // The attempt spends the state.
      await expectRefused(attacker.finish(callback), 401, 40100, NOT_BEGUN);
    }
    const callback = await attacker.signInAt("ivan");
    const [name] = [...attacker.cookies.keys()].slice(-1);
    for (const value of ["", "x", "A".repeat(43)]) {
      const forger = new Browser();
      forger.cookies.set(name!, value);
      await expectRefused(forger.finish(callback), 401, 40100, NOT_BEGUN);
    }
  });

  test("an attempt is good once, for the provider that it began with", async () => {
    person("judy");
    const browser = new Browser();
    const callback = await browser.signInAt("judy");
    expect((await browser.finish(callback)).code).toBe(0);
    await expectRefused(browser.finish(callback), 401, 40100, NOT_BEGUN);
    const elsewhere = (await browser.signInAt("judy")).replace("/one/", "/other/");
    await expectRefused(browser.finish(elsewhere), 401, 40100, NOT_BEGUN);
    const { searchParams } = new URL(await browser.signInAt("judy"));
    const base = REDIRECT_URIS[0];
    const code = searchParams.get("code")!;
    for (const query of ["", "?", "?state=", `?code=${code}`, `?code=${code}&state=${"A".repeat(43)}`]) {
      await expectRefused(browser.finish(base + query), 401, 40100, NOT_BEGUN);
    }
    const doubled = `${base}?${searchParams}&state=${searchParams.get("state")}`;
    await expectRefused(browser.finish(doubled), 400, 40000);
  });

  test("a code that the provider didn't give, or gave for another attempt, is no sign-in", async () => {
    person("kate");
    const [browser, thief] = [new Browser(), new Browser()];
    const stolen = new URL(await browser.signInAt("kate")).searchParams.get("code")!;
    for (const code of [stolen, "x", ""]) {
      const own = new URL(await thief.signInAt("kate"));
      own.searchParams.set("code", code);
      await expectRefused(thief.finish(own.href), 401, 40100);
    }
  });

  test("two tabs of one browser don't meet", async () => {
    person("leo");
    person("mia");
    const browser = new Browser();
    const [first, second] = [await browser.signInAt("leo"), await browser.signInAt("mia")];
    expect(browser.cookies.size).toBe(2);
    expect((await browser.finish(second)).data.user.email).toBe("mia@example.com");
    expect((await browser.finish(first)).data.user.email).toBe("leo@example.com");
  });

  test("who comes for the first time in several tabs at once has one account", async () => {
    for (let round = 0; round < 3; round++) {
      const email = person(`nora-${round}`);
      const browser = new Browser();
      const callbacks = [];
      for (let tab = 0; tab < 4; tab++) callbacks.push(await browser.signInAt(`nora-${round}`));
      const answers = await Promise.all(callbacks.map((callback) => browser.finish(callback)));
      expect(answers.map(({ code, msg }) => [code, msg])).toEqual(callbacks.map(() => [0, "ok"]));
      expect(new Set(answers.map(({ data }) => data.user.id)).size).toBe(1);
      expect(answers[0]!.data.user.email).toBe(email);
    }
  });

  test("the user's refusal at the provider", async () => {
    const browser = new Browser();
    const callback = await browser.signInAt(null);
    expect(new URL(callback).searchParams.get("error")).toBe("access_denied");
    await expectRefused(browser.finish(callback), 401, 40100, /denied/);
    await expectRefused(browser.finish(callback), 401, 40100, NOT_BEGUN);
  });

  test("a provider that can't be reached", async () => {
    const browser = new Browser();
    await expectRefused(browser.start("gone"), 503, 50300, /gone cannot be reached/);
    expect(browser.cookies.size).toBe(0);
    const down = await TestProvider.start(REDIRECT_URIS, 0, people);
    const env = { ...environment(), SOCIAL_PROVIDERS: JSON.stringify({ one: { issuer: down.issuer, client_id: down.clientId, client_secret: down.clientSecret } }) }; // biome-ignore format: one line
    person("olga");
    await alone({ users: 0, env }, async (own) => {
      const visitor = new Browser(own);
      const callback = await down.signInAt((await visitor.start()).location, "olga");
      await down.close();
      await expectRefused(visitor.finish(callback), 503, 50300, /one cannot be reached/);
      expectUntold(own);
    });
  });
});

describe("an account whose address was never shown to be its maker's", () => {
  const makeThirdParty = async (): Promise<ThirdParty> =>
    ThirdParty.register(world, (await signInWith("developer@example.com")).client);

  test("goes to the owner of the address, without anything that opens it to the squatter", async () => {
    const email = person("dave");
    const squatter = await squat(email);
    const verification = await verificationToken(world.server, email);
    await clientOf(null).data("POST", "/auth/forgot-password", { email });
    const reset = await resetToken(world.server, email);
    const all = [squatter.accessToken, (await signInWith(email)).accessToken];
    const sockets = await Promise.all(all.map((token) => Socket.open(world.server, token)));

    const { user, client } = await comeIn("dave");
    expect(user).toMatchObject({ id: squatter.user.id, email, email_verified: true, kyc_tier: 0 });
    for (const token of all) expect((await me(token)).code).toBe(40100);
    for (const socket of sockets) expect(await socket.closed).toBe(4401);
    await expectRefused(login(world.server, email), 401, 40100);
    const body = { refresh_token: squatter.refreshToken };
    await expectRefused(clientOf(null).request("POST", "/auth/refresh", { body }), 401, 40100);
    await expectRefused(clientOf(null).request("POST", "/auth/verify-email", { body: { token: verification } }), 400, 40000); // biome-ignore format: one line
    const again = { token: reset, password: NEW_PASSWORD };
    await expectRefused(clientOf(null).request("POST", "/auth/reset-password", { body: again }), 400, 40000);
    expect((await client.request("GET", "/me")).code).toBe(0);
    expect(await client.all("/me/personal-access-tokens")).toEqual([]);
    expect((await client.all<SessionJson>("/me/sessions")).map(({ method }) => method)).toEqual(["social:one"]);
    expect((await comeIn("dave")).user.id).toBe(user.id);
  });

  test("the squatter can let no third party in, make no token and show no phone", async () => {
    person("pia");
    const squatter = await squat("pia@example.com");
    const party = await makeThirdParty();
    await expect(party.consent(squatter.client)).rejects.toThrow(/40300/);
    const wish = { name: "mine", scopes: ["portfolio:read"] };
    const refused = [
      squatter.client.request("POST", "/me/personal-access-tokens", { body: wish }),
      squatter.client.request("POST", "/me/phone", { body: { phone: "+14155552671" } }),
    ];
    for (const answer of refused) await expectRefused(answer, 403, 40300, /verify/);
    const { user, client } = await comeIn("pia");
    expect(user).toMatchObject({ email_verified: true, phone: null, phone_verified: false, kyc_tier: 0 });
    expect(await client.all("/me/oauth-grants")).toEqual([]);
  });

  test("goes to its owner by a mailed link as well, without the squatter's tokens", async () => {
    const email = "oscar@example.com";
    const squatter = await squat(email);
    // The owner finds the address taken and requests a password reset.
    await clientOf(null).data("POST", "/auth/forgot-password", { email });
    const reset = await resetToken(world.server, email);
    await clientOf(null).data("POST", "/auth/reset-password", { token: reset, password: NEW_PASSWORD });
    const { user, client } = await signInWith(email, NEW_PASSWORD);
    expect(user).toMatchObject({ id: squatter.user.id, email_verified: true });
    expect((await me(squatter.accessToken)).code).toBe(40100);
    expect(await client.all("/me/personal-access-tokens")).toEqual([]);
  });

  test("what the squatter makes while it changes hands is dead too", async () => {
    const wish = { name: "mine", scopes: ["portfolio:read"] };
    for (let round = 0; round < 4; round++) {
      const email = person(`rita-${round}`);
      const squatter = await squat(email);
      const made: string[] = [];
      /** Creates tokens and revokes the previous ones to make room, until the squatter loses access. */
      const flood = async (): Promise<void> => {
        const client = clientOf(squatter.accessToken);
        for (let last: number | null = null; ; ) {
          const path = "/me/personal-access-tokens";
          const { code, data } = await client.request<{ id: number; token: string }>("POST", path, { body: wish });
          if (code !== 0) return;
          made.push(data.token);
          if (last !== null) await client.request("DELETE", `${path}/${last}`);
          last = data.id;
        }
      };
      const browser = new Browser();
      const callback = await browser.signInAt(`rita-${round}`);
      const floods = Promise.all([flood(), flood(), flood(), flood(), flood(), flood()]);
      const { code, data } = await browser.finish(callback);
      expect(code).toBe(0);
      await floods;
      for (const token of made) secrets.add(token);
      const alive = [];
      for (const token of made.slice(-50)) if ((await me(token)).code === 0) alive.push(token);
      expect(alive).toEqual([]);
      expect(await clientOf(data.access_token).all("/me/personal-access-tokens")).toEqual([]);
    }
  });

  test("sign-ins of the squatter and a change of its password amid the change of hands open nothing", async () => {
    for (let round = 0; round < 4; round++) {
      const email = person(`tess-${round}`);
      const squatter = await squat(email);
      const token = await verificationToken(world.server, email);
      const visitors = guests.client(world.server, null, 16);
      const post = (path: string, body: object): Promise<Answer<SignInJson>> =>
        visitors.request("POST", path, { body });
      const passwords = [PASSWORD, NEW_PASSWORD];
      const signIns = (): Promise<Answer<SignInJson>>[] =>
        passwords.map((password) => post("/auth/login", { email, password }));
      const browser = new Browser();
      const callback = await browser.signInAt(`tess-${round}`);
      const race = [
        ...signIns(),
        post("/auth/refresh", { refresh_token: squatter.refreshToken }),
        squatter.client.request("POST", "/me/password", { body: { current: PASSWORD, new: NEW_PASSWORD } }),
        ...signIns(),
        // The owner also opens the link, which alone signs nobody in.
        post("/auth/verify-email", { token }),
      ];
      const owner = browser.finish(callback);
      race.push(...signIns(), ...signIns());
      const [{ code, data }, ...answers] = await Promise.all([owner, ...race]);
      expect(code).toBe(0);
      const opened = answers.flatMap((answer) => (answer.data as SignInJson | null)?.access_token ?? []);
      for (const each of opened) secrets.add(each);
      for (const each of [squatter.accessToken, ...opened]) expect((await me(each)).code).toBe(40100);
      for (const password of passwords) expect((await login(world.server, email, password)).code).toBe(40100);
      expect((await me(data.access_token)).data).toMatchObject({ email, email_verified: true });
    }
  });

  test("after a restart it is still the owner's alone, and a suspended one's is closed", async () => {
    const email = person("sven");
    await alone({ users: 0, env: environment() }, async (own) => {
      const squatter = await squat(email, own);
      const verification = await verificationToken(own.server, email);
      await clientOf(null, own).data("POST", "/auth/forgot-password", { email });
      const reset = await resetToken(own.server, email);
      const { user } = await comeIn("sven", "one", own);
      const began = new Browser(own);
      const callback = await began.signInAt("sven");

      await own.server.stop();
      own.server = await own.server.restart();
      // A user who was at the provider during the restart must start again.
      await expectRefused(began.finish(callback), 401, 40100, NOT_BEGUN);
      expect((await me(squatter.accessToken, own)).code).toBe(40100);
      await expectRefused(login(own.server, email), 401, 40100);
      const visitor = clientOf(null, own);
      await expectRefused(visitor.request("POST", "/auth/verify-email", { body: { token: verification } }), 400, 40000);
      const body = { token: reset, password: NEW_PASSWORD };
      await expectRefused(visitor.request("POST", "/auth/reset-password", { body }), 400, 40000);
      expect((await comeIn("sven", "one", own)).user).toEqual(user);

      expectUntold(own);
      await restartWith(own, "UPDATE users SET suspended_at = ? WHERE email = ?", Date.now(), email);
      const browser = new Browser(own);
      await expectRefused(browser.finish(await browser.signInAt("sven")), 403, 40300, /suspended/);
      expectUntold(own);
    });
  });
});
