/**
 * Random commands for the lock step, generated and shrunk by fast-check: few users, few prices around the point where
 * all outcomes cost the same, so that matches of every type and self-trades are frequent. Commands name markets,
 * outcomes and orders by position, so that a shrunk run stays meaningful.
 */
import fc from "fast-check";
import type { EngineOptions } from "./harness.ts";
import { LockStep, type Market } from "./lock-step.ts";
import type { PreventionWord, SideNumber } from "./reference-book.ts";

/** The model of a run is the lock step itself: it holds both books and compares them after each command. */
export type RandomCommand = fc.Command<LockStep, LockStep>;

interface PlaceFields {
  readonly market: number;
  readonly outcome: number;
  readonly user: number;
  readonly side: SideNumber;
  readonly price: Price;
  readonly quantity: number;
  readonly prevention: PreventionWord;
  readonly kind: string;
  readonly pat: boolean;
  readonly late: "no" | "valid" | "late" | "expired";
}

/** Either a price, or ticks from the point where the outcomes of the market have equal prices. */
export type Price = { readonly ticks: number } | { readonly exact: number };

function priceIn(market: Market, price: Price): number {
  if ("exact" in price) return price.exact;
  const tick = market.outcomes.length === 2 ? 100 : 50;
  const even = Math.round(10_000 / market.outcomes.length / tick) * tick;
  return even + price.ticks * tick;
}

class Place implements RandomCommand {
  readonly fields: PlaceFields;

  constructor(fields: PlaceFields) {
    this.fields = fields;
  }

  check(model: LockStep): boolean {
    return model.freeSlotCount > 0;
  }

  run(model: LockStep): void {
    const { fields } = this;
    const market = pick(model.markets, fields.market);
    const now = model.now + 1;
    const [type, timeInForce] = fields.kind.split(" ") as ["limit" | "market", "gtc" | "gtd" | "ioc" | "fok"];
    const resting = type === "limit" && (timeInForce === "gtc" || timeInForce === "gtd");
    model.place(market, {
      user: fields.user,
      outcome: pick(market.outcomes, fields.outcome),
      side: fields.side,
      price:
        type === "market" && fields.late === "no" ? (fields.side === 1 ? 9_999 : 1) : priceIn(market, fields.price),
      quantity: fields.quantity,
      type,
      timeInForce,
      prevention: fields.prevention,
      postOnly: resting && fields.kind.endsWith("post"),
      pat: fields.pat,
      expiresAt: timeInForce === "gtd" ? (fields.late === "expired" ? now : now + 1_000) : 0,
      validUntil: fields.late === "late" ? now - 1 : fields.late === "valid" ? now : 0,
    });
  }

  toString(): string {
    return `place ${JSON.stringify(this.fields)}`;
  }
}

/** Any other command: `act` with its fields, which the shrunk counterexample prints. */
class Other<T> implements RandomCommand {
  readonly name: string;
  readonly fields: T;
  readonly act: (model: LockStep, fields: T) => void;

  constructor(name: string, fields: T, act: (model: LockStep, fields: T) => void) {
    this.name = name;
    this.fields = fields;
    this.act = act;
  }

  check(model: LockStep): boolean {
    return model.ids.length > 0;
  }

  run(model: LockStep): void {
    this.act(model, this.fields);
  }

  toString(): string {
    return `${this.name} ${JSON.stringify(this.fields)}`;
  }
}

function pick<T>(list: readonly T[], at: number): T {
  return list[at % list.length]!;
}

/** Half of the picks are live orders if there are any, the others recent ones, which may be final. */
function pickOrder(model: LockStep, at: number): number {
  const { ids, liveIds } = model;
  if (at % 2 === 0 && liveIds.length > 0) return pick(liveIds, at >> 1);
  return ids[ids.length - 1 - ((at >> 1) % Math.min(ids.length, 24))]!;
}

const index = fc.nat(1_000);
export const priceNear = fc.oneof(
  { weight: 9, arbitrary: fc.record({ ticks: fc.integer({ min: -3, max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ exact: fc.constantFrom(1, 31, 32, 1_023, 1_024, 6_000, 9_000, 9_998, 9_999) }) },
  { weight: 1, arbitrary: fc.record({ exact: fc.integer({ min: 1, max: 9_999 }) }) },
);
export const priceAnywhere = fc.record({ exact: fc.integer({ min: 1, max: 9_999 }) });
const quantity = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 1, max: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom(1_000, 1_000_000_000) },
);
const reason = fc.constantFrom("user", "expired", "cancel_on_disconnect", "operator");

function placements(price: fc.Arbitrary<Price>, users: number): fc.Arbitrary<RandomCommand> {
  const kinds = [
    ...Array(12).fill("limit gtc"),
    ...[...Array(4).fill("limit gtc post"), "limit gtd", "limit gtd post", "limit ioc", "limit fok", "limit fok"],
    ...["market ioc", "market fok"],
  ];
  return fc
    .record({
      market: index,
      outcome: index,
      user: fc.integer({ min: 1, max: users }),
      side: fc.constantFrom<SideNumber>(1, 2),
      price,
      quantity,
      prevention: fc.constantFrom<PreventionWord>("cancel_taker", "cancel_maker", "cancel_both", "decrement"),
      kind: fc.constantFrom<string>(...kinds),
      pat: fc.boolean(),
      late: fc.constantFrom(...Array(12).fill("no"), "valid", "late", "expired"),
    })
    .map((fields) => new Place(fields));
}

