/**
 * One exchange from its first user to its last stop: a disk, a clock, its clients and one life after the other. One
 * random source decides who is next and when a life ends. The same seed makes the same world, step by step; a
 * difference between the exchange and its references ends it with an error.
 */

import { loadSqlite } from "../../engine/util/sqlite.ts";
import { ensure } from "../engine/book/harness.ts";
import { Random } from "../support/random.ts";
import {
  type Compared,
  compareBooks,
  compareDatabase,
  compareGateway,
  compareNames,
  compareRebuild,
  verify,
} from "./checks.ts";
import { Clients } from "./clients.ts";
import { Committed } from "./committed.ts";
import type { Mood } from "./crowd.ts";
import { Crash, Disk, type FaultyConnection, type Strike } from "./disk.ts";
import { Hash } from "./hash.ts";
import { type Clock, Life, microtasks, PATIENCE, type Shape } from "./life.ts";
import { MAX_MARKETS } from "./operators.ts";
import type { Tally } from "./tally.ts";
import { MOST_QUOTES } from "./traders.ts";

const BEGIN_MS = Date.UTC(2026, 0, 5, 23, 30);
const LATEST_STEPS = 40;
/** The share of starts without exchange.db. */
const LOST_TABLES = 0.05;
/** Checking all invariants in SQL takes longer than a recovery: the share of starts with the check. Each world ends with it. */
const THOROUGH = 0.25;

const SOME_DAYS_MS = 2 * 86_400_000;

/** How likely each thing is to be next, and how the clients behave, for some hundred steps. */
interface Weather {
  readonly name: string;
  readonly act: number;
  readonly gateway: number;
  readonly engine: number;
  readonly log: number;
  readonly projector: number;
  readonly mood: Mood;
}

const CALM = { most: 40, sweeps: 0, focuses: false };
const USUAL: Weather = {
  name: "usual",
  act: 50,
  gateway: 18,
  engine: 18,
  log: 10,
  projector: 6,
  mood: { ...CALM, gap: 20, depth: 6, cancels: 1 },
};
/** Books grow, so that the next phase has much to take in one command. */
const BUILDING: Weather = {
  name: "building",
  act: 60,
  gateway: 18,
  engine: 18,
  log: 6,
  projector: 6,
  mood: { gap: 300, depth: 40, cancels: 0, most: 4, sweeps: 0, focuses: true },
};
const SWEEPING: Weather = {
  name: "sweeping",
  act: 40,
  gateway: 14,
  engine: 20,
  log: 0.6,
  projector: 6,
  mood: { gap: 20, depth: 6, cancels: 0.3, most: 10, sweeps: 0.08, focuses: true },
};
const WEATHERS: readonly Weather[] = [
  USUAL,
  BUILDING,
  {
    name: "crossing",
    act: 50,
    gateway: 18,
    engine: 18,
    log: 10,
    projector: 6,
    mood: { ...CALM, gap: -200, depth: 6, cancels: 0.5 },
  },
  {
    name: "slow log",
    act: 56,
    gateway: 18,
    engine: 24,
    log: 0.4,
    projector: 6,
    mood: { ...CALM, gap: 60, depth: 12, cancels: 0.5 },
  },
  {
    name: "slow engine",
    act: 70,
    gateway: 20,
    engine: 1,
    log: 4,
    projector: 6,
    mood: { ...CALM, gap: 0, depth: 6, cancels: 1 },
  },
  {
    name: "slow projector",
    act: 50,
    gateway: 18,
    engine: 18,
    log: 10,
    projector: 0.2,
    mood: { ...CALM, gap: 0, depth: 8, cancels: 1 },
  },
  {
    name: "slow gateway",
    act: 56,
    gateway: 1,
    engine: 24,
    log: 12,
    projector: 6,
    mood: { ...CALM, gap: -40, depth: 6, cancels: 1 },
  },
];

/** The ways in which a life ends. */
const ENDS = ["between steps", "at a statement", "after COMMIT", "torn log", "failing disk", "stop"] as const;
type End = (typeof ENDS)[number] | "in the middle of a command";

/** Which worlds have a log that is held. */
const HELD_SEED = 0x5eed;

export class World {
  readonly hash = new Hash();
  steps = 0;
  /** The last actions, to investigate a failure. */
  readonly latest: string[] = [];
  private readonly random: Random;
  private readonly tally: Tally;
  private readonly shape: Shape;
  private readonly disk: Disk;
  private readonly clock: Clock = { now: BEGIN_MS };
  private readonly record = new Committed();
  private readonly clients: Clients;
  private readonly compared: Compared = { fills: 0, entries: 0, updates: new Map() };
  private readonly template: Buffer;
  private weather = USUAL;
  private life!: Life;
  /** Steps until the weather changes, until all is compared, and until this life ends. */
  private untilWeather = 0;
  private untilCheck = 0;
  private untilEnd = 0;
  private end: End = "stop";
  private isArmed = false;
  private strikesTables = false;

