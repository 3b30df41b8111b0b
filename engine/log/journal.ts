/**
 * Makes engine events and account writes durable: drains the event rings into one SQLite transaction, commits, and
 * only then lets the gateway see them. The one writer of the database while the exchange runs.
 *
 * Owns a ledger of its own, so that balances and positions go into the transaction of the fills that move them, and
 * numbers what must be numbered once: fills, entries, each user's order updates. An error here is final: the caller
 * must stop the exchange, nothing is retried, and what wasn't committed was never shown to anyone.
 *
 * One pass: 1. account writes  2. events, in ring order, into the ledger and the tables of touched rows
 *           3. touched rows, each once  4. sums  5. COMMIT  6. cursors  7. answers to account writes.
 */
import type Database from "better-sqlite3";
import { matchFeesMicro, nextRecord } from "../book/match-fees.ts";
import { isFinal, MarketStatus, OrderStatus, Role, restingTimeInForce, TimeInForce } from "../constants.ts";
import { addsUp, Ledger } from "../ledger.ts";
import { KEEP_UPDATES_MS, MAX_LIVE_ORDERS, MAX_OUTCOME_ID } from "../limits.ts";
import { makerRebateBps, notionalMicro, tradingFeeBps } from "../money.ts";
import { Builders } from "../projection/builders.ts";
import { Candles } from "../projection/candles.ts";
import { emptyWal } from "../projection/database.ts";
import { IdempotencyKeys, type KeptRequest } from "../projection/idempotency-keys.ts";
import { loadUserRates } from "../projection/load/accounts.ts";
import { loadLedger } from "../projection/load/ledger.ts";
import { loadBuildersOfLiveOrders, loadUnreportedFills } from "../projection/load/orders.ts";
import { OrderUpdates } from "../projection/order-updates.ts";
import { OutcomeIds } from "../projection/outcome-ids.ts";
import { RowInserter } from "../projection/row-inserter.ts";
import { type LastNumbers, RowLinks } from "../projection/row-links.ts";
import type { UserTerms } from "../projection/user-terms.ts";
import { WriteBehind } from "../projection/write-behind.ts";
import {
  type AccountWrite,
  type ApplyWrite,
  WriteRefused,
  type WriteResult,
} from "../projection/writes/account-write.ts";
import { type AuditEntry, prepareAudit } from "../projection/writes/audit-log.ts";
import { prepareWrites } from "../projection/writes/prepare-writes.ts";
import type { OrderTexts } from "../ring/order-texts.ts";
import * as R from "../ring/records.ts";
import type { RingGate } from "../ring/ring.ts";
import { assert } from "../util/assert.ts";
import { IdSet } from "../util/id-set.ts";
import type { MicroClock } from "../util/micro-clock.ts";
import { withIndex } from "../util/typed-arrays.ts";
import { BatchStamps } from "./batch-stamps.ts";
import type { CommittedTotals } from "./totals.ts";

const FILL_COLUMNS = 18;
const POSITION_COLUMNS = 5;
const ACCOUNT_COLUMNS = 4;
/** The last seven are the same in most orders; where they are, they stand in the statement and nothing is bound. */
const ORDERS_TABLE = `orders (id, user_id, outcome_id, side, post_only, pat, price, quantity, remaining, status, reason,
  client_order_id, fingerprint, quote, created_at, updated_at, previous_of_user, last_fill_id, type, time_in_force,
  self_trade_prevention, expires_at, priority, builder_id, tied)`;
const USUAL_ORDER_TERMS = ["0", "0", "0", "NULL", "NULL", "NULL", "0"];
const OTHER_ORDER_COLUMNS = 18;
/** Orders by which one pass brings the list of resting ones forward at least, beside two for each that the pass touched. */
const LIST_SLICE = 256;
/**
 * Checkpoints keep the WAL short, sooner where it is quiet. Another thread's connection copies and syncs the bulk while
 * commits go on, and this one then only the little that came meanwhile, so that the WAL starts over.
 */
const QUIET_CHECKPOINT_PAGES = 1_000;
const BUSY_CHECKPOINT_PAGES = 32_000;
/** So few pages this connection moves itself: the other one comes again for more, though not for ever. */
const SHORT_CHECKPOINT_PAGES = 1_000;
const MAX_BULK_ROUNDS = 3;
/** The WAL's length is looked at after so many commits, or orders written. */
const COMMITS_PER_WAL_LOOK = 64;
const ORDERS_PER_WAL_LOOK = 2_048;

/** Several account writes that happen together or not at all. */
export interface WriteRequest {
  id: number;
  /** When it was handed over, ms: what is numbered after it is no earlier. */
  at: number;
  writes: readonly AccountWrite[];
  /** Lines of the audit log about them. */
  audits: readonly AuditEntry[];
  /** Of a request with an Idempotency-Key. */
  kept?: KeptRequest | null;
}

/** Everything that the gateway posts to the journal. */
export type JournalMessage = WriteRequest | "checkpointed";

/** Everything that the journal posts to the gateway. */
export type JournalReply = WriteReply | "checkpoint";

export type WriteReply = { id: number } & ({ results: WriteResult[] } | { refused: string });

export interface JournalOptions {
  readonly db: Database.Database;
  readonly gates: readonly RingGate[];
  readonly texts: OrderTexts;
  readonly totals: CommittedTotals;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly clock: MicroClock;
  /** Told of each pass that made a transaction: how long it took, µs, and how many orders it touched. */
  readonly onCommit: (took: number, orders: number) => void;
  /** Asks for a checkpoint through another connection; `finishCheckpoint` is called when it is done. */
  readonly requestCheckpoint: () => void;
  /** How long order updates are kept, ms. */
  readonly keepUpdatesMs?: number;
  /** Order updates that the rows of orders need not tell of under load. */
  readonly maxUntold?: number;
  /** The largest slot of an order, and the largest id of a market or outcome. */
  readonly capacity?: number;
  readonly largestId?: number;
}

