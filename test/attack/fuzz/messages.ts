/**
 * Messages of every WebSocket operation, about half of them invalid, in JSON and in MessagePack, and frames that RFC
 * 6455 forbids. The server must respond to a message in a valid frame. An invalid frame must end the connection or
 * change nothing.
 */

import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { CancelOnDisconnect, Ping, PresentToken, Resume, Subscription } from "../../../server/websocket/schemas.ts";

import { API_BASE, ROUTES } from "../../support/client.ts";
import { unpack } from "../../support/packed.ts";
import type { Random } from "../../support/random.ts";
import { batch, damaged } from "./requests.ts";
import { type Schema, validObject } from "./valid.ts";
import { Fields, hostileValue, mutated, type Tree, toJson, toMessagePack } from "./values.ts";

const REPLY_DEADLINE_MS = 5_000;
const [TEXT, BINARY, CLOSE, PING, PONG] = [0x1, 0x2, 0x8, 0x9, 0xa];
const LAST = 0x80;
const CODES: readonly number[] = [
  0, 40000, 40100, 2002, 40300, 4040, 40900, 42201, 42202, 42203, 42204, 42900, 42901, 50300,
];

const routeBody = (template: string): Schema => {
  return ROUTES.find(({ method, path }) => `${method} ${path}` === template)!.body as unknown as Schema;
};
const ID: Schema = { type: "integer" };
const DATA: Readonly<Record<string, Schema | null>> = {
  "order.place": routeBody("POST /orders"),
  "order.amend": {
    ...routeBody("PATCH /orders/:id"),
    properties: { ...routeBody("PATCH /orders/:id").properties, id: ID },
    required: ["id"],
  },
  "order.cancel": { type: "object", properties: { id: ID, client_order_id: { type: "string" } } },
  "order.cancel_all": { type: "object", properties: { market_id: ID, side: ID } },
  "order.batch": null,
  "quotes.replace": {
    ...routeBody("PUT /quotes/:market_id"),
    properties: { ...routeBody("PUT /quotes/:market_id").properties, market_id: ID },
    required: ["quotes", "market_id"],
  },
};
const OTHERS: Readonly<Record<string, Schema>> = Object.fromEntries(
  [
    ["subscribe", Subscription],
    ["unsubscribe", Subscription],
    ["resume", Resume],
    ["auth", PresentToken],
    ["cancel_on_disconnect", CancelOnDisconnect],
    ["ping", Ping],
  ].map(([op, schema]) => [op as string, schema as unknown as Schema]),
);

function operation(random: Random, id: number): Tree {
  const op = random.pick([...Object.keys(DATA), ...Object.keys(OTHERS)]);
  const schema = DATA[op];
  const rest: [string, Tree][] =
    op in OTHERS
      ? validObject(random, OTHERS[op]!).pairs.filter(([name]) => name !== "op" && name !== "id")
      : [["data", schema == null ? batch(random) : validObject(random, schema)]];
  if (random.chance(0.1)) rest.push(["builder_code", random.chance(0.5) ? "builder" : hostileValue(random)]);
  let tree: Tree = new Fields([["op", op], ["id", id], ...rest]);
  while (random.chance(0.55)) tree = mutated(random, tree);
  return tree;
}

/** One frame of a client, as it should be. */
export function frame(opcode: number, payload: Buffer, first = LAST | opcode): Buffer {
  const head = Buffer.alloc(payload.length < 126 ? 6 : payload.length < 65_536 ? 8 : 14);
  head[0] = first;
  if (payload.length < 126) head[1] = 0x80 | payload.length;
  else if (payload.length < 65_536) head.writeUInt16BE(payload.length, 2);
  else head.writeBigUInt64BE(BigInt(payload.length), 2);
  if (payload.length >= 126) head[1] = payload.length < 65_536 ? 0xfe : 0xff;
  const key = randomBytes(4);
  key.copy(head, head.length - 4);
  const masked = Buffer.from(payload);
  for (let i = 0; i < masked.length; i++) masked[i] = masked[i]! ^ key[i & 3]!;
  return Buffer.concat([head, masked]);
}

