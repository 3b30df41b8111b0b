/**
 * Passkeys over the API, with a software authenticator that can also send what no browser would. For a real browser,
 * see test/browser/second-factor.long.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CreationOptions, Passkeys } from "../../server/sign-in/passkeys.ts";
import { expectEndsWell } from "../support/checks.ts";
import type { Answer, Client } from "../support/client.ts";
import { rowsOf, withDatabase } from "../support/data-dir.ts";
import { Guests, PASSWORD, type SignInJson } from "../support/identity.ts";
import {
  addApp,
  type ChallengeJson,
  type ConfirmedJson,
  challengeOf,
  claimsOf,
  type EnrolmentJson,
  FACTORS,
  type FactorsJson,
  finish,
  prove,
} from "../support/second-factor.ts";
import { alone } from "../support/trading.ts";
import { World } from "../support/world.ts";
import { SoftPasskey, type Twist } from "./soft-passkey.ts";

const ORIGIN = "https://exchange.test";
const NAMES = ["plain", "twisted", "counting", "many", "thief", "moved", "guessed", "removed", "plenty", "named"];
const guests = new Guests();
let world: World;

beforeAll(async () => {
  const named = Object.fromEntries(NAMES.map((name) => [name, { password: PASSWORD, deposit: 0 }]));
  world = await World.start({ users: 0, named, env: { PUBLIC_URL: ORIGIN } });
});
afterAll(async () => {
  guests.close();
  await expectEndsWell(world);
});

const emailOf = (name: string): string => `${name}@example.com`;
const challenge = (name: string): Promise<ChallengeJson> => challengeOf(world.server, emailOf(name));

function expectRefused({ code, msg }: Answer, expected: number, words: RegExp): void {
  expect([code, msg]).toEqual([expected, expect.stringMatching(words)]);
}

const begin = (session: Client, name?: string): Promise<EnrolmentJson> =>
  session.data("POST", FACTORS, { kind: "passkey", ...(name === undefined ? {} : { name }) });
const confirm = (session: Client, id: number, passkey: object): Promise<Answer<ConfirmedJson>> =>
  session.request("POST", `${FACTORS}/${id}/confirm`, { body: { passkey } });

const handleOf = ({ options }: EnrolmentJson): string => (options as unknown as CreationOptions).user.id;

async function proven(name: string): Promise<Client> {
  const { client } = await guests.signIn(world.server, emailOf(name));
  await prove(client);
  return client;
}

async function addPasskey(session: Client, key = new SoftPasskey(ORIGIN)): Promise<{ key: SoftPasskey; id: number }> {
  const { id, options } = await begin(session);
  const { code, msg } = await confirm(session, id, key.register(options!.challenge));
  if (code !== 0) throw new Error(`${code} ${msg}`);
  return { key, id };
}

/** Completes the second step with a passkey. */
async function show(name: string, key: SoftPasskey, twist: Twist = {}): Promise<Answer<SignInJson>> {
  const { challenge: each, passkey } = await challenge(name);
  return finish(world.server, each, { passkey: key.assert(passkey!.challenge, twist) });
}

test("a passkey is added, signs in, and shows its last use", async () => {
  const session = await proven("plain");
  const begun = await begin(session, "Laptop");
  const { id, options, secret } = begun;
  expect(secret).toBe(null);
  expect(options).toMatchObject({
    rp: { id: "exchange.test", name: "Prediction Exchange" },
    user: { name: emailOf("plain") },
    attestation: "none",
    authenticatorSelection: { userVerification: "required" },
    excludeCredentials: [],
  });
  const key = new SoftPasskey(ORIGIN);
  const { data } = await confirm(session, id, key.register(options!.challenge));
  expect(data).toMatchObject({ factor: { id, kind: "passkey", name: "Laptop", last_used_at: null } });
  expect(data.recovery_codes).toHaveLength(10);
  const asked = await challenge("plain");
  expect(asked).toMatchObject({
    methods: ["passkey", "recovery_code"],
    passkey: {
      rpId: "exchange.test",
      userVerification: "required",
      allowCredentials: [{ type: "public-key", id: key.id, transports: ["internal"] }],
    },
  });
  const signedIn = await finish(world.server, asked.challenge, { passkey: key.assert(asked.passkey!.challenge) });
  expect(claimsOf(signedIn.data.access_token).amr).toEqual(["pwd", "pop", "mfa"]);
  const { items, passkeys } = await session.get<FactorsJson>(FACTORS);
  expect([items[0]!.last_used_at, passkeys]).toEqual([expect.any(Number), null]);
  // Handles are random, and one for all of an account's passkeys: nobody counts accounts by them.
  const again = await begin(session);
  expect(handleOf(begun)).toMatch(/^[\w-]{43}$/);
  expect(handleOf(again)).toBe(handleOf(begun));
  // The exchange excludes this device from a second registration.
  expect((await begin(session)).options).toMatchObject({ excludeCredentials: [{ id: key.id }] });
});

