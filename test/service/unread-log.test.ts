/**
 * An exchange whose log nobody reads: its standard output is a pipe that is full from the start. It starts, trades, serves
 * health and sockets, and stops in time; what it had to say appears once somebody reads.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../bench/support/free-port.ts";
import { builtScript } from "../../bench/support/root.ts";
import { eventually } from "../support/checks.ts";
import { temporaryFolder } from "../support/server.ts";

const MAIN = fileURLToPath(builtScript("main.js"));

/** Its ends don't share their modes: the start of a process sets one of them. */
interface Pipe {
  readonly reader: number;
  readonly writer: number;
}

/** A pipe that has no room. */
function fullPipe(): Pipe {
  const path = join(temporaryFolder(), "pipe");
  expect(spawnSync("mkfifo", [path]).status).toBe(0);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  onTestFinished(() => {
    closeSync(reader);
    closeSync(writer);
  });
  for (const size of [4_096, 1]) {
    try {
      for (;;) writeSync(writer, "x".repeat(size));
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe("EAGAIN");
    }
  }
  return { reader, writer };
}

/** What waits in the pipe now. */
function readAll({ reader }: Pipe): string {
  const buffer = Buffer.alloc(2 ** 17);
  let text = "";
  try {
    for (;;) text += buffer.toString("latin1", 0, readSync(reader, buffer));
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe("EAGAIN");
  }
  return text;
}

/** Starts the exchange with its log into the pipe; resolves when it is ready. */
async function start({ writer }: Pipe) {
  const port = await freePort();
  const env = { PATH: process.env["PATH"], HOST: "127.0.0.1", PORT: String(port), DATA_DIR: temporaryFolder() };
  const child = spawn(process.execPath, [MAIN], { env, stdio: ["ignore", writer, "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const root = `http://127.0.0.1:${port}`;
  await eventually(async () => expect((await fetch(`${root}/readyz`)).status).toBe(200));
  return { child, root, exited: once(child, "exit") };
}

test("with a full pipe it starts, serves and stops in time", async () => {
  const { child, root, exited } = await start(fullPipe());
  for (let n = 0; n < 20; n++) expect((await fetch(`${root}/api/v1/time`)).status).toBe(200);
  expect(await (await fetch(`${root}/metrics`)).text()).toMatch(/^exchange_log_lines_dropped_total 0$/m);
  const since = performance.now();
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
  expect(performance.now() - since).toBeLessThan(6_000);
});

test("its lines appear once somebody reads", async () => {
  const pipe = fullPipe();
  const { child, exited } = await start(pipe);
  let text = readAll(pipe);
  await eventually(async () => {
    text += readAll(pipe);
    expect(text).toMatch(/"msg":"ready"/);
  });
  child.kill("SIGTERM");
  await exited;
  expect(readAll(pipe)).toMatch(/"msg":"stopped"/);
});
