/**
 * Second factors over the API: enrolment, the second step of a sign-in, the bounds on guessing, and recovery codes.
 * Also the requirement for operators, the reset of a lost factor by two of them, and the state that survives a kill
 * -9. For passkeys, see passkeys.test.ts.
 */
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SECOND_FACTOR_KEYS } from "../../server/accounts/second-factor-keys.ts";
import { admin } from "../support/admin.ts";
import { expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, askOnce, Client } from "../support/client.ts";
import { CLOCK_STEP_MS, MOVABLE_CLOCK, stepClock } from "../support/clock.ts";
import { expectUnkept, rowsOf, withDatabase } from "../support/data-dir.ts";
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
import { OPERATOR, operatorOf, userNamed } from "../support/operator.ts";
import {
  AuthenticatorApp,
  addApp,
  type ChallengeJson,
  type ConfirmedJson,
  challengeOf,
  claimsOf,
  type Enrolled,
  type EnrolmentJson,
  FACTORS,
  type FactorsJson,
  finish,
  prove,
  signInWithCode,
} from "../support/second-factor.ts";
import { alone } from "../support/trading.ts";
import { PUBLIC_URL, World } from "../support/world.ts";

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

function expectRefused({ code, msg }: Answer, expected: number, words: RegExp): void {
  expect([code, msg]).toEqual([expected, expect.stringMatching(words)]);
}

const emailOf = (name: string): string => `${name}@example.com`;
const signIn = (name: string): Promise<SignedIn> => guests.signIn(world.server, emailOf(name));

/** Signs in, adds an authenticator app, and records the secrets. */
async function enrol(name: string, at = world): Promise<Enrolled & { client: Client }> {
  const { client } = await guests.signIn(at.server, emailOf(name));
  const enrolled = await addApp(client);
  secrets.add(enrolled.app.secret);
  for (const code of enrolled.recoveryCodes ?? []) secrets.add(code).add(code.replaceAll("-", ""));
  return { ...enrolled, client };
}

const challenge = async (name: string): Promise<string> => (await challengeOf(world.server, emailOf(name))).challenge;
const listed = (client: Client): Promise<FactorsJson> => client.get(FACTORS);
const auditOf = (userId: number, at = world): string[] =>
  rowsOf<{ action: string }>(
    at.server.dataDir,
    "SELECT action FROM audit_log WHERE user_id = ? AND action LIKE 'second_factor%' ORDER BY id",
    userId,
  ).map(({ action }) => action);