export class Journal {
  private readonly db: Database.Database;
  private readonly gates: readonly RingGate[];
  private readonly texts: OrderTexts;
  private readonly committed: CommittedTotals;
  private readonly now: () => number;
  private readonly clock: MicroClock;
  private readonly onCommit: JournalOptions["onCommit"];
  private readonly stamps = new BatchStamps();
  private readonly ledger = new Ledger();
  private readonly applyWrite: ApplyWrite;
  private readonly writeAudit: ReturnType<typeof prepareAudit>;

  private readonly beginStatement: Database.Statement;
  private readonly commitStatement: Database.Statement;
  private readonly orderRows: RowInserter;
  private readonly usualOrderRows: RowInserter;
  private readonly fillRows: RowInserter;
  private readonly positionRows: RowInserter;
  private readonly accountRows: RowInserter;
  private readonly statements: ReturnType<typeof prepareStatements>;
  private inTransaction = false;
  private stoppedRings = 0;

  private sequence: number;
  /** When the last commit was, and what the time of the last event or account write came to, ms: neither ever falls. */
  private committedAt: number;
  private lastEventAt: number;
  private lastEntryId: number;
  private lastOrderId: number;
  private ordersListed: number;
  /** The last order that was there at the start, and of each slot's order the newest fill since (0: none). */
  private readonly lastRestoredOrder: number;
  private readonly lastFills: Float64Array;
  private readonly chains: RowLinks;
  private readonly updates: OrderUpdates;
  private readonly states: WriteBehind;
  /** By slot: the order's price and total; 0 where it was there at the start and hasn't changed since. */
  private readonly prices: Int32Array;
  private readonly quantities: Int32Array;
  /** By slot, with the price: when the order expires, ms; 0 where it doesn't. */
  private readonly expiries: Float64Array;
  /** By ring: fills of the taker whose update is still to come. */
  private readonly takerFills: Int32Array;
  /** Of orders that a crash interrupted: fills that no update has told of. */
  private readonly unreportedFills: ReadonlyMap<number, number>;
  private readonly candles: Candles;
  private readonly builders: Builders;
  private readonly keys: IdempotencyKeys;
  /** By slot of an order since the start: its builder, 0 without one; and by order for those that were there before. */
  private readonly builderOf: Int32Array;
  private readonly builderOfRestored: ReadonlyMap<number, number>;
  private commitsSinceLook = 0;
  private ordersSinceLook = 0;
  private readonly requestCheckpoint: () => void;
  /** Checkpoints by the other connection since this one did its part; 0 where none is under way. */
  private bulkRounds = 0;

  /** Of users who have a fee or rebates of their own. */
  private readonly terms = new Map<number, UserTerms>();

  /** Outcomes of markets that can still have orders, and the markets that left their number. */
  private openOutcomes = 0;
  private readonly closedMarkets = new Set<number>();
  private readonly outcomeIds: OutcomeIds;
  private readonly marketOf: Int32Array;
  private readonly firstOutcomeOf: Int32Array;
  private readonly outcomeCountOf: Uint8Array;
  private readonly lastPrices: Int32Array;
  private readonly volumes: Float64Array;

  // What this pass touched; each row is written once however often it changed.
  private readonly touchOf: Int32Array;
  private touches = 0;
  private touchSlot = new Int32Array(4096);
  private touchGate = new Int32Array(4096);
  /** First word of the orderPlaced record, or -1 where the order has a row already. */
  private touchPlaced = new Int32Array(4096);
  private touchQuantity = new Int32Array(4096);
  private touchRemaining = new Int32Array(4096);
  private touchState = new Int32Array(4096);
  private touchId = new Float64Array(4096);
  private touchAt = new Float64Array(4096);
  /** Of an order without a row: when it entered. */
  private touchPlacedAt = new Float64Array(4096);
  private touchPriority = new Float64Array(4096);
  private touchFill = new Float64Array(4096);
  /** 1 where the order's end in time is new. */
  private touchExtended = new Uint8Array(4096);
  /** 1 where an order update has told the state. */
  private touchTold = new Uint8Array(4096);
  private readonly users = new IdSet();
  private readonly positions = new IdSet();
  private readonly outcomes = new IdSet();
  private readonly markets = new IdSet();
  private readonly statuses = new Map<number, number>();
  /** Of the match at hand: the id of its first fill. */
  private matchId = 0;

