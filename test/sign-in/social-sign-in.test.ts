/**
 * Sign-in at an identity provider, from the browser's side: the running server, a real provider, cookies. The tests
 * check which account a user gets, and what happens to an account that a squatter created with another person's
 * address. For the protocol, see social-providers.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell, expectQuiet, expectUnlogged } from "../support/checks.ts";
import type { Answer, Client } from "../support/client.ts";
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
import type { TestAccount } from "../support/oidc-provider.ts";
import { Socket } from "../support/socket.ts";
import { ThirdParty } from "../support/third-party.ts";
import { expectRefused, restartWith } from "../support/trading.ts";
import { World } from "../support/world.ts";
import type { SessionJson } from "./session-holder.ts";
import { Browser, environmentOf, type Providers, REDIRECT_URIS, startProviders } from "./social-browser.ts";

const NOT_BEGUN = /started no such sign-in/;
const NEW_PASSWORD = "a loud harbour at noon";

/** The users of the providers `one` and `mortal`, and of `other`; tests add their own. */
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

let providers: Providers;
let world: World;

/** A client that the tests close at the end. */
const clientOf = (token: string | null): Client => guests.client(world.server, token);
const browse = (): Browser => new Browser({ world, guests, providers });

/** Runs the whole flow in a new browser. */
async function comeIn(account: string, name: keyof Providers = "one"): Promise<{ user: UserJson; client: Client }> {
  const browser = browse();
  const { code, msg, data } = await browser.finish(await browser.signInAt(account, name));
  if (code !== 0) throw new Error(`${code} ${msg}`);
  return { user: data.user, client: clientOf(data.access_token) };
}

const me = (token: string): Promise<Answer<UserJson>> => clientOf(token).request("GET", "/me");

const signInWith = (email: string, password?: string): Promise<SignedIn> =>
  guests.signIn(world.server, email, password);

/** Registers an account with an address whose mail the squatter cannot read. */
async function squat(email: string): Promise<SignedIn> {
  expect((await register(world.server, email)).code).toBe(0);
  return signInWith(email);
}

beforeAll(async () => {
  providers = await startProviders(people, others);
  const named = { bob: { password: PASSWORD }, carol: { password: PASSWORD }, developer: { password: PASSWORD } };
  world = await World.start({ users: 0, named, env: environmentOf(providers) });
});

function expectQuietLog(): void {
  expectQuiet(world.server);
  expectUnlogged([...secrets, ...Object.values(providers).map(({ clientSecret }) => clientSecret)], world.server);
}

afterAll(async () => {
  guests.close();
  await Promise.all([...new Set(Object.values(providers))].map((provider) => provider.close()));
  expect(secrets.size).toBeGreaterThan(50);
  await expectEndsWell(world);
  expectQuietLog();
});

