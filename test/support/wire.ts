/**
 * A bare TCP connection to the server under test, for bytes that no proper client sends: sends them unchanged, records
 * what arrives and when the connection ended, and parses responses with a Content-Length.
 */
import { connect, type Socket as TcpSocket } from "node:net";

/** A TCP connection that records what arrives and when it ended. */
export class Wire {
  readonly socket: TcpSocket;
  received = Buffer.alloc(0);
  endedAt: number | null = null;
  readonly ended: Promise<void>;
  private watcher: (() => void) | null = null;

  constructor(port: number) {
    this.socket = connect(port, "127.0.0.1");
    this.socket.on("error", () => {});
    this.socket.on("data", (chunk) => {
      this.received = Buffer.concat([this.received, chunk]);
      this.watcher?.();
    });
    this.ended = new Promise((resolve) => {
      this.socket.on("close", () => {
        this.endedAt = Date.now();
        resolve();
        this.watcher?.();
      });
    });
  }

  /** Resolves when the received bytes match, or when the connection has ended. */
  async until(fits: (text: string) => boolean): Promise<void> {
    while (this.endedAt === null && !fits(this.received.toString("latin1"))) {
      await new Promise<void>((resolve) => {
        this.watcher = resolve;
      });
    }
  }

  /** The complete responses so far. */
  answers(): { status: number; id: string; body: Record<string, unknown> }[] {
    const found = [];
    let rest = this.received;
    for (let end = rest.indexOf("\r\n\r\n"); end >= 0; end = rest.indexOf("\r\n\r\n")) {
      const head = rest.subarray(0, end).toString("latin1");
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
      if (Number.isNaN(length)) throw new Error(`an answer without a length: ${rest.toString("latin1")}`);
      if (rest.length < end + 4 + length) break;
      const body = JSON.parse(rest.subarray(end + 4, end + 4 + length).toString()) as Record<string, unknown>;
      found.push({ status: Number(head.slice(9, 12)), id: /x-request-id: (\S+)/i.exec(head)![1]!, body });
      rest = rest.subarray(end + 4 + length);
    }
    return found;
  }
}

/** The lines of a request below /api/v1 up to its body. */
export function head(method: string, path: string, token: string | null, fields: readonly string[] = []): string {
  const authorization = token === null ? [] : [`Authorization: Bearer ${token}`];
  return [`${method} /api/v1${path} HTTP/1.1`, "Host: x", ...authorization, ...fields, "", ""].join("\r\n");
}

/** The request of an upgrade to a WebSocket. */
export const upgrade = (path: string): string =>
  head("GET", path, null, [
    ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ]);
