/**
 * The matcher against the reference book under random commands: model-based runs that shrink to a few commands, long
 * runs over deep books, and properties of the event bytes: the same commands give the same bytes, a restored book
 * continues like the original, and batch ends only change when levels are reported.
 * A failure prints its seed; SEED=n repeats that seed, EFFORT=n multiplies the number of runs.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CommandKind,
  D_ORDER_ID,
  EventKind,
  FLAG_LOST_PRIORITY,
  FLAG_REPLACES,
  kindOf,
  W_CORRELATION,
  W_QUANTITY,
} from "../../../engine/ring/records.ts";
import { EFFORT } from "../../support/projects.ts";
import { decodeEvent, Engine, type EngineEvent } from "./harness.ts";
import { commandsOf, ModelPool, modelOf, priceAnywhere, priceNear, runAll } from "./random-commands.ts";

const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
console.log(`matcher properties: SEED=${seed}`);

const pool = new ModelPool();
const markets = fc.constantFrom([2], [3], [5], [2, 3, 5]);

describe("the matcher and the reference book agree after every command", () => {
  for (const [name, outcomeCounts, users] of [
    ["two outcomes", [2], 3],
    ["three outcomes", [3], 3],
    ["five outcomes", [5], 4],
    ["three markets side by side", [2, 3, 5], 3],
    ["one user against itself", [3], 1],
  ] as const) {
    test(name, () => {
      const one = commandsOf(priceNear, users);
      fc.assert(
        fc.property(fc.commands([one], { maxCommands: 120, size: "max" }), (commands) => {
          pool.run(outcomeCounts, (model) => fc.modelRun(() => ({ model, real: model }), commands));
        }),
        { numRuns: 40 * EFFORT, seed },
      );
    });
  }

  test("the matcher and the reference book agree over the whole ladder, with sweeps", () => {
    const one = commandsOf(priceAnywhere, 6);
    fc.assert(
      fc.property(markets, fc.commands([one], { maxCommands: 150, size: "max" }), (outcomeCounts, commands) => {
        pool.run(outcomeCounts, (model) => {
          fc.modelRun(() => ({ model, real: model }), commands);
          model.compareEveryPrice();
        });
      }),
      { numRuns: 14 * EFFORT, seed },
    );
  });

  test("the matcher and the reference book agree over long runs", () => {
    const one = commandsOf(priceNear, 5);
    const run = fc.array(one, { minLength: 3_000, maxLength: 3_000, size: "max" });
    fc.assert(
      fc.property(markets, run, (outcomeCounts, commands) =>
        pool.run(outcomeCounts, (model) => runAll(model, commands)),
      ),
      { numRuns: EFFORT, seed, endOnFailure: true },
    );
  });
});

const runs = fc.array(commandsOf(priceNear, 3), { maxLength: 120, size: "max" });

function expectSameEvents(actual: readonly Int32Array[], expected: readonly Int32Array[]): void {
  const different = (words: Int32Array, i: number) => !words.every((word, w) => word === actual[i]?.[w]);
  const at = expected.findIndex(different);
  if (at >= 0) expect(actual[at] && describeWords(actual[at])).toEqual(describeWords(expected[at]!));
  expect(actual.length).toBe(expected.length);
}

function describeWords(words: Int32Array): object {
  return { ...decodeEvent(words, new Float64Array(words.buffer), 0), words: [...words] };
}

test("the same commands give the same event bytes, whatever the ring's cursors", () => {
  fc.assert(
    fc.property(markets, runs, fc.integer(), (outcomeCounts, commands, ringStart) => {
      const model = modelOf(outcomeCounts);
      runAll(model, commands, 7);
      const again = new Engine({ capacity: 512, ringStart });
      again.replay(model.engine.script);
      expectSameEvents(again.eventWords, model.engine.eventWords);
    }),
    { numRuns: 6 * EFFORT, seed },
  );
});

test("batch ends only change when levels are reported", () => {
  fc.assert(
    fc.property(markets, runs, fc.integer({ min: 2, max: 40 }), (outcomeCounts, commands, batch) => {
      const model = modelOf(outcomeCounts);
      runAll(model, commands, batch);
      const single = new Engine({ capacity: 512 });
      for (const entry of model.engine.script) if (entry !== "end") single.replay([entry, "end"]);
      expectSameEvents(withoutLevels(single), withoutLevels(model.engine));
    }),
    { numRuns: 12 * EFFORT, seed },
  );
});

function withoutLevels(engine: Engine): Int32Array[] {
  return engine.eventWords.filter((words) => kindOf(words[0]!) !== EventKind.levelChanged);
}

test("books restored from live orders behave like the old ones", () => {
  fc.assert(
    fc.property(markets, runs, runs, (outcomeCounts, before, after) => {
      const model = modelOf(outcomeCounts);
      runAll(model, before);
      const restored = new Engine({ capacity: 512 });
      restored.replay(model.restoreScript());
      const events = model.engine.eventWords.length;
      const restoredEvents = restored.eventWords.length;
      const position = model.engine.script.length;
      runAll(model, after, 3);
      restored.replay(model.engine.script.slice(position));
      expectSameEvents(restored.eventWords.slice(restoredEvents), model.engine.eventWords.slice(events));
    }),
    { numRuns: 6 * EFFORT, seed },
  );
});

test("a small ring that fills up in the middle of commands loses nothing", () => {
  fc.assert(
    fc.property(markets, runs, fc.integer(), (outcomeCounts, commands, ringStart) => {
      runAll(modelOf(outcomeCounts, { ringRecords: 256, ringStart }), commands, 200);
    }),
    { numRuns: 8 * EFFORT, seed },
  );
});

test("the random commands reach every rule", () => {
  const seen = new Set<string>();
  for (const count of [2, 3, 5]) {
    for (const commands of fc.sample(runs, { numRuns: 100, seed: count })) {
      pool.run([count], (model) => {
        runAll(model, commands);
        for (const words of model.engine.eventWords) seen.add(featureOf(words, count));
        for (const feature of replacementsOf(model.engine)) seen.add(`${feature} in ${count}`);
      });
    }
  }
  for (const feature of FEATURES) expect(seen).toContain(feature);
});

const FEATURES = [
  ...["open", "rejected post_only_would_cross", "rejected market_halted", "rejected market_closed"],
  ...["rejected too_late", "expired expired", "canceled fok_unfillable", "canceled ioc_remainder"],
  ...["canceled self_trade", "queued"],
].map((end) => `placed ${end}`);
for (const count of [2, 3, 5]) for (const type of ["direct", "mint", "merge"]) FEATURES.push(`${type} in ${count}`);
for (const count of [2, 3, 5]) {
  for (const end of ["as asked", "reduced", "with nothing left", "post_only_would_cross"])
    FEATURES.push(`replaced ${end} in ${count}`);
}
FEATURES.push("replaced market_halted in 2", "a refused one replaced in 3");
FEATURES.push("a mint at the lowest price", "reduced taker", "reduced maker");
for (const reason of ["user", "operator", "cancel_on_disconnect", "self_trade", "ioc_remainder", "market_closed"]) {
  FEATURES.push(`ended canceled ${reason}`);
}
FEATURES.push("ended expired expired");
FEATURES.push("amended, priority kept", "amended, priority lost", "amended to filled", "cancelRejected null");
for (const reason of ["null", "too_late", "market_halted", "post_only_would_cross"])
  FEATURES.push(`amendRejected ${reason}`);

/** The results of placements that replace an order. */
function replacementsOf(engine: Engine): string[] {
  const placed = new Map<number, EngineEvent>();
  for (const words of engine.eventWords) {
    const event = decodeEvent(words, new Float64Array(words.buffer), 0);
    if (event.kind === "orderPlaced") placed.set(event.orderId, event);
  }
  const lastOf = new Map<number, EngineEvent>();
  return engine.script.flatMap((entry) => {
    if (entry === "end" || kindOf(entry.words[0]!) !== CommandKind.placeOrder) return [];
    const event = placed.get(entry.doubles[D_ORDER_ID]!)!;
    const replaced = lastOf.get(entry.words[W_CORRELATION]!);
    lastOf.set(event.slot, event);
    if ((entry.words[0]! & FLAG_REPLACES) === 0) return [];
    const end = event.quantity < entry.words[W_QUANTITY]! ? "reduced" : "as asked";
    const refused = event.reason === "too_late" ? "with nothing left" : event.reason;
    const first = `replaced ${refused ?? end}`;
    return replaced?.status === "rejected" ? [first, "a refused one replaced"] : [first];
  });
}

function featureOf(words: Int32Array, outcomes: number): string {
  const event = decodeEvent(words, new Float64Array(words.buffer), 0);
  const reason = event.reason === null ? "" : ` ${event.reason}`;
  switch (event.kind) {
    case "orderPlaced":
      return `placed ${event.status}${reason}`;
    case "orderFilled":
      if (event.role === "taker" && event.matchType === "mint" && event.price === 1)
        return "a mint at the lowest price";
      return `${event.matchType} in ${outcomes}`;
    case "orderCanceled":
      return `ended ${event.status}${reason}`;
    case "orderReduced":
      return `reduced ${event.role}`;
    case "orderAmended":
      if (event.status === "filled") return "amended to filled";
      return `amended, priority ${(event.packed & FLAG_LOST_PRIORITY) === 0 ? "kept" : "lost"}`;
    case "cancelRejected":
    case "amendRejected":
      return `${event.kind} ${event.reason}`;
    default:
      return event.kind;
  }
}