describe("providers", () => {
  test("providers are offered by jurisdiction", async () => {
    const everywhere = { providers: ["one", "other", "mortal", "gone"], jurisdictions: ["DE", "FR"] };
    const here = { ...everywhere, providers: ["one", "local", "other", "mortal", "gone"] };
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

  test("providers open only where they are offered", async () => {
    person("ludwig");
    const browser = browse();
    await expectRefused(browser.start("local"), 400, 40000, /jurisdiction/);
    await expectRefused(browser.start("local", "?jurisdiction=US"), 403, 40300);
    expect(browser.cookies.size).toBe(0);
    const { data } = await browser.finish(await browser.signInAt("ludwig", "local", "?jurisdiction=FR"));
    expect(data.user.email).toBe("ludwig@example.com");
  });

  test("providers that do not exist are not found", async () => {
    for (const name of ["unknown", "ONE", "constructor", "__proto__", "%00"]) {
      await expectRefused(browse().start(name), 404, 4040);
    }
    await expectRefused(clientOf(null).request("POST", "/auth/social/one"), 405, 40500);
  });

  test("providers receive the browser with a cookie for this server only, hidden from scripts", async () => {
    const { status, headers, location } = await browse().start();
    expect([status, headers["cache-control"]]).toEqual([302, "no-store"]);
    expect(new URL(location).origin).toBe(providers.one.issuer);
    expect(new URL(location).searchParams.get("redirect_uri")).toBe(REDIRECT_URIS[0]);
    const [cookie, ...rest] = headers["set-cookie"]!;
    expect(rest).toEqual([]);
    const attributes = cookie!.split(";").map((part) => part.trim().toLowerCase());
    expect(attributes).toEqual(expect.arrayContaining(["httponly", "samesite=lax", "max-age=600"]));
    expect(attributes.filter((part) => part.startsWith("domain="))).toEqual([]);
  });

  test("the cookie of a provider's sign-in is for HTTPS only where the public URL is HTTPS", async () => {
    const { headers } = await browse().start();
    expect(headers["set-cookie"]![0]).toMatch(/; *secure/i);
  });
});

describe("a sign-in opens", () => {
  test("a sign-in at a provider opens a new account with the verified address, of tier 0", async () => {
    person("alice", { email: "Alice@Example.com" });
    const browser = browse();
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

  test("a sign-in at a provider opens the same account each time, from any browser, and its sessions show the provider", async () => {
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

  test("a sign-in at a provider opens the account that has the verified address already, whose sessions and password stay valid", async () => {
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

  test("a sign-in at a provider opens the account of the provider's subject, not of the address", async () => {
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

  test("sign-ins at two providers that verify the same address open one account", async () => {
    person("frank");
    others["f"] = { sub: "f", email: "frank@example.com", email_verified: true };
    const [here, there] = [await comeIn("frank"), await comeIn("f", "other")];
    expect(there.user).toEqual(here.user);
    const methods = (await there.client.all<SessionJson>("/me/sessions")).map(({ method }) => method);
    expect(methods).toEqual(["social:other", "social:one"]);
  });

  test("a sign-in opens no account where the provider hasn't verified the address", async () => {
    people["mailless"] = { sub: "mailless" };
    person("unverified", { email_verified: false });
    // The address belongs to another user's account.
    person("carol", { sub: "carol", email_verified: false });
    for (const name of ["unverified", "mailless", "carol"]) {
      const browser = browse();
      await expectRefused(browser.finish(await browser.signInAt(name)), 403, 40300, /verified/);
    }
    expect((await register(world.server, "unverified@example.com")).status).toBe(201);
    const { client } = await signInWith("carol@example.com");
    expect((await client.all<SessionJson>("/me/sessions")).map(({ method }) => method)).toEqual(["password"]);
    // Once the provider verifies the address, the sign-in succeeds.
    person("carol");
    expect((await comeIn("carol")).user.email).toBe("carol@example.com");
  });

  test("a sign-in opens no account for an address that registration rejects, whatever the provider says of it", async () => {
    const wrong = [
      '"a@b,c@d.org"',
      "a@b.org\r\nBcc: c@d.org",
      "<img src=x>@d.org",
      "a\u202eb@d.org",
      "a b@d.org",
      "a@b@d.org",
    ];
    for (const [i, email] of wrong.entries()) {
      people[`odd${i}`] = { sub: `odd${i}`, email, email_verified: true };
      const browser = browse();
      await expectRefused(browser.finish(await browser.signInAt(`odd${i}`)), 401, 40100, /email address/);
      expect((await register(world.server, email)).code).toBe(40000);
    }
  });

  test("a sign-in at a provider opens an account without a password, until its owner sets one by mail", async () => {
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
  test("the callback needs the cookie of the browser that started the sign-in", async () => {
    person("ivan");
    const attacker = browse();
    const victims = [browse(), browse()];
    await victims[1]!.start();
    for (const victim of victims) {
      // The attacker signs in with their own account and makes the victim's browser finish.
      const callback = await attacker.signInAt("ivan");
      const answer = await expectRefused(victim.finish(callback), 401, 40100, NOT_BEGUN);
      expect(answer.data).toBeNull();
      // The attempt used up the state.
      await expectRefused(attacker.finish(callback), 401, 40100, NOT_BEGUN);
    }
    const callback = await attacker.signInAt("ivan");
    const [name] = [...attacker.cookies.keys()].slice(-1);
    for (const value of ["", "x", "A".repeat(43)]) {
      const forger = browse();
      forger.cookies.set(name!, value);
      await expectRefused(forger.finish(callback), 401, 40100, NOT_BEGUN);
    }
  });

  test("an attempt to sign in is valid once, at the provider that it started with", async () => {
    person("judy");
    const browser = browse();
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

  test("a code that the provider didn't issue, or issued for another attempt, is rejected", async () => {
    person("kate");
    const [browser, thief] = [browse(), browse()];
    const stolen = new URL(await browser.signInAt("kate")).searchParams.get("code")!;
    for (const code of [stolen, "x", ""]) {
      const own = new URL(await thief.signInAt("kate"));
      own.searchParams.set("code", code);
      await expectRefused(thief.finish(own.href), 401, 40100);
    }
  });

  test("two tabs of one browser don't interfere in a provider's sign-in", async () => {
    for (const name of ["leo", "mia"]) person(name);
    const browser = browse();
    const [first, second] = [await browser.signInAt("leo"), await browser.signInAt("mia")];
    expect(browser.cookies.size).toBe(2);
    expect((await browser.finish(second)).data.user.email).toBe("mia@example.com");
    expect((await browser.finish(first)).data.user.email).toBe("leo@example.com");
  });

  test("a first sign-in in several tabs at once creates one account", async () => {
    for (let round = 0; round < 3; round++) {
      const email = person(`nora-${round}`);
      const browser = browse();
      const callbacks = [];
      for (let tab = 0; tab < 4; tab++) callbacks.push(await browser.signInAt(`nora-${round}`));
      const answers = await Promise.all(callbacks.map((callback) => browser.finish(callback)));
      expect(answers.map(({ code, msg }) => [code, msg])).toEqual(callbacks.map(() => [0, "ok"]));
      expect(new Set(answers.map(({ data }) => data.user.id)).size).toBe(1);
      expect(answers[0]!.data.user.email).toBe(email);
    }
  });

  test("a user who declines at the provider is not signed in", async () => {
    const browser = browse();
    const callback = await browser.signInAt(null);
    expect(new URL(callback).searchParams.get("error")).toBe("access_denied");
    await expectRefused(browser.finish(callback), 401, 40100, /denied/);
    await expectRefused(browser.finish(callback), 401, 40100, NOT_BEGUN);
  });

  test("an unreachable provider is reported, before the redirect and at the callback", async () => {
    const browser = browse();
    await expectRefused(browser.start("gone"), 503, 50300, /gone cannot be reached/);
    expect(browser.cookies.size).toBe(0);
    person("olga");
    const visitor = browse();
    const callback = await visitor.signInAt("olga", "mortal");
    await providers.mortal.close();
    await expectRefused(visitor.finish(callback), 503, 50300, /mortal cannot be reached/);
  });
});

describe("an account with an address that its creator never verified", () => {
  const wish = { name: "mine", scopes: ["portfolio:read"] };
  const makeThirdParty = async (): Promise<ThirdParty> =>
    ThirdParty.register(world, (await signInWith("developer@example.com")).client);

  test("an account with an address that its creator never verified goes to the owner of the address, and nothing opens it to the squatter", async () => {
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

  test("the squatter cannot authorize a third party, create a token or add a phone", async () => {
    person("pia");
    const squatter = await squat("pia@example.com");
    const party = await makeThirdParty();
    await expect(party.consent(squatter.client)).rejects.toThrow(/40300/);
    const refused = [
      squatter.client.request("POST", "/me/personal-access-tokens", { body: wish }),
      squatter.client.request("POST", "/me/phone", { body: { phone: "+14155552671" } }),
    ];
    for (const answer of refused) await expectRefused(answer, 403, 40300, /verify/);
    const { user, client } = await comeIn("pia");
    expect(user).toMatchObject({ email_verified: true, phone: null, phone_verified: false, kyc_tier: 0 });
    expect(await client.all("/me/oauth-grants")).toEqual([]);
  });

  test("an account with an address that its creator never verified goes to its owner by a mailed link as well, and the squatter's tokens end", async () => {
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

  test("tokens that the squatter creates during the takeover are void", async () => {
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
      const browser = browse();
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

  test("the squatter's sign-ins and password change during the takeover open nothing", async () => {
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
      const browser = browse();
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
});

describe("after a restart", () => {
  let squatter: SignedIn;
  let owner: UserJson;
  /** Mailed to the address before its owner came. */
  let mailed: { readonly verification: string; readonly reset: string };
  let began: { readonly browser: Browser; readonly callback: string };
  beforeAll(async () => {
    const email = person("sven");
    squatter = await squat(email);
    await clientOf(null).data("POST", "/auth/forgot-password", { email });
    const { server } = world;
    mailed = { verification: await verificationToken(server, email), reset: await resetToken(server, email) };
    owner = (await comeIn("sven")).user;
    const browser = browse();
    began = { browser, callback: await browser.signInAt("sven") };
    const suspended = person("ursula");
    await comeIn("ursula");
    guests.close();
    expectQuietLog();
    await restartWith(world, "UPDATE users SET suspended_at = ? WHERE email = ?", Date.now(), suspended);
  });

  test("after a restart, a squatted account is still its owner's, and nothing opens it to the squatter", async () => {
    expect((await me(squatter.accessToken)).code).toBe(40100);
    await expectRefused(login(world.server, owner.email), 401, 40100);
    const visitor = clientOf(null);
    const verify = { token: mailed.verification };
    await expectRefused(visitor.request("POST", "/auth/verify-email", { body: verify }), 400, 40000);
    const body = { token: mailed.reset, password: NEW_PASSWORD };
    await expectRefused(visitor.request("POST", "/auth/reset-password", { body }), 400, 40000);
    expect((await comeIn("sven")).user).toEqual(owner);
  });

  test("a user who was at the provider during the restart must start again", async () => {
    await expectRefused(began.browser.finish(began.callback), 401, 40100, NOT_BEGUN);
  });

  test("a suspended account is closed to a sign-in at the provider", async () => {
    const browser = browse();
    await expectRefused(browser.finish(await browser.signInAt("ursula")), 403, 40300, /suspended/);
  });
});
