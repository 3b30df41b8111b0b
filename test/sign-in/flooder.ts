/** The client's end of a flood of forged tokens: the tokens, the requests and the connections. */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { API_BASE } from "../support/client.ts";
import { encode, type Forge } from "./forge.ts";

export const UPGRADE = {
  Connection: "Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
};

/** Returns a fresh token of one of these kinds. The server has not seen it, and most kinds cost a signature check. */
export function floodToken({ h, p, claims, head }: Forge, expired: Forge, index: number): string {
  const noise = randomBytes(256).toString("base64url");
  const kinds = [
    () => `${h}.${p}.${noise}`,
    () => `${h}.${encode({ ...claims, jti: noise.slice(0, 20) })}.${noise}`,
    () => `${h}.${expired.p}.${noise}`,
    () => `${encode({ ...head, kid: noise.slice(0, 43) })}.${p}.${noise}`,
    () => `pm_pat_${noise.slice(0, 43)}`,
  ];
  return kinds[index % kinds.length]!();
}

export function floodRequest(token: string, index: number): string {
  const upgrade = Object.entries(UPGRADE).map(([name, value]) => `${name}: ${value}\r\n`);
  const header = `Host: x\r\nAuthorization: Bearer ${token}\r\n`;
  if (index % 4 === 0) return `GET ${API_BASE}/ws?token=${token} HTTP/1.1\r\nHost: x\r\n${upgrade.join("")}\r\n`;
  if (index % 4 === 1) {
    const body = '{"market_id":1,"outcome_id":1,"side":1,"price":1,"quantity":1}';
    return `POST ${API_BASE}/orders HTTP/1.1\r\n${header}Content-Length: ${body.length}\r\n\r\n${body}`;
  }
  return `GET ${API_BASE}/wallet/balance HTTP/1.1\r\n${header}\r\n`;
}

/** A connection that sends its requests in sequence, and counts the responses by status and code. */
export class Flooder {
  readonly answers = new Map<string, number>();
  private readonly socket: Socket;
  private text = "";
  private waiting: { resolve: () => void; reject: (error: Error) => void } | null = null;

  constructor(port: number) {
    this.socket = connect(port, "127.0.0.1");
    this.socket.setNoDelay(true);
    this.socket.on("data", (bytes: Buffer) => this.receive(bytes));
    this.socket.on("error", (error) => this.waiting?.reject(error));
    this.socket.on("close", () => this.waiting?.reject(new Error("the server closed the connection")));
  }

  send(request: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.socket.write(request);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private receive(bytes: Buffer): void {
    this.text += bytes.toString("latin1");
    const end = this.text.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.text.slice(0, end))?.[1]);
    if (!(this.text.length >= end + 4 + length)) return;
    const [, status] = /^HTTP\/1\.1 (\d+)/.exec(this.text)!;
    const { code } = JSON.parse(this.text.slice(end + 4)) as { code: number };
    const answer = `${status} ${code}`;
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1);
    this.text = "";
    const { waiting } = this;
    this.waiting = null;
    waiting!.resolve();
  }
}
