/**
 * Signals: those that mean an end stop the exchange in order, as SIGTERM does; those that other programs' habits send do
 * nothing, and none opens Node's debugger.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { eventually, expectSoundDatabase } from "../support/checks.ts";
import { Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { tokenOf, World } from "../support/world.ts";

const STOP_DEADLINE_MS = 10_000;

/** The numbers of the sockets on which a process listens. */
function listening(pid: number): string[] {
  const own = new Set(
    readdirSync(`/proc/${pid}/fd`).map((name) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${name}`);
      } catch {
        return "";
      }
    }),
  );
  const LISTEN = "0A";
  return ["tcp", "tcp6"]
    .flatMap((table) => readFileSync(`/proc/${pid}/net/${table}`, "utf8").split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === LISTEN && own.has(`socket:[${inode}]`))
    .map(([, local = ""]) => String(Number.parseInt(local.split(":")[1] ?? "", 16)));
}

test.each(["SIGHUP", "SIGINT", "SIGQUIT", "SIGPWR"] as const)(
  "%s: accepted orders are answered and kept, sockets hear of it, the exit code is 0",
  async (signal) => {
    const world = await World.start({ users: 1 });
    const user = world.client("user0", 0, 8);
    const socket = await Socket.open(world.server, tokenOf("user0"));
    const sent = Array.from({ length: 20 }, (_, n) => user.place(terms(world.markets[0]!, 0, BUY, 100 + n, 1)));
    await Promise.race(sent);
    world.server.signal(signal);
    expect(await world.server.exit(STOP_DEADLINE_MS)).toBe(0);
    expect(await socket.closed).toBe(1001);
    expect(socket.frames.at(-1)).toMatchObject({ event: "system.shutdown" });
    const kept = (await Promise.allSettled(sent)).filter(({ status }) => status === "fulfilled").length;
    expect(kept).toBeGreaterThan(0);
    world.server = await world.server.restart();
    expect(await world.client("user0").all("/orders")).toHaveLength(kept);
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  },
);

test("others do nothing: it trades on, listens on no other port, and has no debugger", async () => {
  const world = await World.start({ users: 1 });
  const { server } = world;
  const user = world.client("user0");
  const ports = listening(server.pid);
  expect(ports).toEqual([String(server.port)]);
  for (const signal of ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGIO", "SIGPIPE"] as const) {
    for (let n = 0; n < 3; n++) server.signal(signal);
    expect((await user.place(terms(world.markets[0]!, 0, BUY, 100, 1))).status).toBe("queued");
  }
  await eventually(async () => expect(await user.all("/orders")).toHaveLength(6));
  expect(listening(server.pid)).toEqual(ports);
  expect(server.errors).not.toMatch(/[Dd]ebugger/);
  await world.stop();
});
