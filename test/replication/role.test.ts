/** What a box is at a start. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type RoleFacts, roleOf } from "../../server/replication/role.ts";
import { readStandbyFile, writeStandbyFile } from "../../server/replication/standby-file.ts";
import { temporaryFolder } from "../support/server.ts";

const CREATED = "2026-11-28T00:00:00Z";
const stream = (epoch: number, { batch = 10, created = CREATED, isOver = false } = {}) => {
  return { created, sequence: 20, end: { epoch, batch, isOver } };
};
const written = (sequence: number) => ({ created: CREATED, sequence, end: null });
const file = (role: "active" | "standby", epoch: number, sequence = 0) => {
  return { role, stream_created_at: CREATED, epoch, sequence, keys: "" };
};
const facts = (changes: Partial<RoleFacts>): RoleFacts => ({
  ...{ hasActive: false, file: null, stream: stream(3), batch: 10 },
  ...changes,
});

describe("a box", () => {
  test.each([
    ["follows whoever is active", facts({ hasActive: true, file: file("active", 3) }), "standby"],
    ["with a log begins a stream", facts({ stream: null }), "active"],
    ["with a log takes a stream that nobody wrote to", facts({ stream: written(0) }), "active"],
    ["without a log waits for one", facts({ stream: null, batch: 0 }), "standby"],
    [
      "without a log follows a stream that has none yet",
      facts({ stream: stream(1, { batch: 0 }), batch: 0 }),
      "standby",
    ],
    ["with the whole log and no past leads", facts({}), "active"],
    ["with more than the stream and no past leads", facts({ batch: 11 }), "active"],
    ["with an older log and no past follows", facts({ batch: 9 }), "standby"],
    ["with no past can't tell what an emptied stream had", facts({ stream: written(20) }), "standby"],
    ["that led last leads again", facts({ file: file("active", 3) }), "active"],
    ["that began to lead and died before it said so leads", facts({ file: file("active", 4) }), "active"],
    ["that led last leads with an older log, too", facts({ file: file("active", 3), batch: 2 }), "active"],
    ["after which another led follows", facts({ file: file("active", 2) }), "standby"],
    [
      "that led and resigned follows",
      facts({ file: file("active", 3), stream: stream(3, { isOver: true }) }),
      "standby",
    ],
    ["with no past leaves it to the one that was named", facts({ stream: stream(3, { isOver: true }) }), "standby"],
    ["that led makes no new stream by itself", facts({ file: file("active", 3), stream: null }), "standby"],
    [
      "that led follows another one's new stream",
      facts({ file: file("active", 3), stream: stream(1, { created: "later" }) }),
      "standby",
    ],
    [
      "that led and stopped leads in a stream that emptied",
      facts({ file: file("active", 3, 20), stream: written(20) }),
      "active",
    ],
    [
      "that led doesn't know who wrote to a stream that emptied",
      facts({ file: file("active", 3, 19), stream: written(20) }),
      "standby",
    ],
    ["that followed follows", facts({ file: file("standby", 3) }), "standby"],
    ["that followed makes no stream", facts({ file: file("standby", 3), stream: null }), "standby"],
  ] as const)("%s", (_name, given, role) => {
    expect(roleOf(given)).toBe(role);
  });

  test("remembers what it was, and refuses to guess", () => {
    const folder = temporaryFolder();
    expect(readStandbyFile(folder)).toBeNull();
    writeStandbyFile(folder, file("active", 7));
    writeStandbyFile(folder, file("standby", 8));
    expect(readStandbyFile(folder)).toEqual(file("standby", 8));
    for (const text of ["", "{}", '{"role":"boss","stream_created_at":"","epoch":1,"sequence":0}']) {
      writeFileSync(join(folder, "standby.json"), text);
      expect(() => readStandbyFile(folder)).toThrow("isn't what an exchange wrote");
    }
  });
});
