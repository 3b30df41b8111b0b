/**
 * Forged and damaged access tokens against a running server, through every entry point: the Authorization header, the
 * WebSocket's URL, introspection and revocation. The variants follow the public Wycheproof vectors for JWS and RSA
 * signatures. Every forger here knows all public data. Some also have the server's own key, and the server must still
 * reject their tokens.
 */
import assert from "node:assert";
import {
  constants,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  privateEncrypt,
  randomBytes,
  sign as signBytes,
  verify as verifyBytes,
} from "node:crypto";
import { cpSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { CompactEncrypt, createRemoteJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import jsonwebtoken from "jsonwebtoken";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell, expectQuiet, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE, Client } from "../support/client.ts";
import { signingKeys } from "../support/data-dir.ts";
import { PASSWORD, type SignedIn, signIn } from "../support/identity.ts";
import { type TestServer, temporaryFolder } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { FORM, ThirdParty } from "../support/third-party.ts";
import { ALL_SCOPES, PUBLIC_URL, World } from "../support/world.ts";

type Json = Record<string, unknown>;

const DAY_S = 86_400;
const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
/** The most bytes that uWebSockets.js accepts before a request's body. */
const MAX_HEAD_BYTES = 4_096;

function encode(part: unknown): string {
  const bytes = part instanceof Uint8Array || typeof part === "string" ? part : JSON.stringify(part);
  return Buffer.from(bytes as string).toString("base64url");
}

function decode(segment: string): Json {
  return JSON.parse(Buffer.from(segment, "base64url").toString()) as Json;
}

const sidOf = (token: string): unknown => decode(token.split(".")[1]!)["sid"];

// ---------------------------------------------------------------- the forge

/** A genuine token, and the keys and parts to forge others. */
class Forge {
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

  /**
   * @param key the server's own key
   * @param claims the payload; if it differs from the token's, the forge signs it again
   */
  constructor(key: KeyObject, stranger: KeyObject, head: Json, claims: Json) {
    this.key = key;
    this.publicKey = createPublicKey(key);
    this.stranger = stranger;
    this.strangerJwk = createPublicKey(stranger).export({ format: "jwk" }) as Json;
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

type Variant = readonly [name: string, make: (f: Forge) => string | Promise<string>];

const spkiPem = (f: Forge): string => f.publicKey.export({ type: "spki", format: "pem" }) as string;
const pkcs1Pem = (f: Forge): string => f.publicKey.export({ type: "pkcs1", format: "pem" }) as string;
const spkiDer = (f: Forge): Buffer => f.publicKey.export({ type: "spki", format: "der" });
const pkcs1Der = (f: Forge): Buffer => f.publicKey.export({ type: "pkcs1", format: "der" });
const publicJwk = (f: Forge): Json => f.publicKey.export({ format: "jwk" }) as Json;

/** Every form of the public key that a verifier might accept as a shared secret. */
const SECRETS: readonly (readonly [string, (f: Forge) => string | Buffer])[] = [
  ["the public key as SPKI PEM", spkiPem],
  ["the PEM without its last line feed", (f) => spkiPem(f).trim()],
  ["the PEM with CR LF", (f) => spkiPem(f).replaceAll("\n", "\r\n")],
  ["the PEM in one line", (f) => spkiPem(f).replaceAll("\n", "")],
  ["the PEM's base64", (f) => spkiPem(f).replaceAll(/-----.*-----|\n/g, "")],
  ["the public key as PKCS #1 PEM", pkcs1Pem],
  ["the PKCS #1 PEM, trimmed", (f) => pkcs1Pem(f).trim()],
  ["the public key as SPKI DER", spkiDer],
  ["the public key as PKCS #1 DER", pkcs1Der],
  ["the SPKI DER in hex", (f) => spkiDer(f).toString("hex")],
  ["the modulus as text", (f) => f.n.toString("base64url")],
  ["the modulus as bytes", (f) => f.n],
  ["the modulus in hex", (f) => f.n.toString("hex")],
  ["the JWK as text", (f) => JSON.stringify(publicJwk(f))],
  ["the JWK of the key set as text", (f) => JSON.stringify({ ...publicJwk(f), kid: f.kid, alg: "RS256", use: "sig" })],
  ["the key id", (f) => f.kid],
  ["nothing", () => ""],
  ["a zero byte", () => Buffer.alloc(1)],
  ["32 zero bytes", () => Buffer.alloc(32)],
  ["the word secret", () => "secret"],
];

const HMACS: Variant[] = SECRETS.flatMap(([name, secret]): Variant[] =>
  ["256", "384", "512"].map((size) => [
    `HS${size} with ${name}`,
    (f) =>
      f.compact(f.header({ alg: `HS${size}` }), f.claims, (input) =>
        createHmac(`sha${size}`, secret(f)).update(input).digest(),
      ),
  ]),
);

const NONES = ["none", "None", "NONE", "nOnE", "noNe", "none ", " none", "none\0", "", "null"];
const OTHER_ALGORITHMS = [
  ..."RS384 RS512 RS1 PS256 PS384 PS512 ES256 ES384 ES512 ES256K EdDSA Ed25519 HS256 HS384 HS512".split(" "),
  ..."RSA1_5 RSA-OAEP RSA-OAEP-256 dir A256KW rs256 RS-256 SHA256withRSA __proto__ toString".split(" "),
  "RS256 ",
];

/** Signs with an RSA key, by the algorithm's name. */
function rsa(alg: string, key: KeyObject): (input: string) => Buffer {
  const hash = `sha${alg.slice(2)}`;
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  return (input) => signBytes(hash, Buffer.from(input), alg.startsWith("PS") ? { key, ...pss } : key);
}

const ALGORITHMS: Variant[] = [
  ...NONES.flatMap((alg): Variant[] => [
    [`alg ${JSON.stringify(alg)} without a signature`, (f) => f.compact(f.header({ alg }), f.claims, () => "")],
    [`alg ${JSON.stringify(alg)} over the genuine signature`, (f) => f.withHeader({ alg })],
  ]),
  ["alg none and nothing else in the header", (f) => f.compact({ alg: "none" }, f.claims, () => "")],
  ["alg none with typ alone", (f) => f.compact({ alg: "none", typ: "JWT" }, f.claims, () => "")],
  ["alg none and only two parts", (f) => `${encode({ alg: "none" })}.${f.p}`],
  ["alg none for another user", (f) => f.compact(f.header({ alg: "none" }), { ...f.claims, sub: "999999" }, () => "")],
  ...OTHER_ALGORITHMS.map((alg): Variant => [`alg ${alg} over the genuine signature`, (f) => f.withHeader({ alg })]),
  ...["RS384", "RS512", "RS1", "PS256", "PS384", "PS512"].flatMap((alg): Variant[] => [
    [`${alg} with the server's key`, (f) => f.compact(f.header({ alg }), f.claims, rsa(alg, f.key))],
    [`RS256 in the header over ${alg} with the server's key`, (f) => f.compact(f.head, f.claims, rsa(alg, f.key))],
    [`${alg} with a stranger's key`, (f) => f.compact(f.header({ alg }), f.claims, rsa(alg, f.stranger))],
  ]),
  ...[undefined, null, true, 1, {}, [], ["RS256"], ["none"]].map(
    (alg): Variant => [`alg ${JSON.stringify(alg)}, signed`, (f) => f.compact(f.header({ alg }), f.claims)],
  ),
  ...(["P-256", "P-384", "P-521", "secp256k1"] as const).flatMap((namedCurve): Variant[] => {
    const alg = { "P-256": "ES256", "P-384": "ES384", "P-521": "ES512", secp256k1: "ES256K" }[namedCurve];
    const hash = namedCurve === "P-384" ? "sha384" : namedCurve === "P-521" ? "sha512" : "sha256";
    return (["ieee-p1363", "der"] as const).map((dsaEncoding) => [
      `${alg} with a key of the sender's own, ${dsaEncoding}`,
      (f) => {
        const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve });
        const jwk = publicKey.export({ format: "jwk" });
        const sign = (input: string): Buffer => signBytes(hash, Buffer.from(input), { key: privateKey, dsaEncoding });
        return f.compact(f.header({ alg, jwk }), f.claims, sign);
      },
    ]);
  }),
  ...[0, 1, 255].flatMap((fill): Variant[] => [
    [
      `ES256 with r and s of ${fill}s`,
      (f) => f.compact(f.header({ alg: "ES256" }), f.claims, () => Buffer.alloc(64, fill)),
    ],
    [`RS256 over r and s of ${fill}s`, (f) => f.compact(f.head, f.claims, () => Buffer.alloc(64, fill))],
  ]),
  [
    "ES256 with r and s zero in DER",
    (f) => f.compact(f.header({ alg: "ES256" }), f.claims, () => Buffer.from("3006020100020100", "hex")),
  ],
  [
    "EdDSA with a key of the sender's own",
    (f) => {
      const { privateKey } = generateKeyPairSync("ed25519");
      return f.compact(f.header({ alg: "EdDSA" }), f.claims, (input) =>
        signBytes(null, Buffer.from(input), privateKey),
      );
    },
  ],
  [
    "RS256 in the header over an HMAC with the public key",
    (f) => f.compact(f.head, f.claims, (input) => createHmac("sha256", spkiPem(f)).update(input).digest()),
  ],
];

const number = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString("hex")}`);

function bytesOf(value: bigint, length: number): Buffer {
  return Buffer.from(value.toString(16).padStart(2 * length, "0"), "hex");
}

const SIGNATURES: Variant[] = [
  ["a stranger's signature under our key id", (f) => f.compact(f.head, f.claims, (input) => f.theirs(input))],
  ["no signature", (f) => `${f.h}.${f.p}.`],
  ["no signature and no dot before it", (f) => `${f.h}.${f.p}`],
  ...[0, 255].map((fill): Variant => [`a signature of ${fill}s`, (f) => f.withSignature((s) => s.fill(fill))]),
  ["the signature 1", (f) => f.withSignature((s) => bytesOf(1n, s.length))],
  ["the signature n", (f) => f.withSignature(() => f.n)],
  ["the signature n - 1", (f) => f.withSignature(() => bytesOf(number(f.n) - 1n, 256))],
  ["the signature n + 1", (f) => f.withSignature(() => bytesOf(number(f.n) + 1n, 256))],
  ["the signature subtracted from n", (f) => f.withSignature((s) => bytesOf(number(f.n) - number(s), 256))],
  [
    "the signature plus n, the same number to RSA",
    (f) => f.withSignature((s) => bytesOf(number(s) + number(f.n), 257)),
  ],
  ["the signature squared", (f) => f.withSignature((s) => bytesOf((number(s) * number(s)) % number(f.n), 256))],
  ["the signature's bytes reversed", (f) => f.withSignature((s) => s.reverse())],
  ["the signature twice", (f) => f.withSignature((s) => Buffer.concat([s, s]))],
  ["random bytes for a signature", (f) => f.withSignature(() => randomBytes(256))],
  ...[1, 2, 3, 4, 8, 32, 128, 192, 224, 255].flatMap((cut): Variant[] => [
    [`a signature without its last ${cut} bytes`, (f) => f.withSignature((s) => s.subarray(0, -cut))],
    [`a signature without its first ${cut} bytes`, (f) => f.withSignature((s) => s.subarray(cut))],
  ]),
  ...[1, 2, 16, 256, 1_000].flatMap((more): Variant[] => [
    [`a signature with ${more} zeros after it`, (f) => f.withSignature((s) => Buffer.concat([s, Buffer.alloc(more)]))],
    [`a signature with ${more} zeros before it`, (f) => f.withSignature((s) => Buffer.concat([Buffer.alloc(more), s]))],
  ]),
  ...Array.from({ length: 32 }, (_, i) => (i * 2_047) / 31).map((at): Variant => {
    const bit = Math.round(at);
    const flip = (s: Buffer): Buffer => {
      s[bit >> 3]! ^= 1 << (bit & 7);
      return s;
    };
    return [`a signature with bit ${bit} flipped`, (f) => f.withSignature(flip)];
  }),
  ["the signature over the payload alone", (f) => `${f.h}.${f.p}.${encode(f.ours(f.p))}`],
  ["the signature over the header alone", (f) => `${f.h}.${f.p}.${encode(f.ours(f.h))}`],
  ["the signature over both without a dot", (f) => `${f.h}.${f.p}.${encode(f.ours(f.h + f.p))}`],
  ["the signature over both and a dot more", (f) => `${f.h}.${f.p}.${encode(f.ours(`${f.h}.${f.p}.`))}`],
  [
    "the signature over the unencoded payload",
    (f) => `${f.h}.${f.p}.${encode(f.ours(`${f.h}.${JSON.stringify(f.claims)}`))}`,
  ],
  [
    "the signature over the hash of both",
    (f) => `${f.h}.${f.p}.${encode(f.ours(createHash("sha256").update(`${f.h}.${f.p}`).digest("hex")))}`,
  ],
  ["the payload of one and the signature of another", (f) => `${f.h}.${encode({ ...f.claims, jti: "other" })}.${f.s}`],
  ["a payload that was encoded again", (f) => `${f.h}.${encode(JSON.stringify(f.claims, null, 1))}.${f.s}`],
  ["another user's number in the payload", (f) => `${f.h}.${encode({ ...f.claims, sub: "999999" })}.${f.s}`],
  [
    "another session's number in the payload",
    (f) => `${f.h}.${encode({ ...f.claims, sid: sidOf(other.accessToken) })}.${f.s}`,
  ],
  ["a later end in the payload", (f) => `${f.h}.${encode({ ...f.claims, exp: 4_102_444_800 })}.${f.s}`],
  ["more scopes in the payload", (f) => `${f.h}.${encode({ ...f.claims, scope: "admin" })}.${f.s}`],
  ["the other kind in the header", (f) => f.withHeader({ typ: f.head["typ"] === "JWT" ? "at+jwt" : "JWT" })],
];

// The block of an RSA signature: 00 01 ff ... ff 00, then the DER of the hash's name and the hash (RFC 8017, 9.2).
const SHA256_INFO = "3031300d060960864801650304020105000420";
const hashOf = (f: Forge): string => createHash("sha256").update(`${f.h}.${f.p}`).digest("hex");

function block(tail: string, { start = "0001", fill = "ff", gap = "00" } = {}): Buffer {
  const length = 256 - (start.length + gap.length + tail.length) / 2;
  return Buffer.from(start + fill.repeat(length) + gap + tail, "hex");
}

const info =
  (text: string): ((f: Forge) => string) =>
  (f) =>
    f.rawSigned(block(text.replace("H", hashOf(f))));
const whole = (options: Parameters<typeof block>[1]): ((f: Forge) => string) => {
  return (f) => f.rawSigned(block(SHA256_INFO + hashOf(f), options));
};
/** Puts the hash first and garbage in place of the padding. Verifiers that skip the end of the block accept this. */
const early =
  (padding: number, tail: string) =>
  (f: Forge): string => {
    const begin = `0001${"ff".repeat(padding)}00${tail.replace("H", hashOf(f))}`;
    return f.rawSigned(Buffer.from(begin.padEnd(512, "5a"), "hex"));
  };

/** Blocks that only the holder of the key can sign, but that are not PKCS #1 v1.5 signatures of SHA-256. */
const PADDINGS: Variant[] = [
  ["a DigestInfo without NULL", info("302f300b06096086480165030402010420H")],
  ["a DigestInfo with a NULL that has contents", info("3032300e06096086480165030402010501000420H")],
  ["a DigestInfo with 0 for NULL", info("3031300d060960864801650304020100000420H")],
  ["a DigestInfo with a long length", info("308131300d060960864801650304020105000420H")],
  ["a DigestInfo with a long length in it", info("303230810d060960864801650304020105000420H")],
  ["a DigestInfo with a long length of the hash", info("3032300d06096086480165030402010500048120H")],
  ["a DigestInfo of indefinite length", info("3080300d060960864801650304020105000420H0000")],
  ["a DigestInfo whose length is too small", info("3030300d060960864801650304020105000420H")],
  ["a DigestInfo whose length is too large", info("3032300d060960864801650304020105000420H")],
  ["a DigestInfo that is a set", info("3131300d060960864801650304020105000420H")],
  ["a hash that is a bit string", info("3031300d060960864801650304020105000320H")],
  ["a hash that says it is a byte shorter", info("3031300d06096086480165030402010500041fH")],
  ["a hash that says it is a byte longer", info("3031300d060960864801650304020105000421H")],
  ["the hash alone", info("H")],
  ["the hash alone with its length", info("0420H")],
  ["SHA-224 by name", info("3031300d060960864801650304020405000420H")],
  ["SHA-384 by name", info("3031300d060960864801650304020205000420H")],
  ["SHA-512 by name", info("3031300d060960864801650304020305000420H")],
  ["SHA-512/256 by name", info("3031300d060960864801650304020605000420H")],
  ["SHA3-256 by name", info("3031300d060960864801650304020805000420H")],
  ["SHA-1 by name", info("3029300906052b0e03021a05000420H")],
  ["MD5 by name", info("3030300c06082a864886f70d020505000420H")],
  ["RSA by name", info("3031300d06092a864886f70d01010b05000420H")],
  ["a zero after the hash", info(`${SHA256_INFO}H00`)],
  ["rubbish in the DigestInfo after the hash", info("3033300d060960864801650304020105000420H5a5a")],
  ["rubbish in the hash's name", info("3033300f0609608648016503040201050005000420H")],
  ["block type 0", whole({ start: "0000", fill: "00", gap: "" })],
  ["block type 0 with ones", whole({ start: "0000" })],
  ["block type 2", whole({ start: "0002", fill: "5a" })],
  ["block type 1 filled with fe", whole({ fill: "fe" })],
  ["block type 1 filled with zeros", whole({ fill: "00" })],
  ["block type 1 one byte late", whole({ start: "000001" })],
  ["block type 1 without its zero", whole({ start: "01" })],
  ["a block that starts with 1", whole({ start: "0101" })],
  ["no zero between padding and hash", whole({ gap: "ff" })],
  ["a one between padding and hash", whole({ gap: "01" })],
  ["two zeros between padding and hash", whole({ gap: "0000" })],
  ...[8, 9, 100].map(
    (padding): Variant => [`${padding} bytes of padding and rubbish behind`, early(padding, `${SHA256_INFO}H`)],
  ),
  ["no padding and rubbish behind", early(0, `${SHA256_INFO}H`)],
  [
    "one byte of the padding changed",
    (f) =>
      f.rawSigned(
        Buffer.from(
          block(SHA256_INFO + hashOf(f))
            .toString("hex")
            .replace("ffffffff", "fffeffff"),
          "hex",
        ),
      ),
  ],
];

/** Replaces the last character with another that decodes to the same bytes: it sets unused low bits. */
function respelled(segment: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const other = segment.slice(0, -1) + alphabet[alphabet.indexOf(segment.at(-1)!) + 1]!;
  assert(Buffer.from(segment, "base64url").equals(Buffer.from(other, "base64url")));
  return other;
}

/** A token with `-` or `_` in its signature, as nearly all have. */
function withSpecials(f: Forge, jti = 0): string {
  const token = f.withClaims({ jti: `special ${jti}` });
  const signature = token.slice(token.lastIndexOf("."));
  return /-/.test(signature) && /_/.test(signature) ? token : withSpecials(f, jti + 1);
}

const inSignature = (token: string, change: (signature: string) => string): string => {
  const at = token.lastIndexOf(".") + 1;
  return token.slice(0, at) + change(token.slice(at));
};

const ENCODINGS: Variant[] = [
  ["nothing", () => ""],
  ["one dot", () => "."],
  ["two dots", () => ".."],
  ["three dots", () => "..."],
  ["dots only, a great many", () => ".".repeat(3_000)],
  ["commas for dots", (f) => f.token.replaceAll(".", ",")],
  ["an empty header", (f) => `.${f.p}.${f.s}`],
  ["an empty payload", (f) => `${f.h}..${f.s}`],
  ["an empty payload and the payload behind", (f) => `${f.h}..${f.p}.${f.s}`],
  ["an empty payload, signed", (f) => f.compact(f.head, "")],
  ["header and signature alone", (f) => `${f.h}.${f.s}`],
  ["the header alone", (f) => f.h],
  ["the header and two dots", (f) => `${f.h}..`],
  ["the payload alone", (f) => f.p],
  ["the signature alone", (f) => f.s],
  ["a dot before", (f) => `.${f.token}`],
  ["a dot after", (f) => `${f.token}.`],
  ["a fourth part", (f) => `${f.token}.AA`],
  ["five parts", (f) => `${f.token}.${f.p}.${f.s}`],
  ["the token twice", (f) => f.token + f.token],
  ["the token twice with a comma", (f) => `${f.token},${f.token}`],
  ["payload and header changed over", (f) => `${f.p}.${f.h}.${f.s}`],
  ["signature and payload changed over", (f) => `${f.h}.${f.s}.${f.p}`],
  ["padding on the signature", (f) => `${f.token}==`],
  ["one sign of padding on the signature", (f) => `${f.token}=`],
  ["padding on the header", (f) => `${f.h}=.${f.p}.${f.s}`],
  ["padding on the payload", (f) => `${f.h}.${f.p}=.${f.s}`],
  ["padding on the payload, signed", (f) => `${f.h}.${f.p}=.${encode(f.ours(`${f.h}.${f.p}=`))}`],
  [
    "the alphabet that is not for URLs",
    (f) => inSignature(withSpecials(f), (s) => s.replaceAll("-", "+").replaceAll("_", "/")),
  ],
  ["one character of the other alphabet", (f) => inSignature(withSpecials(f), (s) => s.replace("-", "+"))],
  ["that alphabet with padding", (f) => inSignature(f.token, (s) => Buffer.from(s, "base64url").toString("base64"))],
  ["the signature in hex", (f) => inSignature(f.token, (s) => Buffer.from(s, "base64url").toString("hex"))],
  ["the signature encoded twice", (f) => inSignature(f.token, encode)],
  ["a second spelling of the signature", (f) => inSignature(f.token, respelled)],
  [
    "a second spelling of the payload, signed",
    (f) => {
      const payload = [0, 1, 2].map((pad) => encode({ ...f.claims, jti: "7".repeat(pad + 1) }));
      const input = `${f.h}.${respelled(payload.find((text) => text.length % 4 === 2)!)}`;
      return `${input}.${encode(f.ours(input))}`;
    },
  ],
  ["one more character on the signature", (f) => `${f.token}A`],
  ["a length that no base64 has", (f) => `${f.token}AAA`],
  ["all in capitals", (f) => f.token.toUpperCase()],
  ["all in small letters", (f) => f.token.toLowerCase()],
  ["percent-encoded dots", (f) => f.token.replaceAll(".", "%2E")],
  ["percent-encoded twice", (f) => `%65${f.token.slice(1)}`],
  ["all of it encoded again", (f) => encode(f.token)],
  ["quotes around", (f) => `"${f.token}"`],
  ["angle brackets around", (f) => `<${f.token}>`],
  ["the scheme before it", (f) => `Bearer ${f.token}`],
  ["a name before it", (f) => `token=${f.token}`],
  ["a semicolon after", (f) => `${f.token};`],
  ["a space before", (f) => ` ${f.token}`],
  ["a space after", (f) => `${f.token} `],
  ["a tab after", (f) => `${f.token}\t`],
  ["a line feed after", (f) => `${f.token}\n`],
  ["CR LF after", (f) => `${f.token}\r\n`],
  ["a zero byte after", (f) => `${f.token}\0`],
  ["a zero byte before", (f) => `\0${f.token}`],
  ["a space in the header", (f) => `${f.h.slice(0, 8)} ${f.h.slice(8)}.${f.p}.${f.s}`],
  ["a line feed in the payload", (f) => `${f.h}.${f.p.slice(0, 64)}\n${f.p.slice(64)}.${f.s}`],
  ["a space in the signature", (f) => `${f.h}.${f.p}.${f.s.slice(0, 64)} ${f.s.slice(64)}`],
  ["a space around each dot", (f) => f.token.replaceAll(".", " . ")],
  ["a byte order mark before", (f) => `\uFEFF${f.token}`],
  ["a letter that only looks the same", (f) => f.token.replace("e", "е")],
  ["a wide letter", (f) => f.token.replace("e", "ｅ")],
  ["an invisible letter more", (f) => f.token.replace("e", "e\u200B")],
  ["a Latin 1 letter", (f) => f.token.replace("e", "é")],
  ["a character of no alphabet in the signature", (f) => inSignature(f.token, (s) => `!${s.slice(1)}`)],
  ["a character of no alphabet more", (f) => inSignature(f.token, (s) => `${s.slice(0, 9)}*${s.slice(9)}`)],
  ["a text that is none", () => "not a token"],
  ["null", () => "null"],
  ["undefined", () => "undefined"],
  ["a JSON object", () => "{}"],
  ["a personal access token that never was", () => `pm_pat_${randomBytes(32).toString("base64url")}`],
  ["the prefix of personal access tokens", () => "pm_pat_"],
  ["the hash of the token", (f) => createHash("sha256").update(f.token).digest("hex")],
  ["the JSON serialisation, flattened", (f) => JSON.stringify({ protected: f.h, payload: f.p, signature: f.s })],
  [
    "the JSON serialisation, general",
    (f) => JSON.stringify({ payload: f.p, signatures: [{ protected: f.h, signature: f.s }] }),
  ],
  [
    "the JSON serialisation with two signatures",
    (f) =>
      JSON.stringify({
        payload: f.p,
        signatures: [
          { protected: encode({ alg: "none" }), signature: "" },
          { protected: f.h, signature: f.s },
        ],
      }),
  ],
  [
    "the JSON serialisation with an unprotected header",
    (f) => JSON.stringify({ payload: f.p, header: f.head, signature: f.s }),
  ],
  [
    "a JWE for our public key",
    (f) =>
      new CompactEncrypt(Buffer.from(JSON.stringify(f.claims)))
        .setProtectedHeader({ alg: "RSA-OAEP-256", enc: "A256GCM", kid: f.kid })
        .encrypt(f.publicKey),
  ],
  [
    "a JWE of the genuine token",
    (f) =>
      new CompactEncrypt(Buffer.from(f.token))
        .setProtectedHeader({ alg: "RSA-OAEP-256", enc: "A256GCM", kid: f.kid, cty: "JWT" })
        .encrypt(f.publicKey),
  ],
];

/** Tokens with one character of each part changed, and truncated tokens. */
const DAMAGED: Variant[] = [
  ...Array.from(
    { length: 48 },
    (_, i): Variant => [
      `the character at ${Math.round((i * 100) / 47)} % changed`,
      (f) => {
        const at = Math.round((i * (f.token.length - 1)) / 47);
        return f.token.slice(0, at) + (f.token[at] === "A" ? "B" : "A") + f.token.slice(at + 1);
      },
    ],
  ),
  ...Array.from(
    { length: 24 },
    (_, i): Variant => [
      `the first ${i + 1} of 25 parts of it`,
      (f) => f.token.slice(0, Math.round(((i + 1) * f.token.length) / 25)),
    ],
  ),
  ...Array.from(
    { length: 8 },
    (_, i): Variant => [
      `without the character at ${i} / 8`,
      (f) => {
        const at = Math.floor((i * f.token.length) / 8);
        return f.token.slice(0, at) + f.token.slice(at + 1);
      },
    ],
  ),
  ["the signature's text backwards", (f) => inSignature(f.token, (s) => [...s].reverse().join(""))],
];

/**
 * Signed with the server's own key, or with a key that the header carries. The server must reject them by the header
 * alone.
 */
const HEADERS: Variant[] = [
  ["a header that is no JSON", (f) => f.compact("{alg:RS256}", f.claims)],
  ["a header that is a list", (f) => f.compact([f.head], f.claims)],
  ["a header that is a text", (f) => f.compact('"RS256"', f.claims)],
  ["a header that is a number", (f) => f.compact("256", f.claims)],
  ["a header that is null", (f) => f.compact("null", f.claims)],
  ["a header without members", (f) => f.compact({}, f.claims)],
  ["a header with a space", (f) => f.compact(JSON.stringify(f.head, null, 1), f.claims)],
  ["a header with a space before", (f) => f.compact(` ${JSON.stringify(f.head)}`, f.claims)],
  ["a header with a line feed after", (f) => f.compact(`${JSON.stringify(f.head)}\n`, f.claims)],
  ["a header with rubbish after", (f) => f.compact(`${JSON.stringify(f.head)}{}`, f.claims)],
  ["a header with a byte order mark", (f) => f.compact(`\uFEFF${JSON.stringify(f.head)}`, f.claims)],
  ["a header with an escape", (f) => f.compact(JSON.stringify(f.head).replace("RS256", "\\u0052S256"), f.claims)],
  ["a header with a comma too many", (f) => f.compact(JSON.stringify(f.head).replace("}", ",}"), f.claims)],
  ["a header that is not UTF-8", (f) => f.compact(Buffer.of(0x7b, 0xff, 0x7d), f.claims)],
  ["a header in UTF-16", (f) => f.compact(Buffer.from(JSON.stringify(f.head), "utf16le"), f.claims)],
  ["another order of members", (f) => f.compact(Object.fromEntries(Object.entries(f.head).reverse()), f.claims)],
  ["one member more", (f) => f.compact(f.header({ x: 1 }), f.claims)],
  ["names in capitals", (f) => f.compact({ ALG: "RS256", KID: f.kid, TYP: f.head["typ"] }, f.claims)],
  ["alg twice, ours last", (f) => f.compact(JSON.stringify(f.head).replace("{", '{"alg":"none",'), f.claims)],
  ["alg twice, ours first", (f) => f.compact(JSON.stringify(f.head).replace("}", ',"alg":"none"}'), f.claims)],
  ["kid twice", (f) => f.compact(JSON.stringify(f.head).replace("{", '{"kid":"x",'), f.claims)],
  ["typ twice", (f) => f.compact(JSON.stringify(f.head).replace("}", ',"typ":"x"}'), f.claims)],
  ["crit with an unknown name", (f) => f.compact(f.header({ crit: ["x"], x: 1 }), f.claims)],
  ["crit with a name that isn't there", (f) => f.compact(f.header({ crit: ["x"] }), f.claims)],
  ["crit with exp", (f) => f.compact(f.header({ crit: ["exp"], exp: 1 }), f.claims)],
  ["crit with b64 false", (f) => f.compact(f.header({ crit: ["b64"], b64: false }), f.claims)],
  ["crit with b64 true", (f) => f.compact(f.header({ crit: ["b64"], b64: true }), f.claims)],
  ["b64 false without crit", (f) => f.compact(f.header({ b64: false }), f.claims)],
  [
    "b64 false over the unencoded payload",
    (f) => {
      const head = encode(f.header({ crit: ["b64"], b64: false }));
      return `${head}.${f.p}.${encode(f.ours(`${head}.${JSON.stringify(f.claims)}`))}`;
    },
  ],
  ["an empty crit", (f) => f.compact(f.header({ crit: [] }), f.claims)],
  ["crit that is no list", (f) => f.compact(f.header({ crit: "exp" }), f.claims)],
  ["crit null", (f) => f.compact(f.header({ crit: null }), f.claims)],
  ["crit with a registered name", (f) => f.compact(f.header({ crit: ["alg"] }), f.claims)],
  ["crit with a name twice", (f) => f.compact(f.header({ crit: ["x", "x"], x: 1 }), f.claims)],
  ["crit with a number", (f) => f.compact(f.header({ crit: [1] }), f.claims)],
  ["zip", (f) => f.compact(f.header({ zip: "DEF" }), f.claims)],
  ["enc", (f) => f.compact(f.header({ enc: "A256GCM" }), f.claims)],
  ...[true, false].flatMap((isAlone): Variant[] => {
    const head = (f: Forge, more: Json): Json => (isAlone ? { alg: "RS256", ...more } : f.header(more));
    const forged = (f: Forge, more: Json): string => f.compact(head(f, more), f.claims, (input) => f.theirs(input));
    const how = isAlone ? "without our kid" : "with our kid";
    return [
      [`the sender's key as jwk, ${how}`, (f) => forged(f, { jwk: f.strangerJwk })],
      [
        `the sender's key as jwk with our kid in it, ${how}`,
        (f) => forged(f, { jwk: { ...f.strangerJwk, kid: f.kid } }),
      ],
      [
        `the sender's key as jwk with its alg in it, ${how}`,
        (f) => forged(f, { jwk: { ...f.strangerJwk, alg: "RS256", use: "sig" } }),
      ],
      [`the sender's key set as jwks, ${how}`, (f) => forged(f, { jwks: { keys: [f.strangerJwk] } })],
      [`a jku, ${how}`, (f) => forged(f, { jku: "http://127.0.0.1:9/jwks.json" })],
      [`a jku of our own, ${how}`, (f) => forged(f, { jku: `${String(f.claims["iss"])}/.well-known/jwks.json` })],
      [`a jku that is a file, ${how}`, (f) => forged(f, { jku: "file:///etc/passwd" })],
      [`an x5u, ${how}`, (f) => forged(f, { x5u: "http://127.0.0.1:9/cert.pem" })],
      [
        `an x5c, ${how}`,
        (f) =>
          forged(f, { x5c: [createPublicKey(f.stranger).export({ type: "spki", format: "der" }).toString("base64")] }),
      ],
      [`an x5t, ${how}`, (f) => forged(f, { x5t: "AAAA", "x5t#S256": "AAAA" })],
    ];
  }),
  [
    "an oct key as jwk",
    (f) =>
      f.compact(f.header({ alg: "HS256", jwk: { kty: "oct", k: encode("k") } }), f.claims, (input) =>
        createHmac("sha256", "k").update(input).digest(),
      ),
  ],
  ["our own public key as jwk, signed", (f) => f.compact(f.header({ jwk: publicJwk(f) }), f.claims)],
  ["no kid", (f) => f.compact(f.header({ kid: undefined }), f.claims)],
  ["the start of our kid", (f) => f.compact(f.header({ kid: f.kid.slice(0, 8) }), f.claims)],
  ["our kid in capitals", (f) => f.compact(f.header({ kid: f.kid.toUpperCase() }), f.claims)],
  ["our kid and a space", (f) => f.compact(f.header({ kid: `${f.kid} ` }), f.claims)],
  ["our kid and a zero byte", (f) => f.compact(f.header({ kid: `${f.kid}\0` }), f.claims)],
  ["our kid with a file's ending", (f) => f.compact(f.header({ kid: `${f.kid}.json` }), f.claims)],
  ["our kid by a path", (f) => f.compact(f.header({ kid: `../keys/${f.kid}` }), f.claims)],
  ["our kid in a list", (f) => f.compact(f.header({ kid: [f.kid] }), f.claims)],
  ["our kid in an object", (f) => f.compact(f.header({ kid: { kid: f.kid } }), f.claims)],
  ...[
    "",
    "0",
    "../../../../dev/null",
    "/dev/null",
    "x' UNION SELECT 'key",
    "__proto__",
    "constructor",
    "$(id)",
    "*",
    "k".repeat(1_500),
  ].map(
    (kid): Variant => [
      `kid ${JSON.stringify(kid.slice(0, 24))} with an empty secret`,
      (f) =>
        f.compact(f.header({ alg: "HS256", kid }), f.claims, (input) =>
          createHmac("sha256", "").update(input).digest(),
        ),
    ],
  ),
  ...[null, 0, 1, true, {}, []].map(
    (kid): Variant => [`kid ${JSON.stringify(kid)}, signed`, (f) => f.compact(f.header({ kid }), f.claims)],
  ),
  ["no typ", (f) => f.compact(f.header({ typ: undefined }), f.claims)],
  ...["logout+jwt", "id_token", "JOSE", "dpop+jwt", "jwt", "at+JWT", "application/at+jwt", "", null, 1].map(
    (typ): Variant => [`typ ${JSON.stringify(typ)}, signed`, (f) => f.compact(f.header({ typ }), f.claims)],
  ),
  ["a nested token", (f) => f.compact(f.header({ cty: "JWT" }), f.token)],
  ["a nested token without cty", (f) => f.compact(f.head, f.token)],
  ["a header in a great many lists", (f) => f.compact("[".repeat(1_500), f.claims)],
  ["a header in a great many objects", (f) => f.compact(`${'{"a":'.repeat(250)}1${"}".repeat(250)}`, f.claims)],
  ["a header with a long member", (f) => f.compact(f.header({ x: "x".repeat(1_500) }), f.claims)],
  [
    "a header with __proto__",
    (f) => f.compact(JSON.stringify(f.head).replace("{", '{"__proto__":{"alg":"none"},'), f.claims),
  ],
];

