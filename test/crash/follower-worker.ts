/**
 * A client that follows its fills, as a process of its own: resumes behind the number that it is given and writes each
 * order update to stdout, one line at a time and without delay, so that the killing process has read all that it holds.
 * Ends when its connection does.
 */
import { writeSync } from "node:fs";
import { WebSocket } from "ws";

export interface FollowedUpdate {
  readonly sequence: number;
  readonly order: number;
  readonly status: string;
  readonly fills: readonly number[];
}

interface Message {
  readonly id?: number;
  readonly code?: number;
  readonly event?: string;
  readonly sequence?: number;
  readonly data?: { id: number; status: string; trades: { id: number }[] };
}

const [url, sequence] = process.argv.slice(2) as [string, string];
const socket = new WebSocket(url, { perMessageDeflate: false });
let last = Number(sequence);
let isResumed = false;
const ended = (): never => process.exit(0);
socket.on("open", () => socket.send(JSON.stringify({ op: "resume", sequence: last, id: 1 })));
socket.on("close", ended);
socket.on("error", ended);
socket.on("message", (bytes: Buffer) => {
  const message = JSON.parse(bytes.toString()) as Message;
  if (message.id === 1) {
    if (message.code !== 0) throw new Error(bytes.toString());
    isResumed = true;
  }
  // What came before the answer comes again.
  if (!isResumed || message.event !== "order.updated") return;
  if (message.sequence !== last + 1) throw new Error(`update ${message.sequence} follows ${last}`);
  last = message.sequence;
  const { id: order, status, trades } = message.data!;
  const update: FollowedUpdate = { sequence: last, order, status, fills: trades.map((fill) => fill.id) };
  writeSync(1, `${JSON.stringify(update)}\n`);
});
