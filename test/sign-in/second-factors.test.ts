/**
 * Second factors over the API: enrolment, the second step of a sign-in, the bounds on guessing, and recovery codes.
 * Also the reset of a lost factor by two operators. For the requirement for operators and the state across restarts,
 * see second-factor-restarts.test.ts. For passkeys, see passkeys.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { admin } from "../support/admin.ts";
import { expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, askOnce, type Client } from "../support/client.ts";
import { expectUnkept, rowsOf } from "../support/data-dir.ts";
import {
  freshEmail,
  Guests,
  login,
  messagesTo,
  PASSWORD,
  register,
  resetToken,
  type SignedIn,
  type SignInJson,
} from "../support/identity.ts";
import { OPERATORS } from "../support/markets.ts";
import { operatorOf, userNamed } from "../support/operator.ts";
import {
  AuthenticatorApp,
  addApp,
  type ConfirmedJson,
  challengeOf,
  claimsOf,
  type EnrolmentJson,
  FACTORS,
  finish,
  prove,
  signInWithCode,
} from "../support/second-factor.ts";
import { World } from "../support/world.ts";
import { emailOf, enrol, expectRejected, factorAudit, listFactors } from "./enrolled-users.ts";

const NAMES = [
  ...["shape", "pending", "proof", "replay", "racing", "guessed", "locked", "wordy", "codes", "renewed"],
  ...["removed", "forgetful", "sessions", "full", "cookie", "flood", "lost", "shell", "self", "stale"],
];
const NEW_PASSWORD = "a loud harbour at noon";
const guests = new Guests();
const { secrets } = guests;
let world: World;

beforeAll(async () => {
  const named = Object.fromEntries(NAMES.map((name) => [name, { password: PASSWORD, deposit: 0 }]));
  world = await World.start({ users: 0, named: { ...named, ...OPERATORS } });
});
afterAll(async () => {
  guests.close();
  expectUnlogged(secrets, world.server);
  await expectEndsWell(world);
  expectUnkept(secrets, world.server.dataDir);
});

const signIn = (name: string): Promise<SignedIn> => guests.signIn(world.server, emailOf(name));
const challenge = async (name: string): Promise<string> => (await challengeOf(world.server, emailOf(name))).challenge;

describe("an authenticator app", () => {
  test("an authenticator app is added in two steps; then a sign-in has two steps, and its tokens carry the amr claims", async () => {
    // 1. Before, a sign-in takes the password alone.
    const { client, user, accessToken } = await signIn("shape");
    expect(claimsOf(accessToken).amr).toEqual(["pwd"]);
    expect(await listFactors(client)).toEqual({
      items: [],
      next_cursor: null,
      recovery_codes_left: 0,
      required: false,
      session: false,
      passkeys: expect.stringContaining("127.0.0.1"),
      proof: ["password"],
    });
    // 2. An authenticator app begins as pending, with no effect.
    await prove(client);
    expect((await listFactors(client)).proof).toBe(null);
    const begun = await client.request<EnrolmentJson>("POST", FACTORS, { body: { kind: "totp", name: "My phone" } });
    const { id, secret, uri } = begun.data;
    expect(begun.data).toMatchObject({ kind: "totp", name: "My phone", status: "pending", options: null });
    expect(begun.status).toBe(201);
    expect(secret).toMatch(/^[A-Z2-7]{32}$/);
    expect(new URL(uri!).searchParams.get("secret")).toBe(secret);
    secrets.add(secret!);
    // An unconfirmed app has no effect yet.
    expect((await login(world.server, user.email)).data.access_token).toBeDefined();
    // 3. A right code confirms it and returns the recovery codes.
    const app = new AuthenticatorApp(secret!);
    const wrong = await client.request("POST", `${FACTORS}/${id}/confirm`, { body: { code: app.wrong() } });
    expectRejected(wrong, 40000, /^code: wrong, 4 more tries$/);
    const { factor, recovery_codes } = await client.data<ConfirmedJson>("POST", `${FACTORS}/${id}/confirm`, {
      code: app.next(),
    });
    expect(factor).toEqual({
      id,
      kind: "totp",
      name: "My phone",
      created_at: expect.any(Number),
      last_used_at: null,
    });
    expect(recovery_codes).toHaveLength(10);
    expect(new Set(recovery_codes).size).toBe(10);
    for (const code of recovery_codes!) {
      expect(code).toMatch(/^([A-Z2-7]{4}-){3}[A-Z2-7]{4}$/);
      secrets.add(code).add(code.replaceAll("-", ""));
    }
    expect(await listFactors(client)).toMatchObject({ items: [factor], recovery_codes_left: 10, session: true });

    // 4. From then on a sign-in has two steps.
    const first = await login(world.server, user.email);
    expect(first.data).toEqual({
      challenge: expect.stringMatching(/^pm_chl_[A-Za-z0-9_-]{43}$/),
      methods: ["totp", "recovery_code"],
      passkey: null,
      expires_at: expect.any(Number),
    });
    const second = await signInWithCode(world.server, user.email, app.next());
    expect(claimsOf(second.accessToken).amr).toEqual(["pwd", "otp", "mfa"]);
    const sessions = await second.client.all<{ current: boolean; method: string; second_factor: boolean }>(
      "/me/sessions",
    );
    expect(sessions.find(({ current }) => current)).toMatchObject({ method: "password", second_factor: true });
    expect((await listFactors(second.client)).items[0]!.last_used_at).toEqual(expect.any(Number));
    // 5. It was audited, and the user got one mail.
    second.client.close();
    expect(factorAudit(world, user.id)).toEqual(["second_factor.add"]);
    expect(messagesTo(world.server, user.email).filter((text) => text.includes("was added"))).toHaveLength(1);
  });

  test("an authenticator app ends the sessions opened without it, except the one that added it", async () => {
    const before = await signIn("sessions");
    const { client } = await enrol(guests, world, "sessions");
    expect((await before.client.request("GET", "/me")).code).toBe(40100);
    const refreshed = await askOnce(world.server, null, "POST", "/auth/refresh", {
      body: { refresh_token: before.refreshToken },
    });
    expect(refreshed.code).toBe(40100);
    expect((await client.request("GET", "/me")).code).toBe(0);
  });

  test("an authenticator app is pending until confirmed: five wrong codes end it, another enrolment replaces it, the owner can cancel it", async () => {
    const { client } = await signIn("pending");
    await prove(client);
    const begin = (): Promise<EnrolmentJson> => client.data("POST", FACTORS, { kind: "totp" });
    const confirm = ({ id }: EnrolmentJson, code: string): Promise<Answer> =>
      client.request("POST", `${FACTORS}/${id}/confirm`, { body: { code } });
    const tried = await begin();
    const app = new AuthenticatorApp(tried.secret!);
    for (const left of [4, 3, 2]) expectRejected(await confirm(tried, app.wrong()), 40000, new RegExp(`${left} more`));
    expectRejected(await confirm(tried, app.wrong()), 40000, /1 more try/);
    expectRejected(await confirm(tried, app.wrong()), 40000, /start again/);
    expectRejected(await confirm(tried, app.next()), 4040, /awaiting confirmation/);
    const [replaced, given] = [await begin(), await begin()];
    expect((await confirm(replaced, new AuthenticatorApp(replaced.secret!).next())).code).toBe(4040);
    await client.data("DELETE", `${FACTORS}/${given.id}`);
    expect((await confirm(given, new AuthenticatorApp(given.secret!).next())).code).toBe(4040);
    // A user cannot confirm another user's factor.
    const mine = await begin();
    const { client: stranger } = await signIn("proof");
    const path = `${FACTORS}/${mine.id}/confirm`;
    expect((await stranger.request("POST", path, { body: { code: "123456" } })).code).toBe(4040);
    expect((await stranger.request("DELETE", `${FACTORS}/${mine.id}`)).code).toBe(4040);
    expect((await listFactors(client)).items).toEqual([]);
  });

  test("authenticator apps are limited to two per account", async () => {
    const { client, recoveryCodes } = await enrol(guests, world, "full");
    const second = await addApp(client);
    secrets.add(second.app.secret);
    expect([recoveryCodes?.length, second.recoveryCodes]).toEqual([10, null]);
    const third = await client.request("POST", FACTORS, { body: { kind: "totp" } });
    expectRejected(third, 40900, /at most 2 of this kind/);
    // A code of either app is valid.
    (await signInWithCode(world.server, emailOf("full"), second.app.next())).client.close();
  });

  test("an authenticator app needs a verified address", async () => {
    const email = freshEmail();
    await register(world.server, email);
    const { client } = await guests.signIn(world.server, email);
    await prove(client).catch(() => {});
    expectRejected(await client.request("POST", FACTORS, { body: { kind: "totp" } }), 40300, /verif/);
  });
});

describe("the owner's proof", () => {
  test("the owner's proof precedes a change, by password or code, and counts for its own session only", async () => {
    const { client } = await signIn("proof");
    const add = (by: Client): Promise<Answer> => by.request("POST", FACTORS, { body: { kind: "totp" } });
    expectRejected(await add(client), 40300, /confirm your identity first.*second-factors\/proof/);
    const wrong = await client.request("POST", `${FACTORS}/proof`, { body: { password: "a wrong harbour" } });
    expectRejected(wrong, 40300, /current password is wrong/);
    expectRejected(await add(client), 40300, /confirm your identity first/);
    await prove(client);
    expect((await add(client)).code).toBe(0);
    const other = await signIn("proof");
    expectRejected(await add(other.client), 40300, /confirm your identity first/);
    for (const body of [{}, { password: PASSWORD, code: "123456" }]) {
      expectRejected(
        await client.request("POST", `${FACTORS}/proof`, { body }),
        40000,
        /password: required, unless you send code/,
      );
    }
  });

  test("the owner's proof is required for each change; a code is a proof too, and wrong proofs are limited", async () => {
    const { app, id, client } = await enrol(guests, world, "removed");
    const { client: fresh } = await signInWithCode(world.server, emailOf("removed"), app.next());
    for (const [method, path] of [
      ["DELETE", `${FACTORS}/${id}`],
      ["POST", `${FACTORS}/recovery-codes`],
      ["POST", FACTORS],
    ] as const) {
      const body = path === FACTORS ? { body: { kind: "totp" } } : {};
      expectRejected(await fresh.request(method, path, body), 40300, /confirm your identity first/);
    }
    await prove(fresh, { code: app.next() });
    await fresh.data("DELETE", `${FACTORS}/${id}`);
    expect(await listFactors(fresh)).toMatchObject({ items: [], recovery_codes_left: 0, session: false });
    expect((await login(world.server, emailOf("removed"))).data.access_token).toBeDefined();
    expect((await fresh.request("DELETE", `${FACTORS}/${id}`)).code).toBe(4040);
    const { id: userId } = await fresh.get<{ id: number }>("/me");
    expect(factorAudit(world, userId)).toEqual(["second_factor.add", "second_factor.remove"]);
    expect(messagesTo(world.server, emailOf("removed")).some((text) => text.includes("was removed"))).toBe(true);
    // Removing the app removes its secret.
    const sql = "SELECT secret, removed_at FROM second_factors WHERE id = ?";
    expect(rowsOf(world.server.dataDir, sql, id)).toEqual([{ secret: null, removed_at: expect.any(Number) }]);
    fresh.close();
    // Concurrent attempts do not exceed the bound.
    const guesser = guests.client(world.server, client.token, 30);
    const guess = (): Promise<Answer> => guesser.request("POST", `${FACTORS}/proof`, { body: { password: "a guess" } });
    const outcomes = (await Promise.all(Array.from({ length: 30 }, guess))).map(({ code }) => code);
    expect(outcomes.filter((code) => code === 40300).length).toBeLessThanOrEqual(10);
    expect(outcomes.filter((code) => ![40300, 40900, 42900].includes(code))).toEqual([]);
    for (let code = 0; code !== 42900; ) {
      ({ code } = await client.request("POST", `${FACTORS}/proof`, { body: { code: "000000" } }));
      expect([40300, 42900]).toContain(code);
    }
    const limited = await client.request("POST", `${FACTORS}/proof`, { body: { password: PASSWORD } });
    expectRejected(limited, 42900, /too many wrong proofs/);
  });
});

describe("the second step", () => {
  test("the second step accepts each code once, also from two concurrent requests", async () => {
    const { app } = await enrol(guests, world, "replay");
    const code = app.next();
    const [one, two] = [await challenge("replay"), await challenge("replay")];
    const answers = await Promise.all([one, two].map((each) => finish(world.server, each, { code })));
    expect(answers.map(({ code: outcome }) => outcome).sort()).toEqual([0, 40100]);
    expectRejected(await finish(world.server, await challenge("replay"), { code }), 40100, /wrong, or used before/);
    // The code that confirmed the app is used, too.
    const earlier = new AuthenticatorApp(app.secret);
    expect((await finish(world.server, await challenge("replay"), { code: earlier.next() })).code).toBe(40100);
  });

  test("the second step accepts a challenge once, also from two concurrent requests", async () => {
    const { app, recoveryCodes } = await enrol(guests, world, "racing");
    const one = await challenge("racing");
    const codes = [app.next(), recoveryCodes![0]!];
    const answers = await Promise.all(codes.map((code) => finish(world.server, one, { code })));
    expect(answers.filter(({ code }) => code === 0)).toHaveLength(1);
    expect([40100, 40900]).toContain(answers.find(({ code }) => code !== 0)!.code);
    expectRejected(await finish(world.server, one, { code: recoveryCodes![1]! }), 40100, /^challenge: unknown, used/);
  });

  test("the second step ends at the fifth wrong code; the tenth within an hour blocks all codes and mails the owner", async () => {
    const { app } = await enrol(guests, world, "guessed");
    const mails = (): number =>
      messagesTo(world.server, emailOf("guessed")).filter((text) => text.includes("wrong codes")).length;
    for (let round = 0; round < 2; round++) {
      const each = await challenge("guessed");
      for (const left of [4, 3, 2, 1]) {
        const words = left === 1 ? /1 more try/ : new RegExp(`${left} more tries`);
        expectRejected(await finish(world.server, each, { code: app.wrong() }), 40100, words);
      }
      expect(mails()).toBe(0);
      expectRejected(await finish(world.server, each, { code: app.wrong() }), 40100, /sign in again/);
      expectRejected(await finish(world.server, each, { code: app.next() }), 40100, /^challenge/);
    }
    const late = await finish(world.server, await challenge("guessed"), { code: app.next() });
    expectRejected(late, 42900, /too many wrong codes/);
    expect(Number(late.headers["retry-after"])).toBeGreaterThan(3_000);
    await expect.poll(mails).toBe(1);
  });

  test("the second step cannot be blocked by strangers: without the password there is no challenge", async () => {
    const { app } = await enrol(guests, world, "locked");
    // The limit is 10 wrong codes.
    for (let i = 0; i < 11; i++) {
      expect((await login(world.server, emailOf("locked"), "a guess of the password")).code).toBe(40100);
      expect((await finish(world.server, `pm_chl_${"A".repeat(43)}`, { code: app.wrong() })).code).toBe(40100);
    }
    (await signInWithCode(world.server, emailOf("locked"), app.next())).client.close();
  });

  test("the second step names the fault of an invalid body, and counts no attempt", async () => {
    await enrol(guests, world, "wordy");
    const each = await challenge("wordy");
    for (const [shown, words] of [
      [{}, /code: required, unless you send passkey/],
      [{ code: "123456", passkey: { id: "a", rawId: "a", type: "public-key", response: {} } }, /passkey/],
      [{ code: "" }, /code/],
      [{ code: 123456 }, /code/],
      [{ otp: "123456" }, /otp/],
    ] as const) {
      expectRejected(await finish(world.server, each, shown), 40000, words);
    }
    expectRejected(await finish(world.server, each, { code: "x" }), 40100, /4 more tries/);
  });

  test("the second step keeps the newest five challenges of an account", async () => {
    const { app } = await enrol(guests, world, "flood");
    const all: string[] = [];
    for (let i = 0; i < 6; i++) all.push(await challenge("flood"));
    expectRejected(await finish(world.server, all[0]!, { code: app.wrong() }), 40100, /^challenge/);
    expect((await finish(world.server, all[1]!, { code: app.next() })).code).toBe(0);
  });

  test("the second step ends when the password changes, and a password reset doesn't skip it", async () => {
    const { app, client } = await enrol(guests, world, "forgetful");
    const before = await challenge("forgetful");
    await client.data("POST", "/me/password", { current: PASSWORD, new: NEW_PASSWORD });
    expectRejected(await finish(world.server, before, { code: app.next() }), 40100, /^challenge/);
    const anonymous = world.anonymous();
    await anonymous.data("POST", "/auth/forgot-password", { email: emailOf("forgetful") });
    const token = await resetToken(world.server, emailOf("forgetful"));
    await anonymous.data("POST", "/auth/reset-password", { token, password: "a third harbour at dusk" });
    const { challenge: after } = await challengeOf(world.server, emailOf("forgetful"), "a third harbour at dusk");
    expect((await finish(world.server, after, { code: app.again() })).code).toBe(0);
  });

  test("the second step returns the refresh token in a cookie on request, to pages of the exchange only", async () => {
    const { app } = await enrol(guests, world, "cookie");
    const send = (body: object, headers: Record<string, string> = {}): Promise<Answer<SignInJson>> =>
      askOnce(world.server, null, "POST", "/auth/login/second-factor", { body, headers });
    const each = await challenge("cookie");
    const foreign = await send({ challenge: each, code: app.next(), cookie: true }, { "Sec-Fetch-Site": "cross-site" });
    expect(foreign.code).toBe(40300);
    const { code, data, headers } = await send({ challenge: each, code: app.again(), cookie: true });
    expect([code, data.refresh_token]).toEqual([0, null]);
    const kept = headers["set-cookie"]![0]!.split(";")[0]!;
    secrets.add(kept.split("=")[1]!);
    const refreshed = await askOnce<SignInJson>(world.server, null, "POST", "/auth/refresh", {
      body: {},
      headers: { Cookie: kept, "Content-Type": "application/json" },
    });
    expect(claimsOf(refreshed.data.access_token).amr).toEqual(["pwd", "otp", "mfa"]);
  });
});

describe("recovery codes", () => {
  test("recovery codes replace the factor once each, in any spelling, and the owner is notified", async () => {
    const { recoveryCodes } = await enrol(guests, world, "codes");
    const [first, second] = recoveryCodes!;
    expect((await finish(world.server, await challenge("codes"), { code: first! })).code).toBe(0);
    expect((await finish(world.server, await challenge("codes"), { code: first! })).code).toBe(40100);
    const typed = second!.replaceAll("-", " ").toLowerCase();
    const { data } = await finish(world.server, await challenge("codes"), { code: typed });
    expect(claimsOf(data.access_token).amr).toContain("mfa");
    const session = guests.client(world.server, data.access_token);
    expect((await listFactors(session)).recovery_codes_left).toBe(8);
    const { id } = await session.get<{ id: number }>("/me");
    expect(factorAudit(world, id)).toEqual(["second_factor.add", "second_factor.recover", "second_factor.recover"]);
    await expect
      .poll(() => messagesTo(world.server, emailOf("codes")).filter((text) => /8 recovery codes left/.test(text)))
      .toHaveLength(1);
  });

  test("recovery codes are replaced after a proof, and the old ones stop working", async () => {
    const { client, recoveryCodes } = await enrol(guests, world, "renewed");
    const { recovery_codes } = await client.data<{ recovery_codes: string[] }>("POST", `${FACTORS}/recovery-codes`);
    for (const code of recovery_codes) secrets.add(code);
    expect((await finish(world.server, await challenge("renewed"), { code: recoveryCodes![0]! })).code).toBe(40100);
    expect((await finish(world.server, await challenge("renewed"), { code: recovery_codes[0]! })).code).toBe(0);
    expect((await listFactors(client)).recovery_codes_left).toBe(9);
  });
});

describe("a lost second factor", () => {
  test("a lost second factor is reset by two operators even without the two-person rule; the owner gets two mails, and the sessions end", async () => {
    const { client, app } = await enrol(guests, world, "lost");
    const [one, two] = [await operatorOf(world.server), await operatorOf(world.server, "second")];
    const { id } = await userNamed(one, "lost");
    const path = `/admin/users/${id}/second-factors/reset`;
    const reset = (by: Client): Promise<Answer<{ done: boolean; approval: { action: string } | null }>> =>
      by.request("POST", path, { body: { note: "by video" } });
    for (let i = 0; i < 2; i++) {
      expect((await reset(one)).data).toMatchObject({ done: false, approval: { action: "second_factor.reset" } });
    }
    expect((await finish(world.server, await challenge("lost"), { code: app.next() })).code).toBe(0);
    const pending = await challenge("lost");
    expect((await reset(two)).data).toEqual({ done: true, approval: null });
    expect((await client.request("GET", "/me")).code).toBe(40100);
    expect((await finish(world.server, pending, { code: app.next() })).code).toBe(40100);
    const { client: again } = await signIn("lost");
    expect((await listFactors(again)).items).toEqual([]);
    expectRejected(await reset(one), 40900, /no second factor/);
    expect(factorAudit(world, id)).toEqual(["second_factor.add", "second_factor.reset.approve", "second_factor.reset"]);
    const mails = messagesTo(world.server, emailOf("lost"));
    await expect.poll(() => mails.filter((text) => /requested the removal/.test(text)).length).toBe(1);
    await expect
      .poll(() => messagesTo(world.server, emailOf("lost")).filter((text) => /were removed/.test(text)).length)
      .toBe(1);
    one.close();
    two.close();
  });

  test("a lost second factor cannot be reset by its owner, and an approval is void once the factors change", async () => {
    const { app } = await enrol(guests, world, "second");
    const { client: second } = await signInWithCode(world.server, emailOf("second"), app.next());
    const one = await operatorOf(world.server);
    const { id: own } = await userNamed(one, "second");
    const mine = await second.request("POST", `/admin/users/${own}/second-factors/reset`, { body: {} });
    expectRejected(mine, 40300, /own/);
    const { client } = await enrol(guests, world, "stale");
    const { id } = await userNamed(one, "stale");
    const path = `/admin/users/${id}/second-factors/reset`;
    await one.data("POST", path, {});
    secrets.add((await addApp(client)).app.secret);
    expect((await second.request("POST", path, { body: {} })).code).toBe(40900);
    expect((await listFactors(client)).items).toHaveLength(2);
    for (const each of [one, second]) each.close();
    const shell = await admin(world.server.dataDir, "second-factor", "reset", emailOf("second"));
    expect(shell).toMatchObject({ code: 0 });
  });

  test("a lost second factor is reset by an operator and the shell, which counts as one person", async () => {
    await enrol(guests, world, "self");
    const one = await operatorOf(world.server);
    const { id } = await userNamed(one, "self");
    const reset = () =>
      admin(world.server.dataDir, "second-factor", "approve-reset", emailOf("self"), "--note", "seen");
    for (let i = 0; i < 2; i++) expect(JSON.parse((await reset()).out)).toMatchObject({ done: false });
    expect(await one.data("POST", `/admin/users/${id}/second-factors/reset`, {})).toEqual({
      done: true,
      approval: null,
    });
    one.close();
  });

  test("a lost second factor is reset from the shell alone, and the audit log records it", async () => {
    const { client, recoveryCodes } = await enrol(guests, world, "shell");
    const { id } = await client.get<{ id: number }>("/me");
    expect(await admin(world.server.dataDir, "second-factor", "reset", emailOf("shell"))).toMatchObject({ code: 0 });
    expect((await client.request("GET", "/me")).code).toBe(40100);
    const [line] = rowsOf<object>(
      world.server.dataDir,
      "SELECT actor, user_id FROM audit_log WHERE action = 'second_factor.reset' AND user_id = ?",
      id,
    );
    expect(line).toEqual({ actor: "admin", user_id: id });
    expect((await login(world.server, emailOf("shell"))).data.access_token).toBeDefined();
    const none = await admin(world.server.dataDir, "second-factor", "reset", emailOf("shell"));
    expect([none.code, none.errors]).toEqual([1, expect.stringContaining("no second factor")]);
    expect(recoveryCodes).toHaveLength(10);
  });
});

test("operators need no second factor where only the machine itself reaches the exchange", async () => {
  const { client } = await signIn("operator");
  expect((await client.request("GET", "/admin/users")).code).toBe(0);
});
