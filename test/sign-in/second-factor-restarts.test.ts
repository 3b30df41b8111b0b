/**
 * Second factors over restarts: sealed secrets, the loss of their key, sessions and used codes after a kill -9. Also
 * the requirement for operators, and the expiry of whatever is pending. For the factors themselves, see
 * second-factors.test.ts.
 */
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SECOND_FACTOR_KEYS } from "../../server/sign-in/second-factor-keys.ts";
import { admin } from "../support/admin.ts";
import { expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, askOnce, type Client } from "../support/client.ts";
import { CLOCK_STEP_MS, MOVABLE_CLOCK, stepClock } from "../support/clock.ts";
import { expectUnkept, rowsOf, withDatabase } from "../support/data-dir.ts";
import { Guests, PASSWORD, type SignInJson } from "../support/identity.ts";
import { OPERATOR } from "../support/operator.ts";
import {
  AuthenticatorApp,
  addApp,
  type ChallengeJson,
  challengeOf,
  claimsOf,
  type Enrolled,
  type EnrolmentJson,
  FACTORS,
  finish,
  prove,
  signInWithCode,
} from "../support/second-factor.ts";
import { alone } from "../support/trading.ts";
import { PUBLIC_URL, World } from "../support/world.ts";
import { emailOf, enrol, expectRejected, listFactors } from "./enrolled-users.ts";

const USER = { password: PASSWORD, deposit: 0 };
const NAMED = {
  ...{ operator: OPERATOR, enrolled: OPERATOR, unenrolled: OPERATOR },
  ...{ user: USER, sealed: USER, owner: USER, restored: USER },
};
const guests = new Guests();
const { secrets } = guests;
let world: World;
let keyPath: string;

beforeAll(async () => {
  // Other machines reach the exchange.
  world = await World.start({ users: 0, named: NAMED, env: { PUBLIC_URL, HOST: "0.0.0.0" } });
  keyPath = join(world.server.dataDir, "keys", SECOND_FACTOR_KEYS);
});
afterAll(async () => {
  guests.close();
  expectUnlogged(secrets, world.server);
  await expectEndsWell(world);
  expectUnkept(secrets, world.server.dataDir);
});

async function killed(): Promise<void> {
  expectUnlogged(secrets, world.server);
  await world.server.kill();
}

const readUsers = (client: Client): Promise<Answer> => client.request("GET", "/admin/users");

test("secrets are sealed with a key beside the signing keys, and a rotation of the key seals them again", async () => {
  // A standby has it before the first secret.
  expect(statSync(keyPath).mode & 0o777).toBe(0o600);
  const { id } = await enrol(guests, world, "sealed");
  expect(statSync(keyPath).mode & 0o777).toBe(0o600);
  const sealed = (): string =>
    rowsOf<{ secret: string }>(world.server.dataDir, "SELECT secret FROM second_factors WHERE id = ?", id)[0]!.secret;
  const before = sealed();
  const rotated = await admin(world.server.dataDir, "keys", "rotate-second-factors");
  expect(JSON.parse(rotated.out)).toEqual({ key: expect.stringMatching(/^[0-9a-f]{12}$/), sealed: 1 });
  expect(sealed()).not.toBe(before);
  expect(JSON.parse(readFileSync(keyPath, "utf8")).keys).toHaveLength(2);
});

test("operators sign in and enrol without a second factor, and can do nothing else until then", async () => {
  const { client } = await guests.signIn(world.server, emailOf("operator"));
  expectRejected(await readUsers(client), 40300, /need a second factor.*\/account\/security/);
  expect(await listFactors(client)).toMatchObject({ required: true, session: false });
  // The server checks the operator role first.
  const user = await guests.signIn(world.server, emailOf("user"));
  expectRejected(await readUsers(user.client), 40300, /for operators only/);
  const { app, id } = await addApp(client);
  secrets.add(app.secret);
  expect((await readUsers(client)).code).toBe(0);
  await prove(client);
  expectRejected(await client.request("DELETE", `${FACTORS}/${id}`), 40900, /must have a second factor/);
});

