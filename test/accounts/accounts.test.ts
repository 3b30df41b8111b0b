/**
 * Accounts, as owners and attackers use them: sign-up, mailed links, passwords, the phone, KYC tier 1 and the
 * application for tier 2. The tests use a real server, and include restarts and crashes.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectEnded, expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, askOnce, type Client, type OrderJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import {
  createPat,
  freshAddress,
  freshEmail,
  Guests,
  login,
  messagesTo,
  PASSWORD,
  phoneCode,
  register,
  resetToken,
  type SignedIn,
  type SignInJson,
  signIn,
  signUp,
  type UserJson,
  verificationToken,
} from "../support/identity.ts";
import { Random } from "../support/random.ts";
import { HIGH_LIMITS } from "../support/rates.ts";
import { Socket } from "../support/socket.ts";
import { ThirdParty } from "../support/third-party.ts";
import { BUY, expectRefused, terms } from "../support/trading.ts";
import { ALL_SCOPES, PUBLIC_URL, type TestMarket, USDC, type UserSpec, World } from "../support/world.ts";

const NEW_PASSWORD = "nine lanterns over the weir";
const MAX_MESSAGES_PER_HOUR = 5;
const MAX_WRONG_CODES = 5;

/** A tier 0 account with money and a token with all scopes; it can trade as soon as its tier allows. */
const EARLY: UserSpec = { tier: 0, deposit: 1_000 * USDC, password: PASSWORD, scopes: [ALL_SCOPES] };
const TIMED_USERS = 12;
const FLOODED = Array.from({ length: 8 }, (_, i) => `flooded-${i}`);
/** The server defers each mail by 50 to 250 ms, so six rounds in sequence outlast every earlier mail. */
const HIDDEN_ROUNDS = 6;

let world: World;
let market: TestMarket;
const guests = new Guests();
const { secrets } = guests;
secrets.add(NEW_PASSWORD);

beforeAll(async () => {
  world = await World.start({
    users: TIMED_USERS + 2 * HIDDEN_ROUNDS,
    named: {
      "early-mail": EARLY,
      "early-phone": EARLY,
      secure: { password: PASSWORD },
      racing: { password: PASSWORD },
      "reset-whole": { password: PASSWORD },
      ...Object.fromEntries(FLOODED.map((name): [string, UserSpec] => [name, { tier: 0 }])),
      resetting: { tier: 0, password: PASSWORD },
      applying: { tier: 1, password: PASSWORD },
      "applying-twice": { tier: 1, password: PASSWORD },
      top: { tier: 2, password: PASSWORD },
    },
    env: { RATE_LIMITS: HIGH_LIMITS, PUBLIC_URL, TRUSTED_PROXIES: "127.0.0.1" },
  });
  market = world.market();
});

afterAll(async () => {
  guests.close();
  await expectSecretEnd(world);
});

/** Stops the server. Expects consistent state and no secret in the log. */
async function expectSecretEnd(of: World): Promise<void> {
  await expectEndsWell(of);
  expectUnlogged(secrets, of.server);
}

let phones = 2_000;
const freshPhone = (): string => `+1415555${++phones}`;

const kept = (signedIn: SignedIn): SignedIn => guests.keep(signedIn);
/** An unauthenticated client that can have several requests in flight. */
const visitors = (of = world): Client => guests.client(of.server, null, 32);

/** POST without a token. */
function post<T = unknown>(path: string, body: unknown, client?: Client, headers = {}): Promise<Answer<T>> {
  if (client !== undefined) return client.request<T>("POST", path, { body, headers });
  return askOnce(world.server, null, "POST", path, { body, headers });
}

/** Sends from a fresh address, so that the remaining rate limits reveal nothing. */
const postFromElsewhere = (path: string, body: unknown): Promise<Answer> =>
  post(path, body, undefined, { "X-Forwarded-For": freshAddress() });

const statusesOf = (answers: readonly Answer[]): number[] => answers.map(({ status }) => status).sort();
const me = (client: Client): Promise<UserJson> => client.get("/me");
const me401 = (client: Client): Promise<Answer> => expectRefused(client.request("GET", "/me"), 401, 40100);

/** Everything that could distinguish one response from another, without the request id and the date. */
function sight({ status, code, msg, data, headers }: Answer): object {
  const { "x-request-id": _, date: __, ...rest } = headers;
  return { status, code, msg, data, headers: rest };
}

