/**
 * The operator's command line against a running server and a stopped one: keys, suspension, decisions on identity
 * applications. Each command is run as an operator runs it, in a process of its own.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { decodeProtectedHeader } from "jose";
import { afterEach, describe, expect, test } from "vitest";
import { admin } from "./support/admin.ts";
import { expectQuiet, expectSoundDatabase } from "./support/checks.ts";
import { Client, type OrderJson } from "./support/client.ts";
import { rowsOf, signingKeys } from "./support/data-dir.ts";
import { PASSWORD, type SignedIn, signIn, signUp, type UserJson } from "./support/identity.ts";
import type { TestServer } from "./support/server.ts";
import { Socket } from "./support/socket.ts";
import { BUY, terms } from "./support/terms.ts";
import { PUBLIC_URL, tokenOf, World } from "./support/world.ts";

let world: World | null = null;
afterEach(async () => {
  expectQuiet(world!.server);
  await world!.stop();
  world = null;
});

async function start(): Promise<World> {
  const named = { maker: { password: PASSWORD }, other: { tier: 1 } };
  world = await World.start({ users: 1, named, env: { PUBLIC_URL } });
  return world;
}

const me = ({ client }: SignedIn): Promise<{ status: number; code: number }> => client.request("GET", "/me");
const kidsOf = async (server: TestServer): Promise<string[]> => {
  const client = new Client(server, null);
  const { data } = await client.requestRoot("GET", "/.well-known/jwks.json");
  client.close();
  return (data as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
};
const kidOf = ({ accessToken }: SignedIn): string => decodeProtectedHeader(accessToken).kid!;

describe("keys rotate", () => {
  test("on a running server, on a stopped one, and over a restart: no live token ends", async () => {
    let { server } = await start();
    const first = await signIn(server, "maker@example.com");
    const [oldKid] = await kidsOf(server);
    expect(kidOf(first)).toBe(oldKid);

    const rotated = await admin(server.dataDir, "keys", "rotate");
    expect(rotated).toMatchObject({ code: 0, errors: "" });
    const second = await signIn(server, "maker@example.com");
    const kids = await kidsOf(server);
    expect([kids.length, kids[0], kids[1]]).toEqual([2, kidOf(second), oldKid]);
    expect(rotated.out).toContain(kidOf(second));
    for (const each of [first, second]) expect(await me(each)).toMatchObject({ status: 200 });

    await server.stop();
    const third = await admin(server.dataDir, "keys", "rotate");
    expect(third).toMatchObject({ code: 0, errors: "" });
    server = await server.restart();
    world!.server = server;
    expect(await kidsOf(server)).toHaveLength(3);
    for (const { accessToken } of [first, second]) {
      const client = new Client(server, accessToken);
      expect(await client.request("GET", "/me")).toMatchObject({ status: 200 });
      client.close();
    }
    const last = await signIn(server, "maker@example.com");
    expect(third.out).toContain(kidOf(last));
    for (const { client } of [first, second, last]) client.close();
  });

  test("the files are the owner's alone, and a retired one has no private part", async () => {
    const { server } = await start();
    await admin(server.dataDir, "keys", "rotate");
    const folder = join(server.dataDir, "keys");
    const active = (await kidsOf(server))[0];
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    for (const key of signingKeys(server.dataDir)) expect("d" in key).toBe(key["kid"] === active);
    for (const name of ["exchange.db", "exchange.db-wal", "control.sock"]) {
      expect([name, statSync(join(server.dataDir, name)).mode & 0o077]).toEqual([name, 0]);
    }
  });
});

describe("suspend and restore", () => {
  test("tokens of all kinds are refused, sockets end, orders are canceled, and all comes back but the orders", async () => {
    const { server } = await start();
    const market = world!.market();
    const session = await signIn(server, "maker@example.com");
    const pat = world!.client("maker");
    const other = world!.client("other");
    const { id } = await pat.place(terms(market, 0, BUY, 100, 5));
    const sockets = await Promise.all([session.accessToken, tokenOf("maker")].map((each) => Socket.open(server, each)));

    const done = await admin(server.dataDir, "suspend", "MAKER@example.com");
    expect(done).toMatchObject({ code: 0, errors: "" });
    for (const client of [session.client, pat]) {
      expect(await client.request("GET", "/me")).toMatchObject({ status: 403, code: 40300 });
    }
    for (const socket of sockets) expect(await socket.closed).toBe(4401);
    expect(await other.request("GET", "/me")).toMatchObject({ status: 200 });
    const refresh = await other.request("POST", "/auth/refresh", { body: { refresh_token: session.refreshToken } });
    expect(refresh).toMatchObject({ status: 403, code: 40300 });
    const again = { email: "maker@example.com", password: PASSWORD };
    expect(await other.request("POST", "/auth/login", { body: again })).toMatchObject({ status: 403, code: 40300 });
    const wrong = { ...again, password: "not the password" };
    expect(await other.request("POST", "/auth/login", { body: wrong })).toMatchObject({ status: 401, code: 40100 });

    // Over a restart too.
    await server.kill();
    world!.server = await server.restart();
    const later = new Client(world!.server, tokenOf("maker"));
    expect(await later.request("GET", "/me")).toMatchObject({ status: 403, code: 40300 });
    expect((await admin(server.dataDir, "restore", "maker@example.com")).code).toBe(0);
    expect((await later.get<OrderJson>(`/orders/${id}`)).status).toBe("canceled");
    expect((await later.place(terms(market, 0, BUY, 100, 5))).status).toBe("queued");
    for (const client of [session.client, later]) client.close();
    expectSoundDatabase(server.dataDir);
  });

  test("what is wrong is said, with an exit code, and nothing is done", async () => {
    const { server } = await start();
    for (const [args, text] of [
      [["suspend", "nobody@example.com"], /no such user/],
      [["suspend"], /e-mail/],
      [["identity", "maybe", "maker@example.com"], /approve or refuse/],
      [["identity", "approve", "maker@example.com"], /no application/],
      [["keys", "list"], /rotate/],
    ] as const) {
      const run = await admin(server.dataDir, ...args);
      expect([args, run.code, run.out]).toEqual([args, 1, ""]);
      expect(run.errors).toMatch(text);
    }
    await server.stop();
    expect(await admin(server.dataDir, "suspend", "maker@example.com")).toMatchObject({ code: 1, out: "" });
    world!.server = await server.restart();
  });
});

describe("identity", () => {
  test("an approved application is tier 2 at once, a refused one may be followed by another", async () => {
    const { server } = await start();
    const person = await signUp(server, "person@example.com", 1);
    const { client } = person;
    const passport = { document_type: "passport", document_number: "C01X00T47", country: "DE" };
    const applied = await client.request<{ status: string }>("POST", "/me/identity", { body: passport });
    expect([applied.status, applied.data.status]).toEqual([201, "pending"]);
    expect((await admin(server.dataDir, "identity", "refuse", "person@example.com")).code).toBe(0);
    expect(await client.get("/me/identity")).toMatchObject({ status: "refused" });
    expect((await client.get<UserJson>("/me")).kyc_tier).toBe(1);
    expect((await client.request("POST", "/me/identity", { body: passport })).status).toBe(201);
    const approved = await admin(server.dataDir, "identity", "approve", "person@example.com");
    expect(approved).toMatchObject({ code: 0, errors: "" });
    const limit = 10_000_000_000;
    expect(await client.get("/me")).toMatchObject({ kyc_tier: 2, daily_activity: { used: 0, limit } });
    expect(await client.request("POST", "/me/identity", { body: passport })).toMatchObject({ code: 40900 });
    client.close();

    const sql = "SELECT action, actor FROM audit_log WHERE action LIKE 'identity.%' ORDER BY id";
    const actor = `user ${person.user.id}`;
    expect(rowsOf(server.dataDir, sql)).toEqual([
      { action: "identity.apply", actor },
      { action: "identity.refuse", actor: "admin" },
      { action: "identity.apply", actor },
      { action: "identity.approve", actor: "admin" },
    ]);
  });
});
