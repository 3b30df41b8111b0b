/**
 * The real matcher in this process: commands go in as records, events come back through a ring as plain objects. The
 * tape reads the events as a gateway would (orders' states, matches, rejections, a mirror of the depth) and throws if an
 * event contradicts an earlier one. Knows nothing of the matching rules.
 */

import { createMatcher, type Matcher } from "../../../engine/book/matcher.ts";
import * as C from "../../../engine/constants.ts";
import * as R from "../../../engine/ring/records.ts";
import { createRing, RingConsumer, RingProducer } from "../../../engine/ring/ring.ts";
import type { Match, Placement, Rejection } from "./reference-book.ts";

const EVENT_NAMES = Object.fromEntries(Object.entries(R.EventKind).map(([name, kind]) => [kind, name])) as Record<
  number,
  keyof typeof R.EventKind
>;

export interface EngineEvent {
  readonly kind: keyof typeof R.EventKind;
  readonly side: number;
  readonly status: NonNullable<(typeof C.ORDER_STATUSES)[number]>;
  readonly reason: (typeof C.REASONS)[number];
  readonly matchType: (typeof C.MATCH_TYPES)[number];
  readonly role: (typeof C.ROLES)[number];
  readonly slot: number;
  readonly user: number;
  readonly outcome: number;
  readonly price: number;
  readonly quantity: number;
  readonly remaining: number;
  readonly word7: number;
  readonly orderId: number;
  readonly at: number;
  readonly detail: number;
  readonly packed: number;
}

export function decodeEvent(words: Int32Array, doubles: Float64Array, index: number): EngineEvent {
  const w = index * R.RECORD_WORDS;
  const d = index * R.RECORD_DOUBLES;
  const packed = words[w]!;
  return {
    kind: EVENT_NAMES[R.kindOf(packed)]!,
    side: R.sideOf(packed),
    status: C.ORDER_STATUSES[R.statusOf(packed)]!,
    reason: C.REASONS[R.reasonOf(packed)]!,
    matchType: C.MATCH_TYPES[R.matchTypeOf(packed)]!,
    role: C.ROLES[R.roleOf(packed)]!,
    slot: words[w + R.W_SLOT]!,
    user: words[w + R.W_USER]!,
    outcome: words[w + R.W_OUTCOME]!,
    price: words[w + R.W_PRICE]!,
    quantity: words[w + R.W_QUANTITY]!,
    remaining: words[w + R.W_REMAINING]!,
    word7: words[w + R.W_CORRELATION]!,
    orderId: doubles[d + R.D_ORDER_ID]!,
    at: doubles[d + R.D_AT]!,
    detail: doubles[d + R.D_DETAIL]!,
    packed,
  };
}

/** One command record on its own. */
export class CommandRecord {
  readonly words = new Int32Array(R.RECORD_WORDS);
  readonly doubles = new Float64Array(this.words.buffer);

  static place(kind: R.CommandKind, slot: number, market: number, order: Placement): CommandRecord {
    const record = new CommandRecord();
    const { words, doubles } = record;
    const tif = C.TIMES_IN_FORCE.indexOf(order.timeInForce);
    const stp = C.SELF_TRADE_PREVENTIONS.indexOf(order.prevention);
    const flags = (order.postOnly ? R.FLAG_POST_ONLY : 0) | (order.pat ? R.FLAG_PAT : 0);
    words[0] = R.packCommand(kind, R.packTerms(order.side, C.ORDER_TYPES.indexOf(order.type), tif, stp, flags));
    words[R.W_SLOT] = slot;
    words[R.W_USER] = order.user;
    words[R.W_OUTCOME] = order.outcome;
    words[R.W_PRICE] = order.price;
    words[R.W_QUANTITY] = order.quantity;
    words[R.W_MARKET] = market;
    doubles[R.D_ORDER_ID] = order.id;
    doubles[R.D_AT] = order.at;
    doubles[R.D_EXPIRES_AT] = order.expiresAt;
    doubles[R.D_VALID_UNTIL] = order.validUntil;
    return record;
  }

