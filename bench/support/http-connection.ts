/**
 * One keep-alive HTTP/1.1 connection with one request in flight, for load: writes a request in one piece and reads a
 * response with Content-Length. `node:http` needs four times the processor time, which the exchange on the same machine
 * would lack. Supports neither pipelining nor chunked encoding.
 */
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const REPLY_DEADLINE_MS = 30_000;
/** A server closes a connection that was idle for longer, maybe while the next request is on its way. */
const MAX_IDLE_MS = 5_000;
const HEAD_END = Buffer.from("\r\n\r\n");

export interface HttpAnswer {
  readonly status: number;
  readonly body: Buffer;
}

interface Waiting {
  resolve(answer: HttpAnswer): void;
  reject(error: Error): void;
}

/** The bytes of a request. @param base path before `path`, without a slash at its end */
export function requestBytes(
  url: URL,
  method: string,
  path: string,
  token: string | null,
  body: string | null,
): Buffer {
  const authorization = token === null ? "" : `Authorization: Bearer ${token}\r\n`;
  const content =
    body === null ? "" : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  return Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: ${url.host}\r\n${authorization}${content}\r\n${body ?? ""}`);
}

export class HttpConnection {
  private readonly url: URL;
  private socket: Socket | null = null;
  private received: Buffer = Buffer.alloc(0);
  private waiting: Waiting | null = null;
  private usedAt = 0;

  constructor(url: URL) {
    this.url = url;
  }

  /** Connects in advance of the first request. */
  async open(): Promise<void> {
    this.socket ??= await this.connect();
    this.usedAt = performance.now();
  }

  /** Sends a request and resolves with its response; connects again after a long idle time. */
  async send(request: Buffer): Promise<HttpAnswer> {
    if (this.socket !== null && performance.now() - this.usedAt > MAX_IDLE_MS) this.close();
    const socket = (this.socket ??= await this.connect());
    this.usedAt = performance.now();
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      socket.write(request);
    });
  }

  close(): void {
    const { socket } = this;
    this.socket = null;
    socket?.destroy();
  }

  private connect(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const { hostname, port, protocol } = this.url;
      const host = hostname.replace(/^\[|\]$/g, "");
      const secure = protocol === "https:";
      const options = { host, port: Number(port) || (secure ? 443 : 80) };
      const socket = secure ? connectTls({ ...options, servername: host }) : connectPlain(options);
      socket.setNoDelay(true);
      socket.setTimeout(REPLY_DEADLINE_MS, () => {
        if (this.waiting !== null) socket.destroy(new Error(`no response within ${REPLY_DEADLINE_MS / 1000} s`));
      });
      socket.once("error", reject);
      socket.once(secure ? "secureConnect" : "connect", () => {
        socket.on("data", (chunk: Buffer) => this.receive(chunk));
        resolve(socket);
      });
      let fault: Error | null = null;
      socket.on("error", (error) => {
        fault = error;
      });
      socket.on("close", () => {
        if (this.socket !== socket) return;
        this.socket = null;
        this.fail(fault ?? new Error("the connection was closed before the response arrived"));
      });
    });
  }

  private fail(error: Error): void {
    const { waiting } = this;
    this.waiting = null;
    this.received = Buffer.alloc(0);
    waiting?.reject(error);
  }

  private receive(chunk: Buffer): void {
    const bytes = this.received.length === 0 ? chunk : Buffer.concat([this.received, chunk]);
    this.received = bytes;
    const headEnd = bytes.indexOf(HEAD_END);
    if (headEnd < 0) return;
    const head = bytes.toString("latin1", 0, headEnd);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head);
    if (length === null) {
      this.socket?.destroy(new Error(`a response without Content-Length: ${head.split("\r\n", 1)[0]}`));
      return;
    }
    const end = headEnd + HEAD_END.length + Number(length[1]);
    if (bytes.length < end) return;
    const { waiting } = this;
    this.waiting = null;
    this.received = bytes.subarray(end);
    waiting?.resolve({ status: Number(head.slice(9, 12)), body: bytes.subarray(headEnd + HEAD_END.length, end) });
  }
}
