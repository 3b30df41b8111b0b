/**
 * Candles as they are stored and read, on their own database file: random trades at random times, in commits of all sizes,
 * with crashes at any point between and within commits. After each step, the candles must equal a plain computation from all
 * committed trades, and the database's own invariants must hold.
 */
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { afterEach, expect, test } from "vitest";
import { CANDLE_MINUTES } from "../../engine/constants.ts";
import { Candles } from "../../engine/projection/candles.ts";
import { migrate, openDatabase } from "../../engine/projection/database.ts";
import { MIGRATIONS } from "../../engine/projection/schema.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { prepareCandles } from "../../server/queries/candle-reader.ts";
import { type CandleJson, INTERVALS, type PlainTrade, plainCandles, STEPS_MS } from "../support/candles.ts";
import { Random } from "../support/random.ts";
import { temporaryFolder } from "../support/server.ts";

/** How many fills may be pending before the rows catch up, and the least number of rows in one write. */
const MAX_UNWRITTEN = 2_048;
const SLICE = 64;
const LENGTHS = INTERVALS.length;

interface Trade extends PlainTrade {
  readonly outcome: number;
}

/** The journal's part: fills and candles in one transaction. */
class Store {
  readonly random: Random;
  readonly outcomes: number;
  /** Committed, oldest first. */
  trades: Trade[] = [];
  db: Database.Database;
  private candles: Candles;
  private path: string;
  private lastFill = 0;
  private clock = Date.UTC(2026, 9, 30, 23, 50);
  private copies = 0;
  private readonly folder = temporaryFolder();

  constructor(random: Random, outcomes: number) {
    this.random = random;
    this.outcomes = outcomes;
    this.path = join(this.folder, "exchange.db");
    this.db = openDatabase(this.path, "off");
    migrate(this.db);
    this.candles = new Candles(this.db, MAX_UNWRITTEN);
  }

  /** Commits so many trades, or loses them in a crash before the commit. */
  trade(count: number, commits = true): void {
    const { db, random } = this;
    const insert = db.prepare("INSERT INTO fills VALUES (?, 0, 1, 1, ?, 1, ?, ?, ?, 0, 0, 0, 0, ?, 0, 0, 0, NULL)");
    const made: Trade[] = [];
    db.exec("BEGIN IMMEDIATE");
    let fill = this.lastFill;
    for (let i = 0; i < count; i++) {
      const trade = this.makeTrade();
      const { outcome, price, quantity, at } = trade;
      const makers = random.integer(1, 2);
      for (let maker = 0; maker < makers; maker++) insert.run(++fill, outcome, price + 1, quantity, 0, at);
      insert.run(++fill, outcome, price, quantity, 1, at);
      this.candles.add(outcome, price, quantity, at, fill);
      made.push(trade);
    }
    const changes = db.prepare("SELECT total_changes()").pluck();
    const before = Number(changes.get());
    this.candles.write(fill, false);
    expect(Number(changes.get()) - before).toBeLessThanOrEqual(LENGTHS * (SLICE + 2 * (fill - this.lastFill + 1)) + 1);
    if (commits) {
      db.exec("COMMIT");
      this.lastFill = fill;
      this.trades.push(...made);
    } else {
      db.exec("ROLLBACK");
      this.crash();
    }
  }

  /** Writes a slice in a quiet moment; returns false if nothing is pending. */
  idle(): boolean {
    if (!this.candles.hasPending()) return false;
    this.db.transaction(() => this.candles.write(this.lastFill, true)).immediate();
    return true;
  }

  /** Continues with the files on disk, and nothing else. */
  crash(): void {
    const before = this.path;
    this.path = join(this.folder, `${++this.copies}.db`);
    for (const suffix of ["", "-wal"])
      if (existsSync(before + suffix)) copyFileSync(before + suffix, this.path + suffix);
    this.db.close();
    this.db = openDatabase(this.path, "off");
    this.candles = new Candles(this.db, MAX_UNWRITTEN);
  }

