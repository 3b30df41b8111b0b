/**
 * One WebSocket connection that sends prepared operations as fast as the exchange responds, with a bounded number in
 * flight. It shares the machine with the exchange and must leave it the processor: it writes everything due in one
 * piece, reads into one buffer, and inspects only the bytes of a frame that tell a response from an event and a success
 * from a rejection. Parses no JSON.
 */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { assert } from "../../engine/util/assert.ts";
import {
  BINARY,
  CLOSE,
  ClientFrames,
  clientFrame,
  LENGTH_IN_2,
  LENGTH_IN_8,
  PING,
  PONG,
  TEXT,
} from "./client-frames.ts";
import {
  batchOf,
  DONE,
  LENGTH_AT,
  ORDER_ACCEPTED,
  ORDER_UPDATED,
  placeOrder,
  REJECTED,
  type SbeOrder,
  TEMPLATE_AT,
} from "./sbe-frames.ts";

/** The receive buffer; larger than the longest frame. */
const MEMORY_BYTES = 1 << 20;
const SILENCE_DEADLINE_MS = 30_000;
const HEAD_END = "\r\n\r\n";
/** One in this many responses is timed. */
const TIMED_SHARE = 16;

/** The offset of a response's code. Ids with a fixed number of digits keep it constant. */
const ID_DIGITS = 8;
const FIRST_ID = 10 ** (ID_DIGITS - 1);
const CODE_AT = '{"id":'.length + ID_DIGITS + ',"code":'.length;
/**
 * The letter that tells `{"id":` (a response) from `{"event":` (an event), and in events the one of `order.updated`.
 */
const KIND_AT = 2;
const EVENT_AT = '{"event":"'.length;
const RESULT_SUCCEEDED = Buffer.from('{"code":0,');
const [LETTER_I, LETTER_E, LETTER_O, DIGIT_0, COMMA] = Buffer.from("ieo0,") as unknown as number[];

/** Framed operations, each with the id from `operationId`. */
export interface Operations {
  readonly frames: ClientFrames;
  /** Orders per frame. With more than one in JSON, each response has a result per order. */
  readonly ordersPerFrame: number;
  /** Set in binary, where each order has a response of its own, and a batch ends with one more. */
  readonly binary?: { readonly isBatch: boolean };
}

export interface SocketLoaded {
  /** From the first byte sent to the last response received. */
  readonly seconds: number;
  readonly accepted: number;
  readonly refused: number;
  /** The latency of every sixteenth frame; responses arrive in order. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export function operationId(index: number): number {
  assert(index < 9 * FIRST_ID, "ids have the digits that this client looks for");
  return FIRST_ID + index;
}

/** `count` placements, cycling through `orders`, `ordersPerFrame` to a frame. @param orders JSON bodies */
export function batchesOf(orders: readonly string[], count: number, ordersPerFrame: number): Operations {
  const frames = new ClientFrames();
  const operations = orders.map((order) => `{"op":"place",${order.slice(1)}`);
  for (let first = 0; first < count; first += ordersPerFrame) {
    const batch = Array.from({ length: ordersPerFrame }, (_, i) => operations[(first + i) % operations.length]);
    const id = operationId(first / ordersPerFrame);
    frames.add(`{"id":${id},"op":"order.batch","data":{"operations":[${batch.join(",")}]}}`);
  }
  return { frames, ordersPerFrame };
}

/** The same in binary: `ordersPerFrame` to a frame, one beside the other or as a batch. */
export function binaryOf(
  orders: readonly SbeOrder[],
  count: number,
  ordersPerFrame: number,
  isBatch: boolean,
  clientOrderIdOf: (index: number) => bigint | null = () => null,
): Operations {
  const frames = new ClientFrames();
  for (let first = 0; first < count; first += ordersPerFrame) {
    const placed = Array.from({ length: ordersPerFrame }, (_, i) =>
      placeOrder(orders[(first + i) % orders.length]!, first + i, clientOrderIdOf(first + i)),
    );
    frames.addBinary(isBatch ? [batchOf(ordersPerFrame, first), ...placed] : placed);
  }
  return { frames, ordersPerFrame, binary: { isBatch } };
}

interface Run extends Operations {
  readonly window: number;
  readonly start: number;
  /** When each frame was sent. */
  readonly sentAt: Float64Array;
  readonly latencies: number[];
  sent: number;
  /** Frames. */
  answered: number;
  /** In binary: responses of the frame that is being answered. */
  results: number;
  accepted: number;
  /** `order.updated` events. */
  updates: number;
  seconds: number;
  readonly done: () => void;
}

export class SocketLoad {
  private readonly socket: Socket;
  private readonly memory = Buffer.alloc(MEMORY_BYTES);
  private filled = 0;
  private upgraded: (() => void) | null = null;
  private readonly failed: Promise<never>;
  private fail: (error: Error) => void = () => {};
  private run: Run | null = null;