let lastSentinel = TIMED_USERS - 1;
/** Resolves when the server has sent all mails that the responses so far deferred. Can be called more than once. */
async function hiddenWorkDone(): Promise<void> {
  for (let i = 0; i < HIDDEN_ROUNDS; i++) {
    const email = `user${++lastSentinel}@example.com`;
    await post("/auth/forgot-password", { email });
    // Wait for this mail before the next request.
    await resetToken(world.server, email);
  }
}

/** The number of mails that each address may have received by the last test. */
const mailsExpected = new Map<string, number>();

async function expectAlive(socket: Socket): Promise<void> {
  await socket.settled();
}

describe("sign-up", () => {
  test("makes an account of tier 0 and mails one link", async () => {
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
    mailsExpected.set(email, 1);
  });

  test("of registrations of one address at one time exactly one makes the account", async () => {
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
    mailsExpected.set(email, 1);
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
  test("an address that is none is refused, by sign-up and by all others that take one", async () => {
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

  test("an address may look unusual", async () => {
    const local = "o'hara+tag.x_y-z{}~1";
    const email = `${local}@sub-domain.people.example`;
    expect((await register(world.server, email)).status).toBe(201);
    await verificationToken(world.server, email);
    expect((await register(world.server, `${"l".repeat(60)}1001@people.example`)).status).toBe(201);
  });

  test("a password is long enough, not too long and not a common one, and a refusal makes nothing", async () => {
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

  test("missing and unknown fields are named", async () => {
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
  test("a verification link works once, also for two at one time", async () => {
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

  test("a token that is wrong or for something else is refused, and stays good for its own purpose", async () => {
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

  test("another link comes where the address waits for one, and the answer doesn't tell", async () => {
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
    mailsExpected.set(waiting, 2).set(verified, 0).set(unknown, 0);
  });

  test("an account gets at most five links of a kind an hour, also where they are asked for at one time", async () => {
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

  test("the link that a registration sent is one of the five", async () => {
    const email = freshEmail("insisting");
    await register(world.server, email);
    await verificationToken(world.server, email);
    for (let i = 1; i <= MAX_MESSAGES_PER_HOUR + 1; i++) {
      await post("/auth/resend-verification", { email });
      if (i < MAX_MESSAGES_PER_HOUR) await verificationToken(world.server, email, i + 1);
    }
    mailsExpected.set(email, MAX_MESSAGES_PER_HOUR);
    const fifth = { token: await verificationToken(world.server, email, 5), password: PASSWORD };
    expect((await post("/auth/verify-email", fifth)).code).toBe(0);
  });
});

describe("an address that a stranger registered", () => {
  /** Registers with a password that the address's owner does not know, and signs in twice. */
  async function squat(name: string) {
    const email = freshEmail(name);
    await register(world.server, email);
    const sessions = [kept(await signIn(world.server, email)), kept(await signIn(world.server, email))];
    const sockets = await Promise.all(sessions.map(({ accessToken }) => Socket.open(world.server, accessToken)));
    const token = await verificationToken(world.server, email);
    secrets.add(token);
    return { email, sessions, sockets, token };
  }
  const verify = (body: object, client = visitors()): Promise<Answer<UserJson>> =>
    client.request("POST", "/auth/verify-email", { body });

  test("isn't verified by the link alone, nor with a wrong password; a reset takes the account from the stranger", async () => {
    const { email, sessions, sockets, token } = await squat("victim");
    const [{ client }] = sessions as [SignedIn];
    await expectRefused(verify({ token }), 400, 40000, /^password: required/);
    for (const password of [NEW_PASSWORD, PASSWORD.toUpperCase(), "x"]) {
      await expectRefused(verify({ token, password }), 401, 40100, /^password: wrong$/);
    }
    for (const password of ["", "x".repeat(1_025), null, 7]) {
      await expectRefused(verify({ token, password }), 400, 40000, /^password/);
    }
    expect(await me(client)).toMatchObject({ email_verified: false });
    const { ticket } = await client.data<{ ticket: string }>("POST", "/ws-tickets");

    await post("/auth/forgot-password", { email });
    const reset = await resetToken(world.server, email);
    secrets.add(reset);
    expect((await post("/auth/reset-password", { token: reset, password: NEW_PASSWORD })).code).toBe(0);
    for (const socket of sockets) await expectEnded(socket);
    for (const { client: old, refreshToken } of sessions) {
      await me401(old);
      await expectRefused(post("/auth/refresh", { refresh_token: refreshToken }), 401, 40100);
    }
    await expect(Socket.open(world.server, ticket)).rejects.toThrow("401");
    await expectRefused(verify({ token, password: NEW_PASSWORD }), 400, 40000, /^token/);
    expect((await login(world.server, email)).code).toBe(40100);
    expect((await login(world.server, email, NEW_PASSWORD)).data.user).toMatchObject({ email_verified: true });
  });

  test("verified with the password: ends all sessions with their sockets", async () => {
    const { email, sessions, sockets, token } = await squat("careless");
    expect((await verify({ token, password: PASSWORD })).data).toMatchObject({ email, email_verified: true });
    for (const socket of sockets) await expectEnded(socket);
    for (const { client, refreshToken } of sessions) {
      await me401(client);
      await expectRefused(post("/auth/refresh", { refresh_token: refreshToken }), 401, 40100);
    }
    const { client } = kept(await signIn(world.server, email));
    expect((await client.all("/me/sessions")).length).toBe(1);
  });

  test("verified by the account's own session: that one goes on with its socket, the others end", async () => {
    const { sessions, sockets, token } = await squat("own");
    const [own, other] = sessions as [SignedIn, SignedIn];
    await expectRefused(verify({ token, password: NEW_PASSWORD }, own.client), 403, 40300, /^password: wrong$/);
    expect((await verify({ token }, own.client)).data).toMatchObject({ email_verified: true });
    await expectEnded(sockets[1]!);
    await me401(other.client);
    await expectAlive(sockets[0]!);
    expect(await me(own.client)).toMatchObject({ email_verified: true });
    expect((await post("/auth/refresh", { refresh_token: own.refreshToken })).code).toBe(0);
    await sockets[0]!.close();
  });

  test("isn't verified by another account's session, by a token for programs or by one that isn't good", async () => {
    const { sessions, sockets, token } = await squat("foreign");
    const stranger = kept(await signUp(world.server, freshEmail("somebody"), 0));
    const [own, other] = sessions as [SignedIn, SignedIn];
    await other.client.data("POST", "/auth/logout");
    const clients = [stranger.client, other.client, world.client("top"), guests.client(world.server, "pm_pat_none")];
    for (const client of clients) {
      await expectRefused(verify({ token }, client), 400, 40000, /^password: required/);
      await expectRefused(verify({ token, password: NEW_PASSWORD }, client), 401, 40100, /^password: wrong$/);
    }
    expect(await me(own.client)).toMatchObject({ email_verified: false });
    // With the password, either session may verify.
    expect((await verify({ token, password: PASSWORD }, stranger.client)).code).toBe(0);
    await me401(own.client);
    await me(stranger.client);
    await Promise.all(sockets.map((socket) => socket.closed));
  });

  test("amid sign-ins of the stranger: in whatever order they come, none of them outlives the reset", async () => {
    for (let round = 0; round < 4; round++) {
      const { email, sessions, token } = await squat("contested");
      await post("/auth/forgot-password", { email });
      const reset = await resetToken(world.server, email);
      const crowd = visitors();
      const race = [
        ...Array.from({ length: 4 }, () => post<SignInJson>("/auth/login", { email, password: PASSWORD }, crowd)),
        post("/auth/reset-password", { token: reset, password: NEW_PASSWORD }, crowd),
        verify({ token, password: PASSWORD }, crowd),
        ...Array.from({ length: 4 }, () => post<SignInJson>("/auth/login", { email, password: PASSWORD }, crowd)),
      ] as Promise<Answer<SignInJson>>[];
      const answers = await Promise.all(race);
      expect(answers[4]!.code).toBe(0);
      const tokens = [...answers.slice(0, 4), ...answers.slice(6)].flatMap(({ data }) => data?.access_token ?? []);
      for (const each of [...tokens, ...sessions.map(({ accessToken }) => accessToken)]) {
        await me401(guests.client(world.server, each));
      }
      expect((await login(world.server, email)).code).toBe(40100);
      expect((await login(world.server, email, NEW_PASSWORD)).data.user.email_verified).toBe(true);
    }
  });
});

describe("a forgotten password", () => {
  test("the answer, headers and all, is the same for known and unknown addresses", async () => {
    const known = freshEmail("known");
    await register(world.server, known);
    const [unknown, other] = [freshEmail("unknown"), "user2@example.com"];
    const answers: Answer[] = [];
    for (const email of [known, unknown, other]) {
      answers.push(await postFromElsewhere("/auth/forgot-password", { email }));
    }
    expect(sight(answers[0]!)).toMatchObject({ status: 202, code: 0, data: null });
    for (const answer of answers) expect(sight(answer)).toEqual(sight(answers[0]!));
    for (const email of [known, other]) {
      const token = await resetToken(world.server, email);
      expect(messagesTo(world.server, email).at(-1)).toContain(`${PUBLIC_URL}/reset-password?token=${token}\n`);
    }
    mailsExpected.set(unknown, 0);
  });

  test("a reset ends all sessions and the old password, verifies the address, and its links are over", async () => {
    const email = "resetting@example.com";
    const { server } = world;
    const [one, other] = [kept(await signIn(server, email)), kept(await signIn(server, email))];
    const pat = world.client("resetting");
    await me(pat);
    expect(one.user).toMatchObject({ email_verified: false, kyc_tier: 0 });
    const sockets = await Promise.all([one, other].map(({ accessToken }) => Socket.open(server, accessToken)));
    for (let i = 0; i < 2; i++) await post("/auth/forgot-password", { email });
    const tokens = [await resetToken(server, email, 1), await resetToken(server, email, 2)];
    for (const token of tokens) secrets.add(token);

    for (const password of ["short", "password123", null]) {
      await expectRefused(post("/auth/reset-password", { token: tokens[0], password }), 400, 40000, /^password/);
    }
    expect(await me(one.client)).toMatchObject({ email_verified: false });

    const client = visitors();
    const passwords = [NEW_PASSWORD, `${NEW_PASSWORD}!`];
    const answers = await Promise.all(
      passwords.map((password) => post("/auth/reset-password", { token: tokens[0], password }, client)),
    );
    expect(statusesOf(answers)).toEqual([200, 400]);
    for (const socket of sockets) await expectEnded(socket);
    for (const { client: old, refreshToken } of [one, other]) {
      await me401(old);
      await expectRefused(post("/auth/refresh", { refresh_token: refreshToken }), 401, 40100);
    }
    // Anybody could have created the token before the address was verified.
    await me401(pat);
    for (const token of tokens) {
      await expectRefused(post("/auth/reset-password", { token, password: PASSWORD }), 400, 40000, /^token/);
    }
    const winner = answers.findIndex(({ status }) => status === 200);
    const logins = await Promise.all([PASSWORD, ...passwords].map((password) => login(server, email, password)));
    expect(logins.map(({ code }) => code)).toEqual([40100, ...passwords.map((_, i) => (i === winner ? 0 : 40100))]);
    expect(logins[winner + 1]!.data.user.email_verified).toBe(true);
    await eventually(async () => expect(messagesTo(server, email).at(-1)).toContain("was changed"));
  });
});

describe("a reset of a verified account", () => {
  test("ends every session, token and grant with their sockets, and leaves what the account offers to others", async () => {
    const { server } = world;
    const email = "reset-whole@example.com";
    const own = kept(await signIn(server, email));
    const { token: pat } = await createPat(own.client);
    const party = await ThirdParty.register(world, kept(await signIn(server, "top@example.com")).client);
    const granted = await party.tokens(own.client);
    const pending = await party.consent(own.client);
    // A third-party client that the account owns and somebody else uses.
    const offered = await ThirdParty.register(world, own.client);
    const user = kept(await signIn(server, "secure@example.com"));
    const others = await offered.tokens(user.client);
    const { ticket } = await own.client.data<{ ticket: string }>("POST", "/ws-tickets");
    const dead = [own.accessToken, pat, granted.access_token];
    for (const token of [...dead, granted.refresh_token, others.access_token, ticket]) secrets.add(token);
    const sockets = await Promise.all(dead.map((token) => Socket.open(server, token)));

    await post("/auth/forgot-password", { email });
    const reset = await resetToken(server, email);
    secrets.add(reset);
    expect((await post("/auth/reset-password", { token: reset, password: NEW_PASSWORD })).code).toBe(0);
    for (const socket of sockets) await expectEnded(socket);
    for (const token of dead) await me401(guests.client(server, token));
    await expectRefused(post("/auth/refresh", { refresh_token: own.refreshToken }), 401, 40100);
    expect((await party.refresh(granted.refresh_token)).msg).toBe("invalid_grant");
    expect((await party.exchange(pending)).msg).toBe("invalid_grant");
    await expect(Socket.open(server, ticket)).rejects.toThrow("401");
    await me(guests.client(server, others.access_token));
    const { client, user: same } = kept(await signIn(server, email, NEW_PASSWORD));
    expect(same).toEqual(own.user);
    for (const path of ["/me/personal-access-tokens", "/me/oauth-grants"]) expect(await client.all(path)).toEqual([]);
    expect(await client.all("/me/oauth-clients")).toHaveLength(1);
  });
});

describe("neither time nor answer tells whether an address has an account", () => {
  const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1]!;

  /**
   * Returns median times in ms for known and unknown addresses. Sends requests in sequence, in random order within
   * each pair.
   */
  async function medians(path: string, pairs: number, random: Random, more: object): Promise<[number, number]> {
    const client = visitors();
    const times: [number[], number[]] = [[], []];
    const sights: string[] = [];
    for (let i = 0; i < pairs; i++) {
      const known = `user${i % TIMED_USERS}@example.com`;
      const emails = [known, `nobody${i}@example.com`];
      for (const which of random.chance(0.5) ? [0, 1] : [1, 0]) {
        const start = performance.now();
        const { status, code, msg } = await post(path, { ...more, email: emails[which] }, client);
        times[which]!.push(performance.now() - start);
        sights.push(JSON.stringify([status, code, msg]));
      }
    }
    expect(new Set(sights).size).toBe(1);
    return [median(times[0]), median(times[1])];
  }

  test("sign-in", async () => {
    const random = Random.printed("sign-in times");
    const { server } = world;
    const client = visitors();
    const times: [known: number[], unset: number[], unknown: number[]] = [[], [], []];
    const emails = ["top@example.com", "user0@example.com", "nobody@example.com"];
    const sights = new Set<string>();
    for (let i = 0; i < 15; i++) {
      const first = random.integer(0, 2);
      for (const which of [first, (first + 1) % 3, (first + 2) % 3]) {
        const body = { email: emails[which], password: `wrong ${PASSWORD}` };
        const start = performance.now();
        const { headers, ...answer } = await post("/auth/login", body, client);
        times[which]!.push(performance.now() - start);
        sights.add(JSON.stringify([answer, Object.keys(headers).sort()]));
      }
    }
    expect([...sights]).toEqual([expect.stringContaining('"status":401,"code":40100')]);
    // Compare the fastest of each kind: on a busy machine, other work slows all but a few.
    const [known, unset, unknown] = times.map((each) => Math.min(...each)) as [number, number, number];
    // A response without a real hash takes a tenth of the time.
    for (const other of [unset, unknown]) {
      expect(other / known).toBeGreaterThan(0.6);
      expect(other / known).toBeLessThan(1.7);
    }
    expect((await login(server, "top@example.com")).code).toBe(0);
  });

  test("a forgotten password, and another link", async () => {
    const random = Random.printed("link times");
    for (const path of ["/auth/forgot-password", "/auth/resend-verification"]) {
      const [known, unknown] = await medians(path, TIMED_USERS * MAX_MESSAGES_PER_HOUR, random, {});
      // A commit alone takes longer than this bound.
      expect(Math.abs(known - unknown)).toBeLessThan(Math.max(0.5, 0.5 * Math.max(known, unknown)));
    }
  });
});

describe("a change of password", () => {
  test("ends the other sessions with their sockets; the own one and tokens go on", async () => {
    const { server } = world;
    const email = "secure@example.com";
    const [own, ...others] = [
      kept(await signIn(server, email)),
      kept(await signIn(server, email)),
      kept(await signIn(server, email)),
    ];
    const pat = world.client("secure");
    const open = (token: string): Promise<Socket> => Socket.open(server, token);
    const ownSockets = [await open(own.accessToken), await open(own.accessToken)];
    const otherSockets = await Promise.all(others.map(({ accessToken }) => open(accessToken)));
    const patSocket = await open(pat.token!);
    const change = (body: object): Promise<Answer> => own.client.request("POST", "/me/password", { body });

    await expectRefused(change({ current: NEW_PASSWORD, new: NEW_PASSWORD }), 403, 40300);
    await expectRefused(change({ current: PASSWORD.toUpperCase(), new: NEW_PASSWORD }), 403, 40300);
    for (const next of ["short", "x".repeat(129), "password123", null]) {
      await expectRefused(change({ current: PASSWORD, new: next }), 400, 40000, /^new/);
    }
    await expectRefused(change({ new: NEW_PASSWORD }), 400, 40000, /^current/);
    await expectRefused(change({ current: PASSWORD, new: NEW_PASSWORD, token: "x" }), 400, 40000, /^token/);
    await expectRefused(
      pat.request("POST", "/me/password", { body: { current: PASSWORD, new: NEW_PASSWORD } }),
      403,
      40300,
    );
    for (const { client } of others) await me(client);
    for (const socket of otherSockets) await expectAlive(socket);

    expect(await change({ current: PASSWORD, new: NEW_PASSWORD })).toMatchObject({ status: 200, data: null });
    for (const socket of otherSockets) await expectEnded(socket);
    for (const { client, refreshToken } of others) {
      await me401(client);
      await expectRefused(post("/auth/refresh", { refresh_token: refreshToken }), 401, 40100);
    }
    for (const socket of [...ownSockets, patSocket]) await expectAlive(socket);
    for (const client of [own.client, pat]) await me(client);
    expect((await post("/auth/refresh", { refresh_token: own.refreshToken })).code).toBe(0);
    expect((await own.client.all("/me/sessions")).length).toBe(1);
    expect((await login(server, email)).code).toBe(40100);
    expect((await login(server, email, NEW_PASSWORD)).code).toBe(0);
    await eventually(async () => expect(messagesTo(server, email).at(-1)).toContain("was changed"));
    for (const socket of [...ownSockets, patSocket]) await socket.close();
  });

  test("of two changes at one time one is made", async () => {
    const { server } = world;
    const email = "racing@example.com";
    const { client, accessToken } = kept(await signIn(server, email));
    const both = guests.client(server, accessToken, 2);
    const passwords = [NEW_PASSWORD, `${NEW_PASSWORD}!`];
    const answers = await Promise.all(
      passwords.map((next) => both.request("POST", "/me/password", { body: { current: PASSWORD, new: next } })),
    );
    const winner = answers.findIndex(({ code }) => code === 0);
    const loser = answers[1 - winner]!;
    expect([40900, 40100]).toContain(loser.code);
    const logins = await Promise.all([PASSWORD, ...passwords].map((password) => login(server, email, password)));
    expect(logins.map(({ code }) => code)).toEqual([40100, ...passwords.map((_, i) => (i === winner ? 0 : 40100))]);
    await me(client);
  });
});

describe("the phone", () => {
  const start = (client: Client, phone: unknown): Promise<Answer> =>
    client.request("POST", "/me/phone", { body: { phone } });
  const verify = (client: Client, code: unknown): Promise<Answer<UserJson>> =>
    client.request("POST", "/me/phone/verify", { body: { code } });
  /** Returns a different code of six digits. */
  const other = (code: string, by = 1): string => String((Number(code) + by) % 1_000_000).padStart(6, "0");

  /** Requests a code and reads it. */
  async function codeFor(client: Client, phone: string): Promise<string> {
    const before = messagesTo(world.server, phone).length;
    expect((await start(client, phone)).status).toBe(202);
    return phoneCode(world.server, phone, before + 1);
  }

  /** A tier 0 account. */
  const person = async (name: string): Promise<Client> => kept(await signUp(world.server, freshEmail(name), 0)).client;

  test("must be in E.164 and able to get text messages", async () => {
    const client = await person("dialing");
    const wrong = ["", "14155552671", "+1 415 555 2671", "+1(415)5552671", "0014155552671", "+1415555267a", "+"];
    const unfit = [
      "+14155552671\n",
      "+0123456789",
      "+141555526711",
      "+1415555",
      "+4930123456",
      "+18005551234",
      "+881612345678",
    ];
    for (const phone of [...wrong, ...unfit, "+1".repeat(40), null, 14155552671, ["+14155552671"]]) {
      await expectRefused(start(client, phone), 400, 40000, /^phone/);
    }
    await expectRefused(client.request("POST", "/me/phone", { body: {} }), 400, 40000, /^phone/);
    const body = { phone: "+14155552671", code: "123456" };
    await expectRefused(client.request("POST", "/me/phone", { body }), 400, 40000, /^code/);
    expect(await me(client)).toMatchObject({ phone: null, phone_verified: false });
  });

  test("five wrong codes end a code; those that are none don't count; a used one is over", async () => {
    const client = await person("guessing");
    const phone = freshPhone();
    await expectRefused(verify(client, "123456"), 409, 40900);
    const code = await codeFor(client, phone);
    expect(await me(client)).toMatchObject({ phone, phone_verified: false });
    for (const malformed of ["", "12345", "1234567", "abcdef", ` ${code}`, `${code}\n`, Number(code), null, [code]]) {
      await expectRefused(verify(client, malformed), 400, 40000, /^code/);
    }
    for (let i = 1; i <= MAX_WRONG_CODES; i++) await expectRefused(verify(client, other(code, i)), 400, 40000, /^code/);
    await expectRefused(verify(client, code), 409, 40900);
    expect(await me(client)).toMatchObject({ phone_verified: false, kyc_tier: 0 });

    const next = await codeFor(client, phone);
    for (let i = 1; i < MAX_WRONG_CODES; i++) await expectRefused(verify(client, other(next, i)), 400, 40000, /^code/);
    const answer = await verify(client, next);
    expect([answer.status, answer.data.phone, answer.data.phone_verified]).toEqual([200, phone, true]);
    await expectRefused(verify(client, next), 409, 40900);
  });

  test("five wrong codes end a code also where they come at one time", async () => {
    const { accessToken } = kept(await signUp(world.server, freshEmail("hammering"), 0));
    const client = guests.client(world.server, accessToken, 16);
    const code = await codeFor(client, freshPhone());
    const guesses = Array.from({ length: 16 }, (_, i) => other(code, i + 1));
    const answers = await Promise.all(guesses.map((guess) => verify(client, guess)));
    expect(statusesOf(answers)).toEqual([
      ...Array(MAX_WRONG_CODES).fill(400),
      ...Array(16 - MAX_WRONG_CODES).fill(409),
    ]);
    await expectRefused(verify(client, code), 409, 40900);
  });

  test("a new code takes the place of the one before, and another's code is wrong", async () => {
    const [client, stranger] = [await person("twice"), await person("stranger")];
    const phone = freshPhone();
    const first = await codeFor(client, phone);
    const second = await codeFor(client, phone);
    const foreign = await codeFor(stranger, freshPhone());
    for (const code of [first, foreign]) {
      // The codes match once in a million.
      if (code !== second) await expectRefused(verify(client, code), 400, 40000, /^code/);
    }
    expect((await verify(client, second)).code).toBe(0);
    expect((await verify(stranger, foreign)).code).toBe(0);
  });

  test("the sixth code in an hour is refused with the time to wait, whatever the number", async () => {
    const { accessToken } = kept(await signUp(world.server, freshEmail("insisting"), 0));
    const client = guests.client(world.server, accessToken, 8);
    const numbers = Array.from({ length: 8 }, freshPhone);
    const answers = await Promise.all(numbers.map((phone) => start(client, phone)));
    expect(statusesOf(answers)).toEqual([202, 202, 202, 202, 202, 429, 429, 429]);
    const refused = await expectRefused(start(client, freshPhone()), 429, 42900);
    const after = Number(refused.headers["retry-after"]);
    expect(after).toBeGreaterThan(3_500);
    expect(after).toBeLessThanOrEqual(3_600);
    const last = numbers[answers.findLastIndex(({ status }) => status === 202)]!;
    await phoneCode(world.server, last);
    expect(numbers.flatMap((phone) => messagesTo(world.server, phone))).toHaveLength(MAX_MESSAGES_PER_HOUR);
  });

  test("a verified number stays until another one is verified", async () => {
    const [old, next] = [freshPhone(), freshPhone()];
    const { client, user } = kept(await signUp(world.server, freshEmail("moving"), 1, old));
    expect(user).toMatchObject({ phone: old, phone_verified: true, kyc_tier: 1 });
    await expectRefused(start(client, old), 409, 40900);
    const code = await codeFor(client, next);
    const verified = { phone: old, phone_verified: true, kyc_tier: 1 };
    expect(await me(client)).toMatchObject(verified);
    await expectRefused(verify(client, other(code)), 400, 40000);
    expect(await me(client)).toMatchObject(verified);
    expect((await verify(client, code)).data).toMatchObject({ phone: next, phone_verified: true, kyc_tier: 1 });
    expect(await me(client)).toMatchObject({ phone: next, phone_verified: true });
  });

  test.for(["mail", "phone"])(
    "tier 1 comes with the second of the two, the %s first, for tokens and sockets as they are",
    async (first) => {
      const email = `early-${first}@example.com`;
      const { server } = world;
      const { client, accessToken } = kept(await signIn(server, email));
      const pat = world.client(`early-${first}`);
      const sockets = [await Socket.open(server, accessToken), await Socket.open(server, pat.token)];
      const order = terms(market, 0, BUY, 100, 1);
      const tries = async (): Promise<number[]> => {
        const answers = [client, pat].map((by) => by.request<OrderJson>("POST", "/orders", { body: order }));
        const asked = sockets.map((socket) => socket.ask({ op: "order.place", data: order }));
        return (await Promise.all([...answers, ...asked])).map(({ code }) => code);
      };
      const [no, yes] = [
        [40300, 40300, 40300, 40300],
        [0, 0, 0, 0],
      ];
      const verifyMail = async (): Promise<UserJson> => {
        await post("/auth/resend-verification", { email });
        const token = await verificationToken(server, email);
        return client.data<UserJson>("POST", "/auth/verify-email", { token });
      };
      const phone = freshPhone();
      const verifyPhone = async (): Promise<UserJson> => (await verify(client, await codeFor(client, phone))).data;
      expect(await tries()).toEqual(no);
      const half = await (first === "mail" ? verifyMail() : verifyPhone());
      expect(half).toMatchObject({ email_verified: first === "mail", phone_verified: first === "phone", kyc_tier: 0 });
      expect(await tries()).toEqual(no);
      const whole = await (first === "mail" ? verifyPhone() : verifyMail());
      const reached = { email_verified: true, phone, phone_verified: true, kyc_tier: 1 };
      expect(whole).toMatchObject({ ...reached, daily_activity: { used: 0, limit: 100 * USDC } });
      expect(await tries()).toEqual(yes);
      expect(await me(client)).toMatchObject({ ...reached, daily_activity: { used: 4 * 10_000, limit: 100 * USDC } });
      for (const socket of sockets) await socket.close();
    },
  );
});

describe("the application for tier 2", () => {
  const document = { document_type: "passport", document_number: "X-1234567/89", country: "PT" };
  const apply = (client: Client, body: object = document): Promise<Answer> =>
    client.request("POST", "/me/identity", { body });

  test("needs tier 1, and is no use with tier 2", async () => {
    const { client } = kept(await signUp(world.server, freshEmail("anonymous"), 0));
    await expectRefused(apply(client), 403, 40300);
    await expectRefused(client.request("GET", "/me/identity"), 404, 4040);
    const top = kept(await signIn(world.server, "top@example.com"));
    await expectRefused(apply(top.client), 409, 40900);
  });

  test("one waits at a time, and the document's number is never told", async () => {
    const { client } = kept(await signIn(world.server, "applying@example.com"));
    const wrong: [object, RegExp][] = [
      [{ ...document, document_type: "library_card" }, /^document_type/],
      [{ ...document, document_number: "" }, /^document_number/],
      [{ ...document, document_number: "1".repeat(65) }, /^document_number/],
      [{ ...document, document_number: "12\n34" }, /^document_number/],
      [{ ...document, document_number: 1_234_567 }, /^document_number/],
      [{ ...document, country: "pt" }, /^country/],
      [{ ...document, country: "PRT" }, /^country/],
      [{ ...document, status: "approved" }, /^status/],
      [{ document_type: "passport", country: "PT" }, /^document_number/],
    ];
    for (const [body, message] of wrong) await expectRefused(apply(client, body), 400, 40000, message);
    await expectRefused(client.request("GET", "/me/identity"), 404, 4040);

    const made = await apply(client);
    expect(made).toMatchObject({
      status: 201,
      data: { document_type: "passport", country: "PT", status: "pending", decided_at: null },
    });
    const shown = await client.get("/me/identity");
    expect(shown).toEqual(made.data);
    const again = await expectRefused(apply(client), 409, 40900);
    await expectRefused(apply(client, { ...document, country: "ES" }), 409, 40900);
    const told = JSON.stringify([made, shown, again, await me(client), world.server.log]);
    expect(told).not.toContain(document.document_number);
    expect(await me(client)).toMatchObject({ kyc_tier: 1 });
    expect(JSON.stringify(rowsOf(world.server.dataDir, "SELECT * FROM audit_log"))).not.toContain(
      document.document_number,
    );
  });

  test("two at one time are one", async () => {
    const { accessToken } = kept(await signIn(world.server, "applying-twice@example.com"));
    const client = guests.client(world.server, accessToken, 4);
    expect(statusesOf(await Promise.all([1, 2, 3].map(() => apply(client))))).toEqual([201, 409, 409]);
    expect(await client.get("/me/identity")).toMatchObject({ status: "pending" });
  });
});

test("nobody got a mail that nothing asked for", async () => {
  await hiddenWorkDone();
  const counts = [...mailsExpected.keys()].map((email) => [email, messagesTo(world.server, email).length]);
  expect(counts).toEqual([...mailsExpected]);
});
