/**
 * The verification of a person: the phone, which together with the address gives KYC tier 1, and the application for
 * tier 2. For what each tier may trade, see kyc.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accountRequests, MAX_MESSAGES_PER_HOUR, me, statusesOf } from "../accounts/account-requests.ts";
import type { Answer, Client, OrderJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import {
  freshEmail,
  messagesTo,
  PASSWORD,
  phoneCode,
  signIn,
  signUp,
  type UserJson,
  verificationToken,
} from "../support/identity.ts";
import { HIGH_LIMITS } from "../support/rates.ts";
import { Socket } from "../support/socket.ts";
import { BUY, expectRefused, terms } from "../support/trading.ts";
import { ALL_SCOPES, PUBLIC_URL, type TestMarket, USDC, type UserSpec, World } from "../support/world.ts";

const MAX_WRONG_CODES = 5;

/** A tier 0 account with money and a token with all scopes; it can trade as soon as its tier allows. */
const EARLY: UserSpec = { tier: 0, deposit: 1_000 * USDC, password: PASSWORD, scopes: [ALL_SCOPES] };

let world: World;
let market: TestMarket;
const { end, guests, kept, post } = accountRequests(() => world.server, 0);

beforeAll(async () => {
  world = await World.start({
    users: 0,
    named: {
      "early-mail": EARLY,
      "early-phone": EARLY,
      applying: { tier: 1, password: PASSWORD },
      "applying-twice": { tier: 1, password: PASSWORD },
      top: { tier: 2, password: PASSWORD },
    },
    env: { RATE_LIMITS: HIGH_LIMITS, PUBLIC_URL, TRUSTED_PROXIES: "127.0.0.1" },
  });
  market = world.market();
});

afterAll(() => end(world));

let phones = 2_000;
const freshPhone = (): string => `+1415555${++phones}`;

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

  test("a phone number must be in E.164 and able to get text messages", async () => {
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

  test("five wrong codes end a phone's code; malformed ones don't count; a used code is rejected", async () => {
    const client = await person("guessing");
    const phone = freshPhone();
    await expectRefused(verify(client, "123456"), 409, 40900);
    const code = await codeFor(client, phone);
    expect(await me(client)).toMatchObject({ phone, phone_verified: false });
    for (const malformed of ["", "12345", "1234567", "abcdef", " - ", `${code}.`, Number(code), null, [code]]) {
      await expectRefused(verify(client, malformed), 400, 40000, /^code/);
    }
    for (let i = 1; i <= MAX_WRONG_CODES; i++) await expectRefused(verify(client, other(code, i)), 400, 40000, /^code/);
    await expectRefused(verify(client, code), 409, 40900);
    expect(await me(client)).toMatchObject({ phone_verified: false, kyc_tier: 0 });

    const next = await codeFor(client, phone);
    for (let i = 1; i < MAX_WRONG_CODES; i++) await expectRefused(verify(client, other(next, i)), 400, 40000, /^code/);
    // As typed and pasted.
    const answer = await verify(client, ` ${next.slice(0, 3)}\u2011${next.slice(3)}\u00a0`);
    expect([answer.status, answer.data.phone, answer.data.phone_verified]).toEqual([200, phone, true]);
    await expectRefused(verify(client, next), 409, 40900);
  });

  test("five wrong codes end a phone's code even if they arrive in parallel", async () => {
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

  test("a phone's new code replaces the previous one, and another user's code is wrong", async () => {
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

  test("the sixth phone code in an hour is rejected with the time to wait, whatever the number", async () => {
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

  test("a verified phone number stays until another is verified", async () => {
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
    "the second of the two verifications, the %s first, gives tier 1 to open tokens and sockets",
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

  test("an application for tier 2 needs tier 1, and is rejected at tier 2", async () => {
    const { client } = kept(await signUp(world.server, freshEmail("anonymous"), 0));
    await expectRefused(apply(client), 403, 40300);
    expect(await client.get("/me/identity")).toBeNull();
    const top = kept(await signIn(world.server, "top@example.com"));
    await expectRefused(apply(top.client), 409, 40900);
  });

  test("a user has one application for tier 2 at a time, and no response or log reveals the document's number", async () => {
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
    expect(await client.get("/me/identity")).toBeNull();

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

  test("of parallel applications for tier 2 one is made", async () => {
    const { accessToken } = kept(await signIn(world.server, "applying-twice@example.com"));
    const client = guests.client(world.server, accessToken, 4);
    expect(statusesOf(await Promise.all([1, 2, 3].map(() => apply(client))))).toEqual([201, 409, 409]);
    expect(await client.get("/me/identity")).toMatchObject({ status: "pending" });
  });
});
