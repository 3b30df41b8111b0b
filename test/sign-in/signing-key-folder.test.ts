/** The folder of signing keys: every state that a crash in a rotation leaves, repairs at a start, and invalid files. */
import { generateKeyPairSync } from "node:crypto";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { calculateJwkThumbprint } from "jose";
import { describe, expect, test } from "vitest";
import {
  CLAIMS,
  failure,
  type Json,
  keyFile,
  keySet,
  keys,
  kid,
  kids,
  makeKeyFolders,
  mode,
  NOON,
  newFolder,
  newKid,
  OVER,
  open,
  PRIVATE_MEMBERS,
  readKey,
  rotated,
  single,
  token,
  WHOLE_CLAIMS,
  withoutPrivatePart,
  writeKey,
} from "./key-folders.ts";

makeKeyFolders();

describe("a crash in a rotation", () => {
  /** File contents: the old key active, the old key retired, and the new key. */
  function contents(): { active: string; retired: string; next: string } {
    return {
      active: readFileSync(keyFile(single, kid), "utf8"),
      retired: readFileSync(keyFile(rotated, kid), "utf8"),
      next: readFileSync(keyFile(rotated, newKid), "utf8"),
    };
  }

  function writeFolder(files: Record<string, string>): string {
    const folder = newFolder();
    mkdirSync(folder, { mode: 0o700 });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
    return folder;
  }

  const HALF = 500;
  const instants: [string, expected: "old" | "new", () => Record<string, string>][] = [
    ["before anything", "old", () => ({ [`${kid}.json`]: contents().active })],
    ["with the new file empty", "old", () => ({ [`${kid}.json`]: contents().active, [`${newKid}.tmp`]: "" })],
    [
      "with half of the new file",
      "old",
      () => ({ [`${kid}.json`]: contents().active, [`${newKid}.tmp`]: contents().next.slice(0, HALF) }),
    ],
    [
      "before the new file has its name",
      "old",
      () => ({ [`${kid}.json`]: contents().active, [`${newKid}.tmp`]: contents().next }),
    ],
    [
      "with two active keys",
      "new",
      () => ({ [`${kid}.json`]: contents().active, [`${newKid}.json`]: contents().next }),
    ],
    [
      "with half of the retired file",
      "new",
      () => ({
        [`${kid}.json`]: contents().active,
        [`${newKid}.json`]: contents().next,
        [`${kid}.tmp`]: contents().retired.slice(0, HALF),
      }),
    ],
    ["after everything", "new", () => ({ [`${kid}.json`]: contents().retired, [`${newKid}.json`]: contents().next })],
  ];

  test.each(instants)(
    "a crash in a rotation: %s: the %s key is active, and no live token has ended",
    async (_name, expected, files) => {
      const folder = writeFolder(files());
      const now = NOON + 60_000;
      const own = await open(folder, now);
      expect(own.activeKid).toBe(expected === "old" ? kid : newKid);
      expect(await own.verify(token, now)).toEqual(WHOLE_CLAIMS);
      expect(await own.verify(await own.sign(CLAIMS, "JWT"), now)).toEqual(WHOLE_CLAIMS);
      expect(readdirSync(folder).filter((name) => !name.endsWith(".json"))).toEqual([]);
      expect(kids(own, now)).toEqual(expected === "old" ? [kid] : [newKid, kid]);
      if (expected === "new") expect(readKey(folder, kid)).not.toHaveProperty("d");
    },
  );

  test("the life of the older of two active keys counts from the start that retires it", async () => {
    const folder = newFolder(rotated);
    writeFileSync(keyFile(folder, kid), contents().active, { mode: 0o600 });
    // The key may have signed until now: after a partly failed rotation the process may have continued for a long time.
    const own = await open(folder, OVER);
    expect(readKey(folder, kid)["retired_at"]).toBe(OVER);
    expect(kids(own, OVER)).toEqual([newKid, kid]);
  });

  test("every state of the folder in the middle of a rotation opens", async () => {
    const folder = newFolder(single);
    const own = await open(folder);
    const seen = new Set<string>();
    let isOver = false;
    const rotation = own.rotate(NOON).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      const files: Record<string, string> = {};
      // The old key's file always exists, even if a concurrent replacement hides it from the listing.
      for (const name of new Set([`${kid}.json`, ...readdirSync(folder)])) {
        try {
          files[name] = readFileSync(join(folder, name), "utf8");
        } catch (error) {
          // Only a temporary file may have disappeared since the listing.
          expect([error, name]).toMatchObject([{ code: "ENOENT" }, expect.stringMatching(/\.tmp$/)]);
        }
      }
      seen.add(JSON.stringify(files));
      await new Promise(setImmediate);
    }
    await rotation;
    for (const files of seen) {
      const opened = await open(writeFolder(JSON.parse(files)));
      expect(await opened.verify(token, NOON)).toEqual(WHOLE_CLAIMS);
      expect(await opened.verify(await opened.sign(CLAIMS, "JWT"), NOON)).toEqual(WHOLE_CLAIMS);
    }
  });
});