/** Signed with the server's own key. The server must validate the payload even under a genuine signature. */
const CLAIMS: Variant[] = [
  ...["exp", "iat", "sub", "jti", "scope", "iss", "aud"].flatMap((name): Variant[] =>
    [undefined, null, true, {}].map((value) => [
      `${name} ${JSON.stringify(value)}`,
      (f) => f.withClaims({ [name]: value }),
    ]),
  ),
  ...["exp", "iat", "nbf"].flatMap((name): Variant[] => [
    [`${name} a text`, (f) => f.withClaims({ [name]: String(f.claims["exp"]) })],
    [`${name} with a fraction`, (f) => f.withClaims({ [name]: Number(f.claims["exp"]) + 0.5 })],
    [`${name} negative`, (f) => f.withClaims({ [name]: -1 })],
    [`${name} huge`, (f) => f.withClaims({ [name]: 1e300 })],
    [`${name} in a list`, (f) => f.withClaims({ [name]: [f.claims["exp"]] })],
    [`${name} a date`, (f) => f.withClaims({ [name]: "2099-01-01T00:00:00Z" })],
    [
      `${name} beyond what JSON can say`,
      (f) => f.compact(f.head, JSON.stringify({ ...f.claims, [name]: 7e77 }).replace("7e+77", "1e999")),
    ],
  ]),
  ["nbf in the future", (f) => f.withClaims({ nbf: Math.floor(Date.now() / 1_000) + 3_650 * DAY_S })],
  ["sub a number", (f) => f.withClaims({ sub: Number(f.claims["sub"]) })],
  ["sub empty", (f) => f.withClaims({ sub: "" })],
  ["sub in a list", (f) => f.withClaims({ sub: [f.claims["sub"]] })],
  ["jti a number", (f) => f.withClaims({ jti: 1 })],
  ["jti empty", (f) => f.withClaims({ jti: "" })],
  ["scope a list", (f) => f.withClaims({ scope: ALL_SCOPES })],
  ["iss of another", (f) => f.withClaims({ iss: "https://other.example" })],
  ["iss with a slash after", (f) => f.withClaims({ iss: `${String(f.claims["iss"])}/` })],
  ["iss in capitals", (f) => f.withClaims({ iss: String(f.claims["iss"]).toUpperCase() })],
  [
    "iss by another name of this host",
    (f) => f.withClaims({ iss: String(f.claims["iss"]).replace("127.0.0.1", "localhost") }),
  ],
  ["iss of another port", (f) => f.withClaims({ iss: String(f.claims["iss"]).replace(/\d+$/, "1") })],
  ["iss our audience", (f) => f.withClaims({ iss: f.claims["aud"] })],
  ["iss empty", (f) => f.withClaims({ iss: "" })],
  ["iss in a list", (f) => f.withClaims({ iss: [f.claims["iss"]] })],
  ["aud of another", (f) => f.withClaims({ aud: "https://other.example" })],
  ["aud empty", (f) => f.withClaims({ aud: "" })],
  ["aud the start of ours", (f) => f.withClaims({ aud: String(f.claims["aud"]).slice(0, -1) })],
  ["aud ours and more", (f) => f.withClaims({ aud: `${String(f.claims["aud"])}/orders` })],
  ["aud in capitals", (f) => f.withClaims({ aud: String(f.claims["aud"]).toUpperCase() })],
  ["aud an empty list", (f) => f.withClaims({ aud: [] })],
  ["aud a list of others", (f) => f.withClaims({ aud: ["https://other.example", `${String(f.claims["aud"])}/`] })],
  ["aud a list in a list", (f) => f.withClaims({ aud: [[f.claims["aud"]]] })],
  ["aud our issuer", (f) => f.withClaims({ aud: f.claims["iss"] })],
  ["a payload that is a list", (f) => f.compact(f.head, [f.claims])],
  ["a payload that is a text", (f) => f.compact(f.head, '"claims"')],
  ["a payload that is a number", (f) => f.compact(f.head, "1")],
  ["a payload that is null", (f) => f.compact(f.head, "null")],
  ["a payload without members", (f) => f.compact(f.head, {})],
  ["a payload that is no JSON", (f) => f.compact(f.head, `${JSON.stringify(f.claims)}}`)],
  ["a payload with a comma too many", (f) => f.compact(f.head, JSON.stringify(f.claims).replace(/}$/, ",}"))],
  [
    "a payload that is not UTF-8",
    (f) => f.compact(f.head, Buffer.from(JSON.stringify({ ...f.claims, x: "é" }), "latin1")),
  ],
  ["a payload in UTF-16", (f) => f.compact(f.head, Buffer.from(JSON.stringify(f.claims), "utf16le"))],
  [
    "a payload that is a form",
    (f) => f.compact(f.head, new URLSearchParams(f.claims as Record<string, string>).toString()),
  ],
  ["a payload of lists in lists", (f) => f.compact(f.head, "[".repeat(1_500))],
  ["claims one level down", (f) => f.compact(f.head, { claims: f.claims })],
];

