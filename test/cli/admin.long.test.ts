/**
 * The operator's command line against a running server, a starting one and a stopped one. Each command runs as an
 * operator runs it, in a process of its own. The tests share one data folder, and restart its server.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeProtectedHeader } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ADMIN, admin, environmentOf, startAdmin } from "../support/admin.ts";
import { eventually, expectEndsWell, expectQuiet, expectSoundDatabase } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { rowsOf, signingKeys } from "../support/data-dir.ts";
import { PASSWORD, type SignedIn, signIn, signUp, type UserJson } from "../support/identity.ts";
import type { AuditJson, OperatorUserJson } from "../support/operator.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { PUBLIC_URL, tokenOf, World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  const named = { maker: { password: PASSWORD }, other: { tier: 1 } };
  world = await World.start({ users: 1, named, env: { PUBLIC_URL } });
});
afterEach(() => expectQuiet(world.server));
afterAll(() => expectEndsWell(world));

const me = ({ client }: SignedIn): Promise<{ status: number; code: number }> => client.request("GET", "/me");
const kidsOf = async (server: TestServer): Promise<string[]> => {
  const client = new Client(server, null);
  const { data } = await client.requestRoot("GET", "/.well-known/jwks.json");
  client.close();
  return (data as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
};
/** The document that a command writes. */
async function output<T>(dataDir: string, ...args: string[]): Promise<T> {
  const { code, out, errors } = await admin(dataDir, ...args);
  expect([args, code, errors]).toEqual([args, 0, ""]);
  return JSON.parse(out) as T;
}
const listed = async <T>({ dataDir }: TestServer, ...args: string[]): Promise<T[]> =>
  (await output<{ items: T[] }>(dataDir, ...args)).items;
const kidOf = ({ accessToken }: SignedIn): string => decodeProtectedHeader(accessToken).kid!;

describe("a result", () => {
  const hasTerminal = spawnSync("script", ["--version"]).status === 0;
  if (!hasTerminal) process.stdout.write("skipped: a terminal needs the script command (util-linux)\n");
  /** Runs a command at a terminal so many columns wide. */
  function atTerminal(columns: number, line: string): string {
    const shell = `stty cols ${columns}; "${process.execPath}" "${ADMIN}" ${line}`;
    const env = environmentOf(world.server.dataDir);
    return spawnSync("script", ["-qec", shell, "/dev/null"], { env, encoding: "utf8" }).stdout.replaceAll("\r", "");
  }

  test.skipIf(!hasTerminal)(
    "a command's result is for people at a terminal, and JSON into a pipe or with --json",
    async () => {
      const { dataDir } = world.server;
      const piped = (await admin(dataDir, "deposits", "--limit", "2")).out;
      expect((await admin(dataDir, "deposits", "--limit", "2", "--json")).out).toBe(piped);
      expect(atTerminal(120, "deposits --limit 2 --json")).toBe(piped);
      const [{ id, reference }] = (JSON.parse(piped) as { items: [{ id: number; reference: string }] }).items;
      const [heading, first] = atTerminal(120, "deposits --limit 2").split("\n");
      expect(heading).toMatch(/^id +amount +reference +created_at +user_id$/);
      expect(first).toMatch(new RegExp(`^ *${id} +10000\\.00 USDC +${reference} +\\d{4}-.*Z +\\d+$`));
      expect(atTerminal(40, "deposits --limit 2")).toMatch(new RegExp(`^id +${id}\namount +10000\\.00 USDC\n`));
      expect(atTerminal(120, "verify")).toMatch(/%\n(ok {6}.*\n)+all \d+ checks passed\n$/);
    },
  );
});

