/**
 * Accounts with an unverified e-mail address: their restrictions, their removal with all their data after seven days,
 * and the reuse of their ids, without which registrations could fill up the exchange. Also phone numbers, each of which
 * verifies one account.
 */
import type Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectEndsWell } from "../support/checks.ts";
import { askOnce, type Client, ROUTES } from "../support/client.ts";
import { rowsOf, withDatabase } from "../support/data-dir.ts";
import {
  createPat,
  freshEmail,
  freshPhoneNumber,
  login,
  PASSWORD,
  phoneCode,
  register,
  type SignedIn,
  signIn,
  signUp,
  verificationToken,
} from "../support/identity.ts";
import { OPERATOR, operatorOf } from "../support/operator.ts";
import type { TestServer } from "../support/server.ts";
import { alone, expectRefused } from "../support/trading.ts";
import { PUBLIC_URL, World } from "../support/world.ts";

const DAY_MS = 86_400_000;
/** The maximum user id. */
const LAST_USER = 2 ** 22;

/** Registers and signs in, but does not verify the address. */
async function visitor(server: TestServer, email = freshEmail()): Promise<SignedIn> {
  expect((await register(server, email)).status).toBe(201);
  return signIn(server, email);
}

let world: World;
const clients: Client[] = [];
const kept = (signedIn: SignedIn): SignedIn => {
  clients.push(signedIn.client);
  return signedIn;
};
beforeAll(async () => {
  const named = { operator: OPERATOR, zero: { tier: 0, password: PASSWORD } };
  world = await World.start({ users: 1, named, env: { PUBLIC_URL } });
});
afterAll(async () => {
  for (const client of clients) client.close();
  await expectEndsWell(world);
});

describe("an unverified account", () => {
  test("an unverified account can do nothing but verify: every request that changes anything gets 40300, whatever its body", async () => {
    const { client, accessToken, user } = kept(await visitor(world.server));
    expect(user).toMatchObject({ email_verified: false, kyc_tier: 0 });
    const changing = ROUTES.filter(({ method, access, path }) => {
      return method !== "GET" && access === "user" && !["/auth/logout", "/ws-tickets"].includes(path);
    });
    const paths = changing.map(({ method, path }) => `${method} ${path}`);
    for (const path of [
      "POST /me/personal-access-tokens",
      "POST /me/oauth-clients",
      "POST /oauth/authorize",
      "POST /markets/proposals",
      "POST /me/phone",
      "POST /orders",
    ]) {
      expect(paths).toContain(path);
    }
    for (const { method, path, body } of changing) {
      const at = path.replace(/:\w+/g, "1");
      for (const given of body === null ? [undefined] : [{}, { nonsense: true }]) {
        const answer = await client.request(method, at, given === undefined ? {} : { body: given });
        expect([method, path, answer.status, answer.code]).toEqual([method, path, 403, 40300]);
      }
    }
    // The user can read their own account and wallet, and sign out.
    expect(await client.get("/me")).toMatchObject({ email_verified: false });
    expect(await client.get("/wallet/balance")).toMatchObject({ total: 0 });
    expect((await askOnce(world.server, accessToken, "POST", "/auth/logout")).status).toBe(200);
    // A seeded account counts as verified by the operator.
    const { client: seeded } = kept(await signIn(world.server, "zero@example.com"));
    await createPat(seeded);
  });

  test("an account has no such restrictions once its address is verified", async () => {
    const email = freshEmail();
    const { client } = kept(await visitor(world.server, email));
    await expectRefused(
      client.request("POST", "/me/personal-access-tokens", { body: { name: "bot", scopes: ["orders:write"] } }),
      403,
      40300,
      /verify/,
    );
    await client.data("POST", "/auth/verify-email", { token: await verificationToken(world.server, email) });
    expect((await createPat(client)).name).toBe("bot");
  });
});

