/**
 * The operator's backup: of a server under full load and of a stopped one, restored into a new data folder, and, where it
 * fails, without a file left behind.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Backup } from "../../server/backup/backup.ts";
import { ADMIN, type AdminRun, admin, adminUnder, environmentOf } from "../support/admin.ts";
import { eventually, expectBalanced, expectQuiet, expectSoundDatabase } from "../support/checks.ts";
import { API_BASE, Client, type OrderJson } from "../support/client.ts";
import { rowsOf, rowsOfFile, withDatabase } from "../support/data-dir.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { EFFORT } from "../support/projects.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { PUBLIC_URL, type TestMarket, tokenOf, World } from "../support/world.ts";

const PAGE_BYTES = 4_096;
const SOCKETS = 4;
const BATCH = 50;
const BATCHES_AHEAD = 4;
/** The number of orders before a backup, and during it. */
const ORDERS_BEFORE = 1_000 * EFFORT;

let started: TestServer[] = [];
afterEach(async () => {
  for (const server of started) await server.kill();
  started = [];
});

async function startWorld(users: number, markets: readonly number[] = [2]): Promise<World> {
  const named = { maker: { password: PASSWORD } };
  const world = await World.start({
    users,
    usersTerms: { max_live_orders: 200_000 },
    markets,
    named,
    env: { PUBLIC_URL },
  });
  started.push(world.server);
  return world;
}

/** Shared by the tests that need no flow of orders; the last of them stops it. */
let quiet: World;
beforeAll(async () => {
  quiet = await World.start({ users: 1, markets: [2], env: { PUBLIC_URL } });
});
afterAll(() => quiet.stop());

const dataDirOf = (world: World): string => world.server.dataDir;
const journalOf = (file: string): string => file.replace(/\.db$/, ".journal.db");
const freshFile = (): string => join(temporaryFolder(), "copy.db");

/** Starts a server on a data folder with the copy, and with the keys of the folder `keysOf`. */
async function restore(copy: string, keysOf: string | null = null): Promise<TestServer> {
  const dataDir = temporaryFolder();
  copyFileSync(copy, join(dataDir, "exchange.db"));
  copyFileSync(journalOf(copy), join(dataDir, "journal.db"));
  if (keysOf !== null) cpSync(join(keysOf, "keys"), join(dataDir, "keys"), { recursive: true });
  const server = await TestServer.start({ dataDir, env: { PUBLIC_URL } });
  started.push(server);
  return server;
}

/** The last commit in the copy, as the command prints it. */
function commitOf({ code, out, errors }: AdminRun, file: string): number {
  expect({ code, errors }).toEqual({ code: 0, errors: "" });
  const said = JSON.parse(out) as Backup;
  expect(said).toMatchObject({ file, bytes: statSync(file).size, seconds: expect.any(Number) });
  expect(said.bytes / said.pages).toBe(PAGE_BYTES);
  expect(said.log).toMatchObject({ file: journalOf(file), bytes: statSync(journalOf(file)).size, first: 1 });
  const last = "SELECT number, at FROM batches ORDER BY number DESC LIMIT 1";
  expect(rowsOfFile(journalOf(file), last)).toEqual([{ number: said.sequence, at: said.committed_at }]);
  // The log may be ahead of the tables.
  const [tables] = rowsOfFile<{ sequence: number }>(file, "SELECT sequence FROM totals");
  expect(tables!.sequence).toBeLessThanOrEqual(said.sequence);
  return said.sequence;
}

/** A connection that sends batches of orders, several ahead of their responses, until its end; collects the accepted orders. */
class Flow {
  readonly taken: number[] = [];
  private readonly socket: WebSocket;
  private readonly market: TestMarket;
  private readonly side: number;
  private running = true;
  private sent = 0;
  private outstanding = 0;

  private constructor(socket: WebSocket, market: TestMarket, side: number) {
    this.socket = socket;
    this.market = market;
    this.side = side;
    socket.on("message", (bytes: Buffer) => {
      const text = bytes.toString();
      if (text.startsWith('{"id":')) this.answered(text);
    });
    for (let i = 0; i < BATCHES_AHEAD; i++) this.send();
  }

  static async open(server: TestServer, token: string, market: TestMarket, side: number): Promise<Flow> {
    const url = `${server.root.replace("http", "ws")}${API_BASE}/ws?token=${token}`;
    const socket = new WebSocket(url, { perMessageDeflate: false });
    await once(socket, "open");
    return new Flow(socket, market, side);
  }

  async end(): Promise<void> {
    this.running = false;
    await eventually(async () => expect(this.outstanding).toBe(0));
    this.socket.terminate();
  }

  /** Cheap orders that rest, or orders of the other side that take some of them. */
  private send(): void {
    const operations = Array.from({ length: BATCH }, (_, i) => ({
      op: "place",
      ...terms(this.market, 0, this.side, 1, 1),
      ...(this.side === SELL ? { time_in_force: "ioc" } : { price: 1 + (i % 20) }),
    }));
    this.outstanding++;
    this.socket.send(JSON.stringify({ op: "order.batch", id: ++this.sent, data: { operations } }));
  }