  /** A quote that replaces the order in `replacedSlot`, with its remaining quantity as the sender believes it. */
  static replace(
    slot: number,
    market: number,
    order: Placement,
    replacedSlot: number,
    expected: number,
  ): CommandRecord {
    const record = CommandRecord.place(R.CommandKind.placeOrder, slot, market, order);
    record.words[0]! |= R.FLAG_REPLACES;
    record.words[R.W_CORRELATION] = replacedSlot;
    record.doubles[R.D_EXPECTED] = expected;
    return record;
  }

  /** The same commands as one chain. */
  static chain(records: readonly CommandRecord[]): readonly CommandRecord[] {
    for (const record of records.slice(0, -1)) record.words[0]! |= R.FLAG_MORE;
    return records;
  }

  static cancel(slot: number, id: number, reason: string, at: number, reference = 0): CommandRecord {
    const record = new CommandRecord();
    record.words[0] = R.packCancel(C.REASONS.indexOf(reason as never));
    record.words[R.W_SLOT] = slot;
    record.words[R.W_CORRELATION] = reference;
    record.doubles[R.D_ORDER_ID] = id;
    record.doubles[R.D_AT] = at;
    return record;
  }

  static amend(slot: number, id: number, price: number, total: number, at: number, validUntil = 0): CommandRecord {
    const record = new CommandRecord();
    record.words[0] = R.CommandKind.amendOrder;
    record.words[R.W_SLOT] = slot;
    record.words[R.W_PRICE] = price;
    record.words[R.W_QUANTITY] = total;
    record.doubles[R.D_ORDER_ID] = id;
    record.doubles[R.D_AT] = at;
    record.doubles[R.D_VALID_UNTIL] = validUntil;
    return record;
  }

  static market(kind: number, market: number, at: number, first = 0, count = 0): CommandRecord {
    const record = new CommandRecord();
    record.words[0] = kind;
    record.words[R.W_OUTCOME] = first;
    record.words[R.W_QUANTITY] = count;
    record.words[R.W_MARKET] = market;
    record.doubles[R.D_AT] = at;
    return record;
  }
}

export interface EngineOptions {
  readonly capacity?: number;
  readonly activeBooks?: number;
  readonly ringRecords?: number;
  /** The ring's initial cursor position; near 2^31 they wrap. */
  readonly ringStart?: number;
}

/** The matcher with both ends of its ring. Keeps its events as bytes and decodes them on demand. */
export class Engine {
  readonly matcher: Matcher;
  /** Each command and the place of each batch's end, as they were run: another engine can be fed the same. */
  readonly script: (CommandRecord | "end")[] = [];
  /** Copies of all event records so far. */
  readonly eventWords: Int32Array[] = [];
  ringFullCount = 0;
  private readonly consumer: RingConsumer;
  private readonly listener: (events: EngineEvent[], ringFull: boolean) => void;

  constructor(options: EngineOptions = {}, listener: (events: EngineEvent[], ringFull: boolean) => void = () => {}) {
    const memory = createRing(options.ringRecords ?? 4096);
    const header = new Int32Array(memory.buffer, 0, 128);
    for (const cursor of [0, 32, 64]) header[cursor] = options.ringStart ?? 0;
    this.listener = listener;
    this.consumer = new RingConsumer(memory, false);
    this.matcher = createMatcher(new RingProducer(memory), {
      capacity: options.capacity ?? 1024,
      activeBooks: options.activeBooks ?? 40,
      onRingFull: () => {
        this.ringFullCount++;
        this.drain(true);
      },
    });
  }

  execute(record: CommandRecord): void {
    this.script.push(record);
    this.matcher.execute(record.words, record.doubles, 0);
  }

  endBatch(): void {
    this.script.push("end");
    this.matcher.endBatch();
    this.drain(false);
  }

  replay(script: readonly (CommandRecord | "end")[]): void {
    for (const entry of script) entry === "end" ? this.endBatch() : this.execute(entry);
  }

  private drain(ringFull: boolean): void {
    const { consumer } = this;
    const events: EngineEvent[] = [];
    for (let left = consumer.available(); left > 0; left--) {
      const index = consumer.tail & consumer.mask;
      this.eventWords.push(consumer.words.slice(index * R.RECORD_WORDS, (index + 1) * R.RECORD_WORDS));
      events.push(decodeEvent(consumer.words, consumer.doubles, index));
      consumer.tail = (consumer.tail + 1) | 0;
    }
    consumer.release();
    this.listener(events, ringFull);
  }
}

