/**
 * A process of unfinished-messages.long.test.ts, in a network of its own. Without an argument it starts a server and this
 * file again as the attacker, and prints how long requests take meanwhile as JSON. With an argument, a port, it attacks: each
 * socket begins a message and sends frames of length 0 that never end it.
 */
import { spawn } from "node:child_process";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { TestServer } from "../support/server.ts";
import { upgrade } from "../support/wire.ts";

const SOCKETS = 32;
const PROBES = 200;
/** nftables.conf names it. */
const PORT = 8_080;
/** A text frame of one byte without FIN; masked, as a client's frames are. */
const BEGINNING = Buffer.from([0x01, 0x81, 0, 0, 0, 0, 0x7b]);
const EMPTY_FRAMES = Buffer.alloc(6 * 10_922, Buffer.from([0x00, 0x80, 0, 0, 0, 0]));

function attack(port: number): void {
  for (let i = 0; i < SOCKETS; i++) {
    const socket = connect(port, "127.0.0.1");
    const push = (): void => {
      while (socket.write(EMPTY_FRAMES));
      socket.once("drain", push);
    };
    socket.once("data", () => {
      socket.write(BEGINNING);
      push();
      // The server is asked only once all send.
      if (i === SOCKETS - 1) process.stdout.write("attacking\n");
    });
    socket.resume();
    socket.write(upgrade("/ws"));
  }
}

async function probe(): Promise<void> {
  const server = await TestServer.start({ env: { PORT: String(PORT) } });
  const attacker = spawn(process.execPath, [fileURLToPath(import.meta.url), String(server.port)]);
  await new Promise((resolve) => attacker.stdout.once("data", resolve));
  const times: number[] = [];
  for (let i = 0; i < PROBES; i++) {
    const began = performance.now();
    await (await fetch(`${server.root}/api/v1/time`)).arrayBuffer();
    times.push(performance.now() - began);
  }
  const isAttacking = attacker.exitCode === null;
  attacker.kill("SIGKILL");
  await server.kill();
  const sorted = times.sort((a, b) => a - b);
  process.stdout.write(`${JSON.stringify({ isAttacking, p50: sorted[PROBES / 2], slowest: sorted.at(-1) })}\n`);
}

const [port] = process.argv.slice(2);
if (port === undefined) await probe();
else attack(Number(port));