  constructor(options: JournalOptions) {
    const { db, capacity = MAX_LIVE_ORDERS, largestId = MAX_OUTCOME_ID } = options;
    this.lastFills = new Float64Array(capacity + 1);
    this.prices = new Int32Array(capacity + 1);
    this.quantities = new Int32Array(capacity + 1);
    this.expiries = new Float64Array(capacity + 1);
    this.builderOf = new Int32Array(capacity + 1);
    this.touchOf = new Int32Array(capacity + 1);
    this.marketOf = new Int32Array(largestId + 1);
    this.outcomeIds = new OutcomeIds(largestId);
    this.firstOutcomeOf = new Int32Array(largestId + 1);
    this.outcomeCountOf = new Uint8Array(largestId + 1);
    this.lastPrices = new Int32Array(largestId + 1);
    this.volumes = new Float64Array(largestId + 1);
    this.db = db;
    this.gates = options.gates;
    this.texts = options.texts;
    this.committed = options.totals;
    this.now = options.now;
    this.clock = options.clock;
    this.onCommit = options.onCommit;
    this.requestCheckpoint = options.requestCheckpoint;
    const state = loadLedger(db, this.ledger);
    this.sequence = state.sequence;
    this.committedAt = state.at;
    this.lastEventAt = state.at;
    this.lastEntryId = state.lastEntryId;
    this.lastOrderId = state.lastOrderId;
    this.ordersListed = state.ordersListed;
    this.lastRestoredOrder = state.lastOrderId;
    this.chains = new RowLinks(db);
    this.updates = new OrderUpdates(db, this.chains, state.orderUpdates, options.keepUpdatesMs ?? KEEP_UPDATES_MS);
    const onEnded = (id: number): void => {
      if (id <= this.ordersListed) this.statements.unlistOrder.run(id);
    };
    this.states = new WriteBehind(db, this.lastNumbers(), onEnded, options.maxUntold);
    this.takerFills = new Int32Array(this.gates.length);
    this.unreportedFills = loadUnreportedFills(db);
    this.candles = new Candles(db);
    this.builders = new Builders(db);
    this.keys = new IdempotencyKeys(db);
    this.builderOfRestored = loadBuildersOfLiveOrders(db);
    for (const market of state.markets) {
      this.addMarket(market.id, market.firstOutcomeId, market.outcomes);
      this.outcomeIds.add(market.firstOutcomeId, market.outcomes);
      if (market.status === MarketStatus.open || market.status === MarketStatus.halted) {
        this.openOutcomes += market.outcomes;
      }
    }
    for (const terms of loadUserRates(db)) this.setUserTerms(terms.id, terms);
    for (const outcome of state.outcomes) {
      this.lastPrices[outcome.id] = outcome.lastPrice ?? 0;
      this.volumes[outcome.id] = outcome.volume;
    }
    this.beginStatement = db.prepare("BEGIN IMMEDIATE");
    this.commitStatement = db.prepare("COMMIT");
    const bound = (count: number): string[] => new Array<string>(count).fill("?");
    this.orderRows = new RowInserter(db, ORDERS_TABLE, bound(OTHER_ORDER_COLUMNS + USUAL_ORDER_TERMS.length));
    this.usualOrderRows = new RowInserter(db, ORDERS_TABLE, [...bound(OTHER_ORDER_COLUMNS), ...USUAL_ORDER_TERMS]);
    this.fillRows = new RowInserter(db, "fills", bound(FILL_COLUMNS));
    this.positionRows = new RowInserter(db, "positions", bound(POSITION_COLUMNS), "REPLACE");
    this.accountRows = new RowInserter(db, "accounts", bound(ACCOUNT_COLUMNS), "REPLACE");
    this.statements = prepareStatements(db);
    this.applyWrite = prepareWrites(db, {
      ledger: this.ledger,
      nextEntryId: () => ++this.lastEntryId,
      newestFill: (user) => this.chains.newestFill(user),
      addMarket: (market, first, outcomes) => this.addMarket(market, first, outcomes),
      openOutcomes: () => this.openOutcomes,
      openMarket: (market) => {
        this.openOutcomes += this.outcomeCountOf[market]!;
      },
      outcomeIds: this.outcomeIds,
      forgetMarket: (market) => this.addMarket(market, 0, 0),
      outcomesOf: (market) => ({ first: this.firstOutcomeOf[market]!, count: this.outcomeCountOf[market]! }),
      markUser: (user) => this.users.add(user),
      markPosition: (position) => this.positions.add(position),
      markMarket: (market) => this.markets.add(market),
      setTerms: (user, terms) => this.setUserTerms(user, terms),
    });
    this.writeAudit = prepareAudit(db);
    this.committed.publish(this.ledger.totals, this.sequence, state.at);
  }

  /**
   * One pass over all that the rings hold and `receive` gives. Answers the replies to send, or null where there was
   * nothing to do. Throws when the database fails: then nothing of this pass may be shown.
   */
  commit(receive: () => readonly WriteRequest[]): WriteReply[] | null {
    // In this order a write that was posted before a command is never committed after what the command led to.
    const counts = this.gates.map((gate) => gate.available());
    const requests = receive();
    if (requests.length === 0 && counts.every((count) => count === 0)) return null;
    const began = this.clock();
    const replies = requests.map((request) => this.write(request));
    for (let i = 0; i < this.gates.length; i++) this.apply(i, counts[i]!);
    const orders = this.touches;
    const writes = orders > 0 || this.inTransaction || this.users.size > 0 || this.statuses.size > 0;
    if (writes) this.flush();
    const durable = this.clock();
    if (writes) this.onCommit(durable - began, orders);
    this.stamps.resolve(durable);
    for (let i = 0; i < this.gates.length; i++) {
      const gate = this.gates[i]!;
      gate.tail = (gate.tail + counts[i]!) | 0;
      gate.open();
    }
    return replies;
  }

  /** True when every engine said that nothing follows. */
  get stopped(): boolean {
    return this.stoppedRings === this.gates.length;
  }

  /** Work that can wait, for when the rings are empty. True when there may be more. */
  idle(): boolean {
    if (this.writeArrears(this.updates.hasOutdated(this.now(), this.states.told))) return true;
    this.checkpoint(QUIET_CHECKPOINT_PAGES);
    return false;
  }

  /** A slice of what is written in arrears, and of old updates taken away; false where there is nothing. */
  private writeArrears(isPruning: boolean): boolean {
    if (!isPruning && !this.hasArrears()) return false;
    this.begin();
    this.writeSlice();
    if (isPruning) this.updates.prune(this.now(), this.states.told);
    this.commitStatement.run();
    this.inTransaction = false;
    return true;
  }

  private hasArrears(): boolean {
    const { states, chains, candles } = this;
    return (
      states.isBehind(this.lastNumbers()) || this.unlisted() > 0 || chains.hasUnwritten() || candles.hasUnwritten()
    );
  }

  /** Inside a transaction. */
  private writeSlice(): void {
    this.states.write(this.lastNumbers(), this.now(), true);
    if (this.unlisted() > 0) this.list(LIST_SLICE);
    this.chains.write(this.lastNumbers(), true);
    this.candles.write(this.lastEntryId, true);
  }

