/**
 * A bare TCP connection to the server under test: sends bytes as they are, keeps what comes and when it ended, and reads
 * it as answers with a length. What a good client would not send goes this way.
 */
import { connect, type Socket as TcpSocket } from "node:net";

/** A TCP connection that keeps what comes and when it ended. */
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

  /** Resolves when what came fits, or when the connection has ended. */
  async until(fits: (text: string) => boolean): Promise<void> {
    while (this.endedAt === null && !fits(this.received.toString("latin1"))) {
      await new Promise<void>((resolve) => {
        this.watcher = resolve;
      });
    }
  }

  /** The answers so far, each with a whole body. */
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
