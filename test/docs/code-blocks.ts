/**
 * Extracts the code blocks of the documents and runs them unchanged, in a folder of their own, against the server that the
 * environment names. Knows nothing about what the code does.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { atFileEnd } from "../support/file-end.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DEADLINE_MS = 30_000;

const running = new Set<ChildProcess>();
atFileEnd(() => {
  for (const child of running) signalGroup(child, "SIGKILL");
});

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-child.pid!, signal);
  } catch {
    // It has ended, or was never there.
  }
}

export interface CodeBlock {
  /** The fence's language: js, python, sh, json, ... */
  readonly language: string;
  readonly code: string;
  /** The nearest heading above. */
  readonly heading: string;
}

/** @param path relative to the project's folder */
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

/** Returns the only block in `language` under a heading. */
export function blockUnder(path: string, heading: string, language: string): string {
  const found = codeBlocks(path).filter((block) => block.heading === heading && block.language === language);
  if (found.length !== 1) throw new Error(`${path}, "${heading}": ${found.length} blocks in ${language}`);
  return found[0]!.code;
}

/** Returns why Python code can't run here, or null. */
export function pythonMissing(): string | null {
  return spawnSync("python3", ["--version"]).error === undefined ? null : "no python3";
}

/** Writes a file to a folder that can import the project's packages. @returns its path */
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

const nats = process.env["NATS_SERVER_PATH"];
/** Where programs are that PATH lacks. */
const PROGRAMS = nats === undefined ? {} : { NATS_SERVER_PATH: nats };

/** A running program. */
export class Running {
  output = "";
  readonly child: ChildProcess;
  /** Its exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>;
  private watchers: (() => void)[] = [];

  constructor(command: string, args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
    // A process group, as in a terminal: Ctrl-C reaches what the program has started, too.
    this.child = spawn(command, args, {
      cwd,
      detached: true,
      env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...PROGRAMS, ...env },
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

  /** Ends it as Ctrl-C does. */
  interrupt(): void {
    signalGroup(this.child, "SIGINT");
  }

  /** Resolves once the output matches. @throws Error if the program ends or times out first */
  async wrote(pattern: RegExp, deadlineMs = DEADLINE_MS): Promise<void> {
    const deadline = setTimeout(() => signalGroup(this.child, "SIGKILL"), deadlineMs);
    while (!pattern.test(this.output)) {
      if (!running.has(this.child)) throw new Error(`ended without ${pattern}: ${this.output}`);
      await new Promise<void>((resolve) => this.watchers.push(resolve));
    }
    clearTimeout(deadline);
  }

  /** Resolves with the whole output. @throws Error unless the program exits with 0 in time */
  async finished(): Promise<string> {
    const deadline = setTimeout(() => signalGroup(this.child, "SIGKILL"), DEADLINE_MS);
    const status = await this.exited;
    clearTimeout(deadline);
    if (status !== 0) throw new Error(`ended with ${status}: ${this.output}`);
    return this.output;
  }

  private changed(): void {
    const watchers = this.watchers;
    this.watchers = [];
    for (const watcher of watchers) watcher();
  }
}