  private answered(text: string): void {
    const { code, data } = JSON.parse(text) as { code: number; data: { results: { data: OrderJson | null }[] } };
    expect(code).toBe(0);
    for (const { data: order } of data.results) if (order !== null) this.taken.push(order.id);
    this.outstanding--;
    if (this.running) this.send();
  }
}

async function startFlows(world: World): Promise<Flow[]> {
  const market = world.market();
  const flows: Flow[] = [];
  for (let i = 0; i < SOCKETS; i++) {
    const user = world.user();
    const side = i % 2 === 0 ? BUY : SELL;
    if (side === SELL) await world.split(user, market, 5_000);
    flows.push(await Flow.open(world.server, user.token!, market, side));
  }
  return flows;
}

const takenBy = (flows: readonly Flow[]): number[] => flows.flatMap(({ taken }) => taken);
const untilTaken = (flows: readonly Flow[], count: number): Promise<void> =>
  eventually(async () => expect(takenBy(flows).length).toBeGreaterThan(count));

const figuresOf = async (client: Client): Promise<object> => {
  const { sequence: _sequence, at: _at, ...sums } = await client.solvency();
  return sums;
};

describe("a copy", () => {
  test("a backup taken under full load finishes, has every order acknowledged before it, and the exchange trades on", async () => {
    const world = await startWorld(SOCKETS);
    const flows = await startFlows(world);
    await untilTaken(flows, ORDERS_BEFORE);
    const watcher = world.anonymous();
    for (const round of [1, 2]) {
      const before = await watcher.solvency();
      const promised = takenBy(flows);
      const file = freshFile();
      const sequence = commitOf(await admin(dataDirOf(world), "backup", file), file);
      const after = await watcher.solvency();
      // Commits happened during the backup, and it has those before it.
      expect([round, sequence >= before.sequence, after.sequence > sequence]).toEqual([round, true, true]);
      expect(readdirSync(join(file, ".."))).toEqual(["copy.db", "copy.journal.db"]);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(await admin(dataDirOf(world), "verify", file)).toMatchObject({ code: 0, errors: "" });

      const server = await restore(file);
      const kept = new Set(rowsOf<{ id: number }>(server.dataDir, "SELECT id FROM orders").map(({ id }) => id));
      expect(promised.filter((id) => !kept.has(id))).toEqual([]);
      const client = new Client(server, tokenOf("user0"));
      await expectBalanced(client);
      expect((await client.place(terms(world.markets[0]!, 1, BUY, 1, 1))).status).toBe("queued");
      client.close();
      expectQuiet(server);
      await server.stop();
      expectSoundDatabase(server.dataDir);
    }
    await untilTaken(flows, takenBy(flows).length + ORDERS_BEFORE);
    for (const flow of flows) await flow.end();
    expectQuiet(world.server);
    await world.stop();
    expectSoundDatabase(dataDirOf(world));
  });

  test("a restored backup has the balances, orders and tokens, and with the keys also the sessions", async () => {
    const world = await startWorld(2);
    const market = world.market();
    const [maker, other] = [world.client("maker"), world.user()];
    const session = await signIn(world.server, "maker@example.com");
    await world.split(other, market, 10);
    const resting = await maker.place(terms(market, 0, BUY, 4_000, 5));
    await other.place(terms(market, 0, SELL, 4_000, 2));
    const seen = [await maker.balance(), await other.balance(), await figuresOf(maker)];
    const file = freshFile();
    const sequence = commitOf(await admin(dataDirOf(world), "backup", file), file);
    expect(sequence).toBe((await maker.solvency()).sequence);
    // A backup of a stopped server is the same.
    await world.stop();
    const later = freshFile();
    expect(commitOf(await admin(dataDirOf(world), "backup", later), later)).toBeGreaterThanOrEqual(sequence);

    for (const [copy, keysOf] of [
      [file, null],
      [later, dataDirOf(world)],
    ] as const) {
      const server = await restore(copy, keysOf);
      const [again, otherAgain] = [new Client(server, tokenOf("maker")), new Client(server, tokenOf("user0"))];
      expect([await again.balance(), await otherAgain.balance(), await figuresOf(again)]).toEqual(seen);
      expect(await again.order(resting.id)).toMatchObject({ status: "partially_filled", remaining: 3 });
      await otherAgain.place(terms(market, 0, SELL, 4_000, 3));
      await eventually(async () => expect((await again.order(resting.id)).status).toBe("filled"));
      const signedIn = new Client(server, session.accessToken);
      expect((await signedIn.request("GET", "/me")).status).toBe(keysOf === null ? 401 : 200);
      // A sign-in needs no earlier key.
      const fresh = await signIn(server, "maker@example.com");
      for (const client of [again, otherAgain, signedIn, fresh.client]) client.close();
      expectQuiet(server);
      await server.stop();
      expectSoundDatabase(server.dataDir);
    }
    session.client.close();
  });

  test("a backup replaces a file only with --overwrite, together with the files that SQLite would read with it", async () => {
    const file = freshFile();
    commitOf(await admin(dataDirOf(quiet), "backup", file), file);
    const bytes = readFileSync(journalOf(file));
    writeFileSync(`${file}-wal`, "of another database");
    for (const name of [file, `${file}-wal`]) expect(existsSync(name)).toBe(true);
    const refused = await admin(dataDirOf(quiet), "backup", file);
    expect(refused).toMatchObject({ code: 1, out: "", errors: expect.stringContaining("--overwrite") });
    expect(readFileSync(journalOf(file)).equals(bytes)).toBe(true);
    await quiet.split(quiet.user(), quiet.market(), 1);
    commitOf(await admin(dataDirOf(quiet), "backup", file, "--overwrite"), file);
    expect(readFileSync(journalOf(file)).equals(bytes)).toBe(false);
    expect(readdirSync(join(file, ".."))).toEqual(["copy.db", "copy.journal.db"]);
  });
});