const TWISTS: readonly (readonly [what: string, twist: Twist])[] = [
  ["of another origin", { origin: "https://evil.example" }],
  ["of plain HTTP", { origin: "http://exchange.test" }],
  ["of another host", { rpId: "evil.example" }],
  ["for another challenge", { challenge: Buffer.alloc(32, 7).toString("base64url") }],
  ["without PIN or finger", { isVerified: false }],
];

describe("an invalid passkey is rejected", () => {
  test.each([...TWISTS, ["of an assertion", { type: "webauthn.get" }] as const])(
    "an invalid passkey is rejected when registered: %s",
    async (_, twist) => {
      const session = await proven("twisted");
      const { id, options } = await begin(session);
      const made = new SoftPasskey(ORIGIN).register(options!.challenge, twist);
      expectRefused(await confirm(session, id, made), 40000, /^passkey: not valid for this site/);
      expect((await session.get<FactorsJson>(FACTORS)).items).toEqual([]);
    },
  );

  test("a passkey is rejected at sign-in: of another origin, host, challenge or kind, without PIN, of another key, or malformed", async () => {
    const { key } = await addPasskey(await proven("guessed"));
    const stranger = new SoftPasskey(ORIGIN);
    const shown: readonly (readonly [SoftPasskey, Twist])[] = [
      ...TWISTS.map(([, twist]) => [key, twist] as const),
      [key, { type: "webauthn.create" }],
      [stranger, {}],
      [stranger, { id: key.id }],
    ];
    for (const [by, twist] of shown) expectRefused(await show("guessed", by, twist), 40100, /^passkey: wrong/);
    const { challenge: each, passkey } = await challenge("guessed");
    const assertion = key.assert(passkey!.challenge) as { response: object };
    const broken = { ...assertion, response: { ...assertion.response, authenticatorData: "AAAA" } };
    expectRefused(await finish(world.server, each, { passkey: broken }), 40100, /4 more tries/);
    const { response: _, ...bare } = assertion;
    expectRefused(await finish(world.server, each, { passkey: bare }), 40000, /passkey/);
    // Wrong passkeys block neither codes nor passkeys.
    expect((await finish(world.server, each, { passkey: assertion })).code).toBe(0);
  });

  test("a passkey is rejected at sign-in: sent twice, or with a counter that doesn't rise, as from a copy", async () => {
    const { key } = await addPasskey(await proven("counting"));
    expect((await show("counting", key, { counter: 10 })).code).toBe(0);
    for (const counter of [10, 9]) expectRefused(await show("counting", key, { counter }), 40100, /^passkey: wrong/);
    expect((await show("counting", key, { counter: 11 })).code).toBe(0);
    const { challenge: each, passkey } = await challenge("counting");
    const once = key.assert(passkey!.challenge);
    const answers = await Promise.all([once, once].map((shown) => finish(world.server, each, { passkey: shown })));
    expect(answers.filter(({ code }) => code === 0)).toHaveLength(1);
    // An authenticator without a counter always sends 0.
    const { key: plain } = await addPasskey(await proven("moved"));
    for (let i = 0; i < 2; i++) expect((await show("moved", plain, { counter: 0 })).code).toBe(0);
  });

  test("a passkey is rejected at sign-in with the handle of another account, while its own or none is fine", async () => {
    const session = await proven("named");
    const begun = await begin(session);
    const { id, options } = begun;
    const key = new SoftPasskey(ORIGIN);
    expect((await confirm(session, id, key.register(options!.challenge))).code).toBe(0);
    const own = handleOf(begun);
    const others = ["", Buffer.from("1").toString("base64url"), Buffer.alloc(32).toString("base64url"), `${own}A`];
    for (const userHandle of others) expectRefused(await show("named", key, { userHandle }), 40100, /^passkey: wrong/);
    expect((await show("named", key, { userHandle: own })).code).toBe(0);
    expect((await show("named", key)).code).toBe(0);
    // A passkey from before handles were random knows its account by its id.
    await world.server.stop();
    const row = "SELECT user_id AS userId FROM second_factors WHERE id = ?";
    const [{ userId }] = rowsOf<{ userId: number }>(world.server.dataDir, row, id) as [{ userId: number }];
    withDatabase(world.server.dataDir, (db) => {
      db.prepare("UPDATE second_factors SET user_handle = NULL WHERE id = ?").run(id);
    });
    world.server = await world.server.restart();
    expectRefused(await show("named", key, { userHandle: own }), 40100, /^passkey: wrong/);
    const old = Buffer.from(String(userId)).toString("base64url");
    expect((await show("named", key, { userHandle: old })).code).toBe(0);
  });

  test("a passkey is rejected when registered with the id of another account's", async () => {
    const { key } = await addPasskey(await proven("many"));
    const session = await proven("thief");
    const { id, options } = await begin(session);
    const made = new SoftPasskey(ORIGIN, key.id).register(options!.challenge);
    expectRefused(await confirm(session, id, made), 40900, /already registered/);
    expect((await show("many", key)).code).toBe(0);
  });
});