  constructor(seed: number, template: Buffer, tally: Tally) {
    this.random = new Random(seed);
    this.tally = tally;
    // Not drawn from `random`: the courses of other worlds stay as they are.
    this.shape = { ...this.makeShape(), isHeld: new Random(seed ^ HELD_SEED).chance(0.4) };
    this.template = template;
    this.disk = new Disk(template, this.random);
    this.clients = new Clients(this.random, this.clock, this.record, tally, this.hash);
  }

  private makeShape(): Shape {
    const { random } = this;
    return {
      engines: random.integer(1, 3),
      commandRecords: random.pick([32, 64, 256]),
      eventRecords: random.pick([512, 512, 1_024]),
      longestChain: 2 * MOST_QUOTES,
      reservedCommands: random.integer(4, 10),
      capacity: random.pick([150, 1_000, 1_500]),
      largestId: MAX_MARKETS * 4 + 4,
      activeBooks: 32,
    };
  }

  /** Runs `steps` steps, then stops cleanly. @throws at the first difference */
  async run(steps: number): Promise<void> {
    try {
      await this.begin();
      while (this.steps < steps) await this.step();
      await this.stopAtLast();
      this.compareAll();
    } finally {
      this.life?.end();
      this.disk.remove();
    }
  }

  private note(step: string): void {
    this.steps++;
    this.latest.push(step);
    if (this.latest.length > LATEST_STEPS) this.latest.shift();
    this.tally.add("step", step);
    this.hash.text(this.clock.now, step);
  }

  // ---------------------------------------------------------------- lives

  /** Starts a life from the disk and begins trading. */
  private async begin(): Promise<void> {
    this.disk.tidy();
    this.chooseEnd();
    for (;;) {
      if (this.random.chance(LOST_TABLES)) {
        this.tally.add("end", "lost tables");
        this.disk.loseTables(this.template);
      }
      if (!this.open()) continue;
      this.compareRecord(this.random.chance(THOROUGH));
      this.clients.begin(this.life);
      if (await this.recover()) break;
    }
    if (this.record.accounts.size === 0) this.clients.operators.createUsers(this.random.integer(5, 12));
  }

  /** Opens the files for the next life; false if a crash ended it while the tables caught up. */
  private open(): boolean {
    const strikes = (tables: FaultyConnection): void => {
      if (this.random.chance(0.2)) tables.arm(this.random.integer(1, this.random.pick([30, 300])), "crash");
    };
    try {
      this.life = new Life(
        this.disk.files,
        this.shape,
        this.clock,
        this.record,
        this.clients.received,
        {
          committed: (events, writes) => this.hash.add(events * 64 + writes),
          event: (event, fillId, sequence) => {
            this.hash.add(event.packed ^ (event.orderId * 31));
            this.hash.add(fillId * 7 + sequence * 13 + event.remaining);
            if (event.kind === "orderFilled" && event.role === "taker") {
              this.tally.add("match", event.matchType);
              if (this.clients.isDealer(event.user)) this.tally.add("self-dealers", event.matchType);
            }
            if (event.reason !== null && event.kind !== "orderFilled") this.tally.add("reason", event.reason);
          },
          ringIsFull: (engine, hasRoom) => this.waitForRoom(engine, hasRoom),
        },
        strikes,
      );
      this.life.tables.disarm();
      return true;
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
      this.tally.add("end", "while the tables caught up");
      this.disk.crash(null, null);
      return false;
    }
  }

  /** As a life begins, the tables must match the record, and a rebuild. @param isThorough checks all invariants in SQL as well */
  private compareRecord(isThorough: boolean): void {
    compareDatabase(this.life, this.record, this.compared);
    compareRebuild(this.life, this.template, this.shape);
    this.tally.add("rebuild", "equal");
    if (isThorough) verify(this.life.database);
  }

  /** Restores books and holds; false if this life ended on the way. */
  private async recover(): Promise<boolean> {
    const { random } = this;
    let isDone = false;
    const diesEarly = random.chance(0.15) && this.record.live.size > 0;
    let left = diesEarly ? random.integer(1, 40) : Number.POSITIVE_INFINITY;
    this.life.restored.then(
      () => {
        isDone = true;
      },
      (error) => {
        this.clients.failed ??= error;
        isDone = true;
      },
    );
    for (let turns = 0; !isDone; turns++) {
      ensure(turns < PATIENCE, "a recovery ends");
      this.note("recovery");
      if (left-- <= 0) {
        this.tally.add("end", "during recovery");
        this.crashNow();
        return false;
      }
      const kind = random.next();
      if (kind < 0.4) this.life.loop.turn();
      else if (kind < 0.75) this.life.runEngine(random.integer(0, this.shape.engines - 1), random.integer(1, 40));
      else this.life.commit();
      this.mayRelease(0.3);
      await microtasks();
    }
    if (this.clients.failed !== null) throw this.clients.failed;
    await this.life.becomeQuiet();
    this.life.isReady = true;
    this.compareMemory();
    return true;
  }

