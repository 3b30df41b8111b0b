/**
 * The history of random days is what was streamed: every book that a subscriber saw is the one after some commit of the
 * files, in the same order, and the trades are those of REST. The exchange is halted, stopped and killed in between, and
 * begins again with another number of engine threads, on the same or the next day.
 */
import { cpSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { HistoryReplay } from "../../bench/replay/history/history-replay.ts";
import { commitsOf, type HistoryLine } from "../../bench/replay/history/lines.ts";
import { historyFolder } from "../../server/book-history/history-folder.ts";
import { admin } from "../support/admin.ts";
import { type BookJson, Client, type OrderJson, type TradeJson } from "../support/client.ts";
import { OPERATOR, operatorOf } from "../support/operator.ts";
import { Random } from "../support/random.ts";
import { RandomTrading } from "../support/random-trading.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { PUBLIC_URL, seedOf, type TestMarket, tokenOf } from "../support/world.ts";
import { daysIn, linesIn, RebuiltBooks, textOf } from "./history-rows.ts";

const DAY_MS = 86_400_000;
const CLOCK = fileURLToPath(new URL("../support/stepped-clock.mjs", import.meta.url));
const USERS = ["user0", "user1", "user2"];
const LIVES = 6;
const HALTED = 42203;
const ANSWERS = 400;
const SEED = seedOf({ users: USERS.length, named: { operator: OPERATOR }, markets: [2, 3, 2] });

type Levels = readonly (readonly [number, number])[];
interface BookData {
  readonly market_id: number;
  readonly outcome_id: number;
  readonly bids: Levels;
  readonly asks: Levels;
}

/** What a subscriber of all books saw: the book after each message, by outcome. */
class Watcher {
  readonly books = new Map<number, string[]>();
  private readonly rebuilt = new RebuiltBooks();
  private socket: Socket | null = null;

  async start(server: TestServer, markets: readonly TestMarket[]): Promise<void> {
    this.socket = await Socket.open(server, null);
    for (const { id, outcomes } of markets) {
      for (const outcome of outcomes) await this.socket.subscribe("book", id, outcome);
    }
  }

  /** Notes what arrived since the start. */
  stop(): void {
    const outcomes = new Set<number>();
    for (const { event, data } of this.socket!.frames as { event: string; data: BookData }[]) {
      if (event !== "book.snapshot" && event !== "book.updated") continue;
      const { outcome_id: outcome, bids, asks } = data;
      const isFirst = event === "book.snapshot" && !outcomes.has(outcome);
      outcomes.add(outcome);
      const text = isFirst ? textOf(bids, asks) : this.update(outcome, bids, asks);
      if (isFirst) this.set(outcome, bids, asks);
      const seen = this.books.get(outcome);
      if (seen === undefined) this.books.set(outcome, [text]);
      else if (seen.at(-1) !== text) seen.push(text);
    }
  }

  private set(outcome: number, bids: Levels, asks: Levels): void {
    const { bids: oldBids, asks: oldAsks } = JSON.parse(this.rebuilt.text(outcome)) as { bids: Levels; asks: Levels };
    for (const [price] of oldBids) this.level(outcome, 1, price, 0);
    for (const [price] of oldAsks) this.level(outcome, 2, price, 0);
    this.update(outcome, bids, asks);
  }

  private update(outcome: number, bids: Levels, asks: Levels): string {
    for (const [price, quantity] of bids) this.level(outcome, 1, price, quantity);
    for (const [price, quantity] of asks) this.level(outcome, 2, price, quantity);
    return this.rebuilt.text(outcome);
  }

  private level(outcome_id: number, side: number, price: number, quantity: number): void {
    this.rebuilt.apply({ at: 0, seq: 0, kind: "level", outcome_id, side, price, quantity });
  }
}

test("the files have every book that was streamed, in its order, and every trade", { timeout: 170_000 }, async () => {
  const random = Random.printed("history");
  const dataDir = temporaryFolder();
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  // Each life may be a day later, and the last may be tomorrow's.
  const firstDay = 1 - LIVES - random.integer(0, 2);
  let day = firstDay;
  const start = (threads: number): Promise<TestServer> => {
    const clock = { NODE_OPTIONS: `--import ${CLOCK}`, CLOCK_OFFSET_MS: String(day * DAY_MS) };
    return TestServer.start({ dataDir, seed: SEED, env: { PUBLIC_URL, ENGINE_THREADS: String(threads), ...clock } });
  };
  const watcher = new Watcher();
  let [markets, trading]: [TestMarket[], RandomTrading | null] = [[], null];
  let server = await start(1);
  for (let life = 0; life < LIVES; life++) {
    const reader = new Client(server, null);
    if (trading === null) {
      const listed = (
        await reader.get<{ items: { id: number; slug: string; outcomes: { id: number }[] }[] }>("/markets")
      ).items;
      markets = listed
        .map(({ id, slug, outcomes }) => ({ id, slug, outcomes: outcomes.map((each) => each.id) }))
        .sort((a, b) => a.id - b.id);
      trading = new RandomTrading(
        random,
        markets.slice(0, 2),
        USERS.map((name) => tokenOf(name)),
        [HALTED],
      );
      await trading.prepare(server);
    }
    await watcher.start(server, markets);
    trading.start(server);
    await trading.more(ANSWERS);
    await withHalt(server, markets[random.integer(0, 1)]!, () => trading!.more(ANSWERS / 10));
    await trading.more(ANSWERS);
    reader.close();
    if (random.chance(0.5)) {
      await server.kill();
      await trading.stop();
    } else {
      await trading.stop();
      await server.stop();
    }
    watcher.stop();
    if (random.chance(0.6)) day++;
    server = await start(random.pick([1, 2, 3]));
  }
  await cancelExpiring(server);
  // Made by the server's own thread: what was committed before this hour.
  if (day > firstDay) await server.logged(({ msg }) => msg === "book history is made");
  await expectHistory(server, dataDir, markets, watcher);
});

/** Cancels what would expire while the books are compared. */
async function cancelExpiring(server: TestServer): Promise<void> {
  for (const name of USERS) {
    const client = new Client(server, tokenOf(name));
    for (const { id, expires_at } of await client.all<OrderJson>("/orders")) {
      if (expires_at !== null) await client.request("DELETE", `/orders/${id}`);
    }
    client.close();
  }
}

/** Trades on while an operator halts and resumes the market. */
async function withHalt(server: TestServer, { id }: TestMarket, trade: () => Promise<void>): Promise<void> {
  const operator = await operatorOf(server);
  await operator.data("POST", `/admin/markets/${id}/halt`);
  await trade();
  await operator.data("POST", `/admin/markets/${id}/resume`);
  operator.close();
}

async function expectHistory(
  server: TestServer,
  dataDir: string,
  markets: readonly TestMarket[],
  watcher: Watcher,
): Promise<void> {
  const reader = new Client(server, null);
  const trades = new Map<number, TradeJson[]>();
  for (const { id } of markets) trades.set(id, (await reader.all<TradeJson>(`/markets/${id}/trades`)).reverse());
  const books = new Map<number, string>();
  for (const { id, outcomes } of markets) {
    for (const outcome of outcomes) {
      const { bids, asks } = await reader.get<BookJson>(`/orderbook/${id}/${outcome}`);
      books.set(outcome, textOf(bids, asks));
    }
  }
  reader.close();
  // A later batch could complete the last day.
  await server.stop();
  const [from, to] = [-2 - LIVES, 1].map((offset) => new Date(Date.now() + offset * DAY_MS).toISOString().slice(0, 10));
  const { out, errors } = await admin(dataDir, "history", from!, to!);
  expect(errors).toBe("");
  const { days } = JSON.parse(out) as { days: string[] };
  const folder = historyFolder(dataDir);
  const lines = new Map<number, HistoryLine[][]>(markets.map(({ id }) => [id, []]));
  for (const date of days) {
    for (const each of daysIn(folder, date)) lines.get(each.market)!.push(linesIn(folder, each));
  }
  for (const day of [...lines.values()].flat()) expectReplayed(day);
  for (const { id, outcomes } of markets) expectMarket(id, outcomes, lines.get(id)!, trades.get(id)!, books, watcher);
  await expectSameBytes(dataDir, days);
}

/** `npm run replay -- --history` makes the same trades of a day's file, whatever was placed and canceled in between. */
function expectReplayed(lines: readonly HistoryLine[]): void {
  const replay = new HistoryReplay(lines);
  for (const commit of commitsOf(lines)) replay.apply(commit);
  const { differences, crossed, trades } = replay;
  const count = lines.filter(({ kind }) => kind === "trade").length;
  expect({ differences, crossed, trades }).toEqual({ differences: [], crossed: 0, trades: count });
}

function expectMarket(
  id: number,
  outcomes: readonly number[],
  days: readonly HistoryLine[][],
  trades: readonly TradeJson[],
  books: ReadonlyMap<number, string>,
  watcher: Watcher,
): void {
  const rebuilt = new RebuiltBooks();
  const states = new Map<number, string[]>(outcomes.map((outcome) => [outcome, [rebuilt.text(outcome)]]));
  let lastAt = 0;
  for (const lines of days) {
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, i) => i + 1));
    for (const commit of commitsOf(lines)) {
      expect(commit[0]!.at).toBeGreaterThan(lastAt);
      lastAt = commit[0]!.at;
      const before = outcomes.map((outcome) => rebuilt.text(outcome));
      for (const line of commit) if (line.kind === "snapshot" || line.kind === "level") rebuilt.apply(line);
      const after = outcomes.map((outcome) => rebuilt.text(outcome));
      // A day opens with what the days before left.
      if (commit.some(({ kind }) => kind === "snapshot")) expect(after).toEqual(before);
      after.forEach((text, i) => {
        const list = states.get(outcomes[i]!)!;
        if (list.at(-1) !== text) list.push(text);
      });
    }
  }
  for (const outcome of outcomes) {
    expect(rebuilt.text(outcome), `the last book of ${outcome}`).toBe(books.get(outcome));
    const all = states.get(outcome)!;
    let at = 0;
    for (const seen of watcher.books.get(outcome) ?? []) {
      const found = all.indexOf(seen, at);
      expect(found, `a streamed book of ${outcome} after commit ${at}: ${seen}`).toBeGreaterThanOrEqual(0);
      at = found;
    }
  }
  const traded = days.flat().filter(({ kind }) => kind === "trade");
  expect(
    traded.map((line) => ({
      ...{ id: line.match_id, market_id: id, outcome_id: line.outcome_id, side: line.side, price: line.price },
      ...{ quantity: line.quantity, match_type: line.match_type, created_at: line.created_at },
    })),
  ).toEqual(trades);
  const statuses = days.flatMap((lines) => lines.filter(({ kind }) => kind === "status").map(({ status }) => status));
  expect(statuses[0] ?? "open").toBe("open");
}

/** Made again from the log, the files have the same bytes. */
async function expectSameBytes(dataDir: string, days: readonly string[]): Promise<void> {
  const folder = historyFolder(dataDir);
  const copy = `${folder}.first`;
  cpSync(folder, copy, { recursive: true });
  rmSync(folder, { recursive: true });
  expect((await admin(dataDir, "history", days[0]!, days.at(-1)!)).errors).toBe("");
  for (const date of days) {
    const [again, first] = [folder, copy].map((each) => daysIn(each, date));
    expect(again, `the files of ${date}`).toEqual(first);
    for (const { market, parquet, jsonLines } of first!) {
      for (const { name } of [parquet, jsonLines]) {
        const [one, other] = [folder, copy].map((each) => readFileSync(join(each, String(market), name)));
        expect(one!.equals(other!)).toBe(true);
      }
    }
  }
}