/** What no client may send. */
function badFrames(random: Random): Buffer {
  const ping = Buffer.from('{"op":"ping"}');
  const claim = (bytes: string): Buffer => Buffer.from(bytes, "hex");
  return random.pick<() => Buffer>([
    () => frame(TEXT, ping, LAST | 0x40 | TEXT),
    () => frame(TEXT, ping, LAST | 0x70 | TEXT),
    () => frame(random.integer(3, 7), ping),
    () => frame(random.integer(11, 15), ping),
    () => Buffer.concat([Buffer.from([LAST | TEXT, ping.length]), ping]),
    () => frame(PING, Buffer.alloc(126)),
    () => frame(PING, Buffer.alloc(5), PING),
    () => frame(0, ping, LAST),
    () => Buffer.concat([frame(TEXT, ping, TEXT), frame(TEXT, ping)]),
    () => Buffer.concat([frame(TEXT, Buffer.from([0xf0, 0x9f]), TEXT), frame(0, Buffer.from([0x28, 0x80]), LAST)]),
    () => claim("81ff7fffffffffffffff00000000"),
    () => claim("81ffffffffffffffffff00000000"),
    () => claim("82ff0000000001000000000000007b"),
    () => frame(CLOSE, Buffer.from([random.integer(0, 255)])),
    () => frame(CLOSE, Buffer.from([random.pick([0x00, 0x03, 0xff]), random.pick([0x00, 0xec, 0xed, 0xff])])),
    () => frame(CLOSE, Buffer.concat([Buffer.from([0x03, 0xe8]), Buffer.from([0xc3, 0x28])])),
    () => frame(TEXT, Buffer.alloc(random.pick([65_536, 65_537, 200_000]), 0x20)),
    () => Buffer.concat(Array.from({ length: 2_000 }, () => frame(random.pick([PING, PONG]), Buffer.from("x")))),
    () => Buffer.concat(Array.from({ length: 500 }, () => frame(0, Buffer.alloc(1), 0))),
    () => Buffer.from(Array.from({ length: random.integer(1, 300) }, () => random.integer(0, 255))),
  ])();
}

interface Answered {
  readonly id: number | null;
  readonly code: number;
  readonly msg: string;
}

/** One connection, opened by hand. */
export class FuzzSocket {
  isOpen = true;
  private readonly socket: Socket;
  private readonly packed: boolean;
  private received: Buffer = Buffer.alloc(0);
  private answers: Answered[] = [];
  private fault: Error | null = null;
  private watcher: () => void = () => {};

  private constructor(socket: Socket, packed: boolean) {
    this.socket = socket;
    this.packed = packed;
  }