export interface TapeOrder {
  readonly id: number;
  readonly slot: number;
  readonly user: number;
  readonly outcome: number;
  readonly side: number;
  readonly pat: boolean;
  price: number;
  quantity: number;
  remaining: number;
  status: string;
  reason: string | null;
}

/** The state that a reader of the events knows. Any contradiction between two events is an error. */
export class Tape {
  readonly orders = new Map<number, TapeOrder>();
  readonly matches: Match[] = [];
  readonly rejections: Rejection[] = [];
  readonly depth = new Map<number, { readonly 1: Map<number, number>; readonly 2: Map<number, number> }>();
  readonly marketStatus = new Map<number, string>();
  /** Orders that became final since the last look: their slots are free again. */
  ended: TapeOrder[] = [];
  private legs: EngineEvent[] = [];
  private openUpdate: number | null = null;
  /** A taker that self-trade prevention reduced, until one of its own events reports its state. */
  private reducedTaker: number | null = null;

  /** Forgets ended orders. Markets must be closed. */
  clear(): void {
    for (const map of [this.orders, this.depth, this.marketStatus]) map.clear();
    for (const list of [this.matches, this.rejections, this.ended]) list.length = 0;
  }

  /** Reads the events of one publish, which must end at the end of a match and of an order's update. */
  read(events: readonly EngineEvent[]): void {
    for (const event of events) this.readEvent(event);
    ensure(this.legs.length === 0, "what is published ends at a match's end");
    ensure(this.openUpdate === null, "the last fill of an update is flagged");
  }

  /** At the end of a command no order is in between. */
  settled(): void {
    ensure(this.reducedTaker === null, `order ${this.reducedTaker} was reduced and no event reported it`);
    for (const order of this.orders.values()) ensure(order.status !== "queued", `order ${order.id} has no state`);
  }

  private readEvent(event: EngineEvent): void {
    const fill = event.kind === "orderFilled";
    const chained = event.kind === "orderAmended" ? R.FLAG_MORE : R.FLAG_REPLACES | R.FLAG_MORE;
    ensure(fill || (event.packed & chained) === 0, "no event carries its command's chain");
    if (event.kind === "orderReduced" && event.role === "taker") this.reducedTaker = event.orderId;
    else if (event.orderId === this.reducedTaker) this.reducedTaker = null;
    if (!fill) {
      ensure(this.legs.length === 0, `${event.kind} in the middle of a match`);
      ensure(this.openUpdate === null || event.kind !== "orderPlaced", "an update is open when the next order comes");
    }
    switch (event.kind) {
      case "orderPlaced":
        return this.placed(event);
      case "orderFilled":
        return this.filled(event);
      case "orderCanceled":
        ensure(event.remaining === this.live(event).remaining, "a cancel leaves what remains as it is");
        return this.end(this.live(event), event.status, event.reason);
      case "orderReduced":
      case "orderAmended":
        return this.changed(event);
      case "cancelRejected":
        return void this.rejections.push({ id: event.orderId, command: "cancel", reason: event.reason });
      case "amendRejected":
        return void this.rejections.push({ id: event.orderId, command: "amend", reason: event.reason });
      case "levelChanged":
        return this.level(event);
      case "marketChanged":
        return void this.marketStatus.set(event.slot, C.MARKET_STATUSES[R.statusOf(event.packed)]!);
      default:
        return;
    }
  }

  private placed(event: EngineEvent): void {
    const { orderId: id, slot, user, outcome, side, price, quantity, remaining, reason } = event;
    ensure(!this.orders.has(id), `order ${id} is placed once`);
    ensure(remaining === quantity, "a placed order has all of its quantity left");
    const pat = (event.packed & R.FLAG_PAT) !== 0;
    const order = { id, slot, user, outcome, side, pat, price, quantity, remaining, status: "queued", reason };
    this.orders.set(id, order);
    if (["canceled", "expired", "rejected"].includes(event.status)) this.end(order, event.status, reason);
    else {
      ensure(event.status === "open" || event.status === "queued", `placed as ${event.status}`);
      order.status = event.status;
    }
  }

