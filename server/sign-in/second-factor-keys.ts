/**
 * The keys that encrypt TOTP secrets in the database (AES-256-GCM), in a file next to the signing keys: a copy of the
 * database alone yields no codes. The newest key encrypts; older ones stay, so that today's keys can read a restored
 * database. An exchange's first start creates the file, so that a standby has it before any secret depends on it.
 */

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { chmod, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { assert } from "../../engine/util/assert.ts";

/** The file's name in the folder of the signing keys. */
export const SECOND_FACTOR_KEYS = "second-factors.json";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const FILE_MODE = 0o600;
/** Beyond this number, the oldest key is dropped. */
const MAX_KEYS = 20;

interface Key {
  readonly id: string;
  readonly bytes: Buffer;
  readonly createdAt: number;
}

export class SecondFactorKeys {
  private readonly path: string;
  /** Newest first. */
  private keys: readonly Key[];
  /** The last change of the file, finished or not; never rejects. */
  private lastChange: Promise<unknown> = Promise.resolve();

  private constructor(path: string, keys: readonly Key[]) {
    this.path = path;
    this.keys = keys;
  }

  /** Creates the file with a first key if it is missing. @throws Error naming the file if it contains no keys */
  static async open(path: string, now: number): Promise<SecondFactorKeys> {
    let text: string;
    try {
      text = await readFile(path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      const created = new SecondFactorKeys(path, []);
      await created.add(now);
      return created;
    }
    // Of another user's file only what it contains counts.
    await chmod(path, FILE_MODE).catch(() => {});
    const keys = readKeys(text);
    // Without the cause, which may quote the file.
    if (keys === null) throw new Error(`${path} contains no second-factor keys`);
    return new SecondFactorKeys(path, keys);
  }

  /** The id of the key that encrypts. */
  get activeId(): string {
    return this.active.id;
  }

  private get active(): Key {
    const [key] = this.keys;
    assert(key !== undefined, "a key exists before it encrypts");
    return key;
  }

  /** @param of the owner, without whom the secret cannot be decrypted */
  seal(secret: Uint8Array, of: string): string {
    const { id, bytes } = this.active;
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, bytes, iv).setAAD(Buffer.from(of));
    const sealed = Buffer.concat([iv, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
    return `${id}.${sealed.toString("base64url")}`;
  }

  /** Null if the key is missing, or the secret was sealed for another owner. */
  unseal(sealed: string, of: string): Buffer | null {
    const [id, text = ""] = sealed.split(".");
    const key = this.keys.find((each) => each.id === id);
    const bytes = Buffer.from(text, "base64url");
    if (key === undefined || bytes.length < IV_BYTES + TAG_BYTES) return null;
    const end = bytes.length - TAG_BYTES;
    const decipher = createDecipheriv(ALGORITHM, key.bytes, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(of)).setAuthTag(bytes.subarray(end));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, end)), decipher.final()]);
    } catch {
      return null;
    }
  }

  /** True if the newest key sealed it. */
  isCurrent(sealed: string): boolean {
    return sealed.split(".", 1)[0] === this.activeId;
  }

  /** Creates a new key, on disk before it encrypts anything. @returns its id */
  async rotate(now: number): Promise<string> {
    await this.change(() => this.add(now));
    return this.activeId;
  }

  private change(run: () => Promise<void>): Promise<void> {
    const changed = this.lastChange.then(run);
    this.lastChange = changed.catch(() => {});
    return changed;
  }

  private async add(createdAt: number): Promise<void> {
    const key = { id: randomBytes(6).toString("hex"), bytes: randomBytes(KEY_BYTES), createdAt };
    const keys = [key, ...this.keys].slice(0, MAX_KEYS);
    await writeKeys(this.path, keys);
    this.keys = keys;
  }
}

/** True where `text` is a file of keys, and one of them isn't in `other`: what it encrypted can't be read with `other`. */
export function hasMoreKeys(text: string, other: string | undefined): boolean {
  const others = new Set((other === undefined ? null : readKeys(other))?.map(({ id }) => id));
  return readKeys(text)?.some(({ id }) => !others.has(id)) ?? false;
}

function readKeys(text: string): Key[] | null {
  try {
    const { keys } = JSON.parse(text) as { keys: { id: string; key: string; created_at: number }[] };
    const read = keys.map(({ id, key, created_at: createdAt }) => {
      return { id, bytes: Buffer.from(key, "base64url"), createdAt };
    });
    const isKey = ({ id, bytes }: Key): boolean => typeof id === "string" && bytes.length === KEY_BYTES;
    return read.length > 0 && read.every(isKey) ? read : null;
  } catch {
    return null;
  }
}

/** Atomic, and on disk when it returns. */
async function writeKeys(path: string, keys: readonly Key[]): Promise<void> {
  const content = keys.map(({ id, bytes, createdAt }) => {
    return { id, key: bytes.toString("base64url"), created_at: createdAt };
  });
  const temporary = `${path}.tmp`;
  await rm(temporary, { force: true });
  const file = await open(temporary, "wx", FILE_MODE);
  try {
    await file.writeFile(JSON.stringify({ keys: content }));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