test("a removed passkey no longer signs in; an authenticator app keeps working", async () => {
  const session = await proven("removed");
  const { key, id } = await addPasskey(session);
  const { app } = await addApp(session);
  const asked = await challenge("removed");
  expect(asked.methods).toEqual(["totp", "passkey", "recovery_code"]);
  await session.data("DELETE", `${FACTORS}/${id}`);
  const late = await finish(world.server, asked.challenge, { passkey: key.assert(asked.passkey!.challenge) });
  expectRefused(late, 40100, /^passkey: wrong/);
  expect(await challenge("removed")).toMatchObject({ methods: ["totp", "recovery_code"], passkey: null });
  expect((await finish(world.server, asked.challenge, { code: app.next() })).code).toBe(0);
});

test("an account has ten passkeys at most", async () => {
  const session = await proven("plenty");
  for (let i = 0; i < 10; i++) await addPasskey(session);
  const eleventh = await session.request("POST", FACTORS, { body: { kind: "passkey" } });
  expectRefused(eleventh, 40900, /at most 10 of this kind/);
});

describe("an exchange whose PUBLIC_URL has no host name or no https has no passkeys", () => {
  const urls = [
    ["http://127.0.0.1:8080", /passkeys need a host name.*127\.0\.0\.1/],
    ["https://[::1]", /passkeys need a host name/],
    ["http://exchange.test", /passkeys need https/],
  ] as const;

  test.each(urls)("PUBLIC_URL doesn't allow passkeys: %s", (url, words) =>
    expect(new Passkeys(() => url).rejection).toMatch(words),
  );

  test.each([ORIGIN, "http://localhost:8080", "http://exchange.localhost"])("PUBLIC_URL allows passkeys: %s", (url) => {
    expect(new Passkeys(() => url).rejection).toBeNull();
  });

  test("an exchange without passkeys tells the user why, and rejects an enrolment", async () => {
    const named = { owner: { password: PASSWORD, deposit: 0 } };
    const [PUBLIC_URL, words] = urls[2];
    await alone({ users: 0, named, env: { PUBLIC_URL } }, async (own) => {
      const { client } = await guests.signIn(own.server, emailOf("owner"));
      await prove(client);
      expect((await client.get<FactorsJson>(FACTORS)).passkeys).toMatch(words);
      expectRefused(await client.request("POST", FACTORS, { body: { kind: "passkey" } }), 40000, words);
    });
  });
});