  private filled(event: EngineEvent): void {
    const order = this.live(event);
    ensure(event.quantity > 0, "a fill has a quantity");
    ensure(event.remaining === order.remaining - event.quantity, "a fill takes its quantity from what remains");
    ensure(event.word7 === this.legs.length, "legs are counted");
    ensure(((event.packed & R.FLAG_PAT) !== 0) === order.pat, "a fill keeps the order's PAT flag");
    ensure(event.role === "taker" || event.price === order.price, "a resting order fills at its own price");
    order.remaining = event.remaining;
    order.status = "partially_filled";
    if (event.remaining === 0) this.end(order, "filled", null);
    ensure(event.status === order.status, "a fill carries the order's state");
    this.legs.push(event);
    ensure(((event.packed & R.FLAG_MATCH_END) !== 0) === (event.role === "taker"), "the taker's fill ends the match");
    if (event.role === "taker") this.endMatch(event);
  }

  private endMatch(taker: EngineEvent): void {
    const makers = this.legs.filter((leg) => leg.role === "maker");
    ensure(makers.length === this.legs.length - 1 && makers.length > 0, "one taker, and at least one maker");
    for (const leg of this.legs) {
      ensure(leg.quantity === taker.quantity && leg.matchType === taker.matchType, "legs of one match are alike");
    }
    if (taker.matchType === "direct") {
      const [maker] = makers;
      ensure(makers.length === 1 && maker!.price === taker.price && maker!.outcome === taker.outcome, "a direct match");
      ensure(maker!.side !== taker.side, "a direct match has two sides");
    } else {
      const sum = this.legs.reduce((total, leg) => total + leg.price, 0);
      ensure(sum === 10_000 || (taker.matchType === "mint" && taker.price === 1 && sum > 10_000), "a set is paid");
      ensure(new Set(this.legs.map((leg) => leg.outcome)).size === this.legs.length, "one leg an outcome");
      ensure(
        this.legs.every((leg) => leg.side === (taker.matchType === "mint" ? 1 : 2)),
        "a set's legs are on one side",
      );
    }
    const match = { type: taker.matchType, quantity: taker.quantity, taker: taker.orderId, price: taker.price };
    this.matches.push({ ...match, makers: makers.map((leg) => ({ id: leg.orderId, price: leg.price })) });
    ensure(this.openUpdate === null || this.openUpdate === taker.orderId, "one order's update at a time");
    this.openUpdate = (taker.packed & R.FLAG_UPDATE_END) === 0 ? taker.orderId : null;
    this.legs = [];
  }

  private changed(event: EngineEvent): void {
    const order = this.live(event);
    const filled = order.quantity - order.remaining;
    ensure(event.remaining > 0 || event.price === order.price, "an order that ends keeps its price");
    ensure(event.quantity - event.remaining === filled, "an amend leaves what is filled as it is");
    if (event.kind === "orderReduced") ensure(event.quantity < order.quantity, "a decrement lowers the total");
    order.price = event.price;
    order.quantity = event.quantity;
    order.remaining = event.remaining;
    if (event.remaining === 0) this.end(order, "filled", null);
    else order.status = filled > 0 ? "partially_filled" : "open";
    ensure(event.status === order.status, `${event.kind} carries the order's state`);
  }

  private level(event: EngineEvent): void {
    if (!this.depth.has(event.outcome)) this.depth.set(event.outcome, { 1: new Map(), 2: new Map() });
    const book = this.depth.get(event.outcome)!;
    ensure(event.detail >= 0 && Number.isInteger(event.detail), "a level's quantity is a count");
    book[1].delete(event.price);
    book[2].delete(event.price);
    if (event.detail > 0) book[event.side === 1 ? 1 : 2].set(event.price, event.detail);
  }

  private live(event: EngineEvent): TapeOrder {
    const order = this.orders.get(event.orderId);
    ensure(order !== undefined, `${event.kind} of the unknown order ${event.orderId}`);
    ensure(
      ["queued", "open", "partially_filled"].includes(order.status),
      `${event.kind} of the final order ${order.id}`,
    );
    ensure(order.slot === event.slot && order.user === event.user, "an order keeps its slot and owner");
    ensure(order.outcome === event.outcome && order.side === event.side, "an order keeps its book");
    return order;
  }

  private end(order: TapeOrder, status: string, reason: string | null): void {
    order.status = status;
    order.reason = reason;
    this.ended.push(order);
  }
}

export function ensure(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}