  private constructor(url: URL, upgraded: () => void) {
    this.upgraded = upgraded;
    this.failed = new Promise((_, reject) => {
      this.fail = reject;
    });
    // A pending wait for something else reports the failure.
    this.failed.catch(() => {});
    this.socket = connect({
      host: url.hostname,
      port: Number(url.port),
      noDelay: true,
      onread: {
        buffer: () => this.memory.subarray(this.filled),
        callback: (bytes) => {
          this.filled += bytes;
          this.receive();
          return true;
        },
      },
    });
    this.socket.setTimeout(SILENCE_DEADLINE_MS, () => {
      if (this.run !== null) this.fail(new Error(`the WebSocket was silent for ${SILENCE_DEADLINE_MS / 1_000} s`));
    });
    this.socket.on("error", this.fail);
    this.socket.on("close", () => this.fail(new Error("the WebSocket was closed")));
  }

  /** Connects and upgrades. @param root the server's URL @throws Error if the upgrade is rejected */
  static async open(root: string, token: string, protocol = "json"): Promise<SocketLoad> {
    const url = new URL(root);
    let upgraded: () => void = () => {};
    const ready = new Promise<void>((resolve) => {
      upgraded = resolve;
    });
    const load = new SocketLoad(url, upgraded);
    const key = randomBytes(16).toString("base64");
    load.socket.write(
      `GET /api/v1/ws?token=${encodeURIComponent(token)} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: Upgrade\r\n` +
        `Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n` +
        `Sec-WebSocket-Protocol: ${protocol}${HEAD_END}`,
    );
    await Promise.race([ready, load.failed]);
    return load;
  }

  /**
   * Sends all frames, with at most `window` in flight. Resolves once every order has a response and every accepted one
   * an `order.updated`. Only for orders with one update: they rest, or fill immediately.
   * @throws Error if the connection ends before that
   */
  async send(operations: Operations, window: number): Promise<SocketLoaded> {
    const { frames, ordersPerFrame } = operations;
    let run: Run | null = null;
    const finished = new Promise<void>((done) => {
      const counts = { sent: 0, answered: 0, results: 0, accepted: 0, updates: 0, seconds: 0 };
      const times = { start: performance.now(), sentAt: new Float64Array(frames.count), latencies: [] };
      this.run = run = { ...operations, window, ...times, ...counts, done };
      this.fill(run, run.start);
    });
    await Promise.race([finished, this.failed]);
    this.run = null;
    const { accepted, seconds, latencies } = run!;
    latencies.sort((a, b) => a - b);
    const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? 0;
    return { seconds, accepted, refused: frames.count * ordersPerFrame - accepted, p50Ms: at(0.5), p99Ms: at(0.99) };
  }

  close(): void {
    this.socket.destroy();
  }

  /** Fills the window. */
  private fill(run: Run, now: number): void {
    const from = run.sent;
    const to = Math.min(run.frames.count, run.answered + run.window);
    if (to === from) return;
    run.sent = to;
    run.sentAt.fill(now, from, to);
    this.socket.write(run.frames.bytes(from, to));
  }

