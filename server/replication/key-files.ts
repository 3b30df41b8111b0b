/** The files of `keys/`: signing keys and those of second factors, which aren't in the log. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import Type from "typebox";
import { Check } from "typebox/value";
import { syncPath, writeDurably } from "../../engine/util/durable-file.ts";
import { hasMoreKeys, SECOND_FACTOR_KEYS } from "../sign-in/second-factor-keys.ts";
import type { Seal } from "./seal.ts";

const NAME = /^[A-Za-z0-9_-]{1,100}\.json$/;
/** What a start removes from the folder. */
const PARTIAL_KEY = ".tmp";
/** Text by file name. */
const Files = Type.Record(Type.String(), Type.String({ maxLength: 2 ** 16 }));
type Files = Type.Static<typeof Files>;

export class KeyFiles {
  private readonly folder: string;
  private readonly seal: Seal;

  constructor(folder: string, seal: Seal) {
    this.folder = folder;
    this.seal = seal;
  }

  /** Tells whether two boxes have the same files, and nothing else to whom has no secret; "" where there are none. */
  fingerprint(): string {
    const files = this.read();
    const names = Object.keys(files).sort();
    if (names.length === 0) return "";
    const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
    return this.seal.sign(names.map((name) => `${name} ${hash(files[name]!)}`).join("\n")).slice(0, 22);
  }

  /** @param context of the response */
  sealed(context: string): Buffer {
    return this.seal.close(Buffer.from(JSON.stringify(this.read())), context);
  }

  /**
   * Replaces the files with another box's. Each is whole and durable when it returns; the old ones go last. A key that the
   * other box lacks may be the only one that reads what the log has: it is set aside.
   * @returns the paths of what was set aside
   * @throws WrongSecret, Error where the folder can't be written to or the content is none
   */
  replace(sealed: Uint8Array, context: string): string[] {
    const files: unknown = JSON.parse(this.seal.open(sealed, context).toString());
    if (!Check(Files, files) || !Object.keys(files).every((name) => NAME.test(name))) {
      throw new Error("the other box sent something else");
    }
    if (Object.keys(files).length === 0) throw new Error("the other box has no keys");
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    const aside = this.setAside(files);
    for (const [name, text] of Object.entries(files)) {
      writeDurably(join(this.folder, name), (append) => append(Buffer.from(text)), PARTIAL_KEY);
    }
    for (const name of Object.keys(this.read())) if (!(name in files)) rmSync(join(this.folder, name));
    syncPath(this.folder);
    return aside;
  }

  /** Copies the file of second factors where it has keys that the new one lacks. */
  private setAside(files: Files): string[] {
    const own = this.read()[SECOND_FACTOR_KEYS];
    if (own === undefined || !hasMoreKeys(own, files[SECOND_FACTOR_KEYS])) return [];
    const folder = `${this.folder}-aside`;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const hash = createHash("sha256").update(own).digest("hex").slice(0, 12);
    const path = join(folder, `${hash}.${SECOND_FACTOR_KEYS}`);
    writeDurably(path, (append) => append(Buffer.from(own)));
    syncPath(dirname(folder));
    return [path];
  }

  private read(): Files {
    if (!existsSync(this.folder)) return {};
    const names = readdirSync(this.folder).filter((name) => NAME.test(name));
    return Object.fromEntries(names.map((name) => [name, readFileSync(join(this.folder, name), "utf8")]));
  }
}
