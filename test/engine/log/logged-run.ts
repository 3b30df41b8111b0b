/**
 * A log made by the real engines and the real log under random commands of every kind, over several starts: the lock step
 * makes the commands, which engines with their own rings then execute. All of it follows from a seed.
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { pack } from "msgpackr/pack";
import { randomFrom } from "../../../bench/support/random.ts";
import { MarketStatus, OrderType, TimeInForce } from "../../../engine/constants.ts";
import { JournalReader } from "../../../engine/log/log-reader.ts";
import type { LogRequest } from "../../../engine/log/messages.ts";
import { OpeningTracker, openingRecords } from "../../../engine/log/opening.ts";
import * as R from "../../../engine/ring/records.ts";
import { openReadOnly } from "../../../engine/util/wal-database.ts";
import { CommandRecord } from "../book/harness.ts";
import type { LockStep } from "../book/lock-step.ts";
import { commandsOf, modelOf, priceAnywhere, priceNear, runAll } from "../book/random-commands.ts";
import type { PreventionWord, SideNumber } from "../book/reference-book.ts";
import { CAPACITY, Crash, LoggedEngines } from "./logged-engines.ts";

/** Leaves room for the priorities of amends between two orders' ids. */
const ID_FACTOR = 1024;
const CHUNK = 25;

export interface LoggedRunOptions {
  readonly seed: number;
  readonly commands: number;
  readonly starts: number;
  readonly engines: number;
  /** By market; a market is open from the first start on. */
  readonly outcomes?: readonly number[];
  /** Prices over the whole ladder: deep books, and sweeps through them. */
  readonly isDeep?: boolean;
}

const PREVENTIONS: readonly PreventionWord[] = ["cancel_taker", "cancel_maker", "cancel_both", "decrement"];

/** Makes the log; returns its journal.db, in a folder of its own. */
export function makeLog(options: LoggedRunOptions): string {
  const { seed, engines: count, starts, outcomes = [2, 3, 2, 5] } = options;
  const path = join(mkdtempSync(join(tmpdir(), "logged-run-")), "journal.db");
  const random = randomFrom(seed);
  const model = modelOf(outcomes, { capacity: CAPACITY });
  // An engine may execute a market's commands long after another's: no order gets the slot of one that ended meanwhile.
  model.slotsComeBack = count === 1;
  const one = options.isDeep ? commandsOf(priceAnywhere, 6) : commandsOf(priceNear, 3);
  const commands = fc.sample(one, { numRuns: options.commands, seed });
  const script = new Script(model, random);
  for (let start = 0; start < starts; start++) {
    const engines = new LoggedEngines(path, { engines: count, ringRecords: 4096, random });
    if (start === 0) postMarkets(engines, model);
    script.restart(engines, start);
    const from = Math.floor((start * commands.length) / starts);
    const end = Math.floor(((start + 1) * commands.length) / starts);
    for (let i = from; i < end; i += CHUNK) {
      runAll(model, commands.slice(i, Math.min(end, i + CHUNK)), 4);
      script.send();
      if (model.slotsComeBack || random() < 0.2) engines.drain();
    }
    engines.drain();
    engines.close();
  }
  return path;
}

/**
 * Makes a log of orders that sweep deep books, and of markets that close, with rings so small that the events of such a
 * command don't fit. Without a model: only the engines know what becomes of them.
 * @param crashes called at each full ring; true ends the process, and the log, there
 */
export function makeSweeps(seed: number, crashes: () => boolean): string {
  const path = join(mkdtempSync(join(tmpdir(), "logged-run-")), "journal.db");
  const random = randomFrom(seed);
  const upTo = (count: number): number => Math.floor(random() * count);
  const engines = new LoggedEngines(path, { engines: 3, ringRecords: 512, random, crashes });
  const markets = [1, 2, 3, 4];
  for (const id of markets) {
    const write = { kind: "createMarket", id, firstOutcomeId: 3 * id, outcomes: ["A", "B", "C"], proposedBy: null };
    engines.post(request([write]));
    engines.add(id, CommandRecord.market(R.CommandKind.openMarket, id, 0, 3 * id, 3));
  }
  engines.commit();
  let id = 0;
  const place = (
    market: number,
    side: SideNumber,
    price: number,
    quantity: number,
    timeInForce: "gtc" | "ioc",
  ): void => {
    const prevention = PREVENTIONS[upTo(PREVENTIONS.length)]!;
    const terms = { user: 1 + upTo(40), outcome: 3 * market + upTo(3), side, price, quantity, prevention, timeInForce };
    const rest = { id: ++id, type: "limit", postOnly: false, pat: false, at: id, expiresAt: 0, validUntil: 0 } as const;
    engines.add(market, CommandRecord.place(R.CommandKind.placeOrder, id, market, { ...terms, ...rest }));
  };
  for (let round = 0; round < 10; round++) {
    for (let order = 0; order < 800; order++) {
      const side = random() < 0.5 ? 1 : 2;
      place(markets[upTo(4)]!, side, side === 1 ? 1 + upTo(3_300) : 3_400 + upTo(3_000), 1 + upTo(3), "gtc");
    }
    for (const market of markets) {
      const side = random() < 0.5 ? 1 : 2;
      place(market, side, side === 1 ? 9_999 : 1, 100 + upTo(300), random() < 0.5 ? "gtc" : "ioc");
    }
  }
  for (const market of markets) engines.add(market, CommandRecord.market(R.CommandKind.closeMarket, market, id));
  try {
    engines.drain();
  } catch (error) {
    if (!(error instanceof Crash)) throw error;
  }
  engines.close();
  return path;
}