test("a phone number verifies one account: a second account is rejected at every step", async () => {
  const phone = freshPhoneNumber();
  const people: Client[] = [];
  for (let i = 0; i < 3; i++) people.push(kept(await signUp(world.server, freshEmail(), 0)).client);
  const [first, second, third] = people as [Client, Client, Client];
  for (const person of [first, second]) await person.data("POST", "/me/phone", { phone });
  const codes = [await phoneCode(world.server, phone, 1), await phoneCode(world.server, phone, 2)];
  expect(await first.data("POST", "/me/phone/verify", { code: codes[0] })).toMatchObject({ kyc_tier: 1 });
  await expectRefused(second.request("POST", "/me/phone/verify", { body: { code: codes[1] } }), 409, 40900, /another/);
  expect(await second.get("/me")).toMatchObject({ phone_verified: false, kyc_tier: 0 });
  await expectRefused(third.request("POST", "/me/phone", { body: { phone } }), 409, 40900, /another account/);
  // The owner switches to another number, which frees this one.
  const other = freshPhoneNumber();
  await first.data("POST", "/me/phone", { phone: other });
  await first.data("POST", "/me/phone/verify", { code: await phoneCode(world.server, other) });
  await third.data("POST", "/me/phone", { phone });
  const code = await phoneCode(world.server, phone, 3);
  expect(await third.data("POST", "/me/phone/verify", { code })).toMatchObject({ phone, kyc_tier: 1 });
  await expectRefused(second.request("POST", "/me/phone", { body: { phone: other } }), 409, 40900);
});

/** Returns the tables with rows of the user. */
function tablesOf(userId: number): string[] {
  const { dataDir } = world.server;
  const sql = `SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'user_id'
    WHERE m.type = 'table' ORDER BY m.name`;
  const names = rowsOf<{ name: string }>(dataDir, sql).map(({ name }) => name);
  return names.filter((name) => rowsOf(dataDir, `SELECT 1 FROM ${name} WHERE user_id = ? LIMIT 1`, userId).length > 0);
}

/**
 * Writes data that an earlier version allowed an unverified account: a token, a client that another user granted, a
 * grant to another client, a session of each.
 */
function insertLeftovers(db: Database.Database, userId: number, clientId: number): void {
  db.prepare(
    `INSERT INTO personal_access_tokens (user_id, name, token_hash, prefix, scopes, created_at)
     VALUES (?, 'bot', 'hash', 'pm_pat_', 'orders:write', 1)`,
  ).run(userId);
  db.prepare(
    `INSERT INTO oauth_clients (id, user_id, client_id, name, redirect_uris, created_at)
     VALUES (900, ?, 'mallory', 'app', 'https://evil.example/', 1)`,
  ).run(userId);
  const grant = db.prepare(
    "INSERT INTO oauth_grants (id, user_id, client_id, scopes, created_at) VALUES (?, ?, ?, 'orders:write', 1)",
  );
  grant.run(901, 1, 900);
  grant.run(902, userId, clientId);
  const session = db.prepare(
    `INSERT INTO sessions (id, user_id, grant_id, method, scopes, family, refresh_hash, created_at, last_used_at,
     expires_at) VALUES (?, ?, ?, 'code', 'orders:write', ?, '', 1, 1, 9e15)`,
  );
  for (const [id, user, of] of [[903, 1, 901], [904, userId, 902]]) session.run(id, user, of, `family-${id}`); // biome-ignore format: pairs
}

