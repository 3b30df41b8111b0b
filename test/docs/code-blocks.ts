/**
 * The code in the documents, and how it is run: as it stands there, in a folder of its own, against a server that the
 * environment names. Knows nothing of what it does.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DEADLINE_MS = 30_000;

const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill("SIGKILL");
});

export interface CodeBlock {
  /** As the fence says: js, python, sh, json, ... */
  readonly language: string;
  readonly code: string;
  /** The nearest heading above. */
  readonly heading: string;
}

/** @param path below the project's folder */
export const readDocument = (path: string): string => readFileSync(join(ROOT, path), "utf8");

export function codeBlocks(path: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let heading = "";
  let open: { language: string; lines: string[] } | null = null;
  for (const line of readDocument(path).split("\n")) {
    if (line.startsWith("```")) {
      if (open !== null) blocks.push({ language: open.language, code: `${open.lines.join("\n")}\n`, heading });
      open = open === null ? { language: line.slice(3), lines: [] } : null;
    } else if (open !== null) open.lines.push(line);
    else if (line.startsWith("#")) heading = line.replace(/^#+ /, "");
  }
  return blocks;
}

/** The one block of a language under a heading. */
export function blockUnder(path: string, heading: string, language: string): string {
  const found = codeBlocks(path).filter((block) => block.heading === heading && block.language === language);
  if (found.length !== 1) throw new Error(`${path}, "${heading}": ${found.length} blocks in ${language}`);
  return found[0]!.code;
}

/** Why Python code can't be run here, or null. */
export function pythonMissing(): string | null {
  return spawnSync("python3", ["--version"]).error === undefined ? null : "no python3";
}

/** Puts a file where packages of the project are found. @returns its path */
export function putFile(folder: string, name: string, code: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, code);
  try {
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return path;
}

/** A port of the loopback interface that nobody has. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A program under way. */
export class Running {
  output = "";
  readonly child: ChildProcess;
  /** Its exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>;
  private watchers: (() => void)[] = [];

  constructor(command: string, args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
    this.child = spawn(command, args, {
      cwd,
      env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    running.add(this.child);
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.on("data", (chunk: Buffer) => {
        this.output += chunk.toString();
        this.changed();
      });
    }
    this.exited = new Promise((resolve) => {
      this.child.once("close", (code, signal) => {
        running.delete(this.child);
        resolve(signal ?? code!);
        this.changed();
      });
    });
  }

  /** Resolves when it has written something that fits. @throws Error where it ends or takes too long before that */
  async wrote(pattern: RegExp): Promise<void> {
    const deadline = setTimeout(() => this.child.kill("SIGKILL"), DEADLINE_MS);
    while (!pattern.test(this.output)) {
      if (!running.has(this.child)) throw new Error(`it ended without ${pattern}: ${this.output}`);
      await new Promise<void>((resolve) => this.watchers.push(resolve));
    }
    clearTimeout(deadline);
  }

  /** Resolves with all that it wrote. @throws Error unless it ends with 0 and in time */
  async finished(): Promise<string> {
    const deadline = setTimeout(() => this.child.kill("SIGKILL"), DEADLINE_MS);
    const how = await this.exited;
    clearTimeout(deadline);
    if (how !== 0) throw new Error(`ended with ${how}: ${this.output}`);
    return this.output;
  }

  private changed(): void {
    const watchers = this.watchers;
    this.watchers = [];
    for (const watcher of watchers) watcher();
  }
}
