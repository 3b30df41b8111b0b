/**
 * Forged and damaged access tokens against a running server, through every entry point: the Authorization header, the
 * WebSocket's URL, introspection and revocation. The variants follow the public Wycheproof vectors for JWS and RSA
 * signatures. Every forger here knows all public data. Some also have the server's own key, and the server must still
 * reject their tokens.
 */
import assert from "node:assert";
import { createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE, Client } from "../support/client.ts";
import { signingKeys } from "../support/data-dir.ts";
import { PASSWORD, type SignedIn, signIn } from "../support/identity.ts";
import type { TestServer } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { FORM, ThirdParty } from "../support/third-party.ts";
import { ALL_SCOPES, World } from "../support/world.ts";
import { Flooder, floodRequest, floodToken, UPGRADE } from "./flooder.ts";
import { block, decode, Forge, hashOf, type Json, SHA256_INFO, type Variant } from "./forge.ts";
import { SESSIONS } from "./forged-contents.ts";
import { KINDS } from "./forged-variants.ts";

/** The most bytes that uWebSockets.js accepts before a request's body. */
const MAX_HEAD_BYTES = 4_096;

// ---------------------------------------------------------------- the exchange

let world: World;
let server: TestServer;
let me: SignedIn;
let other: SignedIn;
let party: ThirdParty;
let third: string;
let key: KeyObject;
let stranger: KeyObject;
/** Forges from a live session token, from the token of an ended session, and from a third party's token. */
let forges: { live: Forge; expired: Forge; oauth: Forge };

beforeAll(async () => {
  world = await World.start({
    users: 1,
    named: { owner: { password: PASSWORD }, other: { password: PASSWORD } },
  });
  ({ server } = world);
  [me, other] = await Promise.all([signIn(server, "owner@example.com"), signIn(server, "other@example.com")]);
  party = await ThirdParty.register(world, other.client, { confidential: true });
  third = (await party.tokens(me.client, ALL_SCOPES.join(" "))).access_token;
  const [jwk, ...rest] = signingKeys(server.dataDir);
  assert(rest.length === 0, "one key");
  key = createPrivateKey({ key: jwk!, format: "jwk" });
  stranger = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const of = (token: string, change: Json = {}): Forge => {
    const [head, claims] = token.split(".", 2).map(decode) as [Json, Json];
    return new Forge(key, stranger, decode(other.accessToken.split(".")[1]!), head, { ...claims, ...change });
  };
  const over = Math.floor(Date.now() / 1_000) - 60;
  const live = of(me.accessToken);
  forges = { live, expired: of(me.accessToken, { iat: over - 900, exp: over }), oauth: of(third) };
  expect([forges.live.token, forges.oauth.token]).toEqual([me.accessToken, third]);
});

afterAll(async () => {
  for (const each of [me, other]) each.client.close();
  await expectEndsWell(world);
  expectUnlogged([me.accessToken, me.refreshToken, third, party.secret!, forges.live.p], server);
});

// ---------------------------------------------------------------- entry points

/** Returns whether an HTTP header can carry the token unchanged: a header drops surrounding whitespace. */
function fitsHeader(token: string): boolean {
  return /^[\x20-\x7e\x80-\xff]*$/.test(token) && token.trim() === token && token.length < MAX_HEAD_BYTES - 256;
}

function fitsUrl(token: string): boolean {
  return encodeURIComponent(token).length < MAX_HEAD_BYTES - 512;
}

const byHeader = (to: Client, token: string): Promise<Answer> =>
  to.request("GET", "/me", { headers: { Authorization: `Bearer ${token}` } });
const byUrl = (to: Client, token: string): Promise<Answer> =>
  to.request("GET", `/ws?token=${encodeURIComponent(token)}`, { headers: UPGRADE });

/** Returns the introspection response: whether the token is active and belongs to this client. */
async function introspected(to: Client, token: string): Promise<unknown> {
  const form = new URLSearchParams({ ...party.credentials, token });
  return (await to.request("POST", "/oauth/introspect", { body: form.toString(), headers: FORM })).data;
}

async function expectGenuineWork(to: Client): Promise<void> {
  for (const token of [me.accessToken, third]) {
    const { status, data } = await byHeader(to, token);
    expect([status, data]).toMatchObject([200, { id: me.user.id }]);
  }
  const socket = await Socket.open(server, me.accessToken);
  expect((await socket.ask({ op: "cancel_on_disconnect", enabled: false })).code).toBe(0);
  await socket.close();
}

const INVALID = ["the token is not valid", "the Authorization header is not a bearer token"];

/** Returns null for the one correct response, otherwise a summary of the response. */
function fault({ status, code, msg, data, headers }: Answer): unknown {
  const isRight = status === 401 && code === 40100 && INVALID.includes(msg) && data === null;
  return isRight && headers["www-authenticate"] === "Bearer" ? null : [status, code, msg];
}