  private chooseEnd(): void {
    const { random } = this;
    this.end = random.pick(ENDS);
    this.untilEnd = random.integer(300, 5_000);
  }

  /** Only the files survive, as they are. */
  private crashNow(torn: { readonly from: number; readonly to: number } | null = null): void {
    const { life } = this;
    const isWhole = this.disk.crash(life.copiedFrames, torn);
    life.keepHeld();
    if (isWhole) life.unheard?.();
    life.end();
    this.isArmed = false;
  }

  /** Arms the end of this life; some ends happen at the log's next statements. */
  private async endLife(): Promise<void> {
    const { random, life } = this;
    const strikes: Partial<Record<End, Strike>> = {
      "at a statement": "crash",
      "after COMMIT": "crash after",
      "torn log": "crash after",
      "failing disk": random.pick(["SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC"] as const),
    };
    const strike = strikes[this.end];
    if (strike !== undefined) {
      const isTables = this.end !== "torn log" && random.chance(0.5);
      if (!this.isArmed) this.strikesTables = isTables;
      const connection = isTables ? life.tables : life.connection;
      const statements = isTables ? random.pick([3, 40, 400]) : random.pick([1, 3, 12]);
      if (!this.isArmed) connection.arm(random.integer(1, statements), strike);
      this.isArmed = true;
      return;
    }
    this.tally.add("end", this.end);
    if (this.end === "stop") await this.stop();
    else this.crashNow();
    await this.begin();
  }

  /** The error of this step: the end of a life, or a finding. */
  private async survive(error: unknown): Promise<void> {
    const { life } = this;
    if (error instanceof Crash) {
      this.tally.add("end", this.end);
      this.crashNow(this.end === "torn log" ? life.connection.torn : null);
    } else if (error instanceof loadSqlite().SqliteError && this.isArmed && error.message.startsWith("simulated")) {
      this.tally.add("end", this.end);
      await this.endure();
      this.crashNow();
    } else throw error;
    await this.begin();
  }

  /** The disk has failed: every client is informed, and nothing else happens any more. */
  private async endure(): Promise<void> {
    const { life } = this;
    life.fail(this.strikesTables);
    const orders = life.exchange.store.liveCount;
    for (let i = 0; i < 10; i++) {
      this.note("after failure");
      this.clients.act();
      if (life.hasTables) life.project(1_000);
      life.loop.turn();
      await microtasks();
      while (life.lookUp());
      await microtasks();
    }
    this.clients.expectAnswered();
    ensure(life.exchange.store.liveCount <= orders, "nothing is placed after the disk has failed");
  }

  /** The last stop, whatever end was armed for the current life. */
  private async stopAtLast(): Promise<void> {
    for (;;) {
      try {
        await this.life.becomeQuiet();
        await this.clients.closeOut(() => this.life.becomeQuiet());
        return await this.stop();
      } catch (error) {
        await this.survive(error);
      }
    }
  }

  /** A clean stop: everything in flight completes, then the engines and the log stop. */
  private async stop(): Promise<void> {
    const { life } = this;
    await this.life.becomeQuiet();
    this.clients.expectAnswered();
    this.clients.received.expectComplete();
    this.compareMemory();
    life.exchange.stopEngines();
    for (let turns = 0; !life.log.stopped; turns++) {
      ensure(turns < PATIENCE, "a stop ends");
      for (let i = 0; i < this.shape.engines; i++) if (!life.engines[i]!.stage.stopped) life.runEngine(i, 1_000);
      life.commit();
      ensure(!life.log.stopped || life.isShown, "the log stops once everything is shown");
      life.release(1_000);
    }
    while (life.project(1_000));
    life.log.close();
    life.end();
  }

  // ---------------------------------------------------------------- steps

  private async step(): Promise<void> {
    try {
      if (this.untilEnd-- <= 0) await this.endLife();
      if (this.untilCheck-- <= 0) await this.check();
      if (this.untilWeather-- <= 0) this.changeWeather();
      if (this.next()) await microtasks();
    } catch (error) {
      await this.survive(error);
    }
    if (this.clients.failed !== null) throw this.clients.failed;
  }