const KINDS: Readonly<Record<string, readonly Variant[]>> = {
  "another algorithm": ALGORITHMS,
  "the public key as a shared secret": HMACS,
  "another signature": SIGNATURES,
  "another padding of the signature": PADDINGS,
  "another encoding": ENCODINGS,
  "one that was damaged": DAMAGED,
  "another header": HEADERS,
  "other claims": CLAIMS,
};

// ---------------------------------------------------------------- the exchange

let world: World;
let server: TestServer;
let me: SignedIn;
let other: SignedIn;
let party: ThirdParty;
let third: string;
let key: KeyObject;
let stranger: KeyObject;
/** Forges from a live session token, from the token of an ended session, and from a third party's token. */
let forges: { live: Forge; expired: Forge; oauth: Forge };

beforeAll(async () => {
  world = await World.start({
    users: 1,
    named: { owner: { password: PASSWORD }, other: { password: PASSWORD } },
  });
  ({ server } = world);
  [me, other] = await Promise.all([signIn(server, "owner@example.com"), signIn(server, "other@example.com")]);
  party = await ThirdParty.register(world, other.client, { confidential: true });
  third = (await party.tokens(me.client, ALL_SCOPES.join(" "))).access_token;
  const [jwk, ...rest] = signingKeys(server.dataDir);
  assert(rest.length === 0, "one key");
  key = createPrivateKey({ key: jwk!, format: "jwk" });
  stranger = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const of = (token: string, change: Json = {}): Forge => {
    const [head, claims] = token.split(".", 2).map(decode) as [Json, Json];
    return new Forge(key, stranger, head, { ...claims, ...change });
  };
  const over = Math.floor(Date.now() / 1_000) - 60;
  const live = of(me.accessToken);
  forges = { live, expired: of(me.accessToken, { iat: over - 900, exp: over }), oauth: of(third) };
  expect([forges.live.token, forges.oauth.token]).toEqual([me.accessToken, third]);
});

