/**
 * The replay of logs that the real engines and the real log made under random commands: it makes the same events, across
 * starts, full rings and several engines, and finds whatever was changed. A failure prints its seed; SEED=n repeats it.
 */
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Difference } from "../../bench/replay/log/difference.ts";
import { LogReplay, type ReplayResult } from "../../bench/replay/log/log-replay.ts";
import { randomFrom } from "../../bench/support/random.ts";
import { NO_HASH } from "../../engine/log/append.ts";
import {
  FLAG_STARTED,
  HEADER_BYTES,
  hashOf,
  previousHash,
  readHeader,
  recordsOf,
  writeHeader,
} from "../../engine/log/batch-format.ts";
import { JournalReader } from "../../engine/log/log-reader.ts";
import { EMPTY_OPENING, OpeningTracker, packOpening, unpackOpening } from "../../engine/log/opening.ts";
import * as R from "../../engine/ring/records.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { makeLog, makeSweeps, startAfterCrash } from "../engine/log/logged-run.ts";
import { EFFORT } from "../support/projects.ts";

const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
console.log(`log replay: SEED=${seed}`);

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

function bodiesOf(path: string): Buffer[] {
  folders.push(dirname(path));
  const db = openReadOnly(path);
  const bodies = [...new JournalReader(db).bodies(1)];
  db.close();
  return bodies;
}

function replay(bodies: readonly Buffer[], opening = EMPTY_OPENING): ReplayResult {
  const log = new LogReplay(bodies, opening);
  while (log.step() !== null);
  return log.result();
}

/** What the replay finds. */
function differenceIn(bodies: readonly Buffer[]): Difference {
  try {
    replay(bodies);
  } catch (error) {
    if (error instanceof Difference) return error;
    throw error;
  }
  throw new Error("the replay finds no difference");
}

describe("the same events", () => {
  for (const [name, options] of [
    ["one engine", { engines: 1, starts: 1, commands: 1_000 }],
    ["one engine over several starts", { engines: 1, starts: 4, commands: 1_000 }],
    ["three engines over several starts", { engines: 3, starts: 3, commands: 1_000 }],
    ["deep books", { engines: 2, starts: 2, commands: 800, isDeep: true, outcomes: [2, 3, 2, 2] }],
  ] as const) {
    test(name, () => {
      let fills = 0;
      for (let round = 0; round < EFFORT; round++) {
        const bodies = bodiesOf(makeLog({ seed: seed + round, ...options }));
        const result = replay(bodies);
        expect(result).toMatchObject({ batches: bodies.length, starts: options.starts, interrupted: 0 });
        fills += result.fills;
      }
      expect(fills).toBeGreaterThan(50 * EFFORT);
    });
  }

  test("the replay makes the same events when rings fill up in the middle of a command", () => {
    let cuts = 0;
    for (let round = 0; round < EFFORT; round++) {
      const result = replay(bodiesOf(makeSweeps(seed + round, () => false)));
      expect(result).toMatchObject({ interrupted: 0, starts: 1 });
      cuts += result.cuts;
    }
    expect(cuts).toBeGreaterThan(5 * EFFORT);
  });

  test("the replay makes the same events after a crash in the middle of a command", () => {
    // Not every crash cuts a command.
    for (let round = 0, interrupted = 0; interrupted < 2 * EFFORT; round++) {
      const random = randomFrom(seed + round);
      const path = makeSweeps(seed + round, () => random() < 0.2);
      startAfterCrash(path, seed + round);
      interrupted += replay(bodiesOf(path)).interrupted;
    }
  });
});

test("a log replays from any batch on, with the opening of that place", () => {
  const bodies = bodiesOf(makeLog({ seed, engines: 2, starts: 3, commands: 1_000 }));
  const random = randomFrom(seed);
  for (let round = 0; round < 4 * EFFORT; round++) {
    const [from, end] = [random(), random()].map((share) => Math.floor(share * bodies.length)).sort((a, b) => a - b);
    const tracker = new OpeningTracker();
    for (const body of bodies.slice(0, from)) tracker.follow(body);
    const opening = unpackOpening(packOpening(tracker.opening()));
    const result = replay(bodies.slice(from), opening);
    expect(result).toMatchObject({ batches: bodies.length - from!, first: from! + 1 });
    // A tracker that begins in between knows as much as one that followed everything.
    const later = new OpeningTracker(opening);
    for (const body of bodies.slice(from, end)) {
      tracker.follow(body);
      later.follow(body);
    }
    expect(later.opening()).toEqual(tracker.opening());
  }
});