  private changeWeather(): void {
    const { random } = this;
    this.weather = this.weather === BUILDING ? SWEEPING : random.pick(WEATHERS);
    this.untilWeather = this.weather === BUILDING ? random.integer(800, 2_000) : random.integer(100, 700);
    this.clients.mood = this.weather.mood;
    this.tally.add("weather", this.weather.name);
  }

  /** Another place may get some batches of a log that is held, at random. */
  private mayRelease(chance: number): void {
    const { random, life } = this;
    if (this.shape.isHeld !== true || !random.chance(chance)) return;
    life.release(random.pick([1, 1, 3, 1_000]));
    this.tally.add("release", life.isShown ? "of all" : "of some");
  }

  /** Decides who is next; true if promises may have resolved. */
  private next(): boolean {
    const { random, weather, life } = this;
    this.mayRelease(0.05);
    let kind = random.next() * (weather.act + weather.gateway + weather.engine + weather.log + weather.projector + 5);
    if ((kind -= weather.act) < 0) {
      this.note("client");
      this.clients.act();
      return false;
    }
    if ((kind -= weather.gateway) < 0) return this.turnGateway();
    if ((kind -= weather.engine) < 0) {
      this.note("engine");
      const count = life.runEngine(
        random.integer(0, this.shape.engines - 1),
        random.integer(1, random.pick([1, 8, 60])),
      );
      if (count > 0) this.tally.add("batch", count === 1 ? "of one" : count < 8 ? "of some" : "of many");
      return false;
    }
    if ((kind -= weather.log) < 0) {
      this.note("log");
      life.commit();
      return false;
    }
    if ((kind -= weather.projector) < 0) {
      this.note("projector");
      life.project(random.pick([1, 1, 5, 1_000]));
      return false;
    }
    return this.other();
  }

  private turnGateway(): boolean {
    const { random, life } = this;
    this.note("gateway");
    if (random.chance(0.7)) life.mailbox.deliver();
    if (life.hasLookups && random.chance(0.6)) life.lookUp();
    life.loop.turn();
    return true;
  }

  /** The rarer actions. */
  private other(): boolean {
    const { random, life, clock } = this;
    const kind = random.next();
    if (kind < 0.55) {
      this.note("clock");
      clock.now += random.chance(0.008) ? random.integer(0, SOME_DAYS_MS) : random.integer(0, 60);
      // The machine's clock is set back.
      if (random.chance(0.002)) clock.now -= random.integer(0, random.chance(0.8) ? 5_000 : SOME_DAYS_MS);
    } else if (kind < 0.8) {
      this.note("tick");
      life.exchange.tick(clock.now);
      life.markets.closeDue(clock.now);
      return true;
    } else if (kind < 0.92) {
      this.note("idle");
      life.idle();
    } else if (kind < 0.97) {
      this.note("checkpoint");
      life.checkpoint();
      return true;
    } else {
      this.note("fund");
      const { markets, accounts } = this.record;
      if (markets.size < 2 && accounts.size > 0) this.clients.operators.createMarket();
      if (accounts.size > 0) this.clients.operators.deposit();
    }
    return false;
  }

  /**
   * An engine waits in the middle of a command: everything else continues until there is room, or the life ends here.
   */
  private waitForRoom(engine: number, hasRoom: () => boolean): void {
    const { random, life } = this;
    this.tally.add("full", "event ring");
    for (let turns = 0; !hasRoom(); turns++) {
      ensure(turns < PATIENCE, "a full event ring finds room");
      if (random.chance(0.04)) {
        this.end = "in the middle of a command";
        throw new Crash("crash in the middle of a command");
      }
      const kind = random.next();
      this.note("in between");
      if (kind < 0.3) life.commit();
      else if (kind < 0.6) life.loop.turn();
      else if (kind < 0.7) life.runEngine((engine + 1) % this.shape.engines, 8);
      else if (life.isReady) this.clients.act();
      this.mayRelease(0.3);
    }
  }

  // ---------------------------------------------------------------- full checks

  private async check(): Promise<void> {
    this.untilCheck = this.random.integer(1_000, 3_000);
    this.note("check");
    await this.life.becomeQuiet();
    this.clients.expectAnswered();
    this.clients.received.expectComplete();
    this.compareMemory();
    this.clients.expectNoProfit();
  }

  private compareMemory(): void {
    compareGateway(this.life, this.record);
    compareBooks(this.life, this.record);
    compareNames(this.life, this.record);
  }

  /** After the last stop: in some worlds every row once more, whenever it was compared before. */
  private compareAll(): void {
    while (!this.open());
    // It ends before its books are back.
    this.life.restored.catch(() => {});
    if (!this.random.chance(THOROUGH)) return this.compareRecord(true);
    Object.assign(this.compared, { fills: 0, entries: 0, updates: new Map() });
    for (const id of this.record.orders.keys()) this.record.changedOrders.add(id);
    this.compareRecord(true);
  }
}