  /** Writes what is in arrears and empties the WAL; then the database can be closed. */
  close(): void {
    // In one commit: hundreds of slices would each wait for the disk, and a stop has seconds.
    // Old updates can wait for the next start: there may be days of them.
    this.begin();
    while (this.hasArrears()) this.writeSlice();
    this.commitStatement.run();
    this.inTransaction = false;
    emptyWal(this.db);
    this.db.close();
  }

  // ---------------------------------------------------------------- account writes

  private write(request: WriteRequest): WriteReply {
    this.begin();
    // Entries share their numbering with fills, along which time never falls.
    this.lastEventAt = Math.max(this.lastEventAt, request.at);
    const results: WriteResult[] = [];
    try {
      for (const write of request.writes) results.push(this.applyWrite(write));
      for (const entry of request.audits) {
        const told = results[entry.write];
        if (told === undefined || told.created) this.writeAudit(entry, entry.subject ?? told?.id ?? null);
      }
      const { kept = null } = request;
      if (kept !== null && kept.reference !== null) this.keys.await(kept);
      else if (kept !== null) this.keys.keep(kept, results[0]!.id, 0);
      return { id: request.id, results };
    } catch (error) {
      if (!(error instanceof WriteRefused)) throw error;
      assert(results.length === 0, "of several writes only the first can be refused: nothing is half done");
      return { id: request.id, refused: error.message };
    }
  }

  private setUserTerms(user: number, terms: UserTerms): void {
    const { tradingFee, makerRebate, patRebate } = terms;
    if (tradingFee === null && makerRebate === null && patRebate === null) this.terms.delete(user);
    else this.terms.set(user, terms);
  }

  /** The user's own fee and rebate as records.ts packs them, 0 where they are the usual ones. */
  private ratesOf(user: number, pat: boolean): number {
    const terms = this.terms.get(user);
    if (terms === undefined) return 0;
    return R.packRates(tradingFeeBps(terms), makerRebateBps(terms, pat));
  }

  /** Writes their users' own rates into the fills of the match that begins at word `w`: its fees depend on all of them. */
  private writeRates(words: Int32Array, w: number): void {
    if (this.terms.size === 0) return;
    for (let at = w; ; at = nextRecord(words, at)) {
      const packed = words[at]!;
      const rates = this.ratesOf(words[at + R.W_USER]!, (packed & R.FLAG_PAT) !== 0);
      if (rates !== 0) words[at + R.W_REFERENCE] = R.withRates(words[at + R.W_REFERENCE]!, rates);
      if ((packed & R.FLAG_MATCH_END) !== 0) return;
    }
  }

  private addMarket(market: number, first: number, outcomes: number): void {
    for (let outcome = first; outcome < first + outcomes; outcome++) this.marketOf[outcome] = market;
    this.firstOutcomeOf[market] = first;
    this.outcomeCountOf[market] = outcomes;
  }

  // ---------------------------------------------------------------- events

  private apply(gateIndex: number, count: number): void {
    const gate = this.gates[gateIndex]!;
    const { words, doubles, mask } = gate;
    for (let i = 0; i < count; i++) {
      const index = (gate.tail + i) & mask;
      const w = index * R.RECORD_WORDS;
      const d = index * R.RECORD_DOUBLES;
      const packed = words[w]!;
      switch (R.kindOf(packed)) {
        case R.EventKind.levelChanged:
          break;
        case R.EventKind.batchMatched:
          this.stamps.add(doubles, w);
          break;
        case R.EventKind.orderPlaced: {
          // The gateway numbered it then: orders' ids and times rise together by themselves, whatever ring they take.
          const placedAt = doubles[d + R.D_AT]!;
          const touch = this.touch(gateIndex, words, doubles, w);
          this.touchPlaced[touch] = w;
          this.touchPlacedAt[touch] = placedAt;
          this.lastFills[words[w + R.W_SLOT]!] = 0;
          this.creditOrder(words[w + R.W_SLOT]!, packed, placedAt);
          this.setTerms(words, w, words[w + R.W_PRICE]!);
          this.expiries[words[w + R.W_SLOT]!] = doubles[d + R.D_EXPIRES_AT]!;
          if (R.statusOf(packed) !== OrderStatus.queued) this.addUpdate(words, doubles, w, 0);
          break;
        }
        case R.EventKind.orderFilled:
          this.applyFill(gateIndex, words, doubles, w);
          break;
        case R.EventKind.orderReduced:
          this.touchQuantity[this.touch(gateIndex, words, doubles, w)] = words[w + R.W_QUANTITY]!;
          this.setTerms(words, w, this.priceOf(words[w + R.W_SLOT]!, doubles[d + R.D_ORDER_ID]!));
          if (R.roleOf(packed) === Role.maker) this.addUpdate(words, doubles, w, 0);
          break;
        case R.EventKind.orderAmended: {
          const touch = this.touch(gateIndex, words, doubles, w);
          this.touchQuantity[touch] = words[w + R.W_QUANTITY]!;
          if ((packed & R.FLAG_LOST_PRIORITY) !== 0) this.touchPriority[touch] = doubles[d + R.D_DETAIL]!;
          // Where it was there at the start, what the database knows of it is read before some of it is new.
          this.priceOf(words[w + R.W_SLOT]!, doubles[d + R.D_ORDER_ID]!);
          this.setTerms(words, w, words[w + R.W_PRICE]!);
          if ((packed & R.FLAG_EXTENDS) !== 0) {
            this.touchExtended[touch] = 1;
            this.expiries[words[w + R.W_SLOT]!] = doubles[d + R.D_DETAIL]!;
          }
          this.addUpdate(words, doubles, w, 0);
          break;
        }
        case R.EventKind.orderCanceled:
          this.touch(gateIndex, words, doubles, w);
          this.addUpdate(words, doubles, w, this.unreportedFills.get(doubles[d + R.D_ORDER_ID]!) ?? 0);
          break;
        case R.EventKind.marketChanged:
          this.changeMarket(words[w + R.W_SLOT]!, R.statusOf(packed));
          break;
        case R.EventKind.setsSplit:
        case R.EventKind.setsMerged:
          this.applySets(words, doubles, w);
          break;
        case R.EventKind.stopped:
          this.stoppedRings++;
          break;
        case R.EventKind.cancelRefused:
        case R.EventKind.amendRefused:
          break;
        default:
          assert(false, "the journal knows every event kind");
      }
    }
  }