  static async open(port: number, token: string | null, packed: boolean): Promise<FuzzSocket> {
    const socket = connect(port, "127.0.0.1");
    const found = new FuzzSocket(socket, packed);
    socket.setNoDelay(true);
    socket.on("error", () => {});
    const query = token === null ? "" : `?token=${token}`;
    const fields = ["Host: x", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
    fields.push("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==");
    if (packed) fields.push("Sec-WebSocket-Protocol: msgpack");
    socket.write(`GET ${API_BASE}/ws${query} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`);
    await new Promise<void>((resolve, reject) => {
      let head = "";
      socket.on("data", function opening(chunk: Buffer) {
        head += chunk.toString("latin1");
        const end = head.indexOf("\r\n\r\n");
        if (end < 0) return;
        socket.off("data", opening);
        if (!head.startsWith("HTTP/1.1 101")) return reject(new Error(head));
        socket.on("data", (bytes: Buffer) => found.receive(bytes));
        found.receive(Buffer.from(head.slice(end + 4), "latin1"));
        resolve();
      });
      socket.on("close", () => {
        found.isOpen = false;
        found.watcher();
        reject(new Error("closed"));
      });
    });
    return found;
  }

  /** Sends bytes, then a ping operation: resolves when that is answered or the connection has ended. */
  async ask(bytes: Buffer, isWhole: boolean): Promise<number | null> {
    const before = this.answers.length;
    this.socket.write(bytes);
    if (isWhole) {
      await this.until(() => this.answers.length > before || !this.isOpen, "an answer to a message");
      return this.answers[before]?.code ?? null;
    }
    const message = { op: "ping", id: 987_654_321 };
    const ping = this.packed
      ? toMessagePack(new Fields(Object.entries(message)))
      : Buffer.from(JSON.stringify(message));
    this.socket.write(frame(this.packed ? BINARY : TEXT, ping));
    // Bytes that announce a long frame swallow what follows: then there is nothing to wait for.
    await this.until(() => this.answers.some(({ id }) => id === message.id) || !this.isOpen, "", 50);
    return null;
  }

  close(): void {
    this.socket.destroy();
  }

  private async until(isDone: () => boolean, what: string, ms = REPLY_DEADLINE_MS): Promise<void> {
    const deadline = Date.now() + ms;
    while (!isDone()) {
      if (this.fault !== null) throw this.fault;
      const left = deadline - Date.now();
      if (left <= 0 && what === "") return;
      if (left <= 0) throw new Error(`${what} did not come`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.watcher = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    if (this.fault !== null) throw this.fault;
  }

  /** Frames of a server: whole, and without a mask. */
  private receive(chunk: Buffer): void {
    this.received = Buffer.concat([this.received, chunk]);
    for (;;) {
      const bytes = this.received;
      if (bytes.length < 2) break;
      const short = bytes[1]! & 0x7f;
      const at = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (bytes.length < at) break;
      const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
      if (bytes.length < at + length) break;
      this.received = bytes.subarray(at + length);
      this.take(bytes[0]! & 0x0f, bytes.subarray(at, at + length));
    }
    this.watcher();
  }

  private take(opcode: number, payload: Buffer): void {
    if (opcode === PING) this.socket.write(frame(PONG, payload));
    if (opcode !== TEXT && opcode !== BINARY) return;
    try {
      const message = (opcode === BINARY ? unpack(payload) : JSON.parse(payload.toString())) as Answered & {
        event?: string;
      };
      if (message.event !== undefined) return;
      if (!CODES.includes(message.code)) throw new Error(`code ${message.code}: ${message.msg}`);
      if (message.msg.length > 300) throw new Error(`a long msg: ${message.msg}`);
      this.answers.push(message);
    } catch (error) {
      this.fault ??= error as Error;
    }
  }
}

/** @returns bytes, and whether they are one good frame, which must be answered */
export function fuzzMessage(random: Random, packed: boolean, id: number): { bytes: Buffer; isWhole: boolean } {
  if (random.chance(0.04)) return { bytes: badFrames(random), isWhole: false };
  const tree = operation(random, id);
  let payload = packed ? toMessagePack(tree) : Buffer.from(toJson(tree));
  if (random.chance(0.05)) payload = damaged(random, payload);
  // The wrong kind is answered; text that is no UTF-8, and too much of anything, ends the connection.
  const isText = random.chance(0.03) ? packed : !packed;
  if (random.chance(0.05) && payload.length > 1) {
    const at = random.integer(1, payload.length - 1);
    const pieces = [
      frame(0, payload.subarray(0, at), isText ? TEXT : BINARY),
      frame(PING, Buffer.alloc(3)),
      frame(0, payload.subarray(at)),
    ];
    return { bytes: Buffer.concat(pieces), isWhole: true };
  }
  return { bytes: frame(isText ? TEXT : BINARY, payload), isWhole: true };
}
