/**
 * Owns the RSA keys that sign access tokens: their files and rotation, signing and verification, and the public key set.
 * Reads no clock. Only the active key's file contains a private key, and no error quotes a file or a token. Not safe for
 * two processes that use the same folder.
 */
import assert from "node:assert";
import { constants } from "node:fs";
import { chmod, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import {
  CompactSign,
  type CryptoKey,
  calculateJwkThumbprint,
  compactVerify,
  decodeJwt,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from "jose";
import { MAX_TOKEN_LENGTH } from "../accounts/limits.ts";
import { SECOND_FACTOR_KEYS } from "./second-factor-keys.ts";

export type TokenClaims = JWTPayload;
type VerifiedClaims = TokenClaims & { readonly exp: number; readonly iat: number; readonly scope: string };
/** RFC 9068 defines the second one, for the tokens of OAuth clients. */
type TokenType = "JWT" | "at+jwt";

/** The token is not one that we signed for this audience with all claims. */
export class TokenInvalid extends Error {}
/** The token is genuine but expired. */
export class TokenExpired extends Error {}

interface SigningKeysOptions {
  readonly issuer: string;
  readonly audience: string;
  /** Longest lifetime of a token. Between two starts it may shrink by up to a day, and grow at will. */
  readonly tokenTtlMs: number;
  readonly now: number;
}

const ALGORITHM = "RS256";
const MODULUS_BITS = 2048;
const TOKEN_TYPES: readonly TokenType[] = ["JWT", "at+jwt"];
/** How much longer a retired key stays than its tokens, for verifiers that cache the key set. */
const CACHE_MS = 24 * 3_600_000;
/** Keys that have not ended yet: bounds the key set that every verifier loads. */
const MAX_KEYS = 100;

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const MAX_FILE_BYTES = 16 * 1024;
const KEY_SUFFIX = ".json";
const TEMPORARY_SUFFIX = ".tmp";

interface PublicJwk {
  readonly kty: "RSA";
  readonly n: string;
  readonly e: string;
  readonly kid: string;
  readonly alg: typeof ALGORITHM;
  readonly use: "sig";
}

/**
 * A key file is a JSON Web Key (RFC 7517) with two more members, in milliseconds: `created_at`, and `retired_at` once the
 * key is retired. It has the private members until then.
 */
interface SigningKey {
  readonly jwk: PublicJwk;
  readonly publicKey: CryptoKey;
  readonly createdAt: number;
  readonly privateKey: CryptoKey | null;
  readonly retiredAt: number | null;
  /** False once the file records the retirement and contains the public part only. */
  fileIsPrivate: boolean;
}

type ActiveKey = SigningKey & { readonly privateKey: CryptoKey; readonly retiredAt: null };

interface CachedText {
  readonly text: string;
  /** Valid from `from` to before `until`, ms. */
  readonly from: number;
  readonly until: number;
}

export class SigningKeys {
  private readonly folder: string;
  private readonly tokenTtlMs: number;
  private issuer: string;
  private audience: string;
  private active: ActiveKey;
  /** Newest first. */
  private retired: readonly SigningKey[] = [];
  /** By the header segment of the key's tokens, one per token type. */
  private byHeader = new Map<string, SigningKey>();
  private jwksText: CachedText | null = null;
  /** The last rotation, finished or not; never rejects. */
  private lastRotation: Promise<unknown> = Promise.resolve();

  private constructor(folder: string, options: SigningKeysOptions, active: ActiveKey, retired: readonly SigningKey[]) {
    this.folder = folder;
    this.tokenTtlMs = options.tokenTtlMs;
    this.issuer = options.issuer;
    this.audience = options.audience;
    this.active = active;
    this.use(active, retired);
  }

  /**
   * Creates the folder and a first key if they are missing, and completes a rotation that a crash interrupted.
   * @throws Error naming a file in the folder that is not a signing key
   */
  static async open(folder: string, options: SigningKeysOptions): Promise<SigningKeys> {
    assert(
      Number.isSafeInteger(options.tokenTtlMs) && options.tokenTtlMs > 0,
      "a token lifetime is whole milliseconds",
    );
    assert(isTime(options.now), "a key's times are whole milliseconds");
    folder = resolve(folder);
    await makeFolder(folder);
    const loaded = await loadKeys(folder);
    const active = loaded.find(isActive) ?? (await createKey(folder, createdAfter(loaded[0], options.now)));
    // A crash between the two steps of a rotation leaves two active keys. The older may have signed until the crash.
    const retired = loaded.filter((key) => key !== active).map((key) => retire(key, options.now));
    const keys = new SigningKeys(folder, options, active, retired);
    await keys.tidy(options.now);
    return keys;
  }

  /** RFC 7638 thumbprint of the active key. */
  get activeKid(): string {
    return this.active.jwk.kid;
  }

  /** From now on, signs tokens for this issuer and audience, and rejects those of others. */
  setAudience(issuer: string, audience: string): void {
    this.issuer = issuer;
    this.audience = audience;
  }

  /**
   * @param claims all except `iss` and `aud`; their lifetime is at most the one of the options
   * @returns a compact JWS (RFC 7515)
   */
  async sign(claims: TokenClaims, typ: TokenType): Promise<string> {
    const { iat, exp } = claims;
    assert(Number.isSafeInteger(iat) && Number.isSafeInteger(exp), "a token's times are whole seconds");
    // Otherwise it would outlive its key. The extra second allows for rounding up.
    assert(Number(exp) - Number(iat) <= this.tokenTtlMs / 1_000 + 1, "a token lives no longer than the keys allow");
    const { jwk, privateKey } = this.active;
    const token = await new SignJWT({ ...claims, iss: this.issuer, aud: this.audience })
      .setProtectedHeader(headerOf(jwk.kid, typ))
      .sign(privateKey);
    assert(token.length <= MAX_TOKEN_LENGTH, "a token is short enough to be verified");
    return token;
  }

  /**
   * Returns the claims of a token that `sign` made and that has not expired at `now`, ms, without tolerance.
   * @throws TokenExpired if the expiry is all that is wrong
   * @throws TokenInvalid for everything else
   */
  async verify(token: string, now: number): Promise<VerifiedClaims> {
    const key = this.keyOf(token);
    if (key === null || this.hasEnded(key, now)) throw new TokenInvalid("the token is not signed by a key of ours");
    try {
      const { payload } = await jwtVerify(token, key.publicKey, {
        algorithms: [ALGORITHM],
        issuer: this.issuer,
        audience: this.audience,
        currentDate: new Date(now),
      });
      if (hasAllClaims(payload)) return payload;
    } catch (error) {
      // jose's errors can contain claims, so they end here.
      if (!(error instanceof errors.JOSEError)) throw error;
      if (error instanceof errors.JWTExpired && hasAllClaims(error.payload)) {
        throw new TokenExpired("the token has expired");
      }
    }
    throw new TokenInvalid("the token is not valid");
  }

  /** The JSON Web Key Set (RFC 7517): the active key, then retired keys whose tokens may be valid, newest first. */
  jwks(now: number): string {
    const cached = this.jwksText;
    if (cached !== null && now >= cached.from && now < cached.until) return cached.text;
    const live = [this.active, ...this.retired.filter((key) => !this.hasEnded(key, now))];
    const text = JSON.stringify({ keys: live.map((key) => key.jwk) });
    this.jwksText = { text, from: now, until: Math.min(...live.map((key) => this.endOf(key))) };
    return text;
  }

  /**
   * Activates a new key, which is on disk before it signs. Calls run one after the other.
   * @returns the new key's id
   * @throws file system errors: before the new key is on disk, nothing has changed; afterwards the new key is active and
   * the next rotation or start completes the rest
   */
  rotate(now: number): Promise<string> {
    const rotation = this.lastRotation.then(() => this.rotateNow(now));
    this.lastRotation = rotation.catch(() => {});
    return rotation;
  }

  private async rotateNow(now: number): Promise<string> {
    assert(isTime(now), "a key's times are whole milliseconds");
    const live = this.retired.filter((key) => !this.hasEnded(key, now)).length + 1;
    if (live >= MAX_KEYS) throw new Error(`${live} signing keys are still in use: the maximum is ${MAX_KEYS}`);
    const active = await createKey(this.folder, createdAfter(this.active, now));
    // A crash from here on leaves two active keys in the folder: the newer one wins.
    this.use(active, [retire(this.active, now), ...this.retired]);
    await this.tidy(now);
    return active.jwk.kid;
  }

  private use(active: ActiveKey, retired: readonly SigningKey[]): void {
    this.active = active;
    this.retired = retired;
    this.jwksText = null;
    this.byHeader = new Map();
    for (const key of [active, ...retired]) {
      for (const typ of TOKEN_TYPES) this.byHeader.set(headerSegment(key.jwk.kid, typ), key);
    }
  }

  /** Rewrites the files of retired keys without their private part, and deletes keys that have ended. */
  private async tidy(now: number): Promise<void> {
    for (const key of this.retired) {
      if (this.hasEnded(key, now)) {
        // Not synced: the next start deletes a file that a power loss restored.
        await rm(keyPath(this.folder, key.jwk.kid), { force: true });
      } else if (key.fileIsPrivate) {
        await writeKey(this.folder, key.jwk.kid, { ...key.jwk, created_at: key.createdAt, retired_at: key.retiredAt });
        key.fileIsPrivate = false;
      }
    }
    const live = this.retired.filter((key) => !this.hasEnded(key, now));
    if (live.length < this.retired.length) this.use(this.active, live);
  }

  private hasEnded(key: SigningKey, now: number): boolean {
    return now >= this.endOf(key);
  }

  private endOf(key: SigningKey): number {
    return key.retiredAt === null ? Number.POSITIVE_INFINITY : key.retiredAt + this.tokenTtlMs + CACHE_MS;
  }

  /**
   * The key of a token; null for one that we cannot have signed. The header must equal, byte for byte, one that we write.
   * So before the signature is verified, nothing in it is interpreted: no other algorithm, no key of the sender's, no
   * `crit`, no duplicate name.
   */
  private keyOf(token: string): SigningKey | null {
    if (token.length > MAX_TOKEN_LENGTH) return null;
    const segments = token.split(".");
    if (segments.length !== 3 || !segments.every(isCanonical)) return null;
    const [header = ""] = segments;
    return this.byHeader.get(header) ?? null;
  }
}

/** The claims of a token whose signature the caller has verified, or that it does not rely on. */
export function claimsOf(token: string): TokenClaims {
  return decodeJwt(token);
}

function headerOf(kid: string, typ: TokenType): { alg: string; kid: string; typ: TokenType } {
  return { alg: ALGORITHM, kid, typ };
}

function headerSegment(kid: string, typ: TokenType): string {
  return Buffer.from(JSON.stringify(headerOf(kid, typ))).toString("base64url");
}

/** True for the canonical base64url form (RFC 4648 section 5, without padding), so that a token has one form only. */
function isCanonical(segment: string): boolean {
  return segment !== "" && Buffer.from(segment, "base64url").toString("base64url") === segment;
}

/** True if every claim except `iss` and `aud` exists and has its type. */
function hasAllClaims(claims: TokenClaims): claims is VerifiedClaims {
  const { exp, iat, nbf, sub, jti } = claims;
  for (const time of [exp, iat, nbf ?? 0]) if (!isTime(time)) return false;
  for (const id of [sub, jti]) if (typeof id !== "string" || id === "") return false;
  return typeof claims["scope"] === "string";
}

function isActive(key: SigningKey): key is ActiveKey {
  return key.retiredAt === null && key.privateKey !== null;
}

function retire(key: SigningKey, now: number): SigningKey {
  return { ...key, privateKey: null, retiredAt: key.retiredAt ?? now };
}

/** The newest key wins after a crash, so a key is newer than the last one even if the clock stepped back. */
function createdAfter(newest: SigningKey | undefined, now: number): number {
  return newest === undefined ? now : Math.max(now, newest.createdAt + 1);
}

async function createKey(folder: string, createdAt: number): Promise<ActiveKey> {
  const pair = await generateKeyPair(ALGORITHM, { modulusLength: MODULUS_BITS, extractable: true });
  const jwk = await exportJWK(pair.privateKey);
  const kid = await calculateJwkThumbprint(jwk);
  const content = { ...jwk, kid, alg: ALGORITHM, use: "sig", created_at: createdAt };
  const key = await parseKey(JSON.stringify(content));
  assert(isActive(key), "a new key reads as an active one");
  await writeKey(folder, kid, content);
  return key;
}

/** Loads all keys of the folder, newest first; deletes temporary files of a crash. */
async function loadKeys(folder: string): Promise<SigningKey[]> {
  const keys: SigningKey[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name === SECOND_FACTOR_KEYS) continue;
    const path = join(folder, entry.name);
    if (entry.isFile() && entry.name.endsWith(TEMPORARY_SUFFIX)) {
      await rm(path);
      continue;
    }
    const text = entry.isFile() ? await readPrivately(path) : "";
    // Without the cause, which may quote the file.
    const key = await parseKey(text).catch(() => null);
    if (key === null || keyPath(folder, key.jwk.kid) !== path) throw new Error(`${path} is not a signing key`);
    keys.push(key);
  }
  return keys.sort((a, b) => b.createdAt - a.createdAt);
}

/** @throws anything, with a message that may quote the text, if it is not a key */
async function parseKey(text: string): Promise<SigningKey> {
  const { created_at: createdAt, retired_at: retiredAt = null, ...jwk } = JSON.parse(text);
  assert(isTime(createdAt) && (retiredAt === null || isTime(retiredAt)));
  assert(jwk.kty === "RSA" && jwk.alg === ALGORITHM && jwk.use === "sig");
  const publicKey = (await importJWK({ kty: "RSA", n: jwk.n, e: jwk.e }, ALGORITHM)) as CryptoKey;
  const { n = "", e = "" } = await exportJWK(publicKey);
  const kid = await calculateJwkThumbprint({ kty: "RSA", n, e });
  assert(jwk.kid === kid && Buffer.from(n, "base64url").length >= MODULUS_BITS / 8);
  let privateKey: CryptoKey | null = null;
  if (retiredAt === null) {
    privateKey = (await importJWK(jwk, ALGORITHM, { extractable: false })) as CryptoKey;
    const probe = await new CompactSign(new Uint8Array(1)).setProtectedHeader({ alg: ALGORITHM }).sign(privateKey);
    await compactVerify(probe, publicKey);
  }
  const publicJwk: PublicJwk = { kty: "RSA", n, e, kid, alg: ALGORITHM, use: "sig" };
  const fileIsPrivate = Object.keys(jwk).some((member) => !(member in publicJwk));
  return { jwk: publicJwk, publicKey, createdAt, privateKey, retiredAt, fileIsPrivate };
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function keyPath(folder: string, kid: string): string {
  return join(folder, `${kid}${KEY_SUFFIX}`);
}

/** Restricts the file to its owner before reading it. A file too large for a key reads as an empty one. */
async function readPrivately(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { mode, size } = await file.stat();
    if ((mode & 0o777) !== FILE_MODE) await file.chmod(FILE_MODE);
    return size > MAX_FILE_BYTES ? "" : await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/** Atomic, and on disk when it returns. */
async function writeKey(folder: string, kid: string, content: object): Promise<void> {
  const temporary = join(folder, `${kid}${TEMPORARY_SUFFIX}`);
  await rm(temporary, { force: true });
  const file = await open(temporary, "wx", FILE_MODE);
  try {
    await file.writeFile(JSON.stringify(content));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, keyPath(folder, kid));
  await syncFolder(folder);
}

/** Creates the folder, an absolute path, and its missing parents, on disk. Private: whoever writes in it could forge tokens. */
async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  if (first !== undefined) {
    for (let path = folder; path !== dirname(first); path = dirname(path)) await syncFolder(dirname(path));
  }
  if (((await stat(folder)).mode & 0o777) !== FOLDER_MODE) await chmod(folder, FOLDER_MODE);
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