  private receive(): void {
    if (this.upgraded !== null && !this.upgrade()) return;
    const { memory, filled, run } = this;
    const now = performance.now();
    let at = 0;
    while (filled - at >= 2) {
      let length = memory[at + 1]!;
      let payload = at + 2;
      if (length === LENGTH_IN_2) {
        if (filled < (payload += 2)) break;
        length = memory.readUInt16BE(at + 2);
      } else if (length === LENGTH_IN_8) {
        if (filled < (payload += 8)) break;
        length = Number(memory.readBigUInt64BE(at + 2));
      }
      if (payload + length - at > MEMORY_BYTES) return this.fail(new Error(`a frame of ${length} bytes`));
      if (payload + length > filled) break;
      this.receiveFrame(memory[at]!, payload, payload + length, run, now);
      at = payload + length;
    }
    memory.copyWithin(0, at, filled);
    this.filled = filled - at;
    if (run === null) return;
    this.fill(run, now);
    if (run.answered < run.frames.count) return;
    if (run.seconds === 0) run.seconds = (now - run.start) / 1_000;
    if (run.updates >= run.accepted) run.done();
  }

  /** True once the upgrade's response is complete and successful. */
  private upgrade(): boolean {
    const head = this.memory.toString("latin1", 0, this.filled);
    const end = head.indexOf(HEAD_END);
    if (end < 0) return false;
    if (!head.startsWith("HTTP/1.1 101 ")) {
      this.fail(new Error(`the upgrade was refused: ${head}`));
      return false;
    }
    this.memory.copyWithin(0, end + HEAD_END.length, this.filled);
    this.filled -= end + HEAD_END.length;
    this.upgraded!();
    this.upgraded = null;
    return true;
  }

  private receiveFrame(first: number, payload: number, end: number, run: Run | null, now: number): void {
    if (first === TEXT) {
      if (run !== null) this.receiveText(payload, end, run, now);
    } else if (first === BINARY) {
      if (run !== null) this.receiveBinary(payload, end, run, now);
    } else if (first === PING) this.socket.write(clientFrame(PONG, this.memory.subarray(payload, end)));
    else if (first === CLOSE)
      this.fail(new Error(`the WebSocket was closed with ${this.memory.readUInt16BE(payload)}`));
    else this.fail(new Error(`a frame that begins with 0x${first.toString(16)}`));
  }

  private receiveText(payload: number, end: number, run: Run, now: number): void {
    const { memory } = this;
    const kind = memory[payload + KIND_AT];
    if (kind === LETTER_E) {
      if (memory[payload + EVENT_AT] === LETTER_O) run.updates++;
      return;
    }
    assert(kind === LETTER_I, "a message is a response or an event");
    this.frameAnswered(run, now);
    if (memory[payload + CODE_AT] !== DIGIT_0 || memory[payload + CODE_AT + 1] !== COMMA) return;
    run.accepted += run.ordersPerFrame === 1 ? 1 : countResults(memory.subarray(payload, end));
  }

  private frameAnswered(run: Run, now: number): void {
    if (run.answered % TIMED_SHARE === 0) run.latencies.push(now - run.sentAt[run.answered]!);
    run.answered++;
  }

  private receiveBinary(payload: number, end: number, run: Run, now: number): void {
    const { memory } = this;
    for (let at = payload; at < end; at += memory.readUInt32LE(at + LENGTH_AT)) {
      const template = memory.readUInt16LE(at + TEMPLATE_AT);
      if (template === ORDER_UPDATED) run.updates++;
      if (template === DONE) this.frameAnswered(run, now);
      if (template !== ORDER_ACCEPTED && template !== REJECTED) continue;
      if (template === ORDER_ACCEPTED) run.accepted++;
      if (run.binary?.isBatch === true || ++run.results < run.ordersPerFrame) continue;
      run.results = 0;
      this.frameAnswered(run, now);
    }
  }
}

/** The number of successes in a batch's response. */
function countResults(answer: Buffer): number {
  let count = 0;
  for (let at = answer.indexOf(RESULT_SUCCEEDED); at >= 0; at = answer.indexOf(RESULT_SUCCEEDED, at + 1)) count++;
  return count;
}
