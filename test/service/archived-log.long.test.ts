/** What a server's clients and its operator see of batches that the upkeep moved from journal.db to archives. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { ArchiveList, archivePath } from "../../engine/log/archive-format.ts";
import { FLAG_STARTED, readHeader } from "../../engine/log/batch-format.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { admin } from "../support/admin.ts";
import { eventually, expectQuiet } from "../support/checks.ts";
import { type Answer, Client } from "../support/client.ts";
import { rowsOfFile } from "../support/data-dir.ts";
import { scrape } from "../support/metrics.ts";
import { resume, updatesAfter } from "../support/resume.ts";
import { TestServer } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { PUBLIC_URL, tokenOf, World } from "../support/world.ts";

const DAY_MS = 86_400_000;
const CLOCK = fileURLToPath(new URL("../support/stepped-clock.mjs", import.meta.url));

test("resume, log and verify read batches that have left a server's journal", { timeout: 120_000 }, async () => {
  const clock = (offset: number): Record<string, string> => {
    return { PUBLIC_URL, NODE_OPTIONS: `--import ${CLOCK}`, CLOCK_OFFSET_MS: String(offset) };
  };
  const world = await World.start({ users: 1, markets: [2], env: clock(-2 * DAY_MS) });
  const { dataDir } = world.server;
  const [user, market] = [world.user(), world.market()];
  const orders: number[] = [];
  for (let i = 1; i <= 5; i++) orders.push((await user.place(terms(market, 0, BUY, 100, i))).id);
  await world.stop();
  const sequences: number[][] = [];
  for (const offset of [-DAY_MS, -DAY_MS, 0]) {
    const server = await TestServer.start({ dataDir, env: clock(offset) });
    const client = new Client(server, tokenOf("user0"));
    await client.place(terms(market, 0, BUY, 100, 1));
    const socket = await Socket.open(server, client.token);
    sequences.push(updatesAfter(socket, await resume(socket, 0)).map(({ data }) => data.id));
    socket.close();
    client.close();
    if (sequences.length === 2) {
      await server.logged(({ msg }) => msg.includes("archived"));
      // The log deletes them while it is idle.
      const first = "SELECT min(number) > 1 AS is_later FROM batches";
      await eventually(async () => expect(rowsOfFile(join(dataDir, "journal.db"), first)).toEqual([{ is_later: 1 }]));
    }
    await server.stop();
    expectQuiet(server);
  }
  // The second start of each day sees that the one before is over.
  const names = readdirSync(join(dataDir, "log"));
  expect(names.length).toBe(2);
  expect(sequences.map((ids) => ids.slice(0, 5))).toEqual([orders, orders, orders]);
  const journal = openReadOnly(join(dataDir, "journal.db"));
  const first = readHeader(journal.prepare("SELECT body FROM batches ORDER BY number LIMIT 1").pluck().get() as Buffer);
  journal.close();
  expect(first.batch).toBeGreaterThan(1);
  expect(first.flags & FLAG_STARTED).toBe(FLAG_STARTED);
  const { out } = await admin(dataDir, "log", "--json", "--kind", "orderPlaced");
  const placed = out
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { order: number }).order);
  expect(placed.slice(0, 5)).toEqual(orders);
  expect(placed.length).toBe(8);
  expect((await admin(dataDir, "verify")).out).toContain("tables as of batch");
  for (const name of ["exchange.db", "exchange.db-wal", "exchange.db-shm"])
    rmSync(join(dataDir, name), { force: true });
  const server = await TestServer.start({ dataDir, env: clock(0) });
  await server.stop();
  expect(existsSync(join(dataDir, "exchange.db"))).toBe(true);
  expect((await admin(dataDir, "verify")).out).toContain("tables as of batch");
  await expectFaultsReported(dataDir, clock(0));
});

/** Missing, damaged and changed parts of the log: said at the start, and no reader takes them for true. */
async function expectFaultsReported(dataDir: string, env: Record<string, string>): Promise<void> {
  const [archive] = new ArchiveList(join(dataDir, "log")).read();
  const path = archivePath(join(dataDir, "log"), archive!.day);
  const whole = readFileSync(path);
  interface Seen {
    readonly faults: unknown[];
    readonly answer: Answer<{ items: { sequence: number }[] }>;
    readonly client: Client;
    readonly server: TestServer;
  }
  const withServer = async (check: (seen: Seen) => Promise<void>): Promise<void> => {
    const server = await TestServer.start({ dataDir, env });
    const client = new Client(server, tokenOf("user0"));
    const answer = await client.request<{ items: { sequence: number }[] }>("GET", "/me/events?after=0");
    const faults = server.log.filter(({ msg }) => msg.startsWith("the log is damaged")).map((line) => line["fault"]);
    expect((await scrape(server)).value("exchange_log_faults")).toBe(faults.length);
    await check({ faults, answer, client, server });
    client.close();
    await server.stop();
  };
  const noArchive = `batches 1 to ${archive!.last} are missing`;
  rmSync(path);
  await withServer(async ({ faults, answer, client, server }) => {
    expect(faults).toEqual([noArchive]);
    expect(answer).toMatchObject({ status: 404, code: 4040 });
    const next = Number(/go on from (\d+)/.exec(answer.msg)![1]);
    const rest = await client.get<{ items: { sequence: number }[] }>(`/me/events?after=${next}`);
    expect(rest.items[0]?.sequence).toBe(next + 1);
    const socket = await Socket.open(server, client.token);
    expect(await socket.ask({ op: "resume", sequence: 0 })).toMatchObject({
      code: 4040,
      msg: answer.msg.replace("after:", "sequence:"),
    });
    expect(updatesAfter(socket, await resume(socket, next)).length).toBe(rest.items.length);
    socket.close();
  });
  writeFileSync(path, whole.subarray(0, -10));
  await withServer(async ({ faults, answer }) => {
    const size = `${path} has ${whole.length - 10} bytes, and should have ${whole.length}`;
    expect(faults).toEqual([size, `${path} has the wrong size`]);
    expect(answer).toMatchObject({ status: 503, code: 50300 });
  });
  const changed = Buffer.from(whole);
  changed.fill(0, changed.length - 40, changed.length - 20);
  writeFileSync(path, changed);
  await withServer(async ({ faults, answer }) => {
    expect(faults).toEqual([expect.stringMatching(/is damaged between byte/)]);
    expect(answer).toMatchObject({ status: 503, code: 50300 });
  });
  writeFileSync(path, whole);
  // A changed batch of the journal: its own bytes give no sign of it.
  const batch = archive!.last + 2;
  const journal = openSqlite(join(dataDir, "journal.db"));
  const body = journal.prepare("SELECT body FROM batches WHERE number = ?").pluck().get(batch) as Buffer;
  const other = Buffer.from(body);
  other[other.length - 3] = other.at(-3)! ^ 1;
  const write = (bytes: Buffer) => journal.prepare("UPDATE batches SET body = ? WHERE number = ?").run(bytes, batch);
  write(other);
  await withServer(async ({ faults, answer }) => {
    // What comes before the block with it can be read.
    if (answer.code !== 0) expect(answer).toMatchObject({ status: 503, code: 50300 });
    if (answer.code !== 0) expect(faults).toEqual([expect.stringMatching(`^batch ${batch} of the log was changed`)]);
  });
  const printed = await admin(dataDir, "log", "--json");
  expect([printed.code, printed.errors]).toEqual([1, expect.stringMatching(`^batch ${batch} of the log was changed`)]);
  expect(printed.out).not.toContain(`"batch":${batch},`);
  write(body);
  journal.close();
  await withServer(async ({ faults, answer }) => expect([faults, answer.code]).toEqual([[], 0]));
}