  /** How many fills the candles of the database don't have yet. */
  get tail(): number {
    return this.lastFill - Number(this.db.prepare("SELECT value FROM meta WHERE key = 'candles_fill'").pluck().get());
  }

  expectSound(): void {
    const found = verifyDatabase(this.db).filter(({ name }) => name.includes("candle"));
    expect(found.map(({ ok }) => ok)).toEqual([true, true]);
  }

  expectRight(): void {
    const { db, random, clock } = this;
    const read = prepareCandles(db);
    for (const interval of INTERVALS) {
      const outcomeId = random.integer(1, this.outcomes + 1);
      const step = STEPS_MS[interval];
      const first = Math.floor((clock - random.integer(-5, 300) * step) / step) * step;
      const last = first + random.integer(-1, 300) * step;
      const trades = this.trades.filter(({ outcome }) => outcome === outcomeId);
      const minutes = CANDLE_MINUTES[interval];
      const found = db.transaction(() => read({ outcomeId, minutes, first, last }))();
      expect(JSON.parse(found) as CandleJson[]).toEqual(plainCandles(trades, step, first, last));
    }
  }

  /** The clock advances by some seconds, sometimes by much more, and sometimes it steps back. */
  private makeTrade(): Trade {
    const { random } = this;
    if (random.chance(0.002)) this.clock += random.integer(-3, 5) * 86_400_000;
    else if (random.chance(0.02)) this.clock += random.integer(-90, 120) * 60_000;
    else this.clock += random.integer(-500, 5_000);
    const outcome = random.chance(0.3) ? 1 : random.integer(1, this.outcomes);
    const quantity = random.chance(0.01) ? 1_000_000_000 : random.integer(1, 100);
    return { outcome, price: random.integer(1, 9_998), quantity, at: this.clock };
  }
}

let store: Store | null = null;
afterEach(() => store?.db.close());

test.for([1, 7, 400])(
  "candles of %i outcomes are those of all committed trades, whenever the store crashes",
  (outcomes) => {
    const random = Random.printed(`candles of ${outcomes} outcomes`);
    store = new Store(random, outcomes);
    for (let step = 0; step < 60; step++) {
      const most = random.pick([1, 20, 200, 600]);
      const count = random.integer(1, most);
      const chance = random.next();
      if (chance < 0.7) store.trade(count);
      else if (chance < 0.8) store.trade(count, false);
      else if (chance < 0.9) store.idle();
      else store.crash();
      store.expectRight();
      if (step % 6 === 0) store.expectSound();
    }
    while (store.idle()) store.expectRight();
    expect(store.tail).toBe(0);
    store.expectSound();
  },
);

test("rows are never far behind, however many trades and outcomes one commit has", () => {
  store = new Store(Random.printed("candles of full commits"), 2_000);
  for (let i = 0; i < 30; i++) {
    store.trade(i % 5 === 0 ? 600 : store.random.integer(1, 300));
    // As many fills again may arrive during a write, and a whole commit before and after; a trade has up to three fills.
    expect(store.tail).toBeLessThanOrEqual(2 * MAX_UNWRITTEN + 2 * 3 * 600);
  }
  store.expectSound();
});

test("a migration makes the same candles of trades from before there were any", () => {
  store = new Store(Random.printed("candles by migration"), 5);
  for (let i = 0; i < 5; i++) store.trade(400);
  while (store.idle());
  const candles = (of: Database.Database): unknown[] => of.prepare("SELECT * FROM candles").raw().all();
  const older = openDatabase(join(temporaryFolder(), "older.db"), "off");
  for (const migration of MIGRATIONS.slice(0, 4)) older.exec(migration);
  older.pragma("user_version = 4");
  older.exec(`ATTACH '${store.db.name}' AS store; INSERT INTO fills SELECT * FROM store.fills; DETACH store;
    UPDATE totals SET last_entry_id = (SELECT max(id) FROM fills)`);
  migrate(older);
  expect(candles(older).length).toBeGreaterThan(100);
  expect(candles(older)).toEqual(candles(store.db));
  expect(new Candles(older).hasPending()).toBe(false);
  older.close();
});
