/**
 * Many WebSockets of the sockets bench in one thread: connects them, sends one message on each, and counts received
 * frames by their lengths only. Reads all sockets into one buffer, so that a connection costs little here.
 */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import type { CrowdQuestion, CrowdReport, CrowdSetup } from "../figures/sockets/crowd.ts";
import { BINARY, clientFrame, LENGTH_IN_2, LENGTH_IN_8, PING, PONG, TEXT } from "../support/client-frames.ts";
import { BOOK_UPDATED, TEMPLATE_AT } from "../support/sbe-frames.ts";

const { url, path, count, message, recorded } = workerData as CrowdSetup;
const root = new URL(url);
const memory = Buffer.alloc(256 * 1024);
const HEAD_END = "\r\n\r\n";
const CONNECTING = 200;
const [protocol, counted] = message instanceof Uint8Array ? ["sbe", BINARY] : ["json", TEXT];
/** A text that begins so is counted. */
const TEXT_START = Buffer.from('{"event":"book.updated"');

let frames = 0;
let bytes = 0;
let closed = 0;
const texts: string[] = [];

class Member {
  private readonly socket: Socket;
  private readonly opened: () => void;
  private isUpgraded = false;
  /** The received part of an incomplete frame. */
  private rest: Buffer = Buffer.alloc(0);
  private readonly records: boolean;

  constructor(opened: () => void, records: boolean) {
    this.opened = opened;
    this.records = records;
    this.socket = connect({
      host: root.hostname,
      port: Number(root.port),
      noDelay: true,
      onread: {
        buffer: memory,
        callback: (length) => {
          this.receive(memory.subarray(0, length));
          return true;
        },
      },
    });
    this.socket.on("error", () => {});
    this.socket.on("close", () => closed++);
    const key = randomBytes(16).toString("base64");
    this.socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${root.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Protocol: ${protocol}${HEAD_END}`,
    );
  }

  end(): void {
    this.socket.destroy();
  }

  private receive(chunk: Buffer): void {
    let data = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    if (!this.isUpgraded) {
      const end = data.indexOf(HEAD_END);
      if (end < 0) return this.keep(data);
      data = data.subarray(end + HEAD_END.length);
      this.isUpgraded = true;
      if (message !== null) this.socket.write(clientFrame(counted, Buffer.from(message)));
      this.opened();
    }
    let at = 0;
    while (data.length - at >= 2) {
      let length = data[at + 1]!;
      let payload = at + 2;
      if (length === LENGTH_IN_2) {
        if (data.length < (payload += 2)) break;
        length = data.readUInt16BE(at + 2);
      } else if (length === LENGTH_IN_8) {
        if (data.length < (payload += 8)) break;
        length = Number(data.readBigUInt64BE(at + 2));
      }
      if (payload + length > data.length) break;
      this.receiveFrame(data[at]!, data, payload, length);
      at = payload + length;
    }
    this.keep(data.subarray(at));
  }

  private keep(rest: Buffer): void {
    // The memory is every socket's.
    this.rest = rest.length === 0 ? this.rest.subarray(0, 0) : Buffer.from(rest);
  }

  private receiveFrame(first: number, data: Buffer, payload: number, length: number): void {
    if (first === PING) this.socket.write(clientFrame(PONG, data.subarray(payload, payload + length)));
    if (first !== counted || !isBookUpdate(data, payload, length)) return;
    frames++;
    bytes += length;
    if (this.records && texts.length < recorded) texts.push(data.toString("latin1", payload, payload + length));
  }
}

function isBookUpdate(data: Buffer, payload: number, length: number): boolean {
  if (protocol === "sbe") return data.readUInt16LE(payload + TEMPLATE_AT) === BOOK_UPDATED;
  if (length < TEXT_START.length) return false;
  return data.compare(TEXT_START, 0, TEXT_START.length, payload, payload + TEXT_START.length) === 0;
}

const members: Member[] = [];
let connected = 0;
await new Promise<void>((done) => {
  const opened = (): void => {
    connected++;
    if (connected === count) done();
    else if (members.length < count) members.push(new Member(opened, false));
  };
  while (members.length < Math.min(CONNECTING, count)) members.push(new Member(opened, members.length === 0));
});
parentPort!.postMessage(null);
parentPort!.on("message", (question: CrowdQuestion) => {
  if (question === "count") {
    parentPort!.postMessage({ frames, bytes, closed, at: performance.now(), texts } satisfies CrowdReport);
    return;
  }
  for (const member of members) member.end();
  parentPort!.postMessage(null);
  parentPort!.close();
});