describe("what was changed is found", () => {
  const bodies = bodiesOf(makeLog({ seed, engines: 2, starts: 2, commands: 800 }));
  const random = randomFrom(seed);
  const upTo = (count: number): number => Math.floor(random() * count);

  /** The places of all events that `isWanted` takes: batch and record. */
  function events(isWanted: (kind: number) => boolean): [batch: number, record: number][] {
    return bodies.flatMap((body, batch) => {
      const { words, count } = recordsOf(body, readHeader(body));
      const records = Array.from({ length: count }, (_, record) => record);
      const wanted = records.filter((record) => isWanted(R.kindOf(words[record * R.RECORD_WORDS]!)));
      return wanted.map((record): [number, number] => [batch, record]);
    });
  }

  function orderAt([batch, record]: readonly [number, number]): number {
    const { doubles } = recordsOf(bodies[batch]!, readHeader(bodies[batch]!));
    return doubles[record * R.RECORD_DOUBLES + R.D_ORDER_ID]!;
  }

  test("the replay finds a flipped bit, by the hash chain at the latest", () => {
    for (let round = 0; round < 10 * EFFORT; round++) {
      const batch = 1 + upTo(bodies.length - 2);
      const changed = Buffer.from(bodies[batch]!);
      const at = upTo(changed.length);
      changed[at]! ^= 1 << upTo(8);
      const { batch: found } = differenceIn(bodies.with(batch, changed));
      expect([batch + 1, batch + 2]).toContain(found);
    }
  });

  test("the replay finds a kind of event that there isn't, in whichever record", () => {
    const everything = events(() => true);
    for (let round = 0; round < 10 * EFFORT; round++) {
      const [batch, record] = everything[upTo(everything.length)]!;
      const changed = Buffer.from(bodies[batch]!);
      changed[HEADER_BYTES + record * R.RECORD_BYTES] = 255;
      expect(differenceIn(bodies.with(batch, changed)).batch).toBe(batch + 1);
    }
  });

  test("the replay finds a wrong fill, in a log whose hashes were written again", () => {
    const fills = events((kind) => kind === R.EventKind.orderFilled);
    const placed = new Map(
      events((kind) => kind === R.EventKind.orderPlaced).map((place) => [orderAt(place), place[0]]),
    );
    const start = bodies.findLastIndex((body) => (readHeader(body).flags & FLAG_STARTED) !== 0);
    const ownSlots = fills.filter((place) => place[0] < start || placed.get(orderAt(place))! >= start);
    for (let round = 0; round < 20 * EFFORT; round++) {
      const word = upTo(R.RECORD_WORDS);
      // A start gives restored orders new slots, which the log doesn't have: the first event with one shows it.
      const places = word === R.W_SLOT ? ownSlots : fills;
      const [batch, record] = places[upTo(places.length)]!;
      const changed = Buffer.from(bodies[batch]!);
      // Word 7 has the user's own rates beside the leg; word 0 begins with the kind.
      const bit = word === R.W_CORRELATION ? upTo(5) : word === R.W_PACKED ? 8 + upTo(24) : upTo(32);
      changed[HEADER_BYTES + record * R.RECORD_BYTES + word * 4 + (bit >> 3)]! ^= 1 << (bit & 7);
      const found = differenceIn(chained(bodies.with(batch, changed)));
      const what = `word ${word}, bit ${bit} of record ${record} of batch ${batch + 1}: ${found.message}`;
      // Behind a request, only the next number shows that a fill's number is too high: how many it took isn't in the log.
      if (word >> 1 === R.D_FILL_ID) expect([batch + 1, batch + 2], what).toContain(found.batch);
      else expect([found.batch, found.record! <= record], what).toEqual([batch + 1, true]);
    }
  });

  test("the replay finds a missing event, in a log whose hashes and positions were written again", () => {
    const kinds: readonly number[] = [R.EventKind.orderFilled, R.EventKind.orderCanceled, R.EventKind.orderAmended];
    // Without an extension or a cancel that was the last update of its user, a log is as it would be if nobody had asked.
    const last = new Map<number, number>();
    const sequenceAt = ([batch, record]: readonly [number, number]): readonly [user: number, sequence: number] => {
      const { words, doubles } = recordsOf(bodies[batch]!, readHeader(bodies[batch]!));
      const user = words[record * R.RECORD_WORDS + R.W_USER]!;
      return [user, doubles[record * R.RECORD_DOUBLES + R.D_USER_SEQUENCE]!];
    };
    const all = events((kind) => kinds.includes(kind));
    for (const [user, sequence] of all.map(sequenceAt)) last.set(user, Math.max(sequence, last.get(user) ?? 0));
    const places = all.filter((place) => {
      const [user, sequence] = sequenceAt(place);
      return sequence < last.get(user)!;
    });
    for (let round = 0; round < 10 * EFFORT; round++) {
      const [batch, record] = places[upTo(places.length)]!;
      const at = HEADER_BYTES + record * R.RECORD_BYTES;
      const body = bodies[batch]!;
      const shorter = Buffer.concat([body.subarray(0, at), body.subarray(at + R.RECORD_BYTES)]);
      const header = readHeader(body);
      writeHeader(shorter, { ...header, records: header.records - 1 }, previousHash(body));
      expect(differenceIn(chained(bodies.with(batch, shorter))).batch).toBeGreaterThan(batch);
    }
  });

  test("the replay finds a missing batch, and one of another exchange", () => {
    const at = 1 + upTo(bodies.length - 2);
    expect(differenceIn(bodies.toSpliced(at, 1))).toMatchObject({ batch: at + 1, record: null });
    const foreign = Buffer.from(bodies[at]!);
    writeHeader(foreign, { ...readHeader(foreign), exchange: 1 }, previousHash(foreign));
    expect(differenceIn(bodies.with(at, foreign))).toMatchObject({ batch: at + 1, message: /exchange/ });
  });
});

/** The bodies with positions and hashes that follow each other. */
function chained(bodies: readonly Buffer[]): Buffer[] {
  let position = 0;
  let hash: Buffer = NO_HASH;
  return bodies.map((body) => {
    const copy = Buffer.from(body);
    const header = readHeader(copy);
    writeHeader(copy, { ...header, recordsBefore: position }, hash);
    position += header.records;
    hash = hashOf(copy);
    return copy;
  });
}
