/** The program's own log towards a reader that pauses, that reads again, and that goes; and messages without number. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { LineLimit, MAX_LINES_A_MINUTE } from "../../server/util/line-limit.ts";
import { LogOutput } from "../../server/util/log-output.ts";
import { eventually } from "../support/checks.ts";

const LINE = `${"x".repeat(999)}\n`;
/** More than the system's buffers and the bound together. */
const MANY = 20_000;

describe("a reader that pauses", () => {
  const open: { end(): void }[] = [];
  afterEach(() => {
    for (const each of open.splice(0)) each.end();
  });

  /** The two ends of a connection, whose reader doesn't read. */
  async function paused(): Promise<{ writer: Socket; reader: Socket }> {
    const server = createServer({ pauseOnConnect: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const writer = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const [reader] = (await once(server, "connection")) as [Socket];
    open.push({ end: () => writer.destroy() }, { end: () => reader.destroy() }, { end: () => server.close() });
    return { writer, reader };
  }

  test("a reader of the log that pauses costs lines beyond a megabyte, which are counted and reported when it reads again; fatal ones stay", async () => {
    const { writer, reader } = await paused();
    const output = new LogOutput(writer);
    const reports: number[] = [];
    output.onReadAgain((dropped) => reports.push(dropped));
    output.lastLevel = 50;
    for (let n = 0; n < MANY; n++) output.write(LINE);
    expect(writer.writableLength).toBeLessThanOrEqual(1024 * 1024);
    expect(output.dropped).toBeGreaterThan(MANY / 4);
    output.lastLevel = 60;
    output.write("the reason\n");
    const kept = MANY - output.dropped;
    let text = "";
    reader.setEncoding("latin1").on("data", (chunk: string) => {
      text += chunk;
    });
    reader.resume();
    await eventually(async () => expect(text.length).toBe(kept * LINE.length + "the reason\n".length));
    expect(text.endsWith("the reason\n")).toBe(true);
    await eventually(async () => expect(reports).toEqual([output.dropped]));
    // Nothing more is lost.
    output.lastLevel = 30;
    output.write("on it goes\n");
    await output.flush(10_000);
    await eventually(async () => expect(text.endsWith("the reason\non it goes\n")).toBe(true));
  });

  test("a reader of the log that pauses delays an end by no more than its bound", async () => {
    const { writer } = await paused();
    const output = new LogOutput(writer);
    expect(await output.flush(60_000)).toBeUndefined();
    // The system's buffers take megabytes, too.
    for (let n = 0; n < 200; n++) {
      for (let line = 0; line < 1_000; line++) output.write(LINE);
      await new Promise(setImmediate);
    }
    const since = performance.now();
    await output.flush(200);
    expect(performance.now() - since).toBeGreaterThan(150);
  });

  test("a reader of the log that pauses and then goes: lines are counted, nothing throws", async () => {
    const { writer, reader } = await paused();
    const output = new LogOutput(writer);
    reader.resetAndDestroy();
    await eventually(async () => {
      output.write(LINE);
      expect(output.dropped).toBeGreaterThan(10);
    });
    await output.flush(60_000);
  });
});

describe("lines of one message", () => {
  test("lines of one message are so many a minute; others aren't affected, and what was left out is counted", () => {
    const limit = new LineLimit();
    const admitted = (message: string, lines: number, now: number): number =>
      Array.from({ length: lines }, () => limit.admits(message, now)).filter(Boolean).length;
    expect(admitted("mail", 100, 5)).toBe(MAX_LINES_A_MINUTE);
    expect(admitted("other", 3, 6)).toBe(3);
    expect(limit.leftOut(59_000)).toBeNull();
    expect(limit.leftOut(60_005)).toEqual([{ message: "mail", lines: 100 - MAX_LINES_A_MINUTE }]);
    expect(limit.leftOut(200_000)).toBeNull();
    expect(admitted("mail", 100, 300_000)).toBe(MAX_LINES_A_MINUTE);
  });

  test("the log's limit of lines with any number of messages stays small", () => {
    const limit = new LineLimit();
    let admitted = 0;
    for (let n = 0; n < 100_000; n++) if (limit.admits(`message ${n}`, 0)) admitted++;
    expect(admitted).toBe(1_000 + MAX_LINES_A_MINUTE);
    expect(limit.leftOut(60_000)).toEqual([{ message: "others", lines: 100_000 - admitted }]);
  });
});