afterAll(async () => {
  for (const each of [me, other]) each.client.close();
  await expectEndsWell(world);
  expectUnlogged([me.accessToken, me.refreshToken, third, party.secret!, forges.live.p], server);
});

// ---------------------------------------------------------------- entry points

const UPGRADE = {
  Connection: "Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
};

/** Returns whether an HTTP header can carry the token unchanged: a header drops surrounding whitespace. */
function fitsHeader(token: string): boolean {
  return /^[\x20-\x7e\x80-\xff]*$/.test(token) && token.trim() === token && token.length < MAX_HEAD_BYTES - 256;
}

function fitsUrl(token: string): boolean {
  return encodeURIComponent(token).length < MAX_HEAD_BYTES - 512;
}

const byHeader = (to: Client, token: string): Promise<Answer> =>
  to.request("GET", "/me", { headers: { Authorization: `Bearer ${token}` } });
const byUrl = (to: Client, token: string): Promise<Answer> =>
  to.request("GET", `/ws?token=${encodeURIComponent(token)}`, { headers: UPGRADE });

/** Returns the introspection response: whether the token is active and belongs to this client. */
async function introspected(to: Client, token: string): Promise<unknown> {
  const form = new URLSearchParams({ ...party.credentials, token });
  return (await to.request("POST", "/oauth/introspect", { body: form.toString(), headers: FORM })).data;
}