const SOCKETS = 8;
const GENUINE_EVERY = 100;

/** Runs the work on all items, with bounded concurrency. */
async function inParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const run = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) await work(items[at]!, at);
  };
  await Promise.all(Array.from({ length: width }, run));
}

const sent = { header: new Set<string>(), url: new Set<string>() };

/**
 * Sends every token through every entry point that can carry it. Returns those that the server did not reject
 * correctly.
 */
async function refusedOnes(forge: Forge, variants: readonly Variant[]): Promise<unknown[]> {
  const to = new Client(server, null, SOCKETS);
  const wrong: unknown[] = [];
  await inParallel(variants, SOCKETS, async ([name, make], index) => {
    const token = await make(forge);
    const isSent = [fitsHeader(token), fitsUrl(token)];
    expect([name, token !== forge.token, isSent.includes(true)]).toEqual([name, true, true]);
    if (isSent[0]) {
      sent.header.add(token);
      const found = fault(await byHeader(to, token));
      if (found !== null) wrong.push([name, "header", found]);
    }
    if (isSent[1]) {
      sent.url.add(token);
      const found = fault(await byUrl(to, token).catch((error) => ({ msg: String(error) }) as Answer));
      if (found !== null) wrong.push([name, "url", found]);
    }
    if (token !== "" && forge === forges.oauth) {
      const found = await introspected(to, token);
      if (JSON.stringify(found) !== '{"active":false}') wrong.push([name, "introspection", found]);
      const form = new URLSearchParams({ ...party.credentials, token });
      const { status } = await to.request("POST", "/oauth/revoke", { body: form.toString(), headers: FORM });
      if (status !== 200) wrong.push([name, "revocation", status]);
    }
    if (index % GENUINE_EVERY === 0) await expectGenuineWork(to);
  });
  await expectGenuineWork(to);
  to.close();
  return wrong;
}

// ---------------------------------------------------------------- the tests

describe("the forge", () => {
  test("the forge makes genuine tokens if it changes nothing, also new ones, and an expired one is 2002", async () => {
    const to = new Client(server, null);
    for (const forge of [forges.live, forges.oauth]) {
      const fresh = forge.withClaims({ jti: "fresh" });
      for (const token of [forge.token, fresh]) {
        expect((await byHeader(to, token)).status).toBe(200);
        await (await Socket.open(server, token)).close();
      }
      // A list of audiences that includes ours is valid.
      const several = forge.withClaims({ aud: ["https://other.example", forge.claims["aud"]] });
      expect((await byHeader(to, several)).status).toBe(200);
      const same = forge.rawSigned(block(SHA256_INFO + hashOf(forge)));
      expect(same).toBe(forge.token);
    }
    expect(await introspected(to, third)).toMatchObject({ active: true, client_id: party.clientId });
    for (const jti of [forges.expired.claims["jti"], "fresh"]) {
      const token = forges.expired.withClaims({ jti });
      for (const answer of [await byHeader(to, token), await byUrl(to, token)]) {
        expect([answer.status, answer.code, answer.msg]).toEqual([401, 2002, "the token has expired"]);
      }
    }
    to.close();
  });
});

describe.each(["live", "expired", "oauth"] as const)("%s: no token, but 40100, is", (base) => {
  test.each(Object.entries(KINDS))("no token, but 40100, is %s", async (_kind, variants) => {
    expect(await refusedOnes(forges[base], variants)).toEqual([]);
  });
});

test("each entry point got more than 250 different variants of each token", () => {
  const names = Object.values(KINDS).flatMap((variants) => variants.map(([name]) => name));
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThan(400);
  expect(sent.header.size).toBeGreaterThan(250 * 3);
  expect(sent.url.size).toBeGreaterThan(250 * 3);
});

test.each(SESSIONS)("signed by the server's own key, with %s, it is 40100", async (_name, change) => {
  const to = new Client(server, null);
  const token = forges.live.withClaims(change(forges.live));
  expect([fault(await byHeader(to, token))]).toEqual([null]);
  expect([fault(await byUrl(to, token).catch((error) => ({ msg: String(error) }) as Answer))]).toEqual([null]);
  await expectGenuineWork(to);
  to.close();
});

