/**
 * The operator's line into a running server: a Unix socket that only the owner of the process may open, as is all that
 * it makes (data-folder.ts). A request is one line of JSON, and so is its answer, which has the API's envelope. What a
 * request says is operations.ts's business.
 */
import { existsSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server } from "node:net";
import { basename, dirname } from "node:path";
import { MAX_BODY_BYTES } from "../engine/limits.ts";

/** What one line asks for: a route as over HTTP, or a command that the API doesn't have. */
export type ControlRequest =
  | { readonly method: string; readonly path: string; readonly query?: string; readonly body?: unknown }
  | { readonly command: string; readonly args: readonly string[] };

export interface ControlAnswer {
  readonly code: number;
  readonly msg: string;
  readonly data: unknown;
}

/** How long a request may take to come. */
const REQUEST_MS = 30_000;

/**
 * Where the socket can't be made the server that is answered emits an error.
 * @param answer gives the answer's text to a request's; a line that is too long comes as null
 */
export function listenForRequests(path: string, answer: (line: Buffer | null) => Promise<string>): Server {
  const server = createServer((socket) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isWhole = false;
    socket.setTimeout(REQUEST_MS, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      if (isWhole) return;
      const end = chunk.indexOf("\n");
      chunks.push(end === -1 ? chunk : chunk.subarray(0, end));
      length += chunks.at(-1)!.length;
      const isTooLong = length > MAX_BODY_BYTES;
      isWhole = end !== -1 || isTooLong;
      if (!isWhole) return;
      socket.setTimeout(0);
      void answer(isTooLong ? null : Buffer.concat(chunks)).then((text) => socket.end(`${text}\n`));
    });
  });
  // A server that was killed leaves its socket behind; the folder's lock says that none runs.
  rmSync(path, { force: true });
  inFolderOf(path, (short) => server.listen(short));
  return server;
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

/** Asks the running server. */
export function ask(path: string, request: ControlRequest): Promise<ControlAnswer> {
  return new Promise((resolve, reject) => {
    const socket = inFolderOf(path, createConnection);
    let answer = "";
    socket.setEncoding("utf8");
    socket.on("connect", () => socket.write(`${JSON.stringify(request)}\n`));
    socket.on("data", (text: string) => {
      answer += text;
    });
    socket.on("error", reject);
    socket.on("end", () => {
      try {
        resolve(JSON.parse(answer) as ControlAnswer);
      } catch {
        reject(new Error("the server ended before it answered"));
      }
    });
  });
}

/** True where a server takes requests. */
export function isListening(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    if (!existsSync(path)) return resolve(false);
    const socket = inFolderOf(path, createConnection);
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(false);
      else reject(error);
    });
  });
}