async function expectGenuineWork(to: Client): Promise<void> {
  for (const token of [me.accessToken, third]) {
    const { status, data } = await byHeader(to, token);
    expect([status, data]).toMatchObject([200, { id: me.user.id }]);
  }
  const socket = await Socket.open(server, me.accessToken);
  expect((await socket.ask({ op: "cancel_on_disconnect", enabled: false })).code).toBe(0);
  await socket.close();
}

const INVALID = ["the token is not valid", "the Authorization header is not a bearer token"];

/** Returns null for the one correct response, otherwise a summary of the response. */
function fault({ status, code, msg, data, headers }: Answer): unknown {
  const isRight = status === 401 && code === 40100 && INVALID.includes(msg) && data === null;
  return isRight && headers["www-authenticate"] === "Bearer" ? null : [status, code, msg];
}

const SOCKETS = 8;
const GENUINE_EVERY = 100;

/** Runs the work on all items, with bounded concurrency. */
async function inParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const run = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) await work(items[at]!, at);
  };
  await Promise.all(Array.from({ length: width }, run));
}

const sent = { header: new Set<string>(), url: new Set<string>() };

/**
 * Sends every token through every entry point that can carry it. Returns those that the server did not reject
 * correctly.
 */
async function refusedOnes(forge: Forge, variants: readonly Variant[]): Promise<unknown[]> {
  const to = new Client(server, null, SOCKETS);
  const wrong: unknown[] = [];
  await inParallel(variants, SOCKETS, async ([name, make], index) => {
    const token = await make(forge);
    const isSent = [fitsHeader(token), fitsUrl(token)];
    expect([name, token !== forge.token, isSent.includes(true)]).toEqual([name, true, true]);
    if (isSent[0]) {
      sent.header.add(token);
      const found = fault(await byHeader(to, token));
      if (found !== null) wrong.push([name, "header", found]);
    }
    if (isSent[1]) {
      sent.url.add(token);
      const found = fault(await byUrl(to, token).catch((error) => ({ msg: String(error) }) as Answer));
      if (found !== null) wrong.push([name, "url", found]);
    }
    if (token !== "" && forge === forges.oauth) {
      const found = await introspected(to, token);
      if (JSON.stringify(found) !== '{"active":false}') wrong.push([name, "introspection", found]);
      const form = new URLSearchParams({ ...party.credentials, token });
      const { status } = await to.request("POST", "/oauth/revoke", { body: form.toString(), headers: FORM });
      if (status !== 200) wrong.push([name, "revocation", status]);
    }
    if (index % GENUINE_EVERY === 0) await expectGenuineWork(to);
  });
  await expectGenuineWork(to);
  to.close();
  return wrong;
}

