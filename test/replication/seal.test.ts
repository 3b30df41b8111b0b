/** What boxes with one secret say to each other, and what nobody else can read or change. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { KeyFiles } from "../../server/replication/key-files.ts";
import { Seal, WrongSecret } from "../../server/replication/seal.ts";
import { temporaryFolder } from "../support/server.ts";

const SECRET = "one secret of forty characters, or so it is";

describe("a seal", () => {
  const [own, same] = [new Seal(SECRET, "exchange"), new Seal(SECRET, "exchange")];
  const others = [new Seal(`${SECRET}.`, "exchange"), new Seal(SECRET, "other")];

  test("is opened with the same secret, name and context alone", () => {
    const sealed = own.close(Buffer.from("content"), "context");
    expect(same.open(sealed, "context").toString()).toBe("content");
    expect(sealed.toString("latin1")).not.toContain("content");
    expect(own.close(Buffer.from("content"), "context").equals(sealed)).toBe(false);
    for (const other of others) expect(() => other.open(sealed, "context")).toThrow(WrongSecret);
    expect(() => same.open(sealed, "another")).toThrow(WrongSecret);
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed);
      changed[at]! ^= 1;
      expect(() => same.open(changed, "context")).toThrow(WrongSecret);
      expect(() => same.open(sealed.subarray(0, at), "context")).toThrow(WrongSecret);
    }
  });

  test("signs", () => {
    const signature = own.sign("text");
    expect(same.isSigned("text", signature)).toBe(true);
    expect(same.isSigned("texts", signature)).toBe(false);
    for (const other of others) expect(other.isSigned("text", signature)).toBe(false);
    for (const wrong of ["", "x", `${signature}x`]) expect(same.isSigned("text", wrong)).toBe(false);
  });
});

describe("the files of keys/", () => {
  const filesIn = (files: Record<string, string>): { keys: KeyFiles; folder: string } => {
    const folder = join(temporaryFolder(), "keys");
    mkdirSync(folder);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    return { folder, keys: new KeyFiles(folder, new Seal(SECRET, "exchange")) };
  };

  test("are replaced as a whole, and other files stay", () => {
    const active = filesIn({ "a.json": "1", "second-factors.json": "2", "b.json.tmp": "half" });
    const standby = filesIn({ "a.json": "0", "old.json": "3", "notes.txt": "mine" });
    expect(standby.keys.fingerprint()).not.toBe(active.keys.fingerprint());
    standby.keys.replace(active.keys.sealed("x"), "x");
    expect(standby.keys.fingerprint()).toBe(active.keys.fingerprint());
    expect(readdirSync(standby.folder).sort()).toEqual(["a.json", "notes.txt", "second-factors.json"]);
    expect(readFileSync(join(standby.folder, "a.json"), "utf8")).toBe("1");
  });

  test("with a key of second factors that the other box lacks are set aside", () => {
    const key = (id: string) => ({ id, key: Buffer.alloc(32, id).toString("base64url"), created_at: 1 });
    const text = (...ids: string[]): string => JSON.stringify({ keys: ids.map(key) });
    const [FACTORS, SIGNING] = ["second-factors.json", { "a.json": "1" }];
    const standby = filesIn({ ...SIGNING, [FACTORS]: text("b", "a") });
    // A rotation on the other box keeps the old keys.
    const rotated = filesIn({ ...SIGNING, [FACTORS]: text("c", "b", "a") });
    expect(standby.keys.replace(rotated.keys.sealed("x"), "x")).toEqual([]);
    for (const others of [{ ...SIGNING, [FACTORS]: text("d", "c") }, SIGNING]) {
      const own = readFileSync(join(standby.folder, FACTORS), "utf8");
      const [path = ""] = standby.keys.replace(filesIn(others).keys.sealed("x"), "x");
      expect(readFileSync(path, "utf8")).toBe(own);
      expect(path.startsWith(`${standby.folder}-aside`)).toBe(true);
    }
    expect(readdirSync(`${standby.folder}-aside`)).toHaveLength(2);
    expect(readdirSync(standby.folder)).toEqual(["a.json"]);
  });

  test("come into a folder that isn't there, and nothing comes from a box without any", () => {
    const active = filesIn({ "a.json": "1" });
    const folder = join(temporaryFolder(), "keys");
    const keys = new KeyFiles(folder, new Seal(SECRET, "exchange"));
    expect(keys.fingerprint()).toBe("");
    keys.replace(active.keys.sealed("x"), "x");
    expect(keys.fingerprint()).toBe(active.keys.fingerprint());
    expect(() => keys.replace(filesIn({}).keys.sealed("x"), "x")).toThrow("the other box has no keys");
    expect(keys.fingerprint()).toBe(active.keys.fingerprint());
  });

  test("with names that lead elsewhere are refused", () => {
    const { keys, folder } = filesIn({ "a.json": "1" });
    const seal = new Seal(SECRET, "exchange");
    for (const name of ["../b.json", "b", ".json", "b.json.tmp", "a/b.json"]) {
      const sealed = seal.close(Buffer.from(JSON.stringify({ [name]: "x" })), "x");
      expect(() => keys.replace(sealed, "x")).toThrow();
    }
    expect(readdirSync(folder)).toEqual(["a.json"]);
  });
});