function others(price: fc.Arbitrary<Price>): { weight: number; arbitrary: fc.Arbitrary<RandomCommand> }[] {
  const cancels = fc
    .record({ order: index, reason })
    .map(
      (fields) =>
        new Other("cancel", fields, (model, { order, reason }) => model.cancel(pickOrder(model, order), reason)),
    );
  const amends = fc
    .record({
      order: index,
      price: fc.option(price, { freq: 2 }),
      total: fc.option(fc.integer({ min: -5, max: 5 })),
      late: fc.nat(19),
    })
    .map((fields) => new Other("amend", fields, amendSome));
  const change = (name: "halt" | "resume" | "close") =>
    fc.record({ market: index }).map((f) => new Other(name, f, (m, { market }) => m[name](pick(m.markets, market))));
  return [
    { weight: 60, arbitrary: cancels },
    { weight: 60, arbitrary: amends },
    { weight: 2, arbitrary: change("halt") },
    { weight: 9, arbitrary: change("resume") },
    { weight: 1, arbitrary: change("close") },
  ];
}

function amendSome(
  model: LockStep,
  fields: { order: number; price: Price | null; total: number | null; late: number },
): void {
  const id = pickOrder(model, fields.order);
  const market = model.markets.find(({ book }) => book.orders.has(id))!;
  const total = market.book.orders.get(id)!.quantity;
  const newPrice = fields.price === null ? null : priceIn(market, fields.price);
  const validUntil = fields.late === 0 ? model.now : fields.late === 1 ? model.now + 1 : 0;
  const newTotal = fields.total === null ? null : Math.min(1_000_000_000, Math.max(1, total + fields.total));
  model.amend(id, newPrice, newTotal, validUntil);
}

interface Quote {
  readonly outcome: number;
  readonly side: SideNumber;
  readonly price: Price;
  readonly quantity: number;
}

/** A user's orders of one market replaced by others in one chain, while other commands are on their way. */
class Quotes implements RandomCommand {
  readonly fields: {
    readonly market: number;
    readonly user: number;
    /** Canceled; the first of them replaced, one by each quote. */
    readonly orders: number;
    readonly quotes: readonly Quote[];
    /** Run before the chain and heard of after it. */
    readonly inFlight: readonly RandomCommand[];
  };

  constructor(fields: Quotes["fields"]) {
    this.fields = fields;
  }

  check(): boolean {
    return true;
  }

  run(model: LockStep): void {
    const { fields } = this;
    const { batchOfOne } = model;
    model.batchOfOne = false;
    for (const command of fields.inFlight) if (command.check(model)) command.run(model, model);
    const market = pick(model.markets, fields.market);
    const old = model.believed(market, fields.user).slice(-fields.orders);
    if (fields.orders === 0) old.length = 0;
    const count = Math.min(fields.quotes.length, model.freeSlotCount);
    model.chain(() => {
      for (const { id } of old) model.cancel(id);
      fields.quotes.slice(0, count).forEach((quote, i) => {
        const replaced = old[i];
        model.place(market, {
          ...{ user: fields.user, outcome: pick(market.outcomes, quote.outcome), side: quote.side },
          ...{ price: priceIn(market, quote.price), quantity: quote.quantity, postOnly: true },
          ...(replaced && { replaces: { id: replaced.id, expected: replaced.remaining } }),
        });
      });
    });
    model.batchOfOne = batchOfOne;
    if (batchOfOne) model.endBatch();
  }

  toString(): string {
    const { inFlight, ...fields } = this.fields;
    return `quotes ${JSON.stringify(fields)} while [${inFlight.join(", ")}]`;
  }
}

function quotes(price: fc.Arbitrary<Price>, users: number, others: fc.Arbitrary<RandomCommand>) {
  const side = fc.constantFrom<SideNumber>(1, 2);
  return fc
    .record({
      market: index,
      user: fc.integer({ min: 1, max: users }),
      orders: fc.nat(4),
      quotes: fc.array(fc.record({ outcome: index, side, price, quantity }), { maxLength: 5 }),
      inFlight: fc.array(others, { maxLength: 4 }),
    })
    .map((fields): RandomCommand => new Quotes(fields));
}

export function commandsOf(price: fc.Arbitrary<Price>, users: number): fc.Arbitrary<RandomCommand> {
  const singles = fc.oneof({ weight: 260, arbitrary: placements(price, users) }, ...others(price));
  return fc.oneof({ weight: 392, arbitrary: singles }, { weight: 40, arbitrary: quotes(price, users, singles) });
}

/** Markets with the given numbers of outcomes, in their own matcher. */
export function modelOf(outcomeCounts: readonly number[], options: EngineOptions = {}): LockStep {
  const model = new LockStep({ capacity: 512, ...options });
  for (const count of outcomeCounts) model.openMarket(count);
  return model;
}

/**
 * The same for many short runs: a matcher that is reused after its markets close. After a failure the next run gets a
 * new one, so that a shrinking counterexample doesn't depend on earlier runs.
 */
export class ModelPool {
  private idle: LockStep | null = null;

  run(outcomeCounts: readonly number[], body: (model: LockStep) => void): void {
    const model = this.idle ?? new LockStep({ capacity: 512 });
    this.idle = null;
    for (const count of outcomeCounts) model.openMarket(count);
    body(model);
    model.clear();
    this.idle = model;
  }
}

/** The commands one after the other, outside fast-check's runner: for properties over whole runs. */
export function runAll(model: LockStep, commands: readonly RandomCommand[], batch = 1): void {
  model.batchOfOne = batch === 1;
  commands.forEach((command, i) => {
    if (!command.check(model)) model.endBatch();
    if (command.check(model)) command.run(model, model);
    if (batch > 1 && i % batch === batch - 1) model.endBatch();
  });
  model.endBatch();
}
