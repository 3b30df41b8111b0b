/**
 * What a box was last, in `standby.json` of the data folder: a box that followed never becomes active by itself, and one that
 * led goes on leading only where nobody led after it. Written by the replication thread, before it acts on it.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import Type from "typebox";
import { Check } from "typebox/value";
import { writeDurably } from "../../engine/util/durable-file.ts";

const FILE = "standby.json";

const Content = Type.Object({
  role: Type.Union([Type.Literal("active"), Type.Literal("standby")]),
  /** Of the stream, as the nodes say it. */
  stream_created_at: Type.String(),
  /** The epoch that the box led, or began to lead, or followed. */
  epoch: Type.Integer({ minimum: 0 }),
  /** The stream's last message, where this box led and stopped in order; else 0. */
  sequence: Type.Integer({ minimum: 0 }),
  /** The fingerprint of the keys that the active box had, where this one followed; "" while it is unknown. */
  keys: Type.String({ maxLength: 64 }),
});
export type StandbyFile = Type.Static<typeof Content>;

/** Null where the folder has none. @throws Error where it can't be read */
export function readStandbyFile(dataDir: string): StandbyFile | null {
  const path = join(dataDir, FILE);
  if (!existsSync(path)) return null;
  const content: unknown = parsed(readFileSync(path, "utf8"));
  if (!Check(Content, content)) throw new Error(`${path} isn't what an exchange wrote: restore or delete it`);
  return content;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** This box never took part. */
export function removeStandbyFile(dataDir: string): void {
  rmSync(join(dataDir, FILE), { force: true });
}

/** Durable when it returns. @throws Error where the folder can't be written to */
export function writeStandbyFile(dataDir: string, content: StandbyFile): void {
  writeDurably(join(dataDir, FILE), (append) => append(Buffer.from(`${JSON.stringify(content)}\n`)));
}
