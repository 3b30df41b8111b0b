/**
 * Signing keys on real files: verification of their tokens by other libraries, the key set, rotation. For crashes and
 * repairs, see signing-key-folder.test.ts; for forged tokens, see signing-key-forgeries.test.ts.
 */
import assert from "node:assert";
import { createPublicKey, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { calculateJwkThumbprint, createLocalJWKSet, jwtVerify } from "jose";
import jsonwebtoken from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { type TokenClaims, TokenExpired, TokenInvalid } from "../../server/sign-in/signing-keys.ts";
import {
  AUDIENCE,
  CLAIMS,
  DAY_MS,
  failure,
  ISSUER,
  type Json,
  keyFile,
  keySet,
  keys,
  kid,
  kids,
  LATER,
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
  SECOND,
  single,
  token,
  WHOLE_CLAIMS,
  withoutPrivatePart,
  writeKey,
} from "./key-folders.ts";

makeKeyFolders();

describe("a token", () => {
  test("a token is verified with its claims, issuer and audience", async () => {
    expect(await keys.verify(token, NOON)).toEqual(WHOLE_CLAIMS);
    const extra = { ...CLAIMS, client_id: "bot", nbf: SECOND };
    const other = await keys.sign(extra, "at+jwt");
    expect(await keys.verify(other, NOON)).toEqual({ ...WHOLE_CLAIMS, client_id: "bot", nbf: SECOND });
  });

  test.each(["JWT", "at+jwt"] as const)("a token of type %s has the standard header", async (typ) => {
    const [header] = (await keys.sign(CLAIMS, typ)).split(".");
    expect(JSON.parse(Buffer.from(header!, "base64url").toString())).toEqual({ alg: "RS256", kid, typ });
  });

  test("a token is verified by jose with the key set only", async () => {
    const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(keySet(keys, NOON)), {
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithms: ["RS256"],
      currentDate: new Date(NOON),
    });
    expect(payload).toEqual(WHOLE_CLAIMS);
    expect(protectedHeader.kid).toBe(kid);
  });

  test("a token is verified by jsonwebtoken with a key of the key set, and not with another key", async () => {
    const check = (jwk: Json | undefined): unknown =>
      jsonwebtoken.verify(token, createPublicKey({ key: jwk!, format: "jwk" }), {
        algorithms: ["RS256"],
        issuer: ISSUER,
        audience: AUDIENCE,
        clockTimestamp: SECOND,
      });
    const both = keySet(await open(rotated), NOON).keys as Json[];
    expect(check(both.find((key) => key["kid"] === kid))).toEqual(WHOLE_CLAIMS);
    expect(() => check(both.find((key) => key["kid"] === newKid))).toThrow("invalid signature");
  });

  test("a token expires with the second that exp names, without tolerance", async () => {
    expect(await keys.verify(token, LATER - 1)).toEqual(WHOLE_CLAIMS);
    expect(await failure(keys.verify(token, LATER))).toBeInstanceOf(TokenExpired);
    expect(await failure(keys.verify(token, LATER + 365 * DAY_MS))).toBeInstanceOf(TokenExpired);
  });

  test("a token is for the latest issuer and audience", async () => {
    const moved = await open(newFolder(single));
    moved.setAudience("http://127.0.0.1:4000", "port 4000");
    const own = await moved.sign(CLAIMS, "JWT");
    expect(await moved.verify(own, NOON)).toEqual({ ...CLAIMS, iss: "http://127.0.0.1:4000", aud: "port 4000" });
    expect(await failure(moved.verify(token, NOON))).toBeInstanceOf(TokenInvalid);
    expect(await failure(keys.verify(own, NOON))).toBeInstanceOf(TokenInvalid);
  });

  test("a token can't be signed for another audience, beyond its key's life, without an expiry or too large to verify", async () => {
    expect(await keys.verify(await keys.sign({ ...CLAIMS, iss: "x", aud: "y" }, "JWT"), NOON)).toEqual(WHOLE_CLAIMS);
    for (const exp of [undefined, CLAIMS.exp + 2, CLAIMS.exp + 0.5, Number.POSITIVE_INFINITY]) {
      const claims = { ...CLAIMS, exp } as TokenClaims;
      expect(await failure(keys.sign(claims, "JWT"))).toBeInstanceOf(assert.AssertionError);
    }
    const large = { ...CLAIMS, scope: "x".repeat(4_096) };
    expect(await failure(keys.sign(large, "JWT"))).toBeInstanceOf(assert.AssertionError);
  });
});