describe("an authenticator app", () => {
  test("is added in two steps; then a sign-in takes two, and its tokens say so", async () => {
    const { client, user, accessToken } = await signIn("shape");
    expect(claimsOf(accessToken).amr).toEqual(["pwd"]);
    expect(await listed(client)).toEqual({
      items: [],
      next_cursor: null,
      recovery_codes_left: 0,
      required: false,
      session: false,
      passkeys: expect.stringContaining("127.0.0.1"),
      proof: ["password"],
    });
    await prove(client);
    expect((await listed(client)).proof).toBe(null);
    const begun = await client.request<EnrolmentJson>("POST", FACTORS, { body: { kind: "totp", name: "My phone" } });
    const { id, secret, uri } = begun.data;
    expect(begun.data).toMatchObject({ kind: "totp", name: "My phone", status: "pending", options: null });
    expect(begun.status).toBe(201);
    expect(secret).toMatch(/^[A-Z2-7]{32}$/);
    expect(new URL(uri!).searchParams.get("secret")).toBe(secret);
    secrets.add(secret!);
    // An unconfirmed app has no effect yet.
    expect((await login(world.server, user.email)).data.access_token).toBeDefined();
    const app = new AuthenticatorApp(secret!);
    const wrong = await client.request("POST", `${FACTORS}/${id}/confirm`, { body: { code: app.wrong() } });
    expectRefused(wrong, 40000, /^code: wrong, 4 more tries$/);
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
    expect(await listed(client)).toMatchObject({ items: [factor], recovery_codes_left: 10, session: true });

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
    expect((await listed(second.client)).items[0]!.last_used_at).toEqual(expect.any(Number));
    second.client.close();
    expect(auditOf(user.id)).toEqual(["second_factor.add"]);
    expect(messagesTo(world.server, user.email).filter((text) => text.includes("was added"))).toHaveLength(1);
  });

  test("ends the sessions that were made without it, not the one that added it", async () => {
    const before = await signIn("sessions");
    const { client } = await enrol("sessions");
    expect((await before.client.request("GET", "/me")).code).toBe(40100);
    const refreshed = await askOnce(world.server, null, "POST", "/auth/refresh", {
      body: { refresh_token: before.refreshToken },
    });
    expect(refreshed.code).toBe(40100);
    expect((await client.request("GET", "/me")).code).toBe(0);
  });

  test("waits for its confirmation: five wrong codes end it, another takes its place, it can be given up", async () => {
    const { client } = await signIn("pending");
    await prove(client);
    const begin = (): Promise<EnrolmentJson> => client.data("POST", FACTORS, { kind: "totp" });
    const confirm = ({ id }: EnrolmentJson, code: string): Promise<Answer> =>
      client.request("POST", `${FACTORS}/${id}/confirm`, { body: { code } });
    const tried = await begin();
    const app = new AuthenticatorApp(tried.secret!);
    for (const left of [4, 3, 2]) expectRefused(await confirm(tried, app.wrong()), 40000, new RegExp(`${left} more`));
    expectRefused(await confirm(tried, app.wrong()), 40000, /1 more try/);
    expectRefused(await confirm(tried, app.wrong()), 40000, /start again/);
    expectRefused(await confirm(tried, app.next()), 4040, /awaiting confirmation/);
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
    expect((await listed(client)).items).toEqual([]);
  });

  test("has a bound of two", async () => {
    const { client, recoveryCodes } = await enrol("full");
    const second = await addApp(client);
    secrets.add(second.app.secret);
    expect([recoveryCodes?.length, second.recoveryCodes]).toEqual([10, null]);
    const third = await client.request("POST", FACTORS, { body: { kind: "totp" } });
    expectRefused(third, 40900, /at most 2 of this kind/);
    // A code of either app is valid.
    (await signInWithCode(world.server, emailOf("full"), second.app.next())).client.close();
  });

  test("needs a verified address", async () => {
    const email = freshEmail();
    await register(world.server, email);
    const { client } = await guests.signIn(world.server, email);
    await prove(client).catch(() => {});
    expectRefused(await client.request("POST", FACTORS, { body: { kind: "totp" } }), 40300, /verif/);
  });
});

describe("the owner's proof", () => {
  test("comes before a change, from the password or a code, and is the session's own", async () => {
    const { client } = await signIn("proof");
    const add = (by: Client): Promise<Answer> => by.request("POST", FACTORS, { body: { kind: "totp" } });
    expectRefused(await add(client), 40300, /confirm your identity first.*second-factors\/proof/);
    const wrong = await client.request("POST", `${FACTORS}/proof`, { body: { password: "a wrong harbour" } });
    expectRefused(wrong, 40300, /current password is wrong/);
    expectRefused(await add(client), 40300, /confirm your identity first/);
    await prove(client);
    expect((await add(client)).code).toBe(0);
    const other = await signIn("proof");
    expectRefused(await add(other.client), 40300, /confirm your identity first/);
    for (const body of [{}, { password: PASSWORD, code: "123456" }]) {
      expectRefused(
        await client.request("POST", `${FACTORS}/proof`, { body }),
        40000,
        /password: required, unless you send code/,
      );
    }
  });

  test("is asked for by each change, and a code proves too; wrong ones are bounded", async () => {
    const { app, id, client } = await enrol("removed");
    const { client: fresh } = await signInWithCode(world.server, emailOf("removed"), app.next());
    for (const [method, path] of [
      ["DELETE", `${FACTORS}/${id}`],
      ["POST", `${FACTORS}/recovery-codes`],
      ["POST", FACTORS],
    ] as const) {
      const body = path === FACTORS ? { body: { kind: "totp" } } : {};
      expectRefused(await fresh.request(method, path, body), 40300, /confirm your identity first/);
    }
    await prove(fresh, { code: app.next() });
    await fresh.data("DELETE", `${FACTORS}/${id}`);
    expect(await listed(fresh)).toMatchObject({ items: [], recovery_codes_left: 0, session: false });
    expect((await login(world.server, emailOf("removed"))).data.access_token).toBeDefined();
    expect((await fresh.request("DELETE", `${FACTORS}/${id}`)).code).toBe(4040);
    const { id: userId } = await fresh.get<{ id: number }>("/me");
    expect(auditOf(userId)).toEqual(["second_factor.add", "second_factor.remove"]);
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
    expectRefused(limited, 42900, /too many wrong proofs/);
  });

  test("by password isn't enough for a session that was made without the second factor", async () => {
    const owner = { password: PASSWORD, deposit: 0 };
    await alone({ users: 0, named: { owner }, env: { PUBLIC_URL } }, async (own) => {
      const { app } = await enrol("owner", own);
      const { client } = await signInWithCode(own.server, emailOf("owner"), app.next());
      client.close();
      await own.server.stop();
      // The same state as in a restored database.
      withDatabase(own.server.dataDir, (db) => db.exec("UPDATE sessions SET amr = 'pwd'"));
      own.server = await own.server.restart();
      const session = guests.client(own.server, client.token);
      const proof = (body: object): Promise<Answer> => session.request("POST", `${FACTORS}/proof`, { body });
      expect((await listed(session)).proof).toEqual(["code"]);
      expectRefused(await proof({ password: PASSWORD }), 40300, /^code: required.*opened without one/);
      expect((await proof({ code: app.next() })).code).toBe(0);
    });
  });
});

