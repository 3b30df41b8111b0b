/**
 * A TCP connection that writes raw bytes and reads HTTP responses one at a time, by length or in chunks. The next
 * request reopens a connection that has ended. The link checks only that responses are complete.
 */
import { connect, type Socket } from "node:net";

const REPLY_DEADLINE_MS = 10_000;
const HEAD_END = "\r\n\r\n";

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** What the link read instead of a response. */
export class NoAnswer extends Error {
  readonly isTooLate: boolean;

  constructor(received: Buffer, isTooLate: boolean) {
    const why = isTooLate ? "no whole answer in time" : "the connection was closed before a whole answer";
    super(`${why}: ${JSON.stringify(received.toString("latin1", 0, 500))}`);
    this.isTooLate = isTooLate;
  }
}

export class Link {
  private readonly port: number;
  private socket: Socket | null = null;
  private received: Buffer = Buffer.alloc(0);
  private watcher: () => void = () => {};

  constructor(port: number) {
    this.port = port;
  }

  /** Sends a request in pieces and resolves with its response. Rejects with a `NoAnswer`. */
  async ask(...pieces: readonly Buffer[]): Promise<RawAnswer> {
    const socket = (this.socket ??= await this.open());
    for (const piece of pieces) socket.write(piece);
    const deadline = setTimeout(() => socket.destroy(), REPLY_DEADLINE_MS);
    const since = performance.now();
    try {
      for (;;) {
        const answer = this.take();
        if (answer !== null && answer.status !== 100) return answer;
        if (answer !== null) continue;
        if (this.socket === null)
          throw new NoAnswer(this.received, performance.now() - since >= REPLY_DEADLINE_MS - 50);
        await new Promise<void>((resolve) => {
          this.watcher = resolve;
        });
      }
    } finally {
      clearTimeout(deadline);
    }
  }

  /** The link received bytes that belong to no request. */
  get excess(): Buffer {
    return this.received;
  }

  close(): void {
    this.socket?.destroy();
    this.socket = null;
    this.received = Buffer.alloc(0);
  }

  private open(): Promise<Socket> {
    this.received = Buffer.alloc(0);
    return new Promise((resolve, reject) => {
      const socket = connect(this.port, "127.0.0.1", () => resolve(socket));
      socket.setNoDelay(true);
      socket.once("error", reject);
      socket.on("error", () => {});
      socket.on("data", (chunk: Buffer) => {
        this.received = Buffer.concat([this.received, chunk]);
        this.watcher();
      });
      socket.on("close", () => {
        if (this.socket === socket) this.socket = null;
        this.watcher();
      });
    });
  }

  /** The first complete response in the received bytes. */
  private take(): RawAnswer | null {
    const headEnd = this.received.indexOf(HEAD_END);
    if (headEnd < 0) return null;
    const [first, ...lines] = this.received.toString("latin1", 0, headEnd).split("\r\n");
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first!)?.[1] ?? Number.NaN);
    const at = headEnd + HEAD_END.length;
    const isEmpty = status === 100 || status === 204;
    const found =
      headers["transfer-encoding"] === "chunked"
        ? this.chunks(at)
        : this.sized(at, isEmpty ? 0 : Number(headers["content-length"]));
    if (found === null) return null;
    this.received = this.received.subarray(found.end);
    if (headers["connection"] === "close") this.socket = null;
    return { status, headers, body: found.body };
  }

  /** Without a length, the response ends with the connection. uWebSockets.js's own rejections arrive this way. */
  private sized(at: number, length: number): { body: Buffer; end: number } | null {
    if (Number.isNaN(length)) {
      return this.socket === null ? { body: this.received.subarray(at), end: this.received.length } : null;
    }
    const end = at + length;
    return this.received.length < end ? null : { body: this.received.subarray(at, end), end };
  }

  private chunks(from: number): { body: Buffer; end: number } | null {
    const pieces: Buffer[] = [];
    for (let at = from; ; ) {
      const lineEnd = this.received.indexOf("\r\n", at);
      if (lineEnd < 0) return null;
      const size = Number.parseInt(this.received.toString("latin1", at, lineEnd), 16);
      const end = lineEnd + 2 + size + 2;
      if (Number.isNaN(size) || this.received.length < end) return null;
      if (size === 0) return { body: Buffer.concat(pieces), end };
      pieces.push(this.received.subarray(lineEnd + 2, end - 2));
      at = end;
    }
  }
}

export function post(path: string, token: string | null, body: object): Buffer {
  const text = JSON.stringify(body);
  const authorization = token === null ? "" : `Authorization: Bearer ${token}\r\n`;
  const fields = `Host: x\r\n${authorization}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}`;
  return Buffer.from(`POST /api/v1${path} HTTP/1.1\r\n${fields}\r\n\r\n${text}`);
}

export function get(path: string, token: string | null): Buffer {
  const authorization = token === null ? "" : `Authorization: Bearer ${token}\r\n`;
  return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`);
}
