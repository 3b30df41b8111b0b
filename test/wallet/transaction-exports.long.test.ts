/**
 * Long exports as CSV: a file of any length is complete, a slow client takes little memory, the server closes a client that
 * stops reading, and nobody else waits for an export. What an export contains is transaction-exports.test.ts.
 */
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { majorOf } from "../../engine/util/node-support.ts";
import { MAX_EXPORTS_PER_USER } from "../../server/queries/limits.ts";
import { eventually, expectEndsWell, expectQuiet } from "../support/checks.ts";
import { API_BASE, Client, type TransactionJson } from "../support/client.ts";
import { RECOUNT_ACTIVITY, RECOUNT_HOURS, withDatabase } from "../support/data-dir.ts";
import { CSV, download, PATH, parse } from "../support/exports.ts";
import { BUY, expectRefused, terms } from "../support/trading.ts";
import { type TestMarket, tokenOf, World } from "../support/world.ts";

let world: World;
let trader: Client;
let market: TestMarket;

/** Transactions of the historian: some 32 MB as CSV. */
const HISTORY_LENGTH = 600_000;

/** Writes splits and merges in turn, as the log would. */
function writeLongHistory(dataDir: string): void {
  withDatabase(dataDir, (db) => {
    db.prepare(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @count)
       INSERT INTO entries (id, user_id, type, amount, balance_after, market_id, created_at)
       SELECT last_entry_id + i, users.id, iif(i % 2 = 1, 'split', 'merge'), iif(i % 2 = 1, -1, 1) * 1000000,
         balance - i % 2 * 1000000, @market, @at
       FROM n, totals, users JOIN accounts ON user_id = users.id WHERE email = 'historian@example.com'`,
    ).run({ count: HISTORY_LENGTH, market: market.id, at: Date.now() });
    db.prepare("UPDATE totals SET last_entry_id = last_entry_id + ?").run(HISTORY_LENGTH);
    db.exec(`${RECOUNT_ACTIVITY}; ${RECOUNT_HOURS}`);
  });
}

/** A client that reads on demand. */
class SlowReader {
  readonly ended: Promise<void>;
  bytes = 0;
  status = 0;
  last = "";
  private readonly socket: Socket;

  constructor(token: string) {
    this.socket = connect(world.server.port, "127.0.0.1");
    this.ended = new Promise((resolve) => {
      this.socket.on("close", () => resolve());
    });
    this.socket.on("error", () => {});
    this.socket.on("data", (chunk: Buffer) => {
      if (this.bytes === 0) this.status = Number(chunk.toString("latin1", 9, 12));
      this.bytes += chunk.length;
      this.last = chunk.toString("latin1").slice(-100);
      this.onData();
    });
    this.socket.pause();
    const head = [`GET ${API_BASE}${PATH} HTTP/1.1`, "Host: x", `Accept: ${CSV}`, `Authorization: Bearer ${token}`];
    this.socket.write(`${head.join("\r\n")}\r\n\r\n`);
  }

  private onData: () => void = () => {};

  /** Reads so many more bytes, and then stops reading. */
  async read(bytes: number): Promise<void> {
    const enough = this.bytes + bytes;
    this.socket.resume();
    await new Promise<void>((resolve) => {
      this.onData = () => {
        if (this.bytes >= enough) resolve();
      };
      void this.ended.then(resolve);
    });
    this.socket.pause();
  }

  readAll(): void {
    this.onData = () => {};
    this.socket.resume();
  }

  disconnect(): void {
    this.socket.resetAndDestroy();
  }
}

describe("a long history", () => {
  const token = tokenOf("historian");
  beforeAll(async () => {
    world = await World.start({ users: 1, named: { historian: {} } });
    market = world.market();
    await world.server.stop();
    writeLongHistory(world.server.dataDir);
    world.server = await world.server.restart();
    trader = world.user();
  });
  afterAll(() => expectEndsWell(world));

  test("is exported completely, and others get their responses meanwhile", async () => {
    const client = new Client(world.server, token);
    // A short export first: a thread that starts for it takes memory of its own.
    await download(trader);
    const before = world.server.residentBytes;
    let isDone = false;
    const whole = download(client).then((answer) => {
      isDone = true;
      return answer;
    });
    let responses = 0;
    let longest = 0;
    while (!isDone) {
      const began = performance.now();
      await trader.get("/wallet/balance");
      longest = Math.max(longest, performance.now() - began);
      responses++;
    }
    const { text } = await whole;
    expect(text.split("\r\n").length).toBe(HISTORY_LENGTH + 3);
    expect(responses).toBeGreaterThan(20);
    expect(longest).toBeLessThan(1_000);
    // Never all in memory. From Node 24 on, the young generations of the threads that write it grow to 128 MiB each.
    const most = majorOf(process.versions.node) < 24 ? 4 : 6;
    expect(world.server.residentBytes - before).toBeLessThan(text.length * most);
    client.close();
  });

  test("several exports at once are exact, and trading continues beside them", async () => {
    const maker = new Client(world.server, tokenOf("user0"), 4);
    const batch = async (): Promise<number> => {
      const began = performance.now();
      const { id } = await maker.place(terms(market, 0, BUY, 100, 1));
      await maker.data("DELETE", `/orders/${id}`);
      return performance.now() - began;
    };
    const median = (times: number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1]!;
    const alone: number[] = [];
    for (let i = 0; i < 100; i++) alone.push(await batch());
    // The historian exports twice, as often as one user may, and the trader again and again while it trades.
    const historian = new Client(world.server, token, 2);
    let under = 2;
    const count = (answer: Awaited<ReturnType<typeof download>>): typeof answer => {
      under--;
      return answer;
    };
    const whole = [download(historian).then(count), download(historian).then(count)];
    const beside: number[] = [];
    const own: object[][] = [];
    const exporter = new Client(world.server, tokenOf("user0"));
    const exporting = (async () => {
      while (under > 0) own.push(parse((await download(exporter)).text));
    })();
    while (under > 0) {
      await maker.data("POST", "/wallet/split", { market_id: market.id, quantity: 1 });
      beside.push(await batch());
    }
    await exporting;
    const [first, second] = await Promise.all(whole);
    const lines = first!.text.split("\r\n");
    expect(lines.length).toBe(HISTORY_LENGTH + 3);
    expect(second!.text === first!.text).toBe(true);
    for (const [i, type] of ["merge", "split"].entries()) expect(lines[1 + i]!.split(",")[1]).toBe(type);
    // Each export of the trader is its history up to some moment.
    const all = await maker.all<TransactionJson>(PATH, 200);
    expect(own.length).toBeGreaterThan(1);
    for (const each of own) expect(each).toEqual(all.slice(all.length - each.length));
    expect(beside.length).toBeGreaterThan(20);
    expect(Math.max(...beside)).toBeLessThan(2_000);
    expect(median(beside)).toBeLessThan(Math.max(50, 10 * median(alone)));
    for (const client of [maker, historian, exporter]) client.close();
  });

  test("an export to a slow client is written as the client reads", async () => {
    const reader = new SlowReader(token);
    await reader.read(1_000);
    const before = world.server.residentBytes;
    for (let i = 0; i < 20; i++) {
      await reader.read(100_000);
      await trader.get("/wallet/balance");
    }
    // Some 30 MB are still to come.
    expect(world.server.residentBytes - before).toBeLessThan(24 * 1024 * 1024);
    reader.readAll();
    await eventually(async () => expect(reader.last).toMatch(/\r\n0\r\n\r\n$/));
    reader.disconnect();
    await reader.ended;
  });

  test("one user has a bounded number of exports at once; a client that disconnects makes room", async () => {
    const readers = await startAll();
    const client = new Client(world.server, token);
    await expectRefused(client.request("GET", PATH, { headers: { Accept: CSV } }), 429, 42900, /exports/);
    client.close();
    expect(await trader.request("GET", PATH)).toMatchObject({ status: 200 });
    expect((await download(trader)).status).toBe(200);
    for (const reader of readers) reader.disconnect();
    await expectRoom();
  });

  test("the server closes a client that reads nothing for long, without the end of its response", async () => {
    const readers = await startAll();
    // There is room for as many again, so the server has closed each of the first.
    for (const other of await startAll()) other.disconnect();
    for (const reader of readers) {
      reader.readAll();
      await reader.ended;
      expect(reader.last).not.toMatch(/\r\n0\r\n\r\n$/);
    }
  });

  test("an export in flight when the server stops is cut short, without an error in the log", async () => {
    const [reader] = await startAll();
    await world.server.stop();
    reader!.readAll();
    await reader!.ended;
    expect(reader!.last).not.toMatch(/\r\n0\r\n\r\n$/);
    expectQuiet(world.server);
    world.server = await world.server.restart();
  });

  async function startAll(): Promise<SlowReader[]> {
    const readers = [];
    while (readers.length < MAX_EXPORTS_PER_USER) readers.push(await startOne());
    return readers;
  }

  /** Starts as soon as there is room: the server may notice a disconnect a moment later. */
  async function startOne(): Promise<SlowReader> {
    return eventually(async () => {
      const reader = new SlowReader(token);
      await reader.read(1);
      if (reader.status !== 200) {
        reader.disconnect();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      expect(reader.status).toBe(200);
      return reader;
    });
  }

  async function expectRoom(): Promise<void> {
    (await startOne()).disconnect();
  }
});