describe("keys rotate", () => {
  test("a key's rotation keeps live tokens valid: on a running server, on a stopped one, and over a restart", async () => {
    let { server } = world;
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
    world.server = server;
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

  test("a key's rotation leaves files that only the owner reads, and no private part in a retired key", async () => {
    const { server } = world;
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
  test("suspend and restore reject tokens of all kinds, close sockets and cancel orders, and bring back the tokens that the operator restores", async () => {
    const { server } = world;
    const market = world.market();
    const session = await signIn(server, "maker@example.com");
    const pat = world.client("maker");
    const other = world.client("other");
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
    expect(refresh).toMatchObject({ status: 401, code: 40100 });
    const again = { email: "maker@example.com", password: PASSWORD };
    expect(await other.request("POST", "/auth/login", { body: again })).toMatchObject({ status: 403, code: 40300 });
    const wrong = { ...again, password: "not the password" };
    expect(await other.request("POST", "/auth/login", { body: wrong })).toMatchObject({ status: 401, code: 40100 });

    // The suspension outlives a kill -9.
    await server.kill();
    world.server = await server.restart();
    const later = new Client(world.server, tokenOf("maker"));
    expect(await later.request("GET", "/me")).toMatchObject({ status: 403, code: 40300 });
    expect((await admin(server.dataDir, "restore", "maker@example.com", "--tokens", "restore")).code).toBe(0);
    const ended = new Client(world.server, session.accessToken);
    expect(await ended.request("GET", "/me")).toMatchObject({ status: 401, code: 40100 });
    ended.close();
    expect((await later.get<OrderJson>(`/orders/${id}`)).status).toBe("canceled");
    expect((await later.place(terms(market, 0, BUY, 100, 5))).status).toBe("queued");
    for (const client of [session.client, later]) client.close();
    expectSoundDatabase(server.dataDir);
  });

  test("an invalid command prints its error, exits with a code, and changes nothing", async () => {
    const { server } = world;
    for (const [code, args, text] of [
      [1, ["suspend", "nobody@example.com"], /^no such user: nobody@example.com\n$/],
      [1, ["user", "77"], /^no such user\n$/],
      [1, ["suspend", "1", "--note", ""], /^note: /],
      [1, ["restore", "maker@example.com"], /^the account is not suspended\n$/],
      [1, ["identity", "approve", "maker@example.com"], /^no pending application: maker/],
      [1, ["terms", "1"], /^daily_limit, .* give one of them or more\n$/],
      [1, ["users", "--kyc-tier", "7"], /^kyc_tier: /],
      [2, ["suspend"], /^ID\|EMAIL: missing\n\nUsage: .*\n\n {2}suspend ID\|EMAIL \[--note NOTE\]/],
      [2, ["identity", "maybe", "maker@example.com"], /^unknown command "identity maybe maker@example.com"/],
      [2, ["keys", "list"], /keys rotate/],
      [2, ["terms", "1", "--daily-limit", "12.5"], /--daily-limit: 12.5 is neither an integer of micro-USDC nor USDC/],
    ] as const) {
      const run = await admin(server.dataDir, ...args);
      expect([args, run.code, run.out]).toEqual([args, code, ""]);
      expect(run.errors).toMatch(text);
    }
    const [maker] = await listed<OperatorUserJson>(server, "users", "--email", "maker@example.com");
    expect(maker).toMatchObject({ suspended_at: null, terms: { daily_limit: null } });
  });
});

describe("identity", () => {
  test("an approval of an identity gives tier 2 at once, and a user may apply again after a refusal", async () => {
    const { server } = world;
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

describe("every kind of command", () => {
  /** One of each: a list, a single read, a change, a command without a route, a check of the file. */
  async function useAll(dataDir: string, n: number): Promise<void> {
    const users = await output<{ items: OperatorUserJson[] }>(dataDir, "users", "--limit", "1", "--role", "user");
    expect(users.items).toHaveLength(1);
    const changed = ["terms", "maker@example.com", "--daily-limit", `${n}.5usdc`, "--trading-fee", String(100 + n)];
    const maker = await output<OperatorUserJson>(dataDir, ...changed, "--pat-rebate", "default");
    expect(maker.terms).toMatchObject({ daily_limit: n * 1_000_000 + 500_000, trading_fee: 100 + n, pat_rebate: null });
    expect(await output(dataDir, "user", String(maker.id))).toEqual(maker);
    const made = await output<{ password: string }>(dataDir, "operator", "create", `op-${n}@example.com`);
    expect(made).toMatchObject({ email: `op-${n}@example.com`, role: "operator" });
    expect(made.password.length).toBeGreaterThanOrEqual(20);
    const lines = await output<{ items: AuditJson[] }>(
      dataDir,
      "audit",
      "--action",
      "user.",
      "--user",
      "maker@example.com",
    );
    expect(lines.items[0]).toMatchObject({ action: "user.set_terms", actor: "admin", user_id: maker.id });
    expect(await output(dataDir, "verify")).toMatchObject({ ok: true });
    const copy = join(temporaryFolder(), "copy.db");
    expect(await output(dataDir, "backup", copy)).toMatchObject({ file: copy });
    expect(await output(dataDir, "verify", copy)).toMatchObject({ ok: true });
    // A repetition fails with the server's message.
    const twice = await admin(dataDir, "operator", "create", `op-${n}@example.com`);
    expect(twice).toEqual({ code: 1, out: "", errors: "email: already registered\n" });
  }

  test("every kind of command works on a running server, and as durably on a stopped one", async () => {
    const { server } = world;
    await useAll(server.dataDir, 1);
    await server.kill();
    await useAll(server.dataDir, 2);
    expect(readdirSync(server.dataDir)).toContain("exchange.db");
    world.server = await server.restart();
    expect(
      (await listed<OperatorUserJson>(world.server, "users", "--role", "operator")).map(({ email }) => email),
    ).toEqual(["op-2@example.com", "op-1@example.com"]);
    expectSoundDatabase(server.dataDir);
  });

  test("a command waits for a starting server, and for a stopping one", async () => {
    const { server } = world;
    const before = await listed(server, "users");
    await server.stop();
    const starting = TestServer.spawn({ dataDir: server.dataDir, env: { PUBLIC_URL } });
    await eventually(async () => expect(linksOf(starting)).toContain(join(server.dataDir, "exchange.lock")));
    const { items } = await output<{ items: object[] }>(server.dataDir, "users");
    expect(before.length).toBeGreaterThanOrEqual(3);
    expect(items).toEqual(before);
    starting.signal("SIGTERM");
    expect(await output(server.dataDir, "user", "1")).toMatchObject({ id: 1 });
    expect(await starting.exit(10_000)).toBe(0);
    world.server = await server.restart();
  });

  test("a command succeeds several times at once on a stopped server", async () => {
    const { server } = world;
    await server.stop();
    const emails = ["a", "b", "c"].map((name) => `${name}@example.com`);
    const runs = emails.map((email) => output(server.dataDir, "operator", "create", email));
    expect(await Promise.all(runs)).toHaveLength(3);
    world.server = await server.restart();
    const operators = await listed<OperatorUserJson>(world.server, "users", "--role", "operator");
    const created = operators.map(({ email }) => email).filter((email) => !email.startsWith("op-"));
    expect(created.sort()).toEqual(emails);
  });

  test("a command shows the demo seed on an empty folder", async () => {
    const dataDir = join(temporaryFolder(), "new");
    const { items } = await output<{ items: OperatorUserJson[] }>(dataDir, "users");
    expect(items.map(({ email }) => email)).toEqual(["demo-2@example.com", "demo-1@example.com"]);
    expect(readdirSync(dataDir)).toContain("demo-token-1");
    expectSoundDatabase(dataDir);
  });

  test("a command prints the server's error where none can start", async () => {
    const dataDir = temporaryFolder();
    writeFileSync(join(dataDir, "exchange.db"), "no database at all, but long enough to be taken for one".repeat(20));
    const run = await admin(dataDir, "users");
    expect([run.code, run.out]).toEqual([1, ""]);
    expect(run.errors).toMatch(/^the server failed: cannot start: .*not a database/s);
    mkdirSync(join(dataDir, "file"));
    const locked = await admin(join(dataDir, "exchange.db"), "users");
    expect(locked).toMatchObject({ code: 1, errors: expect.stringMatching(/DATA_DIR: cannot write to/) });
  });
});

/** TCP ports that a process listens on. */
function portsOf(server: TestServer): number[] {
  const { pid } = server;
  const sockets = linksOf(server).flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []);
  const lines = ["tcp", "tcp6"].flatMap((name) =>
    readFileSync(`/proc/${pid}/net/${name}`, "utf8").split("\n").slice(1),
  );
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter((cells) => cells[3] === "0A" && sockets.includes(cells[9]!))
    .map((cells) => Number.parseInt(cells[1]!.split(":").at(-1)!, 16));
}

/** The targets of a process's open files. */
function linksOf({ pid }: TestServer): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).map((name) => {
    try {
      return readlinkSync(join(folder, name));
    } catch {
      // Closed meanwhile.
      return "";
    }
  });
}

describe("NETWORK=off", () => {
  test("NETWORK=off opens no port, takes commands, and stops on SIGTERM", async () => {
    const { server } = world;
    expect(portsOf(server)).toEqual([server.port]);
    await server.stop();
    world.server = await server.restart({ NETWORK: "off" });
    expect([world.server.port, portsOf(world.server), world.server.errors]).toEqual([0, [], ""]);
    expect(await output(server.dataDir, "users", "--email", "maker@example.com")).toMatchObject({ items: [{}] });
  });

  test("the command's own server ends with it, even after a kill -9", async () => {
    const { server } = world;
    await server.stop();
    const run = startAdmin(server.dataDir, "users");
    await eventually(async () => {
      expect(readFileSync(`/proc/${run.pid}/task/${run.pid}/children`, "utf8")).not.toBe("");
    });
    run.kill("SIGKILL");
    await eventually(async () => {
      world.server = await server.restart();
    });
  });
});
