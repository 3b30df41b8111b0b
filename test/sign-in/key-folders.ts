/**
 * Folders of signing keys for tests: one with a single key, a copy that was rotated once, and a token of the single
 * key. Tests that write use a copy.
 */
import assert from "node:assert";
import { cpSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JSONWebKeySet } from "jose";
import { beforeAll } from "vitest";
import { SigningKeys, type TokenClaims } from "../../server/sign-in/signing-keys.ts";
import { temporaryFolder } from "../support/server.ts";

export const ISSUER = "https://exchange.example";
export const AUDIENCE = "https://exchange.example/api/v1";
export const NOON = 1_760_000_000_000;
export const SECOND = NOON / 1_000;
const TTL_MS = 900_000;
export const DAY_MS = 86_400_000;
/** The time at which every token signed at noon has expired. */
export const LATER = NOON + TTL_MS;
/** The time at which the key retired at noon has expired. */
export const OVER = LATER + DAY_MS;
export const CLAIMS = {
  iat: SECOND,
  exp: SECOND + TTL_MS / 1_000,
  sub: "usr_1",
  jti: "7d9a",
  scope: "read trade",
} satisfies TokenClaims;
export const WHOLE_CLAIMS = { ...CLAIMS, iss: ISSUER, aud: AUDIENCE };
export const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi"];

export type Json = Record<string, unknown>;

let root: string;
let folders = 0;

/** A path that does not exist yet, or a copy of another folder. */
export function newFolder(original?: string): string {
  const folder = join(root, String(folders++));
  if (original !== undefined) cpSync(original, folder, { recursive: true });
  return folder;
}

export function open(folder: string, now = NOON): Promise<SigningKeys> {
  return SigningKeys.open(folder, { issuer: ISSUER, audience: AUDIENCE, tokenTtlMs: TTL_MS, now });
}

export function keyFile(folder: string, kid: string): string {
  return join(folder, `${kid}.json`);
}

export function readKey(folder: string, kid: string): Json {
  return JSON.parse(readFileSync(keyFile(folder, kid), "utf8"));
}

export function writeKey(folder: string, kid: string, content: Json): void {
  writeFileSync(keyFile(folder, kid), JSON.stringify(content), { mode: 0o600 });
}

export function keySet(keys: SigningKeys, now: number): JSONWebKeySet {
  return JSON.parse(keys.jwks(now));
}

export function kids(keys: SigningKeys, now: number): (string | undefined)[] {
  return keySet(keys, now).keys.map((key) => key.kid);
}

export function withoutPrivatePart(key: Json): Json {
  return Object.fromEntries(Object.entries(key).filter(([name]) => !PRIVATE_MEMBERS.includes(name)));
}

export function encode(part: unknown): string {
  const bytes = part instanceof Uint8Array || typeof part === "string" ? part : JSON.stringify(part);
  return Buffer.from(bytes as string).toString("base64url");
}

export function mode(path: string): number {
  return statSync(path).mode & 0o777;
}

export async function failure(promise: Promise<unknown>): Promise<Error> {
  const outcome = await promise.then(
    (value) => value,
    (error) => error,
  );
  assert(outcome instanceof Error, "it should have failed");
  return outcome;
}

/** A folder with one key, and a folder rotated once at noon. */
export let single: string;
export let rotated: string;
export let keys: SigningKeys;
export let kid: string;
export let token: string;
export let newKid: string;

/** Makes the folders before the tests of a file. */
export function makeKeyFolders(): void {
  beforeAll(async () => {
    root = temporaryFolder();
    single = newFolder();
    keys = await open(single);
    kid = keys.activeKid;
    token = await keys.sign(CLAIMS, "JWT");
    rotated = newFolder(single);
    newKid = await (await open(rotated)).rotate(NOON);
  });
}