describe("the key set", () => {
  test("the key set holds public parts only, the active key first", async () => {
    const set = keySet(await open(rotated), NOON);
    expect(set.keys.map((key) => key.kid)).toEqual([newKid, kid]);
    for (const key of set.keys) {
      expect(Object.keys(key).sort()).toEqual(["alg", "e", "kid", "kty", "n", "use"]);
      expect(key).toMatchObject({ kty: "RSA", e: "AQAB", alg: "RS256", use: "sig" });
      expect(await calculateJwkThumbprint(key)).toBe(key.kid);
      expect(Buffer.from(key.n!, "base64url")).toHaveLength(256);
    }
  });

  test("the key set contains no private member of any file", async () => {
    const text = (await open(rotated)).jwks(NOON);
    for (const key of [readKey(single, kid), readKey(rotated, newKid)]) {
      for (const name of PRIVATE_MEMBERS) expect(text).not.toContain(String(key[name]));
    }
  });

  test("the key set is one cached text until something changes", async () => {
    const own = await open(newFolder(rotated));
    const text = own.jwks(NOON);
    expect(own.jwks(OVER - 1)).toBe(text);
    expect(kids(own, OVER)).toEqual([newKid]);
    expect(kids(own, NOON)).toEqual([newKid, kid]);
    const next = await own.rotate(NOON + 1_000);
    expect(kids(own, NOON + 1_000)).toEqual([next, newKid, kid]);
  });
});

