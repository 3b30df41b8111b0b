/** `npm run replay -- --log FILE`: a journal, an archive alone, a data folder, and what it says of damaged files. */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { writeArchive } from "../../engine/log/archive.ts";
import { archivePath, LENGTH_BYTES } from "../../engine/log/archive-format.ts";
import { HEADER_BYTES, hashOf, readHeader, recordsOf } from "../../engine/log/batch-format.ts";
import { JournalReader } from "../../engine/log/log-reader.ts";
import { EMPTY_OPENING, OpeningTracker, packOpening } from "../../engine/log/opening.ts";
import * as R from "../../engine/ring/records.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { makeLog } from "../engine/log/logged-run.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const SEED = 4711;

const journal = makeLog({ seed: SEED, engines: 2, starts: 2, commands: 600 });
const folder = dirname(journal);
const archives = join(folder, "log");
afterAll(() => rmSync(folder, { recursive: true }));

const db = openReadOnly(journal);
const bodies = [...new JournalReader(db).bodies(1)];
db.close();
const HALF = bodies.length >> 1;

interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly result: Readonly<Record<string, unknown>>;
}

function replay(path: string): Run {
  const args = ["dist/bench/replay.js", "--log", path];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" });
  const last = stdout.trim().split("\n").at(-1)!;
  return { status, stdout, stderr, result: last.startsWith("{") ? JSON.parse(last) : {} };
}

/** Archives the batches of each half as a day. */
function archive(): void {
  const tracker = new OpeningTracker();
  const days = [bodies.slice(0, HALF), bodies.slice(HALF)];
  days.forEach((batches, i) => {
    writeArchive({
      folder: archives,
      day: `2026-11-2${i}`,
      bodies: batches,
      previous: i === 0 ? null : { batch: HALF, hash: hashOf(bodies[HALF - 1]!).toString("hex") },
      opening: tracker.opening(),
      onBody: (body) => tracker.follow(body),
    });
  });
}

describe("a log that is as it was", () => {
  test("the replay accepts journal.db, and after its first day is archived, each archive alone and the data folder", () => {
    const whole = replay(journal);
    expect(whole.stderr).toBe("");
    expect(whole).toMatchObject({ status: 0, result: { equal: true, batches: bodies.length, first: 1, starts: 2 } });
    expect(whole.stdout).toContain("byte for byte the same");
    archive();
    const parts = [replay(archivePath(archives, "2026-11-20")), replay(archivePath(archives, "2026-11-21"))];
    expect(parts.map(({ status }) => status)).toEqual([0, 0]);
    expect(parts[1]!.result).toMatchObject({ first: HALF + 1, last: bodies.length });
    const sum = (name: string): number => parts.reduce((total, { result }) => total + Number(result[name]), 0);
    expect([sum("events"), sum("fills")]).toEqual([whole.result["events"], whole.result["fills"]]);
    const { seconds: _, events_per_s: __, ...same } = whole.result;
    expect(replay(folder)).toMatchObject({ status: 0, result: same });
  });
});

/** An archive with these batches, whatever they contain. */
function writeUnchecked(path: string, batches: readonly Buffer[]): void {
  const members = batches.map((body) => {
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32LE(body.length);
    return gzipSync(Buffer.concat([length, body]));
  });
  writeFileSync(path, Buffer.concat([gzipSync(packOpening(EMPTY_OPENING)), ...members]));
}

describe("a log that isn't", () => {
  const path = join(folder, "other.log.gz");

  test("the replay of a changed fill prints its place and both events, and exits with code 1", () => {
    const isFill = (packed: number): boolean => R.kindOf(packed) === R.EventKind.orderFilled;
    const firstFill = (body: Buffer): number => {
      const { words, count } = recordsOf(body, readHeader(body));
      return Array.from({ length: count }, (_, i) => i).findIndex((i) => isFill(words[i * R.RECORD_WORDS]!));
    };
    const batch = bodies.findIndex((body) => firstFill(body) >= 0);
    const record = firstFill(bodies[batch]!);
    const changed = Buffer.from(bodies[batch]!);
    changed.writeInt32LE(12_345, HEADER_BYTES + record * R.RECORD_BYTES + R.W_PRICE * 4);
    writeUnchecked(path, bodies.with(batch, changed));
    const { status, stdout, result } = replay(path);
    expect(result).toMatchObject({ equal: false, batch: batch + 1, record });
    expect(result["logged"]).toContain("price 12345");
    expect(result["replayed"]).toMatch(/^orderFilled: .* price (?!12345)/);
    expect(stdout).toContain(`DIFFERENCE in batch ${batch + 1}, record ${record}: the events differ`);
    expect(status).toBe(1);
  });

  test("the replay of a file that is cut short, of another kind or missing prints one line", () => {
    writeUnchecked(path, bodies);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, bytes.length - 100));
    const cut = replay(path);
    expect(cut.stderr).toMatch(/^replay: .*(cut short|damaged).*\n$/);
    writeFileSync(path, "no archive");
    const other = replay(path);
    expect(other.stderr).toMatch(/^replay: .*no gzip file.*\n$/);
    const none = replay(join(folder, "nothing.db"));
    expect(none.stderr).toMatch(/^replay: there is no .*\n$/);
    expect([cut, other, none].map(({ status }) => status)).toEqual([1, 1, 1]);
  });
});