describe("after a kill -9", () => {
  let operatorApp: AuthenticatorApp;
  let operatorTokens: { readonly accessToken: string; readonly refreshToken: string };
  let usedCode: string;
  let owner: Enrolled;
  let restored: Enrolled;
  let restoredToken: string;
  beforeAll(async () => {
    operatorApp = (await enrol(guests, world, "enrolled")).app;
    const { client, ...tokens } = await signInWithCode(world.server, emailOf("enrolled"), operatorApp.next());
    client.close();
    operatorTokens = tokens;
    usedCode = operatorApp.again();
    owner = await enrol(guests, world, "owner");
    restored = await enrol(guests, world, "restored");
    const session = await signInWithCode(world.server, emailOf("restored"), restored.app.next());
    session.client.close();
    restoredToken = session.accessToken;
    expect(await admin(world.server.dataDir, "keys", "rotate-second-factors")).toMatchObject({ code: 0 });
    await killed();
    // The same state as in a restored database: a session that was opened without the second factor.
    const sql = "UPDATE sessions SET amr = 'pwd' WHERE user_id = (SELECT id FROM users WHERE email = ?)";
    withDatabase(world.server.dataDir, (db) => db.prepare(sql).run(emailOf("restored")));
    world.server = await world.server.restart();
  });

  test("after a kill -9, an operator's tokens keep the second factor, over a refresh too", async () => {
    expect((await readUsers(guests.client(world.server, operatorTokens.accessToken))).code).toBe(0);
    const { data } = await askOnce<SignInJson>(world.server, null, "POST", "/auth/refresh", {
      body: { refresh_token: operatorTokens.refreshToken },
    });
    expect(claimsOf(data.access_token).amr).toEqual(["pwd", "otp", "mfa"]);
    expect((await readUsers(guests.client(world.server, data.access_token))).code).toBe(0);
  });

  test("after a kill -9, a used code stays used", async () => {
    const { challenge } = await challengeOf(world.server, emailOf("enrolled"));
    expectRejected(await finish(world.server, challenge, { code: usedCode }), 40100, /used before/);
    expect((await finish(world.server, challenge, { code: operatorApp.next() })).code).toBe(0);
  });

  test("the command line needs no second factor", async () => {
    expect(await admin(world.server.dataDir, "users")).toMatchObject({ code: 0 });
  });

  test("secrets sealed with the rotated key are readable after a kill -9", async () => {
    (await signInWithCode(world.server, emailOf("owner"), owner.app.next())).client.close();
  });

  test("a password is no proof in a session that was opened without the second factor", async () => {
    const session = guests.client(world.server, restoredToken);
    const proof = (body: object): Promise<Answer> => session.request("POST", `${FACTORS}/proof`, { body });
    expect((await listFactors(session)).proof).toEqual(["code"]);
    expectRejected(await proof({ password: PASSWORD }), 40300, /^code: required.*opened without one/);
    expect((await proof({ code: restored.app.next() })).code).toBe(0);
  });

  describe("and the loss of the key", () => {
    beforeAll(async () => {
      await killed();
      rmSync(keyPath);
      world.server = await world.server.restart({ HOST: "127.0.0.1", REQUIRE_OPERATOR_SECOND_FACTOR: "on" });
    });

    test("after the loss of the key, the log reports the unreadable secrets, and only recovery codes remain", async () => {
      const sql = "SELECT count(*) AS count FROM second_factors WHERE secret IS NOT NULL";
      const [{ count }] = rowsOf<{ count: number }>(world.server.dataDir, sql) as [{ count: number }];
      expect(world.server.log.filter(({ level }) => level >= 50)).toMatchObject([{ unreadable: count }]);
      expect(count).toBeGreaterThanOrEqual(3);
      const { challenge, methods } = await challengeOf(world.server, emailOf("owner"));
      expect(methods).toEqual(["recovery_code"]);
      expect((await finish(world.server, challenge, { code: owner.app.next() })).code).toBe(40100);
      expect((await finish(world.server, challenge, { code: owner.recoveryCodes![0]! })).code).toBe(0);
      // The server must be quiet from here on.
      expectUnlogged(secrets, world.server);
      world.server.log.length = 0;
    });

    test("REQUIRE_OPERATOR_SECOND_FACTOR=on applies even where only the machine itself reaches the exchange", async () => {
      const { client } = await guests.signIn(world.server, emailOf("unenrolled"));
      expectRejected(await readUsers(client), 40300, /need a second factor/);
    });
  });
});

test("a challenge, a proof and a pending app expire within minutes", async () => {
  await alone({ users: 0, named: { owner: USER, late: USER }, env: MOVABLE_CLOCK }, async (own) => {
    const anonymous = own.anonymous();
    const { app, client } = await enrol(guests, own, "owner");
    const { client: late } = await guests.signIn(own.server, emailOf("late"));
    await prove(late);
    const begun = await late.data<EnrolmentJson>("POST", FACTORS, { kind: "totp" });
    const early: ChallengeJson = await challengeOf(own.server, emailOf("owner"));
    const nowOf = async (): Promise<number> => (await anonymous.get<{ now: number }>("/time")).now;
    for (let passed = 0; passed < 300_000; passed += CLOCK_STEP_MS) await stepClock(anonymous);
    const code = app.next(await nowOf());
    expectRejected(await finish(own.server, early.challenge, { code }), 40100, /^challenge/);
    const addition = await client.request("POST", FACTORS, { body: { kind: "totp" } });
    expectRejected(addition, 40300, /confirm your identity first/);
    const waiting = new AuthenticatorApp(begun.secret!);
    const confirm = (given: string): Promise<Answer> =>
      late.request("POST", `${FACTORS}/${begun.id}/confirm`, { body: { code: given } });
    expect((await confirm("x")).code).toBe(40000);
    for (let passed = 0; passed < 300_000; passed += CLOCK_STEP_MS) await stepClock(anonymous);
    expect((await confirm(waiting.next(await nowOf()))).code).toBe(4040);
  });
});