  /**
   * Brings an event's time up to that of the event before it: several rings are read one after the other, and what is
   * numbered here (fills, entries, order updates) must rise in time too. In the record, where the gateway reads it.
   */
  private raiseTime(doubles: Float64Array, w: number): void {
    const place = (w >> 1) + R.D_AT;
    if (doubles[place]! < this.lastEventAt) doubles[place] = this.lastEventAt;
    else this.lastEventAt = doubles[place]!;
  }

  /** Notes an order's new state, at a time that is raised; answers its touch. */
  private touch(gateIndex: number, words: Int32Array, doubles: Float64Array, w: number): number {
    this.raiseTime(doubles, w);
    const slot = words[w + R.W_SLOT]!;
    const packed = words[w]!;
    let touch = this.touchOf[slot]! - 1;
    if (touch < 0) {
      touch = this.touches++;
      if (touch === this.touchSlot.length) this.growTouches();
      this.touchOf[slot] = touch + 1;
      this.touchSlot[touch] = slot;
      this.touchGate[touch] = gateIndex;
      this.touchPlaced[touch] = -1;
      this.touchQuantity[touch] = 0;
      this.touchPriority[touch] = 0;
      this.touchFill[touch] = 0;
      this.touchExtended[touch] = 0;
      this.touchId[touch] = doubles[(w >> 1) + R.D_ORDER_ID]!;
    }
    this.touchRemaining[touch] = words[w + R.W_REMAINING]!;
    // A fill's reason bits hold its match type.
    const reason = R.kindOf(packed) === R.EventKind.orderFilled ? 0 : R.reasonOf(packed);
    this.touchState[touch] = R.statusOf(packed) | (reason << 4);
    this.touchAt[touch] = doubles[(w >> 1) + R.D_AT]!;
    this.touchTold[touch] = 0;
    return touch;
  }

  /** Notes which builder an order came through. */
  private creditOrder(slot: number, packed: number, at: number): void {
    const code = (packed & R.FLAG_TEXT) === 0 ? null : this.texts.builderCode(slot);
    this.builderOf[slot] = 0;
    if (code === null) return;
    this.begin();
    this.builderOf[slot] = this.builders.idOf(code, at);
    this.builders.addOrder(this.builderOf[slot]!);
  }

  private builderOfOrder(slot: number, order: number): number {
    return order > this.lastRestoredOrder ? this.builderOf[slot]! : (this.builderOfRestored.get(order) ?? 0);
  }

  private applyFill(gateIndex: number, words: Int32Array, doubles: Float64Array, w: number): void {
    const d = w >> 1;
    const packed = words[w]!;
    const user = words[w + R.W_USER]!;
    const outcome = words[w + R.W_OUTCOME]!;
    const market = this.marketOf[outcome]!;
    const price = words[w + R.W_PRICE]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const role = R.roleOf(packed);
    const matchType = R.matchTypeOf(packed);
    const ends = (packed & R.FLAG_MATCH_END) !== 0;
    const touch = this.touch(gateIndex, words, doubles, w);
    const at = doubles[d + R.D_AT]!;
    const id = ++this.lastEntryId;
    this.touchFill[touch] = id;
    if (R.legOf(words[w + R.W_REFERENCE]!) === 0) {
      this.matchId = id;
      this.writeRates(words, w);
      this.ledger.beginMatch(matchFeesMicro(words, w));
    }
    doubles[d + R.D_FILL_ID] = id;
    const side = R.sideOf(packed);
    const pat = (packed & R.FLAG_PAT) !== 0;
    const rates = R.ratesOf(words[w + R.W_REFERENCE]!);
    this.positions.add(
      this.ledger.fill(user, market, outcome, side, price, quantity, matchType, role, pat, ends, at, rates),
    );
    this.users.add(user);
    if (ends) {
      this.lastPrices[outcome] = price;
      this.volumes[outcome]! += quantity;
      this.outcomes.add(outcome);
      this.candles.add(outcome, price, quantity, at, id);
      if (matchType !== 0) this.markets.add(market);
    }
    this.begin();
    const order = doubles[d + R.D_ORDER_ID]!;
    const builder = this.builderOfOrder(words[w + R.W_SLOT]!, order);
    if (builder !== 0) this.builders.addFill(builder, quantity, notionalMicro(price, quantity), this.ledger.lastFee);
    const previousOfOrder = this.lastFillOf(words[w + R.W_SLOT]!, order);
    this.lastFills[words[w + R.W_SLOT]!] = id;
    if (role === Role.maker) this.addUpdate(words, doubles, w, 1);
    else this.takerFills[gateIndex]!++;
    if ((packed & R.FLAG_UPDATE_END) !== 0) {
      this.addUpdate(words, doubles, w, this.takerFills[gateIndex]!);
      this.takerFills[gateIndex] = 0;
    }
    const row = this.fillRows.next();
    const params = this.fillRows.params;
    params[row] = id;
    params[row + 1] = this.matchId;
    params[row + 2] = user;
    params[row + 3] = order;
    params[row + 4] = outcome;
    params[row + 5] = side;
    params[row + 6] = price;
    params[row + 7] = quantity;
    params[row + 8] = role;
    params[row + 9] = matchType;
    params[row + 10] = this.ledger.lastFee;
    params[row + 11] = this.ledger.lastRebate;
    params[row + 12] = this.ledger.balance(user);
    params[row + 13] = at;
    params[row + 14] = this.chains.addFill(user, id);
    params[row + 15] = previousOfOrder;
    params[row + 16] = role === Role.taker ? this.chains.addTrade(market, id) : 0;
    params[row + 17] = builder || null;
  }