describe("after seven days", () => {
  const [old, young, funded, verified] = [
    freshEmail("old"),
    freshEmail("young"),
    freshEmail("funded"),
    freshEmail("verified"),
  ] as const;
  let gone: SignedIn;
  let operator: Client;
  beforeAll(async () => {
    const { server } = world;
    gone = kept(await visitor(server, old));
    const rich = kept(await visitor(server, funded));
    const { client } = kept(await signUp(server, verified, 0));
    // Register this one last: it becomes younger than the others, and creation times must rise with ids.
    kept(await visitor(server, young));
    const made = await client.data<{ id: number }>("POST", "/me/oauth-clients", {
      ...{ name: "app", redirect_uris: ["https://app.example/cb"], confidential: false },
    });
    operator = await operatorOf(server);
    const deposit = { user_id: rich.user.id, amount: 5_000_000, reference: "by hand" };
    await operator.data("POST", "/admin/deposits", deposit);
    operator.close();
    for (const each of clients) each.close();
    await server.stop();
    withDatabase(server.dataDir, (db) => {
      db.prepare("UPDATE users SET created_at = created_at - ?").run(8 * DAY_MS);
      db.prepare("UPDATE users SET created_at = created_at + ? WHERE email = ?").run(2 * DAY_MS, young);
      insertLeftovers(db, gone.user.id, made.id);
    });
    world.server = await server.restart();
    operator = await operatorOf(world.server);
    clients.push(operator);
    await eventually(async () => expect(await shown(old)).toEqual([]));
  });

  const shown = async (email: string): Promise<unknown[]> =>
    (await operator.get<{ items: unknown[] }>(`/admin/users?email=${email}`)).items;

  test("after seven days, an unverified account is gone, unless it is younger or has money", async () => {
    expect(await shown(old)).toEqual([]);
    for (const email of [young, funded, verified, "zero@example.com"]) expect(await shown(email)).toHaveLength(1);
  });

  test("the tokens and the password of an unverified account that is gone are void, and its address is free", async () => {
    const me = await askOnce(world.server, gone.accessToken, "GET", "/me");
    expect([me.status, me.code]).toEqual([401, 40100]);
    expect((await login(world.server, old)).code).toBe(40100);
    const again = kept(await visitor(world.server, old));
    expect(again.user.id).not.toBe(gone.user.id);
  });

  test("the database has no rows of an unverified account that is gone but its audit log", async () => {
    const lines = await operator.all<{ action: string; actor: string }>(`/admin/audit-log?user_id=${gone.user.id}`);
    expect(lines.map(({ action }) => action)).toEqual(["user.delete", "session.start", "user.create"]);
    expect(lines[0]).toMatchObject({ actor: "exchange", details: { reason: "not_verified_in_time" } });
    expect(tablesOf(gone.user.id)).toEqual(["audit_log"]);
    const { dataDir } = world.server;
    expect(rowsOf(dataDir, "SELECT id FROM users WHERE id = ?", gone.user.id)).toEqual([]);
    expect(rowsOf(dataDir, "SELECT id FROM sessions WHERE id IN (903, 904)")).toEqual([]);
    expect(rowsOf(dataDir, "SELECT id FROM oauth_grants WHERE id > 900")).toEqual([]);
    expect(rowsOf(dataDir, "SELECT id FROM oauth_clients WHERE id = 900")).toEqual([]);
  });
});

test("at the maximum user id, registrations reuse the ids of deleted accounts", async () => {
  await alone({ users: 1 }, async (own) => {
    const emails = [freshEmail(), freshEmail()];
    const [one, two] = [await visitor(own.server, emails[0]), await visitor(own.server, emails[1])];
    for (const { client } of [one, two]) client.close();
    await own.server.stop();
    withDatabase(own.server.dataDir, (db) => {
      db.prepare("UPDATE users SET created_at = created_at - ? WHERE id <= ?").run(8 * DAY_MS, one.user.id);
      db.prepare(
        `INSERT INTO users (id, email, role, kyc_tier, created_at, email_verified_at)
         VALUES (?, 'last@example.com', 'user', 0, 1, 1)`,
      ).run(LAST_USER);
    });
    own.server = await own.server.restart();
    let reused: SignedIn | null = null;
    await expect
      .poll(async () => {
        reused ??= await visitor(own.server).catch(() => null);
        return reused?.user.id;
      })
      .toBe(one.user.id);
    expect(await reused!.client.get("/me")).toMatchObject({ kyc_tier: 0, phone: null, email_verified: false });
    reused!.client.close();
    const { code, msg } = await register(own.server, freshEmail());
    expect([code, msg]).toEqual([40900, expect.stringMatching(/at its maximum number of users/)]);
    // The previous holder's token does not work for the new user.
    expect((await askOnce(own.server, one.accessToken, "GET", "/me")).code).toBe(40100);
    await own.server.stop();
    withDatabase(own.server.dataDir, (db) => {
      db.prepare("DELETE FROM users WHERE id = ?").run(LAST_USER);
      // A reused id breaks the order of creation times, which the final database check would report as a fault.
      db.prepare("UPDATE users SET created_at = ? WHERE id = ?").run(two.user.created_at, one.user.id);
    });
    own.server = await own.server.restart();
    const next = await visitor(own.server);
    expect(next.user.id).toBe(two.user.id + 1);
    next.client.close();
  });
});
