/**
 * The operator's line into a running server: a Unix socket that only the owner of the process may open, as is all that
 * it makes (data-folder.ts). A request is one line of JSON, `["suspend", "a@example.com"]`; so is its answer, `{"ok": true, "text": "..."}`.
 */
import { rmSync } from "node:fs";
import { createConnection, createServer, type Server } from "node:net";
import { basename, dirname } from "node:path";
import { ApiError } from "./errors.ts";

/** Does the command and answers what to tell the operator. @throws ApiError for what the operator did wrong */
export type Command = (args: readonly string[]) => Promise<string>;

interface ControlAnswer {
  readonly ok: boolean;
  readonly text: string;
}

const MAX_REQUEST_BYTES = 4_096;
const IDLE_MS = 30_000;

/** Where the socket can't be made the server that is answered emits an error. */
export function listenForCommands(path: string, commands: ReadonlyMap<string, Command>): Server {
  const server = createServer((socket) => {
    let request = "";
    let isAnswered = false;
    socket.setEncoding("utf8");
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("data", (text: string) => {
      request += text;
      if (request.length > MAX_REQUEST_BYTES) socket.destroy();
      if (isAnswered || !request.includes("\n")) return;
      isAnswered = true;
      void run(request.slice(0, request.indexOf("\n")), commands).then((answer) => {
        socket.end(`${JSON.stringify(answer)}\n`);
      });
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

async function run(line: string, commands: ReadonlyMap<string, Command>): Promise<ControlAnswer> {
  try {
    const [name, ...args] = JSON.parse(line) as string[];
    const command = commands.get(String(name));
    if (command === undefined) return { ok: false, text: `this server knows no command "${name}"` };
    return { ok: true, text: await command(args.map(String)) };
  } catch (error) {
    const text = error instanceof ApiError || error instanceof SyntaxError ? error.message : "internal error";
    return { ok: false, text };
  }
}

/** Asks the running server. Null where none runs. @throws Error with the server's own words where it refuses */
export function ask(path: string, request: readonly string[]): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const socket = inFolderOf(path, createConnection);
    let answer = "";
    socket.setEncoding("utf8");
    socket.on("connect", () => socket.write(`${JSON.stringify(request)}\n`));
    socket.on("data", (text: string) => {
      answer += text;
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(null);
      else reject(error);
    });
    socket.on("end", () => {
      try {
        const { ok, text } = JSON.parse(answer) as ControlAnswer;
        if (ok) resolve(text);
        else reject(new Error(text));
      } catch {
        reject(new Error("the server ended before it answered"));
      }
    });
  });
}