test("a token too long for a request is rejected, and the server keeps working", async () => {
  const to = new Client(server, null);
  const ways = (token: string): Promise<{ status: number }>[] => [
    to.send("GET", `${API_BASE}/me`, { Authorization: `Bearer ${token}` }, null),
    to.send("GET", `${API_BASE}/ws?token=${token}`, UPGRADE, null),
  ];
  for (const length of [MAX_HEAD_BYTES, 3 * MAX_HEAD_BYTES, 64 * 1024]) {
    for (const token of ["x".repeat(length), forges.live.withClaims({ pad: "x".repeat(length) })]) {
      for (const way of ways(token)) {
        // The server may close the connection before the client has sent everything.
        const { status } = await way.catch(() => ({ status: 431 }));
        expect([length, [401, 431].includes(status), status]).toEqual([length, true, status]);
      }
    }
  }
  await expectGenuineWork(to);
  to.close();
});

test("the revocation of a forged token ends nothing, and that of a genuine one does", async () => {
  const to = new Client(server, null);
  const mine = (await party.tokens(me.client, ALL_SCOPES.join(" "))).access_token;
  const [head, claims] = mine.split(".", 2).map(decode) as [Json, Json];
  const forge = new Forge(key, stranger, decode(other.accessToken.split(".")[1]!), head, claims);
  const forged = [
    `${forge.h}.${forge.p}.`,
    forge.compact(head, claims, (input) => forge.theirs(input)),
    mine.slice(0, -1),
  ];
  for (const token of [...forged, me.accessToken, me.refreshToken]) {
    expect((await party.revoke(token)).status).toBe(200);
  }
  expect((await byHeader(to, mine)).status).toBe(200);
  await expectGenuineWork(to);
  expect((await party.revoke(mine)).status).toBe(200);
  expect(fault(await byHeader(to, mine))).toBeNull();
  await expectGenuineWork(to);
  to.close();
});

describe("a flood of forged tokens", () => {
  const CONNECTIONS = 50;
  const WARM_UP = 4_000;
  const FLOOD = 20_000;
  /** Far more than a flood may leave allocated, and far less than 20,000 cached tokens or responses would take. */
  const MAX_GROWTH_BYTES = 100 * 2 ** 20;
  const MAX_WAIT_MS = 3_000;

  async function flood(total: number, width: number): Promise<Map<string, number>> {
    const flooders = Array.from({ length: width }, () => new Flooder(server.port));
    const answers = new Map<string, number>();
    let next = 0;
    const run = async (flooder: Flooder): Promise<void> => {
      for (let at = next++; at < total; at = next++)
        await flooder.send(floodRequest(floodToken(forges.live, forges.expired, at), at));
    };
    await Promise.all(flooders.map(run));
    for (const flooder of flooders) {
      for (const [answer, count] of flooder.answers) answers.set(answer, (answers.get(answer) ?? 0) + count);
      flooder.close();
    }
    return answers;
  }

  /** Expects rejections only, and one for each request. */
  function expectRefusals(answers: Map<string, number>, total: number): void {
    expect([...answers.keys()].filter((answer) => !["401 40100", "503 50300"].includes(answer))).toEqual([]);
    expect([...answers.values()].reduce((sum, count) => sum + count, 0)).toBe(total);
  }

  test("a flood of forged tokens is rejected while others trade, and leaves no memory allocated", async () => {
    const market = world.markets[0]!;
    const trader = world.user();
    expectRefusals(await flood(WARM_UP, CONNECTIONS), WARM_UP);
    const before = server.residentBytes;
    let isOver = false;
    let slowest = 0;
    let trades = 0;
    const trade = async (): Promise<void> => {
      while (!isOver) {
        const start = performance.now();
        await trader.cancel((await trader.place(terms(market, 0, BUY, 100, 1))).id);
        expect((await byHeader(me.client, me.accessToken)).status).toBe(200);
        slowest = Math.max(slowest, performance.now() - start);
        trades++;
      }
    };
    const trading = trade();
    const answers = await flood(FLOOD, CONNECTIONS);
    isOver = true;
    await trading;
    expectRefusals(answers, FLOOD);
    // The flood stays below the bound on concurrent verifications.
    expect(answers.get("503 50300") ?? 0).toBe(0);
    expect(trades).toBeGreaterThan(0);
    expect(slowest).toBeLessThan(MAX_WAIT_MS);
    expect(server.residentBytes - before).toBeLessThan(MAX_GROWTH_BYTES);
    await expectGenuineWork(me.client);
  });

  test("a flood of forged tokens in parallel is rejected or deferred, and a known token never is", async () => {
    const width = 600;
    const flooding = flood(3 * width, width);
    const codes = new Set<number>();
    for (let n = 0; n < 20; n++) codes.add((await byHeader(me.client, me.accessToken)).status);
    expect([...codes]).toEqual([200]);
    expectRefusals(await flooding, 3 * width);
    // The server accepts a new token once the flood is over.
    expect((await byHeader(me.client, forges.live.withClaims({ jti: "after the flood" }))).status).toBe(200);
    await expectGenuineWork(me.client);
  });
});
