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
import { migrate } from "../../engine/projection/database.ts";
import { MIGRATIONS } from "../../engine/projection/schema.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import { openDatabase } from "../../engine/util/wal-database.ts";
import { prepareCandles } from "../../server/queries/candle-reader.ts";
import { type CandleJson, INTERVALS, type PlainTrade, plainCandles, STEPS_MS } from "../support/candles.ts";
import { Random } from "../support/random.ts";
import { temporaryFolder } from "../support/server.ts";

interface Trade extends PlainTrade {
  readonly outcome: number;
}

/** The projector's part: fills and candles in one transaction. */
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
    this.candles = new Candles(this.db);
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
    this.candles.flush();
    if (commits) {
      db.exec("COMMIT");
      this.lastFill = fill;
      this.trades.push(...made);
    } else {
      db.exec("ROLLBACK");
      this.crash();
    }
  }

  /** Continues with the files on disk, and nothing else. */
  crash(): void {
    const before = this.path;
    this.path = join(this.folder, `${++this.copies}.db`);
    for (const suffix of ["", "-wal"])
      if (existsSync(before + suffix)) copyFileSync(before + suffix, this.path + suffix);
    this.db.close();
    this.db = openDatabase(this.path, "off");
    this.candles = new Candles(this.db);
  }

  expectSound(): void {
    const found = verifyDatabase(this.db).filter(({ name }) => name.includes("candle"));
    expect(found.map(({ ok }) => ok)).toEqual([true]);
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
      if (chance < 0.75) store.trade(count);
      else if (chance < 0.9) store.trade(count, false);
      else store.crash();
      store.expectRight();
      if (step % 6 === 0) store.expectSound();
    }
    store.expectSound();
  },
);

test("a migration makes the same candles of trades from before there were any", () => {
  store = new Store(Random.printed("candles by migration"), 5);
  for (let i = 0; i < 5; i++) store.trade(400);
  const candles = (of: Database.Database): unknown[] => of.prepare("SELECT * FROM candles").raw().all();
  const older = openDatabase(join(temporaryFolder(), "older.db"), "off");
  for (const migration of MIGRATIONS.slice(0, 4)) older.exec(migration);
  older.pragma("user_version = 4");
  older.exec(`ATTACH '${store.db.name}' AS store; INSERT INTO fills SELECT * FROM store.fills; DETACH store;
    UPDATE totals SET last_entry_id = (SELECT max(id) FROM fills)`);
  migrate(older);
  expect(candles(older).length).toBeGreaterThan(100);
  expect(candles(older)).toEqual(candles(store.db));
  older.close();
});
