/**
 * A forger of access tokens: takes a genuine token apart and builds others from its parts, signed with the server's own
 * key, a stranger's key, or nothing. Expects nothing of the server.
 */
import { constants, createHash, createPublicKey, type KeyObject, privateEncrypt, sign as signBytes } from "node:crypto";

export type Json = Record<string, unknown>;

export function encode(part: unknown): string {
  const bytes = part instanceof Uint8Array || typeof part === "string" ? part : JSON.stringify(part);
  return Buffer.from(bytes as string).toString("base64url");
}

export function decode(segment: string): Json {
  return JSON.parse(Buffer.from(segment, "base64url").toString()) as Json;
}

/** A genuine token, and the keys and parts to forge others. */
export class Forge {
  /** Header, payload and signature of the genuine token. */
  readonly h: string;
  readonly p: string;
  readonly s: string;
  readonly token: string;
  readonly head: Json;
  readonly claims: Json;
  readonly kid: string;
  readonly key: KeyObject;
  readonly publicKey: KeyObject;
  readonly stranger: KeyObject;
  readonly strangerJwk: Json;
  /** The claims of another user's session token. */
  readonly other: Json;

  /**
   * @param key the server's own key
   * @param claims the payload; if it differs from the token's, the forge signs it again
   */
  constructor(key: KeyObject, stranger: KeyObject, other: Json, head: Json, claims: Json) {
    this.key = key;
    this.publicKey = createPublicKey(key);
    this.stranger = stranger;
    this.strangerJwk = createPublicKey(stranger).export({ format: "jwk" }) as Json;
    this.other = other;
    this.head = head;
    this.claims = claims;
    this.kid = String(head["kid"]);
    this.token = this.compact(head, claims);
    [this.h, this.p, this.s] = this.token.split(".") as [string, string, string];
  }

  /**
   * Builds a token from a header and a payload, as values or as text. Signs it with the server's key unless `sign` is
   * given.
   */
  compact(
    head: unknown,
    payload: unknown,
    sign: (input: string) => Buffer | string = (input) => this.ours(input),
  ): string {
    const input = `${encode(head)}.${encode(payload)}`;
    return `${input}.${Buffer.from(sign(input)).toString("base64url")}`;
  }

  ours(input: string): Buffer {
    return signBytes("sha256", Buffer.from(input), this.key);
  }

  theirs(input: string): Buffer {
    return signBytes("sha256", Buffer.from(input), this.stranger);
  }

  /** Returns the genuine header with changes. An undefined member is left out. */
  header(change: Json = {}): Json {
    return { ...this.head, ...change };
  }

  /** Keeps the genuine signature. */
  withHeader(change: Json): string {
    return `${encode(this.header(change))}.${this.p}.${this.s}`;
  }

  withClaims(change: Json): string {
    return this.compact(this.head, { ...this.claims, ...change });
  }

  withSignature(change: (signature: Buffer) => Uint8Array): string {
    return `${this.h}.${this.p}.${encode(change(Buffer.from(this.s, "base64url")))}`;
  }

  get n(): Buffer {
    return Buffer.from(String(this.publicKey.export({ format: "jwk" }).n), "base64url");
  }

  /** Signs the genuine input with the private key over an arbitrary padded block: 256 bytes that start with a zero. */
  rawSigned(block: Buffer): string {
    const signature = privateEncrypt({ key: this.key, padding: constants.RSA_NO_PADDING }, block);
    return `${this.h}.${this.p}.${encode(signature)}`;
  }
}

export type Variant = readonly [name: string, make: (f: Forge) => string | Promise<string>];

export const spkiPem = (f: Forge): string => f.publicKey.export({ type: "spki", format: "pem" }) as string;
export const pkcs1Pem = (f: Forge): string => f.publicKey.export({ type: "pkcs1", format: "pem" }) as string;
export const spkiDer = (f: Forge): Buffer => f.publicKey.export({ type: "spki", format: "der" });
export const pkcs1Der = (f: Forge): Buffer => f.publicKey.export({ type: "pkcs1", format: "der" });
export const publicJwk = (f: Forge): Json => f.publicKey.export({ format: "jwk" }) as Json;

// The block of an RSA signature: 00 01 ff ... ff 00, then the DER of the hash's name and the hash (RFC 8017, 9.2).
export const SHA256_INFO = "3031300d060960864801650304020105000420";
export const hashOf = (f: Forge): string => createHash("sha256").update(`${f.h}.${f.p}`).digest("hex");

export function block(tail: string, { start = "0001", fill = "ff", gap = "00" } = {}): Buffer {
  const length = 256 - (start.length + gap.length + tail.length) / 2;
  return Buffer.from(start + fill.repeat(length) + gap + tail, "hex");
}
