/** journal.db of a box that follows another one's log. */
import { readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { LogAppender, NO_HASH } from "../../../engine/log/append.ts";
import { hashOf } from "../../../engine/log/batch-format.ts";
import { BrokenLog } from "../../../engine/log/broken-log.ts";
import { openJournal } from "../../../engine/log/database.ts";
import { DivergedLog, LogCopy } from "../../../engine/log/log-copy.ts";
import { LogFiles } from "../../../engine/log/log-files.ts";
import { journalPath } from "../../../server/util/data-folder.ts";
import { temporaryFolder } from "../../support/server.ts";

/** The bodies of a log of some batches. @param text what they have */
function bodiesOf(count: number, text: string): Buffer[] {
  const db = openJournal(journalPath(temporaryFolder()), "off");
  const appender = new LogAppender(db, { exchange: 5, batch: 0, records: 0, at: 0, hash: NO_HASH });
  for (let i = 1; i <= count; i++) {
    appender.begin();
    appender.addRequest(Buffer.from(`${text} ${i}`));
    appender.commit(1_000 + i, 0);
  }
  const bodies = db.prepare("SELECT body FROM batches ORDER BY number").pluck().all() as Buffer[];
  db.close();
  return bodies;
}

function open(path = journalPath(temporaryFolder())): LogCopy {
  const log = new LogCopy(openJournal(path, "off"));
  onTestFinished(() => log.close());
  return log;
}

describe("a copy of a log", () => {
  test("takes what continues it, once, and says where it ends after each", () => {
    const bodies = bodiesOf(5, "a");
    const log = open();
    expect([log.batch, log.end]).toEqual([0, null]);
    expect(log.append(bodies.slice(0, 3)).map(({ batch }) => batch)).toEqual([1, 2, 3]);
    expect(log.append(bodies.slice(1, 4)).map(({ batch }) => batch)).toEqual([4]);
    expect(log.append(bodies)).toEqual([log.end]);
    expect(log.end).toMatchObject({ exchange: 5, batch: 5, records: 0, at: 1_005 });
    expect(log.endAt(2)).toMatchObject({ batch: 2, at: 1_002 });
    expect(log.endAt(6)).toBeNull();
  });

  test("goes on where it was", () => {
    const bodies = bodiesOf(4, "a");
    const path = journalPath(temporaryFolder());
    const first = new LogCopy(openJournal(path, "off"));
    first.append(bodies.slice(0, 2));
    const { end } = first;
    first.close();
    const log = open(path);
    expect(log.end).toEqual(end);
    expect(log.append(bodies).map(({ batch }) => batch)).toEqual([3, 4]);
  });

  test("refuses another log's batches, whether it has others there or they don't continue it, and appends none", () => {
    const [own, other] = [bodiesOf(4, "a"), bodiesOf(4, "b")];
    const log = open();
    log.append(own.slice(0, 2));
    expect(() => log.append([other[1]!])).toThrow(DivergedLog);
    expect(() => log.append([own[2]!, other[3]!])).toThrow("they went on separately after batch 3");
    expect(log.batch).toBe(2);
    expect(() => log.append([own[3]!])).toThrow(BrokenLog);
    expect(log.append(own.slice(2)).length).toBe(2);
  });

  test("ends earlier where another log goes on differently, and what is cut stays in a file", () => {
    const [own, other] = [bodiesOf(5, "a"), bodiesOf(5, "b")];
    const folder = join(temporaryFolder(), "cut");
    const path = journalPath(temporaryFolder());
    const log = open(path);
    log.append(own);
    expect(log.first).toBe(1);
    const cut = log.cutAfter(3, folder);
    expect(cut).toMatchObject({ first: 4, last: 5 });
    expect(log.end).toMatchObject({ batch: 3, hash: hashOf(own[2]!) });
    expect(log.append(own.slice(3, 4)).length).toBe(1);
    // Another tail with the same numbers, and the same one again.
    expect(log.cutAfter(3, folder).path).not.toBe(cut.path);
    log.append(own.slice(3));
    expect(log.cutAfter(3, folder).path).toBe(cut.path);
    expect(readdirSync(folder).sort()).toEqual([expect.stringMatching(/^4-4-[0-9a-f]{8}\.db$/), basename(cut.path)]);
    const saved = new LogFiles({ journal: cut.path, archives: "" });
    expect([...saved.bodies(4)]).toEqual(own.slice(3));
    saved.close();
    expect(() => log.append([other[3]!])).toThrow(DivergedLog);
  });

  test("isn't cut where the rest can't be saved", () => {
    const own = bodiesOf(4, "a");
    const path = journalPath(temporaryFolder());
    const log = open(path);
    log.append(own);
    const inTheWay = join(temporaryFolder(), "cut");
    writeFileSync(inTheWay, "");
    expect(() => log.cutAfter(2, inTheWay)).toThrow(/ENOTDIR|EEXIST/);
    expect(log.batch).toBe(4);
    expect(log.append(own)).toEqual([]);
  });

  test("refuses bytes that are no batch", () => {
    const log = open();
    for (const bytes of [Buffer.alloc(0), Buffer.from("hello"), bodiesOf(1, "a")[0]!.subarray(0, 40)]) {
      expect(() => log.append([bytes])).toThrow("a batch that came from another box is damaged");
    }
    expect(log.batch).toBe(0);
  });
});
