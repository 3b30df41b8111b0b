/**
 * Bytes that are almost requests: framing that contradicts itself, pieces of one request in another, noise. Whatever
 * comes back must be answers of HTTP and no internal error; liveness is checked elsewhere.
 */
import { connect } from "node:net";
import type { Random } from "../../support/random.ts";
import { damaged } from "./requests.ts";

/** Tricks of request smuggling, and what parsers were caught by. */
const FRAGMENTS: readonly string[] = [
  ...[
    "Content-Length: 0\r\n",
    "Content-Length: 5\r\n",
    "Content-Length:\r\n",
    "Content-Length: +5\r\n",
    "Content-Length: 5,5\r\n",
  ],
  ...[
    "Content-Length: -1\r\n",
    "Content-Length: 0x5\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Content-Length : 5\r\n",
  ],
  ...[
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: x\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Transfer-Encoding:\r\n",
  ],
  ...[
    "Transfer-Encoding:\tchunked\r\n",
    "Transfer-Encoding: chunked, identity\r\n",
    "Transfer-Encoding: \x0bchunked\r\n",
  ],
  ...[
    "Host: y\r\n",
    "Host:\r\n",
    ": x\r\n",
    " folded\r\n",
    "\tfolded\r\n",
    "Connection: close\r\n",
    "Connection: upgrade\r\n",
  ],
  ...[
    "Upgrade: websocket\r\n",
    "Upgrade: h2c\r\n",
    "Expect: 100-continue\r\n",
    "X: \0\r\n",
    "X: a\rb\r\n",
    "X: a\nb\r\n",
    "X\r\n",
  ],
  ...[
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    "5;a=b\r\nhello\r\n",
    "FFFFFFFFFFFFFFFFF\r\n",
    "ffffffff\r\n",
    "-1\r\n",
    "0\r\nX: y\r\n\r\n",
    "0\r\nXX",
  ],
  ...[
    "GET /api/v1/time HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "GET /\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  ],
  ...[
    "CONNECT x:1 HTTP/1.1\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
  ],
  ...[
    "\r\n",
    "\n",
    "\r",
    "\0",
    "\r\n\r\n",
    "\n\n",
    " ",
    "HTTP/1.1",
    "HTTP/1.1\r\n",
    "\x16\x03\x01\x00\xa5",
    "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n",
  ],
];
/** Statuses of the exchange, and those with which uWebSockets.js rejects by itself. */
const STATUSES: readonly number[] = [
  100, 200, 201, 202, 204, 302, 400, 401, 403, 404, 405, 409, 413, 422, 429, 431, 503, 505,
];
const QUIET_MS = 25;

/** @param requests good ones, to be spoilt */
export function fuzzBytes(random: Random, requests: readonly Buffer[]): Buffer {
  let bytes: Buffer = Buffer.concat(requests.slice(0, random.integer(1, requests.length)));
  for (let n = random.integer(1, 4); n > 0; n--) {
    const kind = random.integer(0, 9);
    if (kind < 5) {
      // Where lines begin, as a rule.
      const starts = [...bytes.toString("latin1", 0, 4_000).matchAll(/\n/g)].map(({ index }) => index + 1);
      const at = starts.length > 0 && random.chance(0.8) ? random.pick(starts) : random.integer(0, bytes.length);
      bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(random.pick(FRAGMENTS), "latin1"), bytes.subarray(at)]);
    } else if (kind < 9) bytes = damaged(random, bytes);
    else bytes = Buffer.from(Array.from({ length: random.integer(1, 3_000) }, () => random.integer(0, 255)));
  }
  return bytes;
}

/** Sends the bytes in some pieces and resolves with what came, when nothing more does. */
export function exchangeBytes(random: Random, port: number, bytes: Buffer): Promise<string> {
  const cuts = Array.from({ length: random.integer(0, 2) }, () => random.integer(0, bytes.length)).sort(
    (a, b) => a - b,
  );
  const pieces = [0, ...cuts].map((from, i) => bytes.subarray(from, cuts[i] ?? bytes.length));
  const isHalfClosed = random.chance(0.1);
  return new Promise((resolve) => {
    let received = "";
    const socket = connect(port, "127.0.0.1");
    const quiet = setTimeout(() => socket.destroy(), QUIET_MS);
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1");
      quiet.refresh();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(quiet);
      resolve(received);
    });
    for (const piece of pieces) socket.write(piece);
    if (isHalfClosed) socket.end();
  });
}

/** Resolves with the first status. @throws Error if the bytes are no HTTP response or report an internal error */
export function judgeBytes(received: string): number | null {
  if (received === "") return null;
  if (!received.startsWith("HTTP/1.1 ")) throw new Error(`no HTTP: ${JSON.stringify(received.slice(0, 300))}`);
  for (const [, status] of received.matchAll(/HTTP\/1\.1 (\d{3}) [A-Z]/g)) {
    if (!STATUSES.includes(Number(status)))
      throw new Error(`status ${status}: ${JSON.stringify(received.slice(0, 500))}`);
  }
  // Not the one in the API document's example.
  if (/"code":50000,[^}]*"trace_id":"(?!example")/.test(received))
    throw new Error(`an internal error: ${JSON.stringify(received.slice(0, 500))}`);
  return Number(received.slice(9, 12));
}
