/** Idle connections: they take another request for as long as `Keep-Alive` says, at each phase of the library's coarse timer. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KEEP_ALIVE_S } from "../../server/http/limits.ts";
import { TestServer } from "../support/server.ts";
import { head, Wire } from "../support/wire.ts";

/** uWebSockets.js looks at its connections every 4 s: these are idle from one phase after the other. */
const PHASES = 20;
const PHASE_MS = 200;

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.stop());

async function answered(wire: Wire, responses: number): Promise<void> {
  await wire.until(() => wire.answers().length >= responses);
  expect(wire.answers().map(({ status }) => status)).toEqual(Array(responses).fill(200));
}

test.each(["/time", "/markets"])("a connection that was idle after GET %s", { timeout: 60_000 }, async (path) => {
  const one = async (phase: number): Promise<number> => {
    await delay(phase * PHASE_MS);
    const wire = new Wire(server.port);
    wire.socket.write(head("GET", path, null));
    await answered(wire, 1);
    const [, seconds] = /\r\nKeep-Alive: timeout=(\d+)\r\n/.exec(wire.received.toString("latin1"))!;
    expect(Number(seconds)).toBe(KEEP_ALIVE_S);
    await delay(KEEP_ALIVE_S * 1_000);
    wire.socket.write(head("GET", path, null));
    await answered(wire, 2);
    const idleSince = Date.now();
    await wire.ended;
    return wire.endedAt! - idleSince;
  };
  const idle = await Promise.all(Array.from({ length: PHASES }, (_, phase) => one(phase)));
  expect(Math.min(...idle)).toBeGreaterThan(KEEP_ALIVE_S * 1_000);
});

test("every response says so: the page, errors and preflights too", async () => {
  for (const [method, path] of [
    ["GET", "/"],
    ["GET", "/api/v1/nothing"],
    ["OPTIONS", "/api/v1/orders"],
    ["POST", "/api/v1/orders"],
  ] as const) {
    const { headers } = await fetch(server.root + path, { method });
    expect(headers.get("keep-alive"), `${method} ${path}`).toBe(`timeout=${KEEP_ALIVE_S}`);
  }
});