describe("the second step", () => {
  test("takes each code once, also from two at one time", async () => {
    const { app } = await enrol("replay");
    const code = app.next();
    const [one, two] = [await challenge("replay"), await challenge("replay")];
    const answers = await Promise.all([one, two].map((each) => finish(world.server, each, { code })));
    expect(answers.map(({ code: outcome }) => outcome).sort()).toEqual([0, 40100]);
    expectRefused(await finish(world.server, await challenge("replay"), { code }), 40100, /wrong, or used before/);
    // The code that confirmed the app is used, too.
    const earlier = new AuthenticatorApp(app.secret);
    expect((await finish(world.server, await challenge("replay"), { code: earlier.next() })).code).toBe(40100);
  });

  test("takes a challenge once, also from two at one time", async () => {
    const { app, recoveryCodes } = await enrol("racing");
    const one = await challenge("racing");
    const codes = [app.next(), recoveryCodes![0]!];
    const answers = await Promise.all(codes.map((code) => finish(world.server, one, { code })));
    expect(answers.filter(({ code }) => code === 0)).toHaveLength(1);
    expect([40100, 40900]).toContain(answers.find(({ code }) => code !== 0)!.code);
    expectRefused(await finish(world.server, one, { code: recoveryCodes![1]! }), 40100, /^challenge: unknown, used/);
  });

  test("ends with the fifth wrong code; a tenth within an hour shuts codes out, and mails the owner", async () => {
    const { app } = await enrol("guessed");
    const mails = (): number =>
      messagesTo(world.server, emailOf("guessed")).filter((text) => text.includes("wrong codes")).length;
    for (let round = 0; round < 2; round++) {
      const each = await challenge("guessed");
      for (const left of [4, 3, 2, 1]) {
        const words = left === 1 ? /1 more try/ : new RegExp(`${left} more tries`);
        expectRefused(await finish(world.server, each, { code: app.wrong() }), 40100, words);
      }
      expect(mails()).toBe(0);
      expectRefused(await finish(world.server, each, { code: app.wrong() }), 40100, /sign in again/);
      expectRefused(await finish(world.server, each, { code: app.next() }), 40100, /^challenge/);
    }
    const late = await finish(world.server, await challenge("guessed"), { code: app.next() });
    expectRefused(late, 42900, /too many wrong codes/);
    expect(Number(late.headers["retry-after"])).toBeGreaterThan(3_000);
    await expect.poll(mails).toBe(1);
  });

  test("isn't shut by strangers: who doesn't know the password has no challenge", async () => {
    const { app } = await enrol("locked");
    for (let i = 0; i < 20; i++) {
      expect((await login(world.server, emailOf("locked"), "a guess of the password")).code).toBe(40100);
      expect((await finish(world.server, `pm_chl_${"A".repeat(43)}`, { code: app.wrong() })).code).toBe(40100);
    }
    (await signInWithCode(world.server, emailOf("locked"), app.next())).client.close();
  });

  test("says what is wrong with a body, and tries nothing", async () => {
    await enrol("wordy");
    const each = await challenge("wordy");
    for (const [shown, words] of [
      [{}, /code: required, unless you send passkey/],
      [{ code: "123456", passkey: { id: "a", rawId: "a", type: "public-key", response: {} } }, /passkey/],
      [{ code: "" }, /code/],
      [{ code: 123456 }, /code/],
      [{ otp: "123456" }, /otp/],
    ] as const) {
      expectRefused(await finish(world.server, each, shown), 40000, words);
    }
    expectRefused(await finish(world.server, each, { code: "x" }), 40100, /4 more tries/);
  });

  test("keeps five challenges of an account, the newest", async () => {
    const { app } = await enrol("flood");
    const all: string[] = [];
    for (let i = 0; i < 6; i++) all.push(await challenge("flood"));
    expectRefused(await finish(world.server, all[0]!, { code: app.wrong() }), 40100, /^challenge/);
    expect((await finish(world.server, all[1]!, { code: app.next() })).code).toBe(0);
  });

  test("ends with a new password, and a reset of the password doesn't skip it", async () => {
    const { app, client } = await enrol("forgetful");
    const before = await challenge("forgetful");
    await client.data("POST", "/me/password", { current: PASSWORD, new: NEW_PASSWORD });
    expectRefused(await finish(world.server, before, { code: app.next() }), 40100, /^challenge/);
    const anonymous = world.anonymous();
    await anonymous.data("POST", "/auth/forgot-password", { email: emailOf("forgetful") });
    const token = await resetToken(world.server, emailOf("forgetful"));
    await anonymous.data("POST", "/auth/reset-password", { token, password: "a third harbour at dusk" });
    const { challenge: after } = await challengeOf(world.server, emailOf("forgetful"), "a third harbour at dusk");
    expect((await finish(world.server, after, { code: app.again() })).code).toBe(0);
  });

  test("leaves the refresh token in the page's cookie where that is asked for, by pages of the exchange alone", async () => {
    const { app } = await enrol("cookie");
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
  test("stand in for the factor once each, however they are typed, and the owner hears of it", async () => {
    const { recoveryCodes } = await enrol("codes");
    const [first, second] = recoveryCodes!;
    expect((await finish(world.server, await challenge("codes"), { code: first! })).code).toBe(0);
    expect((await finish(world.server, await challenge("codes"), { code: first! })).code).toBe(40100);
    const typed = second!.replaceAll("-", " ").toLowerCase();
    const { data } = await finish(world.server, await challenge("codes"), { code: typed });
    expect(claimsOf(data.access_token).amr).toContain("mfa");
    const session = guests.client(world.server, data.access_token);
    expect((await listed(session)).recovery_codes_left).toBe(8);
    const { id } = await session.get<{ id: number }>("/me");
    expect(auditOf(id)).toEqual(["second_factor.add", "second_factor.recover", "second_factor.recover"]);
    await expect
      .poll(() => messagesTo(world.server, emailOf("codes")).filter((text) => /8 recovery codes left/.test(text)))
      .toHaveLength(1);
  });

  test("are made anew after a proof: the old ones are good no more", async () => {
    const { client, recoveryCodes } = await enrol("renewed");
    const { recovery_codes } = await client.data<{ recovery_codes: string[] }>("POST", `${FACTORS}/recovery-codes`);
    for (const code of recovery_codes) secrets.add(code);
    expect((await finish(world.server, await challenge("renewed"), { code: recoveryCodes![0]! })).code).toBe(40100);
    expect((await finish(world.server, await challenge("renewed"), { code: recovery_codes[0]! })).code).toBe(0);
    expect((await listed(client)).recovery_codes_left).toBe(9);
  });
});

describe("a lost second factor", () => {
  test("is reset by two operators, without the two-person rule; the owner is mailed twice, and its sessions end", async () => {
    const { client, app } = await enrol("lost");
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
    expect((await listed(again)).items).toEqual([]);
    expectRefused(await reset(one), 40900, /no second factor/);
    expect(auditOf(id)).toEqual(["second_factor.add", "second_factor.reset.approve", "second_factor.reset"]);
    const mails = messagesTo(world.server, emailOf("lost"));
    await expect.poll(() => mails.filter((text) => /requested the removal/.test(text)).length).toBe(1);
    await expect
      .poll(() => messagesTo(world.server, emailOf("lost")).filter((text) => /were removed/.test(text)).length)
      .toBe(1);
    one.close();
    two.close();
  });

  test("is nobody's own to reset, and an approval is of the factors that there were", async () => {
    const { app } = await enrol("second");
    const { client: second } = await signInWithCode(world.server, emailOf("second"), app.next());
    const one = await operatorOf(world.server);
    const { id: own } = await userNamed(one, "second");
    const mine = await second.request("POST", `/admin/users/${own}/second-factors/reset`, { body: {} });
    expectRefused(mine, 40300, /own/);
    const { client } = await enrol("stale");
    const { id } = await userNamed(one, "stale");
    const path = `/admin/users/${id}/second-factors/reset`;
    await one.data("POST", path, {});
    secrets.add((await addApp(client)).app.secret);
    expect((await second.request("POST", path, { body: {} })).code).toBe(40900);
    expect((await listed(client)).items).toHaveLength(2);
    for (const each of [one, second]) each.close();
    const shell = await admin(world.server.dataDir, "second-factor", "reset", emailOf("second"));
    expect(shell).toMatchObject({ code: 0 });
  });

  test("is reset by an operator and the shell, which is one person", async () => {
    await enrol("self");
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

  test("is reset from the shell alone where there is one operator, and the audit log says so", async () => {
    const { client, recoveryCodes } = await enrol("shell");
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

describe("operators", () => {
  const OPTIONS = {
    users: 0,
    named: { operator: OPERATOR, user: { password: PASSWORD, deposit: 0 } },
    env: { PUBLIC_URL, REQUIRE_OPERATOR_SECOND_FACTOR: "on" },
  };

  test("sign in and enrol without a second factor, and do nothing else until then; over a refresh and a kill -9", async () => {
    await alone(OPTIONS, async (own) => {
      const email = emailOf("operator");
      const plain = await guests.signIn(own.server, email);
      const denied = (): Promise<Answer> => plain.client.request("GET", "/admin/users");
      expectRefused(await denied(), 40300, /need a second factor.*\/account\/security/);
      expect(await listed(plain.client)).toMatchObject({ required: true, session: false });
      // The server checks the operator role first.
      const user = await guests.signIn(own.server, emailOf("user"));
      expectRefused(await user.client.request("GET", "/admin/users"), 40300, /for operators only/);
      const { app, id } = await addApp(plain.client);
      expect((await denied()).code).toBe(0);
      await prove(plain.client);
      expectRefused(await plain.client.request("DELETE", `${FACTORS}/${id}`), 40900, /must have a second factor/);
      const proven = await signInWithCode(own.server, email, app.next());
      const code = app.again();
      proven.client.close();
      await own.server.kill();
      own.server = await own.server.restart();
      const after = new Client(own.server, proven.accessToken);
      expect((await after.request("GET", "/admin/users")).code).toBe(0);
      after.close();
      const refreshed = await askOnce<SignInJson>(own.server, null, "POST", "/auth/refresh", {
        body: { refresh_token: proven.refreshToken },
      });
      expect(claimsOf(refreshed.data.access_token).amr).toEqual(["pwd", "otp", "mfa"]);
      const again = new Client(own.server, refreshed.data.access_token);
      expect((await again.request("GET", "/admin/users")).code).toBe(0);
      again.close();
      // A used code stays used after the restart.
      const { challenge: next } = await challengeOf(own.server, email);
      expectRefused(await finish(own.server, next, { code }), 40100, /used before/);
      expect((await finish(own.server, next, { code: app.next() })).code).toBe(0);
      // The command line needs no second factor.
      expect(await admin(own.server.dataDir, "users")).toMatchObject({ code: 0 });
    });
  });

  test("need one unless only the machine itself reaches the exchange", async () => {
    const byDefault = { ...OPTIONS, env: { PUBLIC_URL, HOST: "0.0.0.0" } };
    await alone(byDefault, async (own) => {
      const { client } = await guests.signIn(own.server, emailOf("operator"));
      expect((await client.request("GET", "/admin/users")).code).toBe(40300);
    });
    await alone({ ...OPTIONS, env: { PUBLIC_URL } }, async (own) => {
      const { client } = await guests.signIn(own.server, emailOf("operator"));
      expect((await client.request("GET", "/admin/users")).code).toBe(0);
    });
  });
});

describe("what is kept", () => {
  test("secrets are sealed with a key beside the signing keys, which can be changed, and lost", async () => {
    await alone({ users: 0, named: { owner: { password: PASSWORD, deposit: 0 } } }, async (own) => {
      const path = join(own.server.dataDir, "keys", SECOND_FACTOR_KEYS);
      expect(() => statSync(path)).toThrow(/ENOENT/);
      const { app, recoveryCodes } = await enrol("owner", own);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      const sealed = (): string =>
        rowsOf<{ secret: string }>(own.server.dataDir, "SELECT secret FROM second_factors")[0]!.secret;
      const before = sealed();
      const rotated = await admin(own.server.dataDir, "keys", "rotate-second-factors");
      expect(JSON.parse(rotated.out)).toEqual({ key: expect.stringMatching(/^[0-9a-f]{12}$/), sealed: 1 });
      expect(sealed()).not.toBe(before);
      expect(JSON.parse(readFileSync(path, "utf8")).keys).toHaveLength(2);
      await own.server.kill();
      own.server = await own.server.restart();
      (await signInWithCode(own.server, emailOf("owner"), app.next())).client.close();
      await own.server.kill();
      rmSync(path);
      own.server = await own.server.restart();
      // The log reports the unreadable secret; only the recovery codes remain.
      expect(own.server.log.filter(({ level }) => level >= 50)).toMatchObject([{ unreadable: 1 }]);
      const { challenge: next, methods } = await challengeOf(own.server, emailOf("owner"));
      expect(methods).toEqual(["recovery_code"]);
      expect((await finish(own.server, next, { code: app.next() })).code).toBe(40100);
      expect((await finish(own.server, next, { code: recoveryCodes![0]! })).code).toBe(0);
      own.server.log.length = 0;
    });
  });

  test("a challenge, a proof and an app that waits are good for minutes", async () => {
    const named = { owner: { password: PASSWORD, deposit: 0 }, late: { password: PASSWORD, deposit: 0 } };
    await alone({ users: 0, named, env: MOVABLE_CLOCK }, async (own) => {
      const anonymous = own.anonymous();
      const { app, client } = await enrol("owner", own);
      const { client: late } = await guests.signIn(own.server, emailOf("late"));
      await prove(late);
      const begun = await late.data<EnrolmentJson>("POST", FACTORS, { kind: "totp" });
      const early: ChallengeJson = await challengeOf(own.server, emailOf("owner"));
      const nowOf = async (): Promise<number> => (await anonymous.get<{ now: number }>("/time")).now;
      for (let passed = 0; passed < 300_000; passed += CLOCK_STEP_MS) await stepClock(anonymous);
      const code = app.next(await nowOf());
      expectRefused(await finish(own.server, early.challenge, { code }), 40100, /^challenge/);
      expectRefused(
        await client.request("POST", FACTORS, { body: { kind: "totp" } }),
        40300,
        /confirm your identity first/,
      );
      const waiting = new AuthenticatorApp(begun.secret!);
      expect((await late.request("POST", `${FACTORS}/${begun.id}/confirm`, { body: { code: "x" } })).code).toBe(40000);
      for (let passed = 0; passed < 300_000; passed += CLOCK_STEP_MS) await stepClock(anonymous);
      const body = { code: waiting.next(await nowOf()) };
      expect((await late.request("POST", `${FACTORS}/${begun.id}/confirm`, { body })).code).toBe(4040);
    });
  });
});
