/**
 * Resets and changes of passwords: what they end, what they keep, and what they reveal. Covers a stranger who registers
 * a victim's address and waits for the victim to use the account.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  accountRequests,
  HIDDEN_ROUNDS,
  MAX_MESSAGES_PER_HOUR,
  me,
  me401,
  NEW_PASSWORD,
  sight,
  statusesOf,
} from "../accounts/account-requests.ts";
import { eventually, expectEnded } from "../support/checks.ts";
import type { Answer } from "../support/client.ts";
import {
  createPat,
  freshEmail,
  login,
  messagesTo,
  PASSWORD,
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
import { expectRefused } from "../support/trading.ts";
import { PUBLIC_URL, World } from "../support/world.ts";

const TIMED_USERS = 12;

let world: World;
const { countMails, end, expectMails, guests, kept, post, postFromElsewhere, visitors } = accountRequests(
  () => world.server,
  TIMED_USERS,
);
const { secrets } = guests;

beforeAll(async () => {
  world = await World.start({
    users: TIMED_USERS + HIDDEN_ROUNDS,
    named: {
      secure: { password: PASSWORD },
      racing: { password: PASSWORD },
      "reset-whole": { password: PASSWORD },
      resetting: { tier: 0, password: PASSWORD },
      top: { tier: 2, password: PASSWORD },
    },
    env: { RATE_LIMITS: HIGH_LIMITS, PUBLIC_URL, TRUSTED_PROXIES: "127.0.0.1" },
  });
});

afterAll(() => end(world));

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

  test("a stranger's address isn't verified by the link alone or with a wrong password; a reset takes the account from the stranger", async () => {
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

  test("a stranger's account, verified with the password, loses all sessions with their sockets", async () => {
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

  test("an account verified by its own session keeps that session with its socket and loses the others", async () => {
    const { sessions, sockets, token } = await squat("own");
    const [own, other] = sessions as [SignedIn, SignedIn];
    await expectRefused(verify({ token, password: NEW_PASSWORD }, own.client), 403, 40300, /^password: wrong$/);
    expect((await verify({ token }, own.client)).data).toMatchObject({ email_verified: true });
    await expectEnded(sockets[1]!);
    await me401(other.client);
    await sockets[0]!.fence();
    expect(await me(own.client)).toMatchObject({ email_verified: true });
    expect((await post("/auth/refresh", { refresh_token: own.refreshToken })).code).toBe(0);
    await sockets[0]!.close();
  });

  test("an address isn't verified by another account's session, by a personal access token or by an invalid token", async () => {
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

  test("a stranger's account, reset amid sign-ins of the stranger, keeps none of them, in whatever order they arrive", async () => {
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
  test("the response to a forgotten password, with its headers, is the same for known and unknown addresses", async () => {
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
    countMails(unknown, 0);
  });

  test("a reset of a forgotten password ends all sessions, the old password and the other links, and verifies the address", async () => {
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
  test("a reset of a verified account ends every session, token and grant with their sockets, and keeps the account's third-party clients", async () => {
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

describe("neither time nor response reveals whether an address has an account", () => {
  /** On a busy machine, other work slows half of the responses or more, but hardly nine in ten of either kind. */
  const fastestTenth = (times: readonly number[]): number =>
    times.toSorted((a, b) => a - b)[Math.floor(times.length / 10)]!;

  /**
   * Returns times in ms for known and unknown addresses. Sends requests in sequence, in random order within each pair.
   */
  async function timesOf(path: string, pairs: number, random: Random, more: object): Promise<[number, number]> {
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
    return [fastestTenth(times[0]), fastestTenth(times[1])];
  }

  test("neither time nor response of a sign-in reveals whether an address has an account", async () => {
    const random = Random.printed("sign-in times");
    const { server } = world;
    const client = visitors();
    const times: [known: number[], unset: number[], unknown: number[]] = [[], [], []];
    const emails = ["top@example.com", "user0@example.com", "nobody@example.com"];
    const sights = new Set<string>();
    // Compare the fastest of each kind: on a busy machine, other work slows all but a few. A response without a real hash
    // takes a tenth of the time, in however many rounds.
    const fastest = (): number[] => times.map((each) => Math.min(...each));
    const areAlike = (): boolean => Math.max(...fastest()) < 1.6 * Math.min(...fastest());
    for (let i = 0; i < 15 || (i < 100 && !areAlike()); i++) {
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
    expect(areAlike(), `fastest: ${fastest()}`).toBe(true);
    expect((await login(server, "top@example.com")).code).toBe(0);
  });

  test("neither time nor response of a request of a reset or a new link reveals whether an address has an account", async () => {
    const random = Random.printed("link times");
    for (const path of ["/auth/forgot-password", "/auth/resend-verification"]) {
      const [known, unknown] = await timesOf(path, TIMED_USERS * MAX_MESSAGES_PER_HOUR, random, {});
      // A commit alone takes longer than this bound.
      expect(Math.abs(known - unknown)).toBeLessThan(Math.max(0.5, 0.5 * Math.max(known, unknown)));
    }
  });
});

describe("a change of password", () => {
  test("a change of password ends the other sessions with their sockets, and keeps the caller's session and tokens", async () => {
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
    for (const socket of otherSockets) await socket.fence();

    expect(await change({ current: PASSWORD, new: NEW_PASSWORD })).toMatchObject({ status: 200, data: null });
    for (const socket of otherSockets) await expectEnded(socket);
    for (const { client, refreshToken } of others) {
      await me401(client);
      await expectRefused(post("/auth/refresh", { refresh_token: refreshToken }), 401, 40100);
    }
    for (const socket of [...ownSockets, patSocket]) await socket.fence();
    for (const client of [own.client, pat]) await me(client);
    expect((await post("/auth/refresh", { refresh_token: own.refreshToken })).code).toBe(0);
    expect((await own.client.all("/me/sessions")).length).toBe(1);
    expect((await login(server, email)).code).toBe(40100);
    expect((await login(server, email, NEW_PASSWORD)).code).toBe(0);
    await eventually(async () => expect(messagesTo(server, email).at(-1)).toContain("was changed"));
    for (const socket of [...ownSockets, patSocket]) await socket.close();
  });

  test("of two parallel changes of a password one is made", async () => {
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

test("nobody got a mail without a request", expectMails);