// ---------------------------------------------------------------- the tests

describe("the forge", () => {
  test("makes genuine tokens where it changes nothing, new ones too, and what is over is 2002", async () => {
    const to = new Client(server, null);
    for (const forge of [forges.live, forges.oauth]) {
      const fresh = forge.withClaims({ jti: "fresh" });
      for (const token of [forge.token, fresh]) {
        expect((await byHeader(to, token)).status).toBe(200);
        await (await Socket.open(server, token)).close();
      }
      // A list of audiences that includes ours is valid.
      const several = forge.withClaims({ aud: ["https://other.example", forge.claims["aud"]] });
      expect((await byHeader(to, several)).status).toBe(200);
      const same = forge.rawSigned(block(SHA256_INFO + hashOf(forge)));
      expect(same).toBe(forge.token);
    }
    expect(await introspected(to, third)).toMatchObject({ active: true, client_id: party.clientId });
    for (const jti of [forges.expired.claims["jti"], "fresh"]) {
      const token = forges.expired.withClaims({ jti });
      for (const answer of [await byHeader(to, token), await byUrl(to, token)]) {
        expect([answer.status, answer.code, answer.msg]).toEqual([401, 2002, "the token has expired"]);
      }
    }
    to.close();
  });
});

describe.each(["live", "expired", "oauth"] as const)("%s: no token, but 40100, is", (base) => {
  test.each(Object.entries(KINDS))("%s", async (_kind, variants) => {
    expect(await refusedOnes(forges[base], variants)).toEqual([]);
  });
});

test("those were more than 250 of each way in, all of them different", () => {
  const names = Object.values(KINDS).flatMap((variants) => variants.map(([name]) => name));
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThan(400);
  expect(sent.header.size).toBeGreaterThan(250 * 3);
  expect(sent.url.size).toBeGreaterThan(250 * 3);
});