  /** The newest fill of the order in `slot`; of one that was there at the start the database knows it. */
  private lastFillOf(slot: number, order: number): number {
    const known = this.lastFills[slot]!;
    return known > 0 || order > this.lastRestoredOrder ? known : Number(this.statements.lastFill.get(order) ?? 0);
  }

  private applySets(words: Int32Array, doubles: Float64Array, w: number): void {
    const user = words[w + R.W_USER]!;
    const market = words[w + R.W_SLOT]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const first = this.firstOutcomeOf[market]!;
    const count = this.outcomeCountOf[market]!;
    const split = R.kindOf(words[w]!) === R.EventKind.setsSplit;
    const before = this.ledger.balance(user);
    this.raiseTime(doubles, w);
    const at = doubles[(w >> 1) + R.D_AT]!;
    let fee = 0;
    if (split) this.ledger.split(user, market, first, count, quantity, at);
    else fee = this.ledger.merge(user, market, first, count, quantity, words[w + R.W_PRICE]!);
    const after = this.ledger.balance(user);
    this.begin();
    const id = ++this.lastEntryId;
    doubles[(w >> 1) + R.D_FILL_ID] = id;
    const type = split ? "split" : "merge";
    const lastFill = this.chains.newestFill(user);
    const { insertSetsEntry } = this.statements;
    insertSetsEntry.run(id, user, type, after + fee - before, after + fee, market, at, lastFill);
    if (fee > 0) insertSetsEntry.run(++this.lastEntryId, user, "fee", -fee, after, market, at, lastFill);
    this.keys.arrived(words[w + R.W_REFERENCE]!, id, fee);
    this.users.add(user);
    this.markets.add(market);
    for (let i = 0; i < count; i++) this.positions.add(this.ledger.findPosition(user, first + i));
  }

  private changeMarket(market: number, status: number): void {
    this.statuses.set(market, status);
    if (status === MarketStatus.closed && !this.closedMarkets.has(market)) {
      this.closedMarkets.add(market);
      this.openOutcomes -= this.outcomeCountOf[market]!;
    }
  }

  /** Notes the price and total that updates of the order tell from now on. */
  private setTerms(words: Int32Array, w: number, price: number): void {
    const slot = words[w + R.W_SLOT]!;
    this.prices[slot] = price;
    this.quantities[slot] = words[w + R.W_QUANTITY]!;
  }

  /** The price of the order in `slot`; of one that was there at the start the database knows it. */
  private priceOf(slot: number, order: number): number {
    if (this.prices[slot] === 0) {
      const terms = this.statements.terms.get(order) as [price: number, quantity: number, expiresAt: number | null];
      this.prices[slot] = terms[0];
      this.quantities[slot] = terms[1];
      this.expiries[slot] = terms[2] ?? 0;
    }
    return this.prices[slot]!;
  }

  /**
   * Writes an order update down, and its number in its owner's sequence into the record that the gateway will read.
   * @param fills how many of the order's last fills it reports
   */
  private addUpdate(words: Int32Array, doubles: Float64Array, w: number, fills: number): void {
    this.begin();
    const d = w >> 1;
    const packed = words[w]!;
    const slot = words[w + R.W_SLOT]!;
    const order = doubles[d + R.D_ORDER_ID]!;
    const price = this.priceOf(slot, order);
    // A fill's reason bits hold its match type.
    const reason = R.kindOf(packed) === R.EventKind.orderFilled ? 0 : R.reasonOf(packed);
    this.touchTold[this.touchOf[slot]! - 1] = 1;
    doubles[d + R.D_USER_SEQUENCE] = this.updates.add(
      words[w + R.W_USER]!,
      order,
      price,
      this.quantities[slot]!,
      words[w + R.W_REMAINING]!,
      R.statusOf(packed) | (reason << 4),
      fills,
      fills === 0 ? 0 : this.lastFillOf(slot, order),
      doubles[d + R.D_AT]!,
      this.expiries[slot]!,
    );
  }

  private growTouches(): void {
    const last = this.touches;
    this.touchSlot = withIndex(this.touchSlot, last);
    this.touchGate = withIndex(this.touchGate, last);
    this.touchPlaced = withIndex(this.touchPlaced, last);
    this.touchQuantity = withIndex(this.touchQuantity, last);
    this.touchRemaining = withIndex(this.touchRemaining, last);
    this.touchState = withIndex(this.touchState, last);
    this.touchId = withIndex(this.touchId, last);
    this.touchAt = withIndex(this.touchAt, last);
    this.touchPlacedAt = withIndex(this.touchPlacedAt, last);
    this.touchPriority = withIndex(this.touchPriority, last);
    this.touchFill = withIndex(this.touchFill, last);
    this.touchExtended = withIndex(this.touchExtended, last);
    this.touchTold = withIndex(this.touchTold, last);
  }

  // ---------------------------------------------------------------- the transaction

  private begin(): void {
    if (this.inTransaction) return;
    this.beginStatement.run();
    this.inTransaction = true;
  }

