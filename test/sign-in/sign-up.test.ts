/**
 * Sign-up and the links that the server mails: what a person enters, what the server rejects, and how long a link stays
 * valid. For an address that a stranger registered, see password-changes.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  accountRequests,
  HIDDEN_ROUNDS,
  MAX_MESSAGES_PER_HOUR,
  me,
  NEW_PASSWORD,
  sight,
  statusesOf,
} from "../accounts/account-requests.ts";
import type { Answer } from "../support/client.ts";
import {
  freshEmail,
  login,
  messagesTo,
  PASSWORD,
  register,
  resetToken,
  signIn,
  type UserJson,
  verificationToken,
} from "../support/identity.ts";
import { HIGH_LIMITS } from "../support/rates.ts";
import { expectRefused } from "../support/trading.ts";
import { PUBLIC_URL, type UserSpec, World } from "../support/world.ts";

const FLOODED = Array.from({ length: 8 }, (_, i) => `flooded-${i}`);

let world: World;
// The first user owns an address that sign-up must reject.
const { countMails, end, expectMails, guests, hiddenWorkDone, kept, post, postFromElsewhere, visitors } =
  accountRequests(() => world.server, 1);
const { secrets } = guests;

beforeAll(async () => {
  world = await World.start({
    users: 1 + 2 * HIDDEN_ROUNDS,
    named: {
      ...Object.fromEntries(FLOODED.map((name): [string, UserSpec] => [name, { tier: 0 }])),
      top: { tier: 2, password: PASSWORD },
    },
    env: { RATE_LIMITS: HIGH_LIMITS, PUBLIC_URL, TRUSTED_PROXIES: "127.0.0.1" },
  });
});

afterAll(() => end(world));

describe("sign-up", () => {
  test("a sign-up makes an account of tier 0 and mails one link", async () => {
    const email = freshEmail("Mixed.Case");
    const before = Date.now();
    const answer = await register(world.server, email);
    expect([answer.status, answer.code]).toEqual([201, 0]);
    const { id, created_at, ...rest } = answer.data;
    expect(rest).toEqual({
      email: email.toLowerCase(),
      email_verified: false,
      phone: null,
      phone_verified: false,
      kyc_tier: 0,
      role: "user",
      daily_activity: { used: 0, limit: 0 },
    });
    expect(created_at).toBeGreaterThanOrEqual(before);
    expect(created_at).toBeLessThanOrEqual(Date.now());
    await verificationToken(world.server, email.toLowerCase());
    const [mail] = messagesTo(world.server, email.toLowerCase());
    expect(mail).toMatch(/^http:\/\/exchange\.test\/verify-email\?token=[A-Za-z0-9_-]{22,}$/m);
    expect(mail).not.toContain(PASSWORD);
    const { client, user } = kept(await signIn(world.server, email.toUpperCase()));
    expect(user).toEqual(answer.data);
    expect(await me(client)).toEqual(answer.data);
    expect(await client.balance()).toEqual({ available: 0, held: 0, total: 0 });
    expect(id).toBeGreaterThan(0);
  });

  test("an address has one account, in whatever case it is written", async () => {
    const email = freshEmail("taken");
    expect((await register(world.server, email)).status).toBe(201);
    const others = [email, email.toUpperCase(), `T${email.slice(1)}`, email.replace("people", "PEOPLE")];
    for (const each of [...others, "user0@example.com", "USER0@Example.Com"]) {
      await expectRefused(register(world.server, each, NEW_PASSWORD), 409, 40900, /^email/);
    }
    expect((await login(world.server, email, NEW_PASSWORD)).code).toBe(40100);
    expect((await login(world.server, email)).code).toBe(0);
    countMails(email, 1);
  });

  test("of parallel registrations of one address exactly one makes the account", async () => {
    const email = freshEmail("race");
    const client = visitors();
    const passwords = [PASSWORD, NEW_PASSWORD, `${PASSWORD} again`];
    const spellings = [email, email.toUpperCase(), email];
    const answers = await Promise.all(
      passwords.map((password, i) => post("/auth/register", { email: spellings[i], password }, client)),
    );
    expect(statusesOf(answers)).toEqual([201, 409, 409]);
    const winner = answers.findIndex(({ status }) => status === 201);
    const logins = await Promise.all(passwords.map((password) => post("/auth/login", { email, password }, client)));
    expect(logins.map(({ code }) => code)).toEqual(passwords.map((_, i) => (i === winner ? 0 : 40100)));
    countMails(email, 1);
  });

  const WRONG_EMAILS: readonly unknown[] = [
    "",
    "plain",
    "@people.example",
    "nobody@",
    "two@@people.example",
    "two@people@people.example",
    "with space@people.example",
    " lead@people.example",
    "trail@people.example ",
    "line@people.example\n",
    "line@people.example\r\nBcc: other@people.example",
    "nul\u0000@people.example",
    "two,addresses@people.example",
    '"quoted"@people.example',
    "<bracket@people.example>",
    "comment(x)@people.example",
    "literal@[127.0.0.1]",
    "dots@people..example",
    "dot@.people.example",
    "dot@people.example.",
    "hyphen@-people.example",
    "hyphen@people-.example",
    "under@peo_ple.example",
    "\u00e4@people.example",
    "a@p\u00e9ople.example",
    "kelvin\u212a@people.example",
    `${"l".repeat(65)}@people.example`,
    `long@${"d".repeat(60)}.${"d".repeat(60)}.${"d".repeat(60)}.${"d".repeat(60)}.example`,
    null,
    7,
    true,
    ["a@people.example"],
    { address: "a@people.example" },
  ];
  test("an invalid address is rejected, by sign-up and by every other request that takes one", async () => {
    const client = visitors();
    for (const email of WRONG_EMAILS) {
      await expectRefused(post("/auth/register", { email, password: PASSWORD }, client), 400, 40000, /^email/);
    }
    for (const path of ["/auth/login", "/auth/forgot-password", "/auth/resend-verification"]) {
      const body = path === "/auth/login" ? { password: PASSWORD } : {};
      for (const email of ["plain", null, "line@people.example\n"]) {
        await expectRefused(post(path, { ...body, email }, client), 400, 40000, /^email/);
      }
    }
  });

  test("the address of a sign-up may look unusual", async () => {
    const local = "o'hara+tag.x_y-z{}~1";
    const email = `${local}@sub-domain.people.example`;
    expect((await register(world.server, email)).status).toBe(201);
    await verificationToken(world.server, email);
    expect((await register(world.server, `${"l".repeat(60)}1001@people.example`)).status).toBe(201);
  });

  test("a password that is too short, too long or common is rejected, and makes no account", async () => {
    const email = freshEmail("choosy");
    const client = visitors();
    const wrong: readonly unknown[] = [
      "",
      "short",
      "ninechars",
      // Ten UTF-16 units, five characters.
      "\u{1f600}\u{1f601}\u{1f602}\u{1f603}\u{1f604}",
      "x".repeat(129),
      "password123",
      "Password123!",
      "1234567890",
      "qwertyuiop",
      "aaaaaaaaaaaaaaa",
      "passwordpassword",
      null,
      1_234_567_890,
      ["a quiet harbour"],
    ];
    for (const password of wrong) {
      const answer = await expectRefused(post("/auth/register", { email, password }, client), 400, 40000, /^password/);
      if (typeof password === "string" && password.length > 5) expect(answer.msg).not.toContain(password);
    }
    const shortest = "tiny weir.";
    expect([shortest.length, (await register(world.server, email, shortest)).status]).toEqual([10, 201]);
    expect((await login(world.server, email, shortest)).code).toBe(0);
    const longest = `${"weir ".repeat(25)}abc`;
    expect(longest).toHaveLength(128);
    const patient = freshEmail("patient");
    expect((await register(world.server, patient, `\u00e9${longest.slice(1)}`)).status).toBe(201);
    expect((await login(world.server, patient, longest)).code).toBe(40100);
  });

  test("a sign-up's rejection names the missing or unknown field", async () => {
    const [email, password, token] = [freshEmail("strict"), PASSWORD, "x"];
    const bodies: [path: string, body: object, field: string][] = [
      ["/auth/register", { email }, "password"],
      ["/auth/register", { password }, "email"],
      ["/auth/register", { email, password, role: "operator" }, "role"],
      ["/auth/register", { email, password, kyc_tier: 2 }, "kyc_tier"],
      ["/auth/login", { email, password, remember: true }, "remember"],
      ["/auth/verify-email", {}, "token"],
      ["/auth/verify-email", { token, password, email }, "email"],
      ["/auth/forgot-password", { email, password }, "password"],
      ["/auth/resend-verification", { email, token }, "token"],
      ["/auth/reset-password", { token }, "password"],
      ["/auth/reset-password", { token, password, email }, "email"],
    ];
    for (const [path, body, field] of bodies) {
      await expectRefused(post(path, body), 400, 40000, new RegExp(`^${field}: `));
    }
    for (const body of ["", "{", "[]", "null", '"text"']) {
      await expectRefused(post("/auth/register", body), 400, 40000);
    }
    expect((await login(world.server, email)).code).toBe(40100);
  });
});

describe("mailed links", () => {
  test("a verification link works once, even for two parallel requests", async () => {
    const email = freshEmail("once");
    await register(world.server, email);
    const token = await verificationToken(world.server, email);
    secrets.add(token);
    const both = visitors();
    const body = { token, password: PASSWORD };
    const answers = await Promise.all([1, 2].map(() => post<UserJson>("/auth/verify-email", body, both)));
    expect(statusesOf(answers)).toEqual([200, 400]);
    expect(answers.find(({ status }) => status === 200)!.data).toMatchObject({ email, email_verified: true });
    const { client } = kept(await signIn(world.server, email));
    expect(await me(client)).toMatchObject({ email_verified: true, kyc_tier: 0 });
    await expectRefused(post("/auth/verify-email", body), 400, 40000, /^token/);
  });

  test("a mailed token that is wrong or for another purpose is rejected, and stays valid for its own", async () => {
    const email = freshEmail("purpose");
    await register(world.server, email);
    await post("/auth/forgot-password", { email });
    const verification = await verificationToken(world.server, email);
    const reset = await resetToken(world.server, email);
    const password = NEW_PASSWORD;
    const wrong = [
      "",
      "x",
      "A".repeat(22),
      "x".repeat(200),
      "x".repeat(201),
      `${verification}A`,
      verification.slice(1),
    ];
    for (const token of [...wrong, reset, null, 7, [verification]]) {
      await expectRefused(post("/auth/verify-email", { token }), 400, 40000, /^token/);
    }
    for (const token of [...wrong, verification, null, 7, [reset]]) {
      await expectRefused(post("/auth/reset-password", { token, password }), 400, 40000, /^token/);
    }
    expect((await login(world.server, email)).data.user.email_verified).toBe(false);
    expect((await post("/auth/verify-email", { token: verification, password: PASSWORD })).code).toBe(0);
    expect((await post("/auth/reset-password", { token: reset, password })).code).toBe(0);
  });

  test("a new mailed link goes to an address that is not verified, and the response doesn't reveal it", async () => {
    const [waiting, verified] = [freshEmail("waiting"), "top@example.com"];
    await register(world.server, waiting);
    await verificationToken(world.server, waiting);
    const path = "/auth/resend-verification";
    const answers: Answer[] = [];
    const unknown = freshEmail("unknown");
    for (const email of [waiting, verified, unknown]) answers.push(await postFromElsewhere(path, { email }));
    expect(sight(answers[0]!)).toMatchObject({ status: 202, code: 0, data: null });
    for (const answer of answers) expect(sight(answer)).toEqual(sight(answers[0]!));
    expect(answers[0]!.headers["ratelimit-limit"]).toBeDefined();
    const second = await verificationToken(world.server, waiting, 2);
    const answer = await post<UserJson>("/auth/verify-email", { token: second, password: PASSWORD });
    expect(answer.data.email_verified).toBe(true);
    // Verification by the second link also voids the first.
    const first = { token: await verificationToken(world.server, waiting), password: PASSWORD };
    await expectRefused(post("/auth/verify-email", first), 400, 40000, /^token/);
    await post(path, { email: waiting.toUpperCase() });
    countMails(waiting, 2);
    countMails(verified, 0);
    countMails(unknown, 0);
  });

  test("an account gets at most five links of a kind an hour, even for parallel requests", async () => {
    const client = visitors();
    const paths = ["/auth/resend-verification", "/auth/forgot-password"];
    const asked = FLOODED.flatMap((name) =>
      Array.from({ length: 100 }, (_, i) => post(paths[i % 2]!, { email: `${name}@example.com` }, client)),
    );
    const answers = await Promise.all(asked);
    for (const answer of answers) expect([answer.status, answer.msg]).toEqual([202, answers[0]!.msg]);
    await hiddenWorkDone();
    const counts = FLOODED.map((name) => {
      const mails = messagesTo(world.server, `${name}@example.com`);
      return ["verify-email", "reset-password"].map(
        (page) => mails.filter((mail) => mail.includes(`/${page}?`)).length,
      );
    });
    expect(counts).toEqual(FLOODED.map(() => [MAX_MESSAGES_PER_HOUR, MAX_MESSAGES_PER_HOUR]));
  });

  test("the link that a registration sent is one of the five an hour", async () => {
    const email = freshEmail("insisting");
    await register(world.server, email);
    await verificationToken(world.server, email);
    for (let i = 1; i <= MAX_MESSAGES_PER_HOUR + 1; i++) {
      await post("/auth/resend-verification", { email });
      if (i < MAX_MESSAGES_PER_HOUR) await verificationToken(world.server, email, i + 1);
    }
    countMails(email, MAX_MESSAGES_PER_HOUR);
    const fifth = { token: await verificationToken(world.server, email, 5), password: PASSWORD };
    expect((await post("/auth/verify-email", fifth)).code).toBe(0);
  });
});

test("nobody got a mail without a request", expectMails);