/** The session claims that the server requires. Signed with the server's own key, and live. */
const SESSIONS: readonly (readonly [string, (f: Forge) => Json])[] = [
  ["no sid", () => ({ sid: undefined })],
  ["sid null", () => ({ sid: null })],
  ["sid true", () => ({ sid: true })],
  ["sid 0", () => ({ sid: 0 })],
  ["sid -1", () => ({ sid: -1 })],
  ["sid 1.5", () => ({ sid: 1.5 })],
  ["sid empty", () => ({ sid: "" })],
  ["sid __proto__", () => ({ sid: "__proto__" })],
  ["sid of a session that never was", () => ({ sid: 999_999_999 })],
  ["sid of a session that never was, as text", () => ({ sid: randomBytes(16).toString("base64url") })],
  ["sid of the other type", (f) => ({ sid: typeof f.claims["sid"] === "string" ? 1 : String(f.claims["sid"]) })],
  ["sid with a space", (f) => ({ sid: `${String(f.claims["sid"])} ` })],
  ["sid in a list", (f) => ({ sid: [f.claims["sid"]] })],
  ["sid in a list in a list", (f) => ({ sid: [[f.claims["sid"]]] })],
  ["sid in an object", (f) => ({ sid: { sid: f.claims["sid"] } })],
  ["sid and more", (f) => ({ sid: `${String(f.claims["sid"])}0` })],
  ["sid of another user's session", () => ({ sid: sidOf(other.accessToken) })],
  ["sub of another user", () => ({ sub: String(other.user.id) })],
  ["sub of nobody", () => ({ sub: "999999999" })],
  ["sub with a zero before", (f) => ({ sub: `0${String(f.claims["sub"])}` })],
  ["sub with a space", (f) => ({ sub: `${String(f.claims["sub"])} ` })],
];

test.each(SESSIONS)("signed by the server's own key, with %s, it is 40100", async (_name, change) => {
  const to = new Client(server, null);
  const token = forges.live.withClaims(change(forges.live));
  expect([fault(await byHeader(to, token))]).toEqual([null]);
  expect([fault(await byUrl(to, token).catch((error) => ({ msg: String(error) }) as Answer))]).toEqual([null]);
  await expectGenuineWork(to);
  to.close();
});

test("a token too long for a request is refused, and the server goes on", async () => {
  const to = new Client(server, null);
  const ways = (token: string): Promise<{ status: number }>[] => [
    to.send("GET", `${API_BASE}/me`, { Authorization: `Bearer ${token}` }, null),
    to.send("GET", `${API_BASE}/ws?token=${token}`, UPGRADE, null),
  ];
  for (const length of [MAX_HEAD_BYTES, 3 * MAX_HEAD_BYTES, 64 * 1024]) {
    for (const token of ["x".repeat(length), forges.live.withClaims({ pad: "x".repeat(length) })]) {
      for (const way of ways(token)) {
        // The server may close the connection before the client has sent everything.
        const { status } = await way.catch(() => ({ status: 431 }));
        expect([length, [401, 431].includes(status), status]).toEqual([length, true, status]);
      }
    }
  }
  await expectGenuineWork(to);
  to.close();
});

test("revocation by a token that is not genuine ends nothing, and a genuine one does", async () => {
  const to = new Client(server, null);
  const mine = (await party.tokens(me.client, ALL_SCOPES.join(" "))).access_token;
  const [head, claims] = mine.split(".", 2).map(decode) as [Json, Json];
  const forge = new Forge(key, stranger, head, claims);
  const forged = [
    `${forge.h}.${forge.p}.`,
    forge.compact(head, claims, (input) => forge.theirs(input)),
    mine.slice(0, -1),
  ];
  for (const token of [...forged, me.accessToken, me.refreshToken]) {
    expect((await party.revoke(token)).status).toBe(200);
  }
  expect((await byHeader(to, mine)).status).toBe(200);
  await expectGenuineWork(to);
  expect((await party.revoke(mine)).status).toBe(200);
  expect(fault(await byHeader(to, mine))).toBeNull();
  await expectGenuineWork(to);
  to.close();
});

describe("another deployment", () => {
  const worlds: World[] = [];
  afterAll(async () => {
    for (const each of worlds) {
      expectQuiet(each.server);
      await each.stop();
    }
  });

  async function deploy(env: Record<string, string>, keysOf: string | null): Promise<SignedIn> {
    const dataDir = temporaryFolder();
    if (keysOf !== null) cpSync(join(keysOf, "keys"), join(dataDir, "keys"), { recursive: true });
    const named = { owner: { password: PASSWORD }, other: { password: PASSWORD } };
    const made = await World.start({ users: 1, named, dataDir, env });
    worlds.push(made);
    const signedIn = await signIn(made.server, "owner@example.com");
    signedIn.client.close();
    return signedIn;
  }

  test("with the same keys has another name; with the same name it has other keys", async () => {
    const issuer = String(forges.live.claims["iss"]);
    const [sameKeys, sameName] = await Promise.all([deploy({}, server.dataDir), deploy({ PUBLIC_URL: issuer }, null)]);
    const kidOf = (token: string): unknown => decode(token.split(".")[0]!)["kid"];
    const [first, second] = [sameKeys, sameName].map(({ accessToken }) => accessToken) as [string, string];
    expect([kidOf(first) === forges.live.kid, kidOf(second) === forges.live.kid]).toEqual([true, false]);
    expect(decode(second.split(".")[1]!)["iss"]).toBe(issuer);
    // Users and sessions have the same ids on that server.
    expect([sameKeys.user.id, sameName.user.id]).toEqual([me.user.id, me.user.id]);
    const renamed = `${forges.live.h}.${second.split(".").slice(1).join(".")}`;
    const to = new Client(server, null);
    for (const token of [first, second, renamed]) {
      expect(fault(await byHeader(to, token))).toBeNull();
      expect(fault(await byUrl(to, token))).toBeNull();
    }
    to.close();
    for (const { server: there } of worlds) {
      const foreign = new Client(there, null);
      expect(fault(await byHeader(foreign, me.accessToken))).toBeNull();
      expect(fault(await byUrl(foreign, me.accessToken))).toBeNull();
      foreign.close();
    }
  });
});

test("a token from before a backup was put back opens nobody else's session", async () => {
  const named = { owner: { password: PASSWORD }, other: { password: PASSWORD } };
  const started = await World.start({ users: 1, named, env: { PUBLIC_URL } });
  await started.stop();
  const { dataDir } = started.server;
  const backup = temporaryFolder();
  cpSync(dataDir, backup, { recursive: true });
  const lost = await started.server.restart();
  const before = await signIn(lost, "owner@example.com");
  const sessionsOf = async (client: Client): Promise<number[]> => {
    return (await client.all<{ id: number }>("/me/sessions")).map(({ id }) => id);
  };
  const sessions = await sessionsOf(before.client);
  before.client.close();
  await lost.kill();
  rmSync(dataDir, { recursive: true });
  cpSync(backup, dataDir, { recursive: true });
  const restored = await lost.restart();
  const after = await signIn(restored, "other@example.com");
  // The restored database does not record that the session's id was used before.
  expect(await sessionsOf(after.client)).toEqual(sessions);
  const { status, code, data } = await byHeader(after.client, before.accessToken);
  after.client.close();
  await restored.stop();
  expect([status, code, data]).toEqual([401, 40100, null]);
});