describe("the folder", () => {
  test("the folder of signing keys is created with its parents, for the owner only, with a first key", async () => {
    const folder = join(newFolder(), "data", "keys");
    const own = await open(folder);
    expect(mode(folder)).toBe(0o700);
    expect(mode(keyFile(folder, own.activeKid))).toBe(0o600);
    expect(readdirSync(folder)).toEqual([`${own.activeKid}.json`]);
    expect(readKey(folder, own.activeKid)).toMatchObject({ kid: own.activeKid, created_at: NOON });
    expect(await calculateJwkThumbprint(keySet(own, NOON).keys[0]!)).toBe(own.activeKid);
  });

  test("the folder of signing keys opens again with the same key", async () => {
    const again = await open(newFolder(single), NOON + 1);
    expect(again.activeKid).toBe(kid);
    expect(again.jwks(NOON)).toBe(keys.jwks(NOON));
    expect(await again.verify(token, NOON)).toEqual(WHOLE_CLAIMS);
  });

  test("opening the folder creates an active key if all keys are retired", async () => {
    const folder = newFolder(rotated);
    rmSync(keyFile(folder, newKid));
    const own = await open(folder);
    expect(kids(own, NOON)).toEqual([own.activeKid, kid]);
    expect(own.activeKid).not.toBe(kid);
    expect(await own.verify(token, NOON)).toEqual(WHOLE_CLAIMS);
  });

  test.each(["644", "640", "666", "700", "604"])(
    "a key file of mode %s is restricted to the owner again",
    async (wide) => {
      const folder = newFolder(single);
      chmodSync(keyFile(folder, kid), Number.parseInt(wide, 8));
      chmodSync(folder, 0o755);
      await open(folder);
      expect(mode(keyFile(folder, kid))).toBe(0o600);
      expect(mode(folder)).toBe(0o700);
    },
  );

  test("a retired key's file that still has its private part loses it", async () => {
    const folder = newFolder(rotated);
    writeKey(folder, kid, { ...readKey(single, kid), retired_at: NOON });
    await open(folder, NOON + 5);
    expect(readKey(folder, kid)).toEqual({ ...withoutPrivatePart(readKey(single, kid)), retired_at: NOON });
  });

  test("temporary files of a crash are removed from the folder of signing keys", async () => {
    const folder = newFolder(single);
    for (const name of [`${kid}.tmp`, `${newKid}.tmp`]) writeFileSync(join(folder, name), "half a k");
    await open(folder);
    expect(readdirSync(folder)).toEqual([`${kid}.json`]);
  });

  const SECRET = "s3cr3t-part";
  const wrong: [string, (folder: string) => string | Promise<string>][] = [
    ["no JSON", (folder) => writeText(folder, `{"d":"${SECRET}`)],
    ["empty", (folder) => writeText(folder, "")],
    ["null", (folder) => writeText(folder, "null")],
    ["a list", (folder) => writeText(folder, `["${SECRET}"]`)],
    [
      "too large for a key",
      (folder) => writeText(folder, JSON.stringify({ ...readKey(single, kid), x: "x".repeat(20_000) })),
    ],
    ["a symmetric key", (folder) => writeChanged(folder, { kty: "oct", k: SECRET })],
    ["a key for another algorithm", (folder) => writeChanged(folder, { alg: "RS512" })],
    ["a key to encrypt with", (folder) => writeChanged(folder, { use: "enc" })],
    ["without an algorithm", (folder) => writeChanged(folder, { alg: undefined })],
    ["without a modulus", (folder) => writeChanged(folder, { n: undefined })],
    [
      "without its private part",
      (folder) => writeChanged(folder, Object.fromEntries(PRIVATE_MEMBERS.map((name) => [name, undefined]))),
    ],
    ["without a prime", (folder) => writeChanged(folder, { p: undefined })],
    [
      "with a private part that is none",
      (folder) => writeChanged(folder, Object.fromEntries(PRIVATE_MEMBERS.map((name) => [name, SECRET]))),
    ],
    ["with another key's private part", (folder) => writeChanged(folder, privatePartOf(readKey(rotated, newKid)))],
    ["with another key's id", (folder) => writeChanged(folder, { kid: newKid })],
    ["without a time", (folder) => writeChanged(folder, { created_at: undefined })],
    ["with a time in words", (folder) => writeChanged(folder, { created_at: SECRET })],
    ["retired in words", (folder) => writeChanged(folder, { retired_at: SECRET })],
    ["of 1024 bits", (folder) => writeShort(folder)],
    [
      "under another key's name",
      (folder) => {
        renameSync(keyFile(folder, kid), keyFile(folder, newKid));
        return keyFile(folder, newKid);
      },
    ],
    [
      "under no key's name",
      (folder) => {
        cpSync(keyFile(folder, kid), join(folder, "key.pem"));
        return join(folder, "key.pem");
      },
    ],
    [
      "a folder",
      (folder) => {
        mkdirSync(keyFile(folder, newKid));
        return keyFile(folder, newKid);
      },
    ],
    [
      "a link",
      (folder) => {
        symlinkSync(keyFile(rotated, newKid), keyFile(folder, newKid));
        return keyFile(folder, newKid);
      },
    ],
  ];

  function writeText(folder: string, text: string): string {
    writeFileSync(keyFile(folder, kid), text);
    return keyFile(folder, kid);
  }

  function writeChanged(folder: string, change: Json): string {
    return writeText(folder, JSON.stringify({ ...readKey(folder, kid), ...change }));
  }

  function privatePartOf(key: Json): Json {
    return Object.fromEntries(PRIVATE_MEMBERS.map((name) => [name, key[name]]));
  }

  /** Writes a key with a short modulus. It is otherwise valid, and retired, so that nothing tries it. */
  async function writeShort(folder: string): Promise<string> {
    const jwk = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey.export({ format: "jwk" });
    const id = await calculateJwkThumbprint(jwk as Json);
    const whole = withoutPrivatePart(readKey(single, kid));
    writeKey(folder, id, { ...whole, ...jwk, kid: id, retired_at: NOON });
    return keyFile(folder, id);
  }

  test.each(wrong)("a key file that is %s stops the start, and is named but not quoted", async (_name, spoil) => {
    const folder = newFolder(single);
    const path = await spoil(folder);
    const before = readKey(single, kid);
    const error = await failure(open(folder));
    expect(error.message).toBe(`${path} is not a signing key`);
    expect(error.cause).toBeUndefined();
    const shown = `${error.stack}${JSON.stringify(error)}`;
    for (const name of PRIVATE_MEMBERS) expect(shown).not.toContain(String(before[name]).slice(0, 12));
    expect(shown).not.toContain(SECRET);
  });
});
