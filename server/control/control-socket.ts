/**
 * The control socket of a running server: a Unix socket that only the owner of the process may open, like every file that
 * the server creates (data-folder.ts). A request is one line of JSON, and so is the response, in the API's envelope.
 * control-handlers.ts interprets the requests.
 */
import { existsSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { basename, dirname } from "node:path";
import { MAX_BODY_BYTES } from "../http/limits.ts";

/** One request: a route as over HTTP, or a command that the API lacks. */
export type ControlRequest =
  | { readonly method: string; readonly path: string; readonly query?: string; readonly body?: unknown }
  | { readonly command: string; readonly args: readonly string[] };

export interface ControlResponse {
  readonly code: number;
  readonly msg: string;
  readonly data: unknown;
}

/** How long a request may take to arrive, and its response to be read. */
const REQUEST_MS = 30_000;
const RESPONSE_MS = 1_000;

/** The server's end of the socket. Where it can't be opened, `server` emits an error. */
export class ControlSocket {
  readonly server: Server;
  /** Connections whose request is incomplete. */
  private readonly reading = new Set<Socket>();
  private readonly handle: (line: Buffer | null) => Promise<string>;

  /** @param handle gives the response to a request; a line that is too long is null */
  constructor(path: string, handle: (line: Buffer | null) => Promise<string>) {
    this.handle = handle;
    // A client may close its half once it has sent its request.
    this.server = createServer({ allowHalfOpen: true }, (socket) => this.listen(socket));
    // A killed server leaves its socket behind; our lock on the folder proves that no server runs.
    rmSync(path, { force: true });
    inFolderOf(path, (short) => this.server.listen(short));
  }

  /** Accepts no more requests; resolves when running ones have their response. */
  close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.reading) socket.destroy();
    return closed;
  }

  private listen(socket: Socket): void {
    const chunks: Buffer[] = [];
    let length = 0;
    this.reading.add(socket);
    socket.setTimeout(REQUEST_MS, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.reading.delete(socket));
    socket.on("end", () => {
      // An incomplete request never gets a response.
      if (this.reading.has(socket)) socket.destroy();
    });
    socket.on("data", (chunk: Buffer) => {
      if (!this.reading.has(socket)) return;
      const end = chunk.indexOf("\n");
      const part = end === -1 ? chunk : chunk.subarray(0, end);
      chunks.push(part);
      length += part.length;
      const isTooLong = length > MAX_BODY_BYTES;
      if (end === -1 && !isTooLong) return;
      this.reading.delete(socket);
      socket.setTimeout(0);
      void this.handle(isTooLong ? null : Buffer.concat(chunks)).then((text) => {
        socket.end(`${text}\n`, () => socket.destroy());
        socket.setTimeout(RESPONSE_MS, () => socket.destroy());
      });
    });
  }
}

/** The longest socket path that every operating system accepts, with a margin. */
const MAX_SOCKET_PATH = 100;

/** Calls `use` with the path, or with a short form that is valid during the call. */
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

/** Sends a request to the running server; resolves with null where none accepts requests. */
export function sendRequest(path: string, request: ControlRequest): Promise<ControlResponse | null> {
  return new Promise((resolve, reject) => {
    // While the folder does not exist, no short form of the path is valid.
    if (!existsSync(path)) return resolve(null);
    const socket = inFolderOf(path, createConnection);
    let response = "";
    socket.setEncoding("utf8");
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(null);
      else reject(error);
    });
    socket.on("connect", () => socket.write(`${JSON.stringify(request)}\n`));
    socket.on("data", (text: string) => {
      response += text;
    });
    socket.on("end", () => {
      try {
        resolve(JSON.parse(response) as ControlResponse);
      } catch {
        reject(new Error("the server ended before it responded"));
      }
    });
  });
}