describe("a genuine token is verified by others", () => {
  const addresses = ["/.well-known/jwks.json", `${API_BASE}/.well-known/jwks.json`];
  const genuine = (): [string, string, string][] => [
    ["session", me.accessToken, "JWT"],
    ["third party's", third, "at+jwt"],
  ];

  async function keySet(path: string): Promise<JSONWebKeySet> {
    const to = new Client(server, null);
    const { status, data, headers } = await to.requestRoot("GET", path);
    to.close();
    expect([status, headers["cache-control"]]).toEqual([200, expect.stringMatching(/max-age=\d+/)]);
    return data as JSONWebKeySet;
  }

  test("from the key set, which is the same at both addresses and has no private part", async () => {
    const [root, versioned] = await Promise.all(addresses.map(keySet));
    expect(root).toEqual(versioned);
    expect(root!.keys).toHaveLength(1);
    for (const jwk of root!.keys) {
      expect(jwk).toMatchObject({ kty: "RSA", alg: "RS256", use: "sig", kid: forges.live.kid });
      expect(Object.keys(jwk).filter((name) => PRIVATE_MEMBERS.includes(name))).toEqual([]);
      expect(Buffer.from(jwk.n!, "base64url")).toEqual(forges.live.n);
    }
    const text = JSON.stringify(root);
    for (const name of PRIVATE_MEMBERS) {
      const secret = signingKeys(server.dataDir)[0]![name];
      if (typeof secret === "string") expect(text).not.toContain(secret);
    }
  });

  test("by jose, from what the metadata says", async () => {
    const to = new Client(server, null);
    const { data } = await to.requestRoot("GET", "/.well-known/oauth-authorization-server");
    to.close();
    const { issuer, jwks_uri } = data as { issuer: string; jwks_uri: string };
    for (const address of [jwks_uri, ...addresses.map((path) => server.root + path)]) {
      const keys = createRemoteJWKSet(new URL(address));
      for (const [what, token, typ] of genuine()) {
        const options = { issuer, audience: issuer + API_BASE, algorithms: ["RS256"], typ };
        const { payload, protectedHeader } = await jwtVerify(token, keys, options);
        expect([what, payload.sub, protectedHeader.typ]).toEqual([what, String(me.user.id), typ]);
        expect(payload).toMatchObject({
          scope: ALL_SCOPES.join(" "),
          exp: payload.iat! + 900,
          jti: expect.any(String),
        });
      }
      const forged = forges.live.compact(forges.live.head, forges.live.claims, (input) => forges.live.theirs(input));
      await expect(jwtVerify(forged, keys)).rejects.toThrow("signature verification failed");
    }
  });

  test("by jsonwebtoken, and by node:crypto alone", async () => {
    const { keys } = await keySet(addresses[0]!);
    const issuer = server.root;
    for (const [, token] of genuine()) {
      const [head, payload, signature] = token.split(".") as [string, string, string];
      const jwk = keys.find(({ kid }) => kid === decode(head)["kid"]);
      const publicKey = createPublicKey({ key: jwk as JsonWebKey, format: "jwk" });
      const claims = jsonwebtoken.verify(token, publicKey, {
        algorithms: ["RS256"],
        issuer,
        audience: issuer + API_BASE,
        subject: String(me.user.id),
      });
      expect(claims).toEqual(decode(payload));
      const input = Buffer.from(`${head}.${payload}`);
      expect(verifyBytes("sha256", input, publicKey, Buffer.from(signature, "base64url"))).toBe(true);
      expect(() => jsonwebtoken.verify(token.slice(0, -4), publicKey)).toThrow("invalid signature");
    }
  });
});

// ---------------------------------------------------------------- a flood

/** Returns a fresh token of one of these kinds. The server has not seen it, and most kinds cost a signature check. */
function floodToken({ h, p, claims, head }: Forge, index: number): string {
  const noise = randomBytes(256).toString("base64url");
  const kinds = [
    () => `${h}.${p}.${noise}`,
    () => `${h}.${encode({ ...claims, jti: noise.slice(0, 20) })}.${noise}`,
    () => `${h}.${forges.expired.p}.${noise}`,
    () => `${encode({ ...head, kid: noise.slice(0, 43) })}.${p}.${noise}`,
    () => `pm_pat_${noise.slice(0, 43)}`,
  ];
  return kinds[index % kinds.length]!();
}

function floodRequest(token: string, index: number): string {
  const upgrade = Object.entries(UPGRADE).map(([name, value]) => `${name}: ${value}\r\n`);
  const header = `Host: x\r\nAuthorization: Bearer ${token}\r\n`;
  if (index % 4 === 0) return `GET ${API_BASE}/ws?token=${token} HTTP/1.1\r\nHost: x\r\n${upgrade.join("")}\r\n`;
  if (index % 4 === 1) {
    const body = '{"market_id":1,"outcome_id":1,"side":1,"price":1,"quantity":1}';
    return `POST ${API_BASE}/orders HTTP/1.1\r\n${header}Content-Length: ${body.length}\r\n\r\n${body}`;
  }
  return `GET ${API_BASE}/wallet/balance HTTP/1.1\r\n${header}\r\n`;
}

/** A connection that sends its requests in sequence, and counts the responses by status and code. */
class Flooder {
  readonly answers = new Map<string, number>();
  private readonly socket = connect(server.port, "127.0.0.1");
  private text = "";
  private waiting: { resolve: () => void; reject: (error: Error) => void } | null = null;

  constructor() {
    this.socket.setNoDelay(true);
    this.socket.on("data", (bytes: Buffer) => this.receive(bytes));
    this.socket.on("error", (error) => this.waiting?.reject(error));
    this.socket.on("close", () => this.waiting?.reject(new Error("the server closed the connection")));
  }

  send(request: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.socket.write(request);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private receive(bytes: Buffer): void {
    this.text += bytes.toString("latin1");
    const end = this.text.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.text.slice(0, end))?.[1]);
    if (!(this.text.length >= end + 4 + length)) return;
    const [, status] = /^HTTP\/1\.1 (\d+)/.exec(this.text)!;
    const { code } = JSON.parse(this.text.slice(end + 4)) as { code: number };
    const answer = `${status} ${code}`;
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1);
    this.text = "";
    const { waiting } = this;
    this.waiting = null;
    waiting!.resolve();
  }
}

describe("a flood of forged tokens", () => {
  const CONNECTIONS = 50;
  const WARM_UP = 4_000;
  const FLOOD = 20_000;
  /** Far more than a flood may leave allocated, and far less than 20,000 cached tokens or responses would take. */
  const MAX_GROWTH_BYTES = 100 * 2 ** 20;
  const MAX_WAIT_MS = 3_000;

  async function flood(total: number, width: number): Promise<Map<string, number>> {
    const flooders = Array.from({ length: width }, () => new Flooder());
    const answers = new Map<string, number>();
    let next = 0;
    const run = async (flooder: Flooder): Promise<void> => {
      for (let at = next++; at < total; at = next++) await flooder.send(floodRequest(floodToken(forges.live, at), at));
    };
    await Promise.all(flooders.map(run));
    for (const flooder of flooders) {
      for (const [answer, count] of flooder.answers) answers.set(answer, (answers.get(answer) ?? 0) + count);
      flooder.close();
    }
    return answers;
  }

  /** Expects refusals only, and one for each request. */
  function expectRefusals(answers: Map<string, number>, total: number): void {
    expect([...answers.keys()].filter((answer) => !["401 40100", "503 50300"].includes(answer))).toEqual([]);
    expect([...answers.values()].reduce((sum, count) => sum + count, 0)).toBe(total);
  }

  test("is refused while others trade, and leaves nothing behind", async () => {
    const market = world.markets[0]!;
    const trader = world.user();
    expectRefusals(await flood(WARM_UP, CONNECTIONS), WARM_UP);
    const before = server.residentBytes;
    let isOver = false;
    let slowest = 0;
    let trades = 0;
    const trade = async (): Promise<void> => {
      while (!isOver) {
        const start = performance.now();
        await trader.cancel((await trader.place(terms(market, 0, BUY, 100, 1))).id);
        expect((await byHeader(me.client, me.accessToken)).status).toBe(200);
        slowest = Math.max(slowest, performance.now() - start);
        trades++;
      }
    };
    const trading = trade();
    const answers = await flood(FLOOD, CONNECTIONS);
    isOver = true;
    await trading;
    expectRefusals(answers, FLOOD);
    // The flood stays below the bound on concurrent verifications.
    expect(answers.get("503 50300") ?? 0).toBe(0);
    expect(trades).toBeGreaterThan(0);
    expect(slowest).toBeLessThan(MAX_WAIT_MS);
    expect(server.residentBytes - before).toBeLessThan(MAX_GROWTH_BYTES);
    await expectGenuineWork(me.client);
  });

  test("all at once is refused, or put off, and a known token never is", async () => {
    const width = 600;
    const flooding = flood(3 * width, width);
    const codes = new Set<number>();
    for (let n = 0; n < 20; n++) codes.add((await byHeader(me.client, me.accessToken)).status);
    expect([...codes]).toEqual([200]);
    expectRefusals(await flooding, 3 * width);
    // The server accepts a new token once the flood is over.
    expect((await byHeader(me.client, forges.live.withClaims({ jti: "after the flood" }))).status).toBe(200);
    await expectGenuineWork(me.client);
  });
});