  private flush(): void {
    this.begin();
    const { touches } = this;
    for (let i = 0; i < touches; i++) if (this.touchTold[i] === 1) this.flushOrder(i);
    this.flushUntold();
    this.ordersSinceLook += touches;
    this.touches = 0;
    this.orderRows.flush();
    this.usualOrderRows.flush();
    this.fillRows.flush();
    this.updates.flush();
    this.flushAccounts();
    this.builders.flush();
    this.states.write(this.lastNumbers(), this.now(), false);
    if (this.unlisted() > 0) this.list(LIST_SLICE + 2 * touches);
    this.chains.write(this.lastNumbers(), false);
    while (this.updates.isPruningDue) this.updates.prune(this.now(), this.states.told);
    this.candles.write(this.lastEntryId, false);
    this.ledger.endBatch();
    assert(addsUp(this.ledger.totals), "deposits - withdrawals = balances + collateral + house");
    this.committedAt = Math.max(this.committedAt, this.lastEventAt, this.now());
    const at = this.committedAt;
    const { deposits, withdrawals, usersTotal, collateral, house } = this.ledger.totals;
    this.sequence++;
    this.statements.updateTotals.run(
      deposits,
      withdrawals,
      usersTotal,
      collateral,
      house,
      this.sequence,
      this.lastEntryId,
      this.lastOrderId,
      this.updates.count,
      at,
    );
    this.commitStatement.run();
    this.inTransaction = false;
    this.committed.publish(this.ledger.totals, this.sequence, at);
    this.commitsSinceLook++;
    if (this.commitsSinceLook >= COMMITS_PER_WAL_LOOK || this.ordersSinceLook >= ORDERS_PER_WAL_LOOK) {
      this.checkpoint(BUSY_CHECKPOINT_PAGES);
    }
  }

  private flushOrder(touch: number): void {
    const slot = this.touchSlot[touch]!;
    this.touchOf[slot] = 0;
    const id = this.touchId[touch]!;
    const status = this.touchState[touch]! & 0xf;
    const reason = this.touchState[touch]! >> 4;
    const priority = this.touchPriority[touch]!;
    const w = this.touchPlaced[touch]!;
    if (w >= 0) {
      this.insertOrder(touch, w, slot, id, status, reason, priority);
      return;
    }
    const at = this.touchAt[touch]!;
    const quantity = this.touchQuantity[touch]!;
    const remaining = this.touchRemaining[touch]!;
    const fill = this.touchFill[touch]!;
    const isTold = this.touchTold[touch] === 1;
    if (this.touchExtended[touch] === 1) this.writeExpiry(slot, id);
    if (quantity !== 0 || !isTold) {
      const price = this.priceOf(slot, id);
      const total = this.quantities[slot]!;
      const { writeOrder } = this.statements;
      writeOrder.run(price, total, remaining, status, reason, priority || null, at, fill || null, id);
    }
    // After an amend too: a change of before it may still wait to be written.
    if (isTold) this.states.add(id, remaining, this.touchState[touch]!, at, fill);
  }

  private writeExpiry(slot: number, id: number): void {
    const expiresAt = this.expiries[slot]!;
    this.statements.writeExpiry.run(expiresAt || null, restingTimeInForce(expiresAt), id);
  }

  /**
   * A pass may end in the middle of an order's matching: what that order came to is in no update yet. Its row must not be
   * taken for older than its last update, so that first all that updates tell is written, this pass's too.
   */
  private flushUntold(): void {
    if (this.touchTold.subarray(0, this.touches).indexOf(0) < 0) return;
    this.states.writeAll(this.lastNumbers());
    for (let i = 0; i < this.touches; i++) if (this.touchTold[i] === 0) this.flushOrder(i);
  }

  private insertOrder(
    touch: number,
    w: number,
    slot: number,
    id: number,
    status: number,
    reason: number,
    priority: number,
  ): void {
    const { words } = this.gates[this.touchGate[touch]!]!;
    const packed = words[w]!;
    const terms = words[w + R.W_REFERENCE]!;
    const expiresAt = this.expiries[slot]! || null;
    // A quote may have got or lost its end in the pass that placed it.
    const timeInForce =
      this.touchExtended[touch] === 0 ? R.termsTimeInForce(terms) : restingTimeInForce(expiresAt ?? 0);
    const builder = this.builderOf[slot]!;
    const tied = (packed & R.FLAG_CANCEL_ON_DISCONNECT) !== 0;
    const isUsual =
      terms === 0 && timeInForce === TimeInForce.gtc && expiresAt === null && priority === 0 && builder === 0 && !tied;
    const clientOrderId = (packed & R.FLAG_TEXT) !== 0 ? this.texts.clientOrderId(slot) : null;
    const user = words[w + R.W_USER]!;
    const previous = this.chainOrder(user, id);
    const rows = isUsual ? this.usualOrderRows : this.orderRows;
    const row = rows.next();
    const { params } = rows;
    params[row] = id;
    params[row + 1] = user;
    params[row + 2] = words[w + R.W_OUTCOME]!;
    params[row + 3] = R.sideOf(packed);
    params[row + 4] = (packed & R.FLAG_POST_ONLY) !== 0 ? 1 : 0;
    params[row + 5] = (packed & R.FLAG_PAT) !== 0 ? 1 : 0;
    params[row + 6] = this.prices[slot]!;
    params[row + 7] = this.quantities[slot]!;
    params[row + 8] = this.touchRemaining[touch]!;
    params[row + 9] = status;
    params[row + 10] = reason;
    params[row + 11] = clientOrderId;
    params[row + 12] = clientOrderId === null ? null : this.texts.fingerprint(slot);
    params[row + 13] = (packed & R.FLAG_QUOTE) !== 0 ? 1 : 0;
    params[row + 14] = this.touchPlacedAt[touch]!;
    params[row + 15] = this.touchAt[touch]!;
    params[row + 16] = previous;
    params[row + 17] = this.touchFill[touch]! || this.lastEntryId;
    if (!isUsual) {
      params[row + OTHER_ORDER_COLUMNS] = R.termsType(terms);
      params[row + OTHER_ORDER_COLUMNS + 1] = timeInForce;
      params[row + OTHER_ORDER_COLUMNS + 2] = R.termsSelfTradePrevention(terms);
      params[row + OTHER_ORDER_COLUMNS + 3] = expiresAt;
      params[row + OTHER_ORDER_COLUMNS + 4] = priority || null;
      params[row + OTHER_ORDER_COLUMNS + 5] = builder || null;
      params[row + OTHER_ORDER_COLUMNS + 6] = tied ? 1 : 0;
    }
    if (id > this.lastOrderId) this.lastOrderId = id;
    // With several engine threads a lower id can come after the list passed it.
    if (id <= this.ordersListed && !isFinal(status)) this.statements.listOrder.run(id);
  }