describe("rotation", () => {
  test("after a rotation, new tokens have the new key and old ones stay valid, also after a restart", async () => {
    const folder = newFolder(single);
    const own = await open(folder);
    const next = await own.rotate(NOON);
    expect(own.activeKid).toBe(next);
    expect(next).not.toBe(kid);
    const signed = await own.sign(CLAIMS, "JWT");
    const header = JSON.parse(Buffer.from(signed.split(".")[0]!, "base64url").toString());
    expect(header).toEqual({ alg: "RS256", kid: next, typ: "JWT" });
    for (const opened of [own, await open(folder, LATER - 1)]) {
      expect(opened.activeKid).toBe(next);
      expect(await opened.verify(token, LATER - 1)).toEqual(WHOLE_CLAIMS);
      expect(await opened.verify(signed, LATER - 1)).toEqual(WHOLE_CLAIMS);
      expect(await failure(opened.verify(token, LATER))).toBeInstanceOf(TokenExpired);
    }
  });

  test("a token that is signed during a rotation is valid", async () => {
    const own = await open(newFolder(single));
    const rotation = own.rotate(NOON);
    const signed: string[] = [];
    while (own.activeKid === kid) signed.push(await own.sign(CLAIMS, "JWT"));
    await rotation;
    for (const one of signed) expect(await own.verify(one, NOON)).toEqual(WHOLE_CLAIMS);
  });

  test("a rotation removes the private part from the retired key's file", async () => {
    const text = readFileSync(keyFile(rotated, kid), "utf8");
    const before = readKey(single, kid);
    expect(JSON.parse(text)).toEqual({ ...withoutPrivatePart(before), retired_at: NOON });
    for (const name of PRIVATE_MEMBERS) expect(text).not.toContain(String(before[name]));
    expect(mode(keyFile(rotated, kid))).toBe(0o600);
    expect(mode(keyFile(rotated, newKid))).toBe(0o600);
    expect(readdirSync(rotated)).toHaveLength(2);
  });

  test("a retired key expires a day after its last token, whether or not its file is gone", async () => {
    const folder = newFolder(rotated);
    const own = await open(folder);
    expect(await failure(own.verify(token, OVER - 1))).toBeInstanceOf(TokenExpired);
    expect(await failure(own.verify(token, OVER))).toBeInstanceOf(TokenInvalid);
    const before = await open(folder, OVER - 1);
    expect(kids(before, OVER - 1)).toEqual([newKid, kid]);
    const after = await open(folder, OVER);
    expect(existsSync(keyFile(folder, kid))).toBe(false);
    expect(kids(after, NOON)).toEqual([newKid]);
    const fresh = await keys.sign({ ...CLAIMS, iat: OVER / 1_000, exp: OVER / 1_000 + 900 }, "JWT");
    expect(await failure(after.verify(fresh, OVER))).toBeInstanceOf(TokenInvalid);
  });

  test("a rotation drops expired keys", async () => {
    const folder = newFolder(rotated);
    const own = await open(folder);
    const next = await own.rotate(OVER);
    expect(readdirSync(folder).sort()).toEqual([`${newKid}.json`, `${next}.json`].sort());
    expect(kids(own, OVER)).toEqual([next, newKid]);
  });

  test("concurrent rotations run one after the other", async () => {
    const folder = newFolder(single);
    const own = await open(folder);
    const made = await Promise.all([own.rotate(NOON), own.rotate(NOON), own.rotate(NOON)]);
    expect(new Set([kid, ...made]).size).toBe(4);
    expect(own.activeKid).toBe(made[2]);
    const order = [...made.reverse(), kid];
    expect(kids(own, NOON)).toEqual(order);
    expect(kids(await open(folder), NOON)).toEqual(order);
  });

  test("a failed rotation leaves the old key active and doesn't prevent the next", async () => {
    const folder = newFolder(single);
    const own = await open(folder);
    renameSync(folder, `${folder}-away`);
    expect(await failure(own.rotate(NOON))).toMatchObject({ code: "ENOENT" });
    expect(own.activeKid).toBe(kid);
    expect(await own.verify(await own.sign(CLAIMS, "JWT"), NOON)).toEqual(WHOLE_CLAIMS);
    renameSync(`${folder}-away`, folder);
    expect(await own.rotate(NOON)).toBe(own.activeKid);
    expect(own.activeKid).not.toBe(kid);
  });

  test("the next rotation completes one that failed to retire the old key", async () => {
    const folder = newFolder(single);
    const own = await open(folder);
    // Blocks the path of the retired file.
    mkdirSync(join(folder, `${kid}.tmp`));
    await failure(own.rotate(NOON));
    expect(own.activeKid).not.toBe(kid);
    expect(readKey(folder, kid)).toHaveProperty("d");
    expect(await own.verify(token, NOON)).toEqual(WHOLE_CLAIMS);
    rmSync(join(folder, `${kid}.tmp`), { recursive: true });
    writeFileSync(join(folder, `${kid}.tmp`), "half a k");
    await own.rotate(NOON);
    expect(readKey(folder, kid)).not.toHaveProperty("d");
    expect(readKey(folder, kid)["retired_at"]).toBe(NOON);
  });

  test("a rotation's key is the newest even where the clock stepped back", async () => {
    const folder = newFolder(single);
    const next = await (await open(folder)).rotate(NOON - DAY_MS);
    expect(readKey(folder, next)["created_at"]).toBe(NOON + 1);
  });

  test("a rotation is rejected beyond 100 unexpired keys", async () => {
    const folder = newFolder(single);
    for (let i = 0; i < 99; i++) {
      // Any odd number can be the modulus of a key that is never used.
      const n = Buffer.concat([Buffer.of(0x80), randomBytes(254), Buffer.of(1)]).toString("base64url");
      const id = await calculateJwkThumbprint({ kty: "RSA", n, e: "AQAB" });
      writeKey(folder, id, { ...withoutPrivatePart(readKey(single, kid)), n, kid: id, retired_at: NOON });
    }
    const own = await open(folder);
    expect((await failure(own.rotate(OVER - 1))).message).toContain("100 signing keys are still in use");
    expect(own.activeKid).toBe(kid);
    expect(kids(own, OVER - 1)).toHaveLength(100);
    const next = await own.rotate(OVER);
    expect(kids(own, OVER)).toEqual([next, kid]);
    expect(readdirSync(folder)).toHaveLength(2);
  });
});