test("a backup removes what a killed one left, but not what another one writes", async () => {
  const folder = temporaryFolder();
  const dead = spawnSync("true").pid;
  const endings = ["old.db.PID.part", "old.db.PID.part-wal", "old.journal.db.PID.part"];
  for (const pid of [dead, process.pid]) {
    for (const name of endings) writeFileSync(join(folder, name.replace("PID", `${pid}`)), "");
  }
  writeFileSync(join(folder, "notes.part"), "");
  expect((await admin(dataDirOf(quiet), "backup", join(folder, "copy.db"))).code).toBe(0);
  const kept = [...endings.map((name) => name.replace("PID", `${process.pid}`)), "notes.part"];
  expect(
    readdirSync(folder)
      .filter((name) => name.includes(".part"))
      .sort(),
  ).toEqual(kept.sort());
});

describe("a failed backup leaves no file", () => {
  test("a failed backup leaves no file when the path is invalid", async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "taken"));
    writeFileSync(join(folder, "text"), "");
    const database = join(dataDirOf(quiet), "exchange.db");
    for (const [args, text] of [
      [[join(folder, "none", "a.db")], /no folder .*none/],
      [[join(folder, "text", "a.db")], /ENOTDIR/],
      [[join(folder, "taken")], /taken is not a file/],
      [[join(folder, "taken"), "--overwrite"], /taken is not a file/],
      [[database, "--overwrite"], /a live exchange file/],
      [[`${database}-journal`], /a live exchange file/],
    ] as const) {
      const run = await admin(dataDirOf(quiet), "backup", ...args);
      expect([args, run]).toEqual([args, { code: 1, out: "", errors: expect.stringMatching(text) }]);
    }
    expect(readdirSync(folder).sort()).toEqual(["taken", "text"]);
    const empty = await admin(folder, "backup", join(folder, "a.db"));
    expect(empty).toMatchObject({ code: 1, out: "", errors: expect.stringContaining("no database") });
    expect(readdirSync(folder).sort()).toEqual(["taken", "text"]);
  });

  test.skipIf(spawnSync("prlimit", ["--version"]).status !== 0)(
    "a failed backup leaves no file when the disk is full",
    async () => {
      const file = freshFile();
      const run = await adminUnder(["prlimit", "--fsize=65536"], dataDirOf(quiet), "backup", file);
      expect(run).toMatchObject({ code: 1, out: "", errors: expect.stringMatching(/full|disk I\/O/) });
      expect(readdirSync(join(file, ".."))).toEqual([]);
    },
  );

  // The last test with the shared server: it stops the server and corrupts the database.
  test("a failed backup leaves no file when the database is inconsistent", async () => {
    await quiet.stop();
    withDatabase(dataDirOf(quiet), (db) => db.exec("UPDATE totals SET house = house + 1"));
    const file = freshFile();
    const run = await admin(dataDirOf(quiet), "backup", file);
    expect(run).toMatchObject({ code: 1, out: "", errors: expect.stringContaining("deposits - withdrawals") });
    expect(readdirSync(join(file, ".."))).toEqual([]);
  });

  test("a failed backup leaves no file when it is interrupted", async () => {
    const world = await startWorld(SOCKETS);
    const flows = await startFlows(world);
    await untilTaken(flows, ORDERS_BEFORE);
    for (const flow of flows) await flow.end();
    const file = freshFile();
    const folder = join(file, "..");
    const codes: (number | null)[] = [];
    while (codes.length < 10 && !codes.includes(1)) {
      const env = environmentOf(dataDirOf(world));
      const child = spawn(process.execPath, [ADMIN, "backup", file, "--overwrite"], { env });
      const ended = once(child, "close") as Promise<[number | null]>;
      await eventually(async () => expect(readdirSync(folder).some((name) => name.endsWith(".part"))).toBe(true));
      child.kill("SIGTERM");
      const [code] = await ended;
      // The signal may have come too late.
      const isWhole = code === 0 || codes.length > 0;
      expect([code, readdirSync(folder)]).toEqual([code === 0 ? 0 : 1, isWhole ? ["copy.db", "copy.journal.db"] : []]);
      codes.push(code);
    }
    expect(codes).toContain(1);
    await world.stop();
  });
});