  /** Makes the order part of its owner's chain; answers the order before it. */
  private chainOrder(user: number, id: number): number {
    if (id > this.chains.newestOrder(user)) return this.chains.addOrder(user, id);
    this.orderRows.flush();
    this.usualOrderRows.flush();
    return this.chains.insertOrder(user, id);
  }

  private flushAccounts(): void {
    const { ledger, statements, accountRows, positionRows } = this;
    for (const user of this.users.list()) {
      const row = accountRows.next();
      const { params } = accountRows;
      const day = ledger.activityDayOf(user);
      params[row] = user;
      params[row + 1] = ledger.balance(user);
      params[row + 2] = day;
      params[row + 3] = ledger.entriesOfDay(user, day);
    }
    this.users.clear();
    accountRows.flush();
    for (const position of this.positions.list()) {
      const row = positionRows.next();
      const { params } = positionRows;
      params[row] = ledger.userOf(position);
      params[row + 1] = ledger.outcomeOf(position);
      params[row + 2] = ledger.quantity(position);
      params[row + 3] = ledger.cost(position);
      params[row + 4] = ledger.realizedPnl(position);
    }
    positionRows.flush();
    this.positions.clear();
    for (const outcome of this.outcomes.list()) {
      statements.updateOutcome.run(this.lastPrices[outcome], this.volumes[outcome], outcome);
    }
    this.outcomes.clear();
    for (const market of this.markets.list()) statements.updateSets.run(ledger.outstandingSets(market), market);
    this.markets.clear();
    for (const [market, status] of this.statuses) statements.updateStatus.run(status, market);
    this.statuses.clear();
  }

  private lastNumbers(): LastNumbers {
    return { order: this.lastOrderId, fill: this.lastEntryId, update: this.updates.count };
  }

  // ---------------------------------------------------------------- resting orders and checkpoints

  /** Orders whose rows have told for a while what they came to, so that few are listed that ended at once. */
  private unlisted(): number {
    return this.states.listable - this.ordersListed;
  }

  /** Brings the list of resting orders forward by a slice of ids. Inside a transaction. */
  private list(orders: number): void {
    const { statements } = this;
    const last = Math.min(this.states.listable, this.ordersListed + orders);
    statements.listOrders.run(this.ordersListed, last, OrderStatus.filled);
    this.ordersListed = last;
    statements.setListed.run(this.ordersListed);
  }

  /** Pages in the WAL that the database file lacks. */
  private walPages(): number {
    const [{ log, checkpointed }] = this.db.pragma("wal_checkpoint(NOOP)") as [{ log: number; checkpointed: number }];
    return log - checkpointed;
  }

  /** Has the WAL moved into the database file where it has grown so long and nobody does so yet. */
  private checkpoint(pages: number): void {
    this.commitsSinceLook = 0;
    this.ordersSinceLook = 0;
    if (this.bulkRounds > 0 || this.walPages() < pages) return;
    this.bulkRounds = 1;
    this.requestCheckpoint();
  }

  /** Another connection has checkpointed what there was: what came meanwhile is its next round, or short. */
  finishCheckpoint(): void {
    if (this.bulkRounds < MAX_BULK_ROUNDS && this.walPages() > SHORT_CHECKPOINT_PAGES) {
      this.bulkRounds++;
      this.requestCheckpoint();
      return;
    }
    this.bulkRounds = 0;
    this.db.pragma("wal_checkpoint(PASSIVE)");
  }
}

function prepareStatements(db: Database.Database) {
  return {
    writeExpiry: db.prepare("UPDATE orders SET expires_at = ?, time_in_force = ? WHERE id = ?"),
    writeOrder: db.prepare(
      `UPDATE orders SET price = ?, quantity = ?, remaining = ?, status = ?, reason = ?,
       priority = coalesce(?, priority), updated_at = ?, last_fill_id = coalesce(?, last_fill_id) WHERE id = ?`,
    ),
    lastFill: db
      .prepare(
        "SELECT fills.id FROM orders JOIN fills ON fills.id = last_fill_id WHERE orders.id = ? AND order_id = orders.id",
      )
      .pluck(),
    terms: db.prepare("SELECT price, quantity, expires_at FROM orders WHERE id = ?").raw(),
    updateOutcome: db.prepare("UPDATE outcomes SET last_price = ?, volume = ? WHERE id = ?"),
    updateSets: db.prepare("UPDATE markets SET sets = ? WHERE id = ?"),
    updateStatus: db.prepare("UPDATE markets SET status = ? WHERE id = ?"),
    insertSetsEntry: db.prepare("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, ?, ?, NULL, NULL)"),
    updateTotals: db.prepare(
      `UPDATE totals SET deposits = ?, withdrawals = ?, users_total = ?, collateral = ?, house = ?, sequence = ?,
       last_entry_id = ?, last_order_id = ?, order_updates = ?, at = ?`,
    ),
    listOrder: db.prepare("INSERT OR IGNORE INTO resting_orders VALUES (?)"),
    listOrders: db.prepare(
      "INSERT OR IGNORE INTO resting_orders SELECT id FROM orders WHERE id > ? AND id <= ? AND status < ?",
    ),
    unlistOrder: db.prepare("DELETE FROM resting_orders WHERE order_id = ?"),
    setListed: db.prepare("UPDATE meta SET value = ? WHERE key = 'orders_listed'"),
  };
}
