/**
 * The operator's line into a running server: a Unix socket that only the owner of the process may open, as is all that
 * it makes (data-folder.ts). A request is one line of JSON, and so is its answer, which has the API's envelope. What a
 * request says is control-handlers.ts's business.
 */
import { existsSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { basename, dirname } from "node:path";
import { MAX_BODY_BYTES } from "../http/limits.ts";

/** What one line asks for: a route as over HTTP, or a command that the API doesn't have. */
export type ControlRequest =
  | { readonly method: string; readonly path: string; readonly query?: string; readonly body?: unknown }
  | { readonly command: string; readonly args: readonly string[] };

export interface ControlResponse {
  readonly code: number;
  readonly msg: string;
  readonly data: unknown;
}

/** How long a request may take to come, and its answer to be taken. */
const REQUEST_MS = 30_000;
const ANSWER_MS = 1_000;

/** The server's end of the socket. Where it can't be made `server` emits an error. */
export class ControlSocket {
  readonly server: Server;
  /** Connections whose request is not whole. */
  private readonly asking = new Set<Socket>();
  private readonly answer: (line: Buffer | null) => Promise<string>;

  /** @param answer gives the answer's text to a request's; a line that is too long comes as null */
  constructor(path: string, answer: (line: Buffer | null) => Promise<string>) {
    this.answer = answer;
    // Who has asked may close its half.
    this.server = createServer({ allowHalfOpen: true }, (socket) => this.listen(socket));
    // A server that was killed leaves its socket behind; the folder's lock says that none runs.
    rmSync(path, { force: true });
    inFolderOf(path, (short) => this.server.listen(short));
  }

  /** Takes no more requests; resolves when those under way are answered. */
  close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.asking) socket.destroy();
    return closed;
  }

  private listen(socket: Socket): void {
    const chunks: Buffer[] = [];
    let length = 0;
    this.asking.add(socket);
    socket.setTimeout(REQUEST_MS, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.asking.delete(socket));
    socket.on("end", () => {
      // Without a whole request there is nothing to wait for.
      if (this.asking.has(socket)) socket.destroy();
    });
    socket.on("data", (chunk: Buffer) => {
      if (!this.asking.has(socket)) return;
      const end = chunk.indexOf("\n");
      chunks.push(end === -1 ? chunk : chunk.subarray(0, end));
      length += chunks.at(-1)!.length;
      const isTooLong = length > MAX_BODY_BYTES;
      if (end === -1 && !isTooLong) return;
      this.asking.delete(socket);
      socket.setTimeout(0);
      void this.answer(isTooLong ? null : Buffer.concat(chunks)).then((text) => {
        socket.end(`${text}\n`, () => socket.destroy());
        socket.setTimeout(ANSWER_MS, () => socket.destroy());
      });
    });
  }
}

/** What the operating systems leave for a socket's path, with room to spare. */
const MAX_SOCKET_PATH = 100;

/** Calls `use` with the path, or with a short form of it that holds during the call. */
function inFolderOf<T>(path: string, use: (path: string) => T): T {
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return use(path);
  const folder = process.cwd();
  process.chdir(dirname(path));
  try {
    return use(basename(path));
  } finally {
    process.chdir(folder);
  }
}

/** Asks the running server. Null where none takes requests. */
export function ask(path: string, request: ControlRequest): Promise<ControlResponse | null> {
  return new Promise((resolve, reject) => {
    // In a folder that isn't there yet no short form of the path holds.
    if (!existsSync(path)) return resolve(null);
    const socket = inFolderOf(path, createConnection);
    let answer = "";
    socket.setEncoding("utf8");
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(null);
      else reject(error);
    });
    socket.on("connect", () => socket.write(`${JSON.stringify(request)}\n`));
    socket.on("data", (text: string) => {
      answer += text;
    });
    socket.on("end", () => {
      try {
        resolve(JSON.parse(answer) as ControlResponse);
      } catch {
        reject(new Error("the server ended before it answered"));
      }
    });
  });
}