/** Starts again on a log that ended anywhere, as the server does, and cancels all orders: the interrupted ones first. */
export function startAfterCrash(path: string, seed: number): void {
  const tracker = new OpeningTracker();
  const db = openReadOnly(path);
  for (const body of new JournalReader(db).bodies(1)) tracker.follow(body);
  db.close();
  const opening = tracker.opening();
  const engines = new LoggedEngines(path, { engines: 2, ringRecords: 4096, random: randomFrom(seed) });
  for (const [id, first, outcomes, status] of opening.markets) {
    if (status > MarketStatus.halted) continue;
    engines.add(id, CommandRecord.market(R.CommandKind.openMarket, id, 0, first, outcomes));
    if (status === MarketStatus.halted) engines.add(id, CommandRecord.market(R.CommandKind.haltMarket, id, 5e6));
  }
  const { words, count } = openingRecords(opening);
  const orders = Array.from({ length: count }, (_, i) => {
    const command = new CommandRecord();
    command.words.set(words.subarray(i * R.RECORD_WORDS, (i + 1) * R.RECORD_WORDS));
    command.words[R.W_SLOT] = count - i;
    return command;
  });
  const last = new Set(new Map(orders.map((order) => [order.words[R.W_MARKET], order])).values());
  for (const order of orders.filter((order) => !last.has(order))) engines.add(order.words[R.W_MARKET]!, order);
  for (const order of last) {
    order.words[0]! |= R.FLAG_LAST;
    engines.add(order.words[R.W_MARKET]!, order);
  }
  const mayRest = ({ words }: CommandRecord): boolean =>
    R.typeOf(words[0]!) === OrderType.limit && R.timeInForceOf(words[0]!) <= TimeInForce.gtd;
  for (const reason of ["operator", "user"]) {
    for (const order of orders.filter((order) => mayRest(order) === (reason === "user"))) {
      const { words, doubles } = order;
      const cancel = CommandRecord.cancel(words[R.W_SLOT]!, doubles[R.D_ORDER_ID]!, reason, 5e6);
      engines.add(words[R.W_MARKET]!, cancel);
    }
  }
  engines.drain();
  engines.close();
}

function request(writes: readonly object[], entries = 0, rates: LogRequest["rates"] = []): LogRequest {
  return { id: 1, at: 0, entries, rates, payload: pack({ at: 0, writes, audits: [], kept: null }) };
}

/** Every second market begins as a proposal. */
function postMarkets(engines: LoggedEngines, model: LockStep): void {
  for (const { id, first, outcomes } of model.markets) {
    const proposedBy = id % 2 === 0 ? 7 : null;
    const names = outcomes.map((outcome) => `outcome ${outcome}`);
    const write = { kind: "createMarket", id, firstOutcomeId: first, outcomes: names, proposedBy };
    engines.post(request([{ kind: "deposit", note: "Market" }, write], 2));
    if (proposedBy !== null) engines.post(request([{ kind: "openMarket", marketId: id }]));
  }
  engines.commit();
}

/** Rewrites the lock step's commands as a gateway would have written them, and adds those that it doesn't have. */
class Script {
  private readonly model: LockStep;
  private readonly random: () => number;
  private engines!: LoggedEngines;
  private start = 0;
  private sent = 0;
  private lastId = 0;
  private amends = 0;
  private readonly marketOf = new Map<number, number>();

  constructor(model: LockStep, random: () => number) {
    this.model = model;
    this.random = random;
  }

  /** Puts the markets and live orders back, as a start of the server does. */
  restart(engines: LoggedEngines, start: number): void {
    this.engines = engines;
    this.start = start;
    this.sent = this.model.engine.script.length;
    const script = this.model.restoreScript().filter((entry) => entry !== "end");
    const kindOf = (entry: CommandRecord): number => R.kindOf(entry.words[0]!);
    const marketOf = (entry: CommandRecord): number => entry.words[R.W_MARKET]!;
    const closed = new Set(script.filter((e) => kindOf(e) === R.CommandKind.closeMarket).map(marketOf));
    const orders = script.filter((entry) => kindOf(entry) === R.CommandKind.restoreOrder);
    for (const order of new Map(orders.map((order) => [marketOf(order), order])).values()) {
      order.words[0]! |= R.FLAG_LAST;
    }
    orders.sort((a, b) => (a.words[0]! & R.FLAG_LAST) - (b.words[0]! & R.FLAG_LAST));
    const markets = [R.CommandKind.openMarket, R.CommandKind.haltMarket].flatMap((kind) =>
      script.filter((entry) => kindOf(entry) === kind),
    );
    for (const entry of [...markets, ...orders]) if (!closed.has(marketOf(entry))) this.write(entry);
  }

  /** Sends what the lock step has executed since. */
  send(): void {
    const { script } = this.model.engine;
    for (; this.sent < script.length; this.sent++) {
      const entry = script[this.sent]!;
      if (entry !== "end") this.write(entry);
    }
    this.extend();
    this.changeSets();
    if (this.random() < 0.1) this.engines.post(request([{ kind: "deposit" }], 1, [this.rates()]));
  }

  private rates(): LogRequest["rates"][number] {
    const tradingFee = this.random() < 0.5 ? null : 100;
    return { userId: 1 + Math.floor(this.random() * 3), tradingFee, makerRebate: null, patRebate: null };
  }

  private write(entry: CommandRecord): void {
    const command = new CommandRecord();
    command.words.set(entry.words);
    const { words, doubles } = command;
    const kind = R.kindOf(words[0]!);
    const id = doubles[R.D_ORDER_ID]! * ID_FACTOR;
    doubles[R.D_ORDER_ID] = id;
    if (words[R.W_SLOT] !== 0) words[R.W_SLOT] = this.slot(words[R.W_SLOT]!);
    if (kind === R.CommandKind.placeOrder) this.place(words, id);
    if (kind === R.CommandKind.amendOrder) doubles[R.D_PRIORITY] = this.lastId + ++this.amends;
    this.engines.add(words[R.W_MARKET] || this.marketOf.get(id)!, command);
  }

  private place(words: Int32Array, id: number): void {
    this.marketOf.set(id, words[R.W_MARKET]!);
    this.lastId = id;
    this.amends = 0;
    if ((words[0]! & R.FLAG_REPLACES) !== 0) words[R.W_CORRELATION] = this.slot(words[R.W_CORRELATION]!);
    if (this.random() < 0.8) return;
    words[0]! |= R.FLAG_TEXT | (this.random() < 0.5 ? R.FLAG_QUOTE : R.FLAG_CANCEL_ON_DISCONNECT);
    this.engines.texts.write(words[R.W_SLOT]!, this.random() < 0.5 ? null : `order ${id}`, "builder", 12345);
  }

  /** The slots of each run are others. */
  private slot(slot: number): number {
    return ((slot - 1 + 1009 * this.start) % CAPACITY) + 1;
  }

  private extend(): void {
    const { liveIds } = this.model;
    const id = liveIds[Math.floor(this.random() * liveIds.length)];
    if (id === undefined) return;
    const command = CommandRecord.amend(this.slot(this.model.slotOf(id)), id * ID_FACTOR, 0, 0, this.model.now);
    command.words[0]! |= R.FLAG_EXTENDS;
    command.words[R.W_CORRELATION] = 99;
    command.doubles[R.D_EXPIRES_AT] = this.random() < 0.5 ? 0 : this.model.now + 5_000;
    this.engines.add(this.marketOf.get(id * ID_FACTOR)!, command);
  }

  private changeSets(): void {
    const { markets, now } = this.model;
    const { id } = markets[Math.floor(this.random() * markets.length)]!;
    const isSplit = this.random() < 0.5;
    const command = CommandRecord.market(isSplit ? R.CommandKind.splitSets : R.CommandKind.mergeSets, id, now);
    command.words[R.W_USER] = 1 + Math.floor(this.random() * 3);
    command.words[R.W_QUANTITY] = 10;
    command.words[R.W_PRICE] = isSplit ? 0 : Math.floor(this.random() * 2) * 100;
    command.words[R.W_CORRELATION] = 77;
    this.engines.add(id, command);
  }
}
