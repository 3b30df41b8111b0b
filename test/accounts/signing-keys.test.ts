/**
 * Signing keys on real files: verification of their tokens by other libraries, forged tokens, rotation, crashes and
 * repairs.
 */
import assert from "node:assert";
import {
  constants,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  sign as signBytes,
} from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CompactEncrypt, calculateJwkThumbprint, createLocalJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import jsonwebtoken from "jsonwebtoken";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SigningKeys, type TokenClaims, TokenExpired, TokenInvalid } from "../../server/accounts/signing-keys.ts";

const ISSUER = "https://exchange.example";
const AUDIENCE = "https://exchange.example/api/v1";
const NOON = 1_760_000_000_000;
const SECOND = NOON / 1_000;
const TTL_MS = 900_000;
const DAY_MS = 86_400_000;
/** The time at which every token signed at noon has expired. */
const LATER = NOON + TTL_MS;
/** The time at which the key retired at noon has expired. */
const OVER = LATER + DAY_MS;
const CLAIMS = {
  iat: SECOND,
  exp: SECOND + TTL_MS / 1_000,
  sub: "usr_1",
  jti: "7d9a",
  scope: "read trade",
} satisfies TokenClaims;
const WHOLE_CLAIMS = { ...CLAIMS, iss: ISSUER, aud: AUDIENCE };
const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi"];

type Json = Record<string, unknown>;

const root = mkdtempSync(join(tmpdir(), "exchange-test-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;

/** A path that does not exist yet, or a copy of another folder. */
function newFolder(original?: string): string {
  const folder = join(root, String(folders++));
  if (original !== undefined) cpSync(original, folder, { recursive: true });
  return folder;
}

function open(folder: string, now = NOON): Promise<SigningKeys> {
  return SigningKeys.open(folder, { issuer: ISSUER, audience: AUDIENCE, tokenTtlMs: TTL_MS, now });
}

function keyFile(folder: string, kid: string): string {
  return join(folder, `${kid}.json`);
}

function readKey(folder: string, kid: string): Json {
  return JSON.parse(readFileSync(keyFile(folder, kid), "utf8"));
}

function writeKey(folder: string, kid: string, content: Json): void {
  writeFileSync(keyFile(folder, kid), JSON.stringify(content), { mode: 0o600 });
}

function keySet(keys: SigningKeys, now: number): JSONWebKeySet {
  return JSON.parse(keys.jwks(now));
}

function kids(keys: SigningKeys, now: number): (string | undefined)[] {
  return keySet(keys, now).keys.map((key) => key.kid);
}

function withoutPrivatePart(key: Json): Json {
  return Object.fromEntries(Object.entries(key).filter(([name]) => !PRIVATE_MEMBERS.includes(name)));
}

function encode(part: unknown): string {
  const bytes = part instanceof Uint8Array || typeof part === "string" ? part : JSON.stringify(part);
  return Buffer.from(bytes as string).toString("base64url");
}

function mode(path: string): number {
  return statSync(path).mode & 0o777;
}

async function failure(promise: Promise<unknown>): Promise<Error> {
  const outcome = await promise.then(
    (value) => value,
    (error) => error,
  );
  assert(outcome instanceof Error, "it should have failed");
  return outcome;
}

/** A folder with one key, and a folder rotated once at noon. Tests that write use a copy. */
let single: string;
let rotated: string;
let keys: SigningKeys;
let kid: string;
let token: string;
let newKid: string;

beforeAll(async () => {
  single = newFolder();
  keys = await open(single);
  kid = keys.activeKid;
  token = await keys.sign(CLAIMS, "JWT");
  rotated = newFolder(single);
  newKid = await (await open(rotated)).rotate(NOON);
});

describe("a token", () => {
  test("is verified with the claims that it was signed with, and whom it is from and for", async () => {
    expect(await keys.verify(token, NOON)).toEqual(WHOLE_CLAIMS);
    const extra = { ...CLAIMS, client_id: "bot", nbf: SECOND };
    const other = await keys.sign(extra, "at+jwt");
    expect(await keys.verify(other, NOON)).toEqual({ ...WHOLE_CLAIMS, client_id: "bot", nbf: SECOND });
  });

  test.each(["JWT", "at+jwt"] as const)("of type %s has the header that others expect", async (typ) => {
    const [header] = (await keys.sign(CLAIMS, typ)).split(".");
    expect(JSON.parse(Buffer.from(header!, "base64url").toString())).toEqual({ alg: "RS256", kid, typ });
  });

  test("is verified by jose from the key set alone", async () => {
    const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(keySet(keys, NOON)), {
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithms: ["RS256"],
      currentDate: new Date(NOON),
    });
    expect(payload).toEqual(WHOLE_CLAIMS);
    expect(protectedHeader.kid).toBe(kid);
  });

  test("is verified by jsonwebtoken with a key of the key set, and not with another key", async () => {
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

  test("expires with the second that exp names, without tolerance", async () => {
    expect(await keys.verify(token, LATER - 1)).toEqual(WHOLE_CLAIMS);
    expect(await failure(keys.verify(token, LATER))).toBeInstanceOf(TokenExpired);
    expect(await failure(keys.verify(token, LATER + 365 * DAY_MS))).toBeInstanceOf(TokenExpired);
  });

  test("is for the issuer and the audience that were set last", async () => {
    const moved = await open(newFolder(single));
    moved.setAudience("http://127.0.0.1:4000", "port 4000");
    const own = await moved.sign(CLAIMS, "JWT");
    expect(await moved.verify(own, NOON)).toEqual({ ...CLAIMS, iss: "http://127.0.0.1:4000", aud: "port 4000" });
    expect(await failure(moved.verify(token, NOON))).toBeInstanceOf(TokenInvalid);
    expect(await failure(keys.verify(own, NOON))).toBeInstanceOf(TokenInvalid);
  });

  test("can't be signed for others, to outlive its key, without an end or too large to be verified", async () => {
    expect(await keys.verify(await keys.sign({ ...CLAIMS, iss: "x", aud: "y" }, "JWT"), NOON)).toEqual(WHOLE_CLAIMS);
    for (const exp of [undefined, CLAIMS.exp + 2, CLAIMS.exp + 0.5, Number.POSITIVE_INFINITY]) {
      const claims = { ...CLAIMS, exp } as TokenClaims;
      expect(await failure(keys.sign(claims, "JWT"))).toBeInstanceOf(assert.AssertionError);
    }
    const large = { ...CLAIMS, scope: "x".repeat(4_096) };
    expect(await failure(keys.sign(large, "JWT"))).toBeInstanceOf(assert.AssertionError);
  });
});

/** Public data that an attacker knows, and private keys that only the tests have: ours, and a stranger's. */
interface Forge {
  readonly parts: { readonly header: string; readonly payload: string; readonly signature: string };
  readonly key: KeyObject;
  readonly publicKey: KeyObject;
  readonly n: string;
  readonly stranger: KeyObject;
  readonly strangerJwk: Json;
  /** Builds a token from a header and a payload, as values or as text, with a signature of the given kind. */
  compact(header: unknown, payload: unknown, sign?: (input: string) => Buffer | string): string;
  /** Signs with our key, by RS256. */
  ours(input: string): Buffer;
  theirs(input: string): Buffer;
  header(change?: Json): Json;
}

let forge: Forge;

beforeAll(() => {
  const jwk = readKey(single, kid);
  const key = createPrivateKey({ key: jwk as JsonWebKey, format: "jwk" });
  const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const [header, payload, signature] = token.split(".") as [string, string, string];
  const ours = (input: string): Buffer => signBytes("sha256", Buffer.from(input), key);
  forge = {
    parts: { header, payload, signature },
    key,
    publicKey: createPublicKey(key),
    n: String(jwk["n"]),
    stranger: pair.privateKey,
    strangerJwk: pair.publicKey.export({ format: "jwk" }) as Json,
    compact: (head, body, sign = ours) => {
      const input = `${encode(head)}.${encode(body)}`;
      return `${input}.${Buffer.from(sign(input)).toString("base64url")}`;
    },
    ours,
    theirs: (input) => signBytes("sha256", Buffer.from(input), pair.privateKey),
    header: (change = {}) => ({ alg: "RS256", kid, typ: "JWT", ...change }),
  };
});

type Variant = [name: string, make: (f: Forge) => string | Promise<string>];

function hmac(hash: string, secret: (f: Forge) => string | Buffer): Variant[1] {
  const alg = `HS${hash.slice(3)}`;
  return (f) =>
    f.compact(f.header({ alg }), WHOLE_CLAIMS, (input) => createHmac(hash, secret(f)).update(input).digest());
}

const spkiPem = (f: Forge): string => f.publicKey.export({ type: "spki", format: "pem" }) as string;
const pkcs1Pem = (f: Forge): string => f.publicKey.export({ type: "pkcs1", format: "pem" }) as string;
const spkiDer = (f: Forge): Buffer => f.publicKey.export({ type: "spki", format: "der" });
const pkcs1Der = (f: Forge): Buffer => f.publicKey.export({ type: "pkcs1", format: "der" });

const ALGORITHMS: Variant[] = [
  ...["none", "None", "NONE", "nOnE", "none ", ""].flatMap((alg): Variant[] => [
    [`alg "${alg}" without a signature`, (f) => f.compact(f.header({ alg }), WHOLE_CLAIMS, () => "")],
    [`alg "${alg}" over our signature`, (f) => `${encode(f.header({ alg }))}.${f.parts.payload}.${f.parts.signature}`],
  ]),
  ["alg none without a key id", (f) => f.compact({ alg: "none" }, WHOLE_CLAIMS, () => "")],
  ["no alg", (f) => f.compact({ kid, typ: "JWT" }, WHOLE_CLAIMS)],
  ["alg null", (f) => f.compact(f.header({ alg: null }), WHOLE_CLAIMS)],
  ["alg in a list", (f) => f.compact(f.header({ alg: ["RS256"] }), WHOLE_CLAIMS)],
  ["alg in small letters", (f) => f.compact(f.header({ alg: "rs256" }), WHOLE_CLAIMS)],
  ["alg __proto__", (f) => f.compact(f.header({ alg: "__proto__" }), WHOLE_CLAIMS)],
  ["HS256 with the public key as SPKI PEM", hmac("sha256", spkiPem)],
  ["HS256 with the PEM, trimmed", hmac("sha256", (f) => spkiPem(f).trim())],
  ["HS256 with the public key as PKCS #1 PEM", hmac("sha256", pkcs1Pem)],
  ["HS256 with the public key as SPKI DER", hmac("sha256", spkiDer)],
  ["HS256 with the public key as PKCS #1 DER", hmac("sha256", pkcs1Der)],
  ["HS256 with the modulus as text", hmac("sha256", (f) => f.n)],
  ["HS256 with the modulus as bytes", hmac("sha256", (f) => Buffer.from(f.n, "base64url"))],
  ["HS256 with the JWK as text", hmac("sha256", (f) => JSON.stringify(f.publicKey.export({ format: "jwk" })))],
  ["HS256 with the key id", hmac("sha256", () => kid)],
  ["HS256 with an empty secret", hmac("sha256", () => "")],
  ["HS384 with the public key as PEM", hmac("sha384", spkiPem)],
  ["HS512 with the public key as PEM", hmac("sha512", spkiPem)],
  [
    "RS256 in the header over an HMAC with the public key",
    (f) => f.compact(f.header(), WHOLE_CLAIMS, (input) => createHmac("sha256", spkiPem(f)).update(input).digest()),
  ],
  ...["384", "512", "1"].map(
    (size): Variant => [
      `RS${size} with our key`,
      (f) =>
        f.compact(f.header({ alg: `RS${size}` }), WHOLE_CLAIMS, (input) =>
          signBytes(`sha${size}`, Buffer.from(input), f.key),
        ),
    ],
  ),
  [
    "RS256 in the header over an RS512 signature with our key",
    (f) => f.compact(f.header(), WHOLE_CLAIMS, (input) => signBytes("sha512", Buffer.from(input), f.key)),
  ],
  ...["PS256", "RS256"].map(
    (alg): Variant => [
      `${alg} in the header over a PSS signature with our key`,
      (f) =>
        f.compact(f.header({ alg }), WHOLE_CLAIMS, (input) =>
          signBytes("sha256", Buffer.from(input), {
            key: f.key,
            padding: constants.RSA_PKCS1_PSS_PADDING,
            saltLength: 32,
          }),
        ),
    ],
  ),
  [
    "ES256 with a key of the sender's own",
    (f) => {
      const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      return f.compact(f.header({ alg: "ES256" }), WHOLE_CLAIMS, (input) =>
        signBytes("sha256", Buffer.from(input), { key: privateKey, dsaEncoding: "ieee-p1363" }),
      );
    },
  ],
  [
    "EdDSA with a key of the sender's own",
    (f) => {
      const { privateKey } = generateKeyPairSync("ed25519");
      return f.compact(f.header({ alg: "EdDSA" }), WHOLE_CLAIMS, (input) =>
        signBytes(null, Buffer.from(input), privateKey),
      );
    },
  ],
];

function withSignature(change: (signature: Buffer) => Uint8Array): Variant[1] {
  return (f) => {
    const signature = change(Buffer.from(f.parts.signature, "base64url"));
    return `${f.parts.header}.${f.parts.payload}.${encode(signature)}`;
  };
}

const SIGNATURES: Variant[] = [
  ["another key's signature under our key id", (f) => f.compact(f.header(), WHOLE_CLAIMS, f.theirs)],
  ["an empty signature", (f) => `${f.parts.header}.${f.parts.payload}.`],
  ["no signature and no dot before it", (f) => `${f.parts.header}.${f.parts.payload}`],
  ["a signature of zeros", withSignature((bytes) => bytes.fill(0))],
  ["a signature of ones", withSignature((bytes) => bytes.fill(255))],
  ["a signature of the number one", withSignature((bytes) => bytes.fill(0).fill(1, 255))],
  ["the modulus for a signature", (f) => `${f.parts.header}.${f.parts.payload}.${f.n}`],
  ["a signature without its last byte", withSignature((bytes) => bytes.subarray(0, -1))],
  ["a signature without its first byte", withSignature((bytes) => bytes.subarray(1))],
  ["half a signature", withSignature((bytes) => bytes.subarray(0, 128))],
  ["a signature and a zero after it", withSignature((bytes) => Buffer.concat([bytes, Buffer.of(0)]))],
  ["a signature and a zero before it", withSignature((bytes) => Buffer.concat([Buffer.of(0), bytes]))],
  ["a signature twice", withSignature((bytes) => Buffer.concat([bytes, bytes]))],
  [
    "a signature plus the modulus, which RSA reads as the same number",
    (f) => {
      const sum = BigInt(`0x${Buffer.from(f.parts.signature, "base64url").toString("hex")}`) + modulus(f);
      const hex = sum.toString(16);
      return `${f.parts.header}.${f.parts.payload}.${encode(Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex"))}`;
    },
  ],
  ...[0, 7, 1_000, 2_047].map(
    (bit): Variant => [
      `a signature with bit ${bit} flipped`,
      withSignature((bytes) => {
        bytes[bit >> 3]! ^= 1 << (bit & 7);
        return bytes;
      }),
    ],
  ),
  [
    "the signature over the payload's text rather than its encoding",
    (f) => {
      const signature = f.ours(`${f.parts.header}.${JSON.stringify(WHOLE_CLAIMS)}`);
      return `${f.parts.header}.${f.parts.payload}.${encode(signature)}`;
    },
  ],
  [
    "a payload that was encoded again after it was signed",
    (f) => `${f.parts.header}.${encode(JSON.stringify(WHOLE_CLAIMS, null, 1))}.${f.parts.signature}`,
  ],
  ["a changed payload", (f) => `${f.parts.header}.${encode({ ...WHOLE_CLAIMS, sub: "usr_2" })}.${f.parts.signature}`],
  ["a changed header", (f) => `${encode(f.header({ typ: "at+jwt" }))}.${f.parts.payload}.${f.parts.signature}`],
];

function modulus(f: Forge): bigint {
  return BigInt(`0x${Buffer.from(f.n, "base64url").toString("hex")}`);
}

/** Replaces the last character with another that decodes to the same bytes: it sets the unused low bits. */
function nonCanonical(segment: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const last = alphabet[alphabet.indexOf(segment.at(-1)!) + 1]!;
  const other = segment.slice(0, -1) + last;
  assert(Buffer.from(segment, "base64url").equals(Buffer.from(other, "base64url")));
  return other;
}

const ENCODINGS: Variant[] = [
  ["nothing", () => ""],
  ["one dot", () => "."],
  ["two dots", () => ".."],
  ["dots only, a great many", () => ".".repeat(4_096)],
  ["no token at all", () => "not a token"],
  ["padding on the signature", (f) => `${f.parts.header}.${f.parts.payload}.${f.parts.signature}==`],
  ["padding on the header", (f) => `${f.parts.header}=.${f.parts.payload}.${f.parts.signature}`],
  [
    "padding on the payload, signed",
    (f) => {
      const input = `${f.parts.header}.${encode({ ...WHOLE_CLAIMS, jti: "1" })}=`;
      return `${input}.${encode(f.ours(input))}`;
    },
  ],
  [
    "the alphabet that is not for URLs",
    (f) => {
      // Hardly any signature has neither of the two characters; in that case, try the next jti.
      const spell = (jti: number): string => {
        const genuine = f.compact(f.header(), { ...WHOLE_CLAIMS, jti: String(jti) });
        const signature = genuine.slice(genuine.lastIndexOf("."));
        if (!/[-_]/.test(signature)) return spell(jti + 1);
        return genuine.slice(0, -signature.length) + signature.replaceAll("-", "+").replaceAll("_", "/");
      };
      return spell(1);
    },
  ],
  [
    "a second spelling of the signature",
    (f) => `${f.parts.header}.${f.parts.payload}.${nonCanonical(f.parts.signature)}`,
  ],
  [
    "a second spelling of the payload, signed",
    (f) => {
      const payload = [0, 1, 2].map((pad) => encode({ ...WHOLE_CLAIMS, jti: "7".repeat(pad + 1) }));
      const input = `${f.parts.header}.${nonCanonical(payload.find((text) => text.length % 4 === 2)!)}`;
      return `${input}.${encode(f.ours(input))}`;
    },
  ],
  ["a space before", (f) => ` ${f.compact(f.header(), WHOLE_CLAIMS)}`],
  ["a line feed after", (f) => `${f.compact(f.header(), WHOLE_CLAIMS)}\n`],
  ["a space in the signature", (f) => `${f.parts.header}.${f.parts.payload}. ${f.parts.signature}`],
  ["a line feed in the payload", (f) => `${f.parts.header}.${f.parts.payload}\n.${f.parts.signature}`],
  ["a zero byte after", (f) => `${f.compact(f.header(), WHOLE_CLAIMS)}\0`],
  ["letters that only look the same", () => token.replace("e", "е")],
  ["a dot before", () => `.${token}`],
  ["a dot after", () => `${token}.`],
  ["a dot twice", () => token.replace(".", "..")],
  ["a fourth part", () => `${token}.AA`],
  ["the scheme before it", () => `Bearer ${token}`],
  ["an empty payload, signed", (f) => f.compact(f.header(), "")],
  ["an oversized token, signed", (f) => f.compact(f.header(), { ...WHOLE_CLAIMS, pad: "x".repeat(3_000) })],
  [
    "the JSON serialisation, flattened",
    (f) => JSON.stringify({ protected: f.parts.header, payload: f.parts.payload, signature: f.parts.signature }),
  ],
  [
    "the JSON serialisation, general",
    (f) =>
      JSON.stringify({
        payload: f.parts.payload,
        signatures: [{ protected: f.parts.header, signature: f.parts.signature }],
      }),
  ],
  [
    "a JWE for our public key",
    (f) =>
      new CompactEncrypt(Buffer.from(JSON.stringify(WHOLE_CLAIMS)))
        .setProtectedHeader({ alg: "RSA-OAEP-256", enc: "A256GCM", kid })
        .encrypt(f.publicKey),
  ],
  ["five parts under our header", (f) => `${token}.${f.parts.payload}.${f.parts.signature}`],
];

/** Signed with our own key, which no attacker has. The server must reject them by the header alone. */
const HEADERS: Variant[] = [
  ["a header that is no JSON", (f) => f.compact("{alg:RS256}", WHOLE_CLAIMS)],
  ["a header that is a list", (f) => f.compact([f.header()], WHOLE_CLAIMS)],
  ["a header that is null", (f) => f.compact("null", WHOLE_CLAIMS)],
  ["an empty header", (f) => f.compact({}, WHOLE_CLAIMS)],
  ["a header with a byte order mark", (f) => f.compact(`\uFEFF${JSON.stringify(f.header())}`, WHOLE_CLAIMS)],
  ["a header that is not UTF-8", (f) => f.compact(Buffer.of(0x7b, 0xff, 0x7d), WHOLE_CLAIMS)],
  ["alg twice, ours last", (f) => f.compact(`{"alg":"none","alg":"RS256","kid":"${kid}","typ":"JWT"}`, WHOLE_CLAIMS)],
  ["alg twice, ours first", (f) => f.compact(`{"alg":"RS256","kid":"${kid}","typ":"JWT","alg":"none"}`, WHOLE_CLAIMS)],
  ["kid twice", (f) => f.compact(`{"alg":"RS256","kid":"x","kid":"${kid}","typ":"JWT"}`, WHOLE_CLAIMS)],
  ["crit with an unknown name", (f) => f.compact(f.header({ crit: ["x"], x: 1 }), WHOLE_CLAIMS)],
  ["crit with b64 false", (f) => f.compact(f.header({ crit: ["b64"], b64: false }), WHOLE_CLAIMS)],
  ["crit with b64 true", (f) => f.compact(f.header({ crit: ["b64"], b64: true }), WHOLE_CLAIMS)],
  ["b64 false without crit", (f) => f.compact(f.header({ b64: false }), WHOLE_CLAIMS)],
  ["an empty crit", (f) => f.compact(f.header({ crit: [] }), WHOLE_CLAIMS)],
  ["crit that is no list", (f) => f.compact(f.header({ crit: "exp" }), WHOLE_CLAIMS)],
  ["crit with a registered name", (f) => f.compact(f.header({ crit: ["alg"] }), WHOLE_CLAIMS)],
  ["the sender's key as jwk", (f) => f.compact(f.header({ jwk: f.strangerJwk }), WHOLE_CLAIMS, f.theirs)],
  [
    "the sender's key as jwk without a kid",
    (f) => f.compact({ alg: "RS256", jwk: f.strangerJwk }, WHOLE_CLAIMS, f.theirs),
  ],
  [
    "the sender's key as jwk with our kid in it",
    (f) => f.compact(f.header({ jwk: { ...f.strangerJwk, kid } }), WHOLE_CLAIMS, f.theirs),
  ],
  ["a jku", (f) => f.compact(f.header({ jku: "http://127.0.0.1:9/jwks" }), WHOLE_CLAIMS, f.theirs)],
  ["an x5u", (f) => f.compact(f.header({ x5u: "http://127.0.0.1:9/cert" }), WHOLE_CLAIMS, f.theirs)],
  ["an x5c", (f) => f.compact(f.header({ x5c: [spkiDer(f).toString("base64")] }), WHOLE_CLAIMS, f.theirs)],
  ["an x5t", (f) => f.compact(f.header({ x5t: "AAAA" }), WHOLE_CLAIMS)],
  ["no kid", (f) => f.compact({ alg: "RS256", typ: "JWT" }, WHOLE_CLAIMS)],
  ["an empty kid", (f) => f.compact(f.header({ kid: "" }), WHOLE_CLAIMS)],
  [
    "an unknown kid",
    async (f) => f.compact(f.header({ kid: await calculateJwkThumbprint(f.strangerJwk) }), WHOLE_CLAIMS, f.theirs),
  ],
  ["the start of our kid", (f) => f.compact(f.header({ kid: kid.slice(0, 8) }), WHOLE_CLAIMS)],
  ["a kid that is a path", (f) => f.compact(f.header({ kid: `../${kid}` }), WHOLE_CLAIMS)],
  [
    "a kid that leads to another file",
    (f) => f.compact(f.header({ kid: "../../../../dev/null" }), WHOLE_CLAIMS, () => ""),
  ],
  ["a kid with a file's ending", (f) => f.compact(f.header({ kid: `${kid}.json` }), WHOLE_CLAIMS)],
  ["a kid with a zero byte", (f) => f.compact(f.header({ kid: `${kid}\0` }), WHOLE_CLAIMS)],
  ["a kid that is a statement", (f) => f.compact(f.header({ kid: "x' UNION SELECT 'key" }), WHOLE_CLAIMS)],
  ["kid __proto__", (f) => f.compact(f.header({ kid: "__proto__" }), WHOLE_CLAIMS)],
  ["a kid that is a number", (f) => f.compact(f.header({ kid: 1 }), WHOLE_CLAIMS)],
  ["a kid that is null", (f) => f.compact(f.header({ kid: null }), WHOLE_CLAIMS)],
  ["a kid in a list", (f) => f.compact(f.header({ kid: [kid] }), WHOLE_CLAIMS)],
  ["a huge kid", (f) => f.compact(f.header({ kid: "k".repeat(2_000) }), WHOLE_CLAIMS)],
  ["no typ", (f) => f.compact({ alg: "RS256", kid }, WHOLE_CLAIMS)],
  ["another typ", (f) => f.compact(f.header({ typ: "logout+jwt" }), WHOLE_CLAIMS)],
  ["a typ in small letters", (f) => f.compact(f.header({ typ: "jwt" }), WHOLE_CLAIMS)],
  ["a nested token", (f) => f.compact(f.header({ cty: "JWT" }), token)],
  ["another order of our header", (f) => f.compact({ typ: "JWT", alg: "RS256", kid }, WHOLE_CLAIMS)],
];

function withClaims(change: Json): Variant[1] {
  return (f) => f.compact(f.header(), { ...WHOLE_CLAIMS, ...change });
}

/** Signed with our own key. The server must validate the payload even so. An undefined member is left out. */
const PAYLOADS: Variant[] = [
  ...["exp", "iat", "sub", "jti", "scope", "iss", "aud"].flatMap((name): Variant[] => [
    [`no ${name}`, withClaims({ [name]: undefined })],
    [`${name} null`, withClaims({ [name]: null })],
    [`${name} true`, withClaims({ [name]: true })],
    [`${name} an object`, withClaims({ [name]: {} })],
  ]),
  ...["exp", "iat", "nbf"].flatMap((name): Variant[] => [
    [`${name} a text`, withClaims({ [name]: String(SECOND) })],
    [`${name} with a fraction`, withClaims({ [name]: SECOND + 0.5 })],
    [`${name} negative`, withClaims({ [name]: -1 })],
    [`${name} huge`, withClaims({ [name]: 1e300 })],
    [`${name} in a list`, withClaims({ [name]: [SECOND] })],
  ]),
  [
    "exp beyond what JSON can say",
    (f) => f.compact(f.header(), JSON.stringify(WHOLE_CLAIMS).replace(/"exp":\d+/, '"exp":1e999')),
  ],
  ["sub a number", withClaims({ sub: 1 })],
  ["sub empty", withClaims({ sub: "" })],
  ["jti a number", withClaims({ jti: 1 })],
  ["jti empty", withClaims({ jti: "" })],
  ["scope a list", withClaims({ scope: ["read"] })],
  ["nbf in the future", withClaims({ nbf: SECOND + 10 * 365 * 86_400 })],
  ["iss of another", withClaims({ iss: "https://other.example" })],
  ["iss with a slash after", withClaims({ iss: `${ISSUER}/` })],
  ["iss in capitals", withClaims({ iss: ISSUER.toUpperCase() })],
  ["iss empty", withClaims({ iss: "" })],
  ["iss in a list", withClaims({ iss: [ISSUER] })],
  ["aud of another", withClaims({ aud: "https://other.example" })],
  ["aud empty", withClaims({ aud: "" })],
  ["aud the start of ours", withClaims({ aud: AUDIENCE.slice(0, -1) })],
  ["aud an empty list", withClaims({ aud: [] })],
  ["aud a list of others", withClaims({ aud: ["https://other.example", `${AUDIENCE}/`] })],
  ["aud a list in a list", withClaims({ aud: [[AUDIENCE]] })],
  ["aud our issuer", withClaims({ aud: ISSUER })],
  ["a payload that is a list", (f) => f.compact(f.header(), [WHOLE_CLAIMS])],
  ["a payload that is a text", (f) => f.compact(f.header(), '"claims"')],
  ["a payload that is null", (f) => f.compact(f.header(), "null")],
  ["a payload that is no JSON", (f) => f.compact(f.header(), `${JSON.stringify(WHOLE_CLAIMS)}}`)],
  [
    "a payload that is not UTF-8",
    (f) => f.compact(f.header(), Buffer.from(JSON.stringify({ ...WHOLE_CLAIMS, x: "é" }), "latin1")),
  ],
  ["a payload in UTF-16", (f) => f.compact(f.header(), Buffer.from(JSON.stringify(WHOLE_CLAIMS), "utf16le"))],
  ["a payload of lists in lists", (f) => f.compact(f.header(), "[".repeat(2_000))],
];

describe("no token of ours", () => {
  test("the forge makes genuine tokens where it changes nothing", async () => {
    expect(await keys.verify(forge.compact(forge.header(), WHOLE_CLAIMS), NOON)).toEqual(WHOLE_CLAIMS);
    const typed = forge.compact(forge.header({ typ: "at+jwt" }), WHOLE_CLAIMS);
    expect(await keys.verify(typed, NOON)).toEqual(WHOLE_CLAIMS);
    const several = forge.compact(forge.header(), { ...WHOLE_CLAIMS, aud: ["https://other.example", AUDIENCE] });
    expect(await keys.verify(several, NOON)).toMatchObject({ aud: ["https://other.example", AUDIENCE] });
    expect(await failure(keys.verify(several, LATER))).toBeInstanceOf(TokenExpired);
  });

  test.each([...ALGORITHMS, ...SIGNATURES, ...ENCODINGS, ...HEADERS, ...PAYLOADS])("%s", async (_name, make) => {
    const forged = await make(forge);
    expect(forged).not.toBe(token);
    // A forged token never reports expiry, not even after `exp`: only a genuine token expires.
    for (const now of [NOON, LATER]) {
      const error = await failure(keys.verify(forged, now));
      expect(error).toBeInstanceOf(TokenInvalid);
      expect(error.cause).toBeUndefined();
      expect(error.message).toMatch(/^the token is [a-z ]+$/);
    }
  });

  test("one character of a genuine one changed, wherever", async () => {
    for (let at = 0; at < token.length; at++) {
      const other = token[at] === "A" ? "B" : "A";
      const changed = token.slice(0, at) + other + token.slice(at + 1);
      expect(await failure(keys.verify(changed, NOON)), changed).toBeInstanceOf(TokenInvalid);
    }
  });

  test("any start of a genuine one", async () => {
    for (let length = 0; length < token.length; length++) {
      expect(await failure(keys.verify(token.slice(0, length), NOON))).toBeInstanceOf(TokenInvalid);
    }
  });

  test("nbf counts to the second, without tolerance", async () => {
    const early = forge.compact(forge.header(), { ...WHOLE_CLAIMS, nbf: SECOND });
    expect(await failure(keys.verify(early, NOON - 1))).toBeInstanceOf(TokenInvalid);
    expect(await keys.verify(early, NOON)).toMatchObject({ nbf: SECOND });
  });
});

describe("the key set", () => {
  test("holds public parts only, the active key first", async () => {
    const set = keySet(await open(rotated), NOON);
    expect(set.keys.map((key) => key.kid)).toEqual([newKid, kid]);
    for (const key of set.keys) {
      expect(Object.keys(key).sort()).toEqual(["alg", "e", "kid", "kty", "n", "use"]);
      expect(key).toMatchObject({ kty: "RSA", e: "AQAB", alg: "RS256", use: "sig" });
      expect(await calculateJwkThumbprint(key)).toBe(key.kid);
      expect(Buffer.from(key.n!, "base64url")).toHaveLength(256);
    }
  });

  test("contains no private member of any file", async () => {
    const text = (await open(rotated)).jwks(NOON);
    for (const key of [readKey(single, kid), readKey(rotated, newKid)]) {
      for (const name of PRIVATE_MEMBERS) expect(text).not.toContain(String(key[name]));
    }
  });

  test("is one cached text until something changes", async () => {
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
  test("new tokens have the new key and old ones stay valid, over a start too", async () => {
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

  test("a token that was being signed while the key changed is valid", async () => {
    const own = await open(newFolder(single));
    const rotation = own.rotate(NOON);
    const signed: string[] = [];
    while (own.activeKid === kid) signed.push(await own.sign(CLAIMS, "JWT"));
    await rotation;
    for (const one of signed) expect(await own.verify(one, NOON)).toEqual(WHOLE_CLAIMS);
  });

  test("the retired key's file loses its private part", async () => {
    const text = readFileSync(keyFile(rotated, kid), "utf8");
    const before = readKey(single, kid);
    expect(JSON.parse(text)).toEqual({ ...withoutPrivatePart(before), retired_at: NOON });
    for (const name of PRIVATE_MEMBERS) expect(text).not.toContain(String(before[name]));
    expect(mode(keyFile(rotated, kid))).toBe(0o600);
    expect(mode(keyFile(rotated, newKid))).toBe(0o600);
    expect(readdirSync(rotated)).toHaveLength(2);
  });

  test("a retired key ends a day after its last token, whether or not its file is gone", async () => {
    const folder = newFolder(rotated);
    const own = await open(folder);
    expect(await failure(own.verify(token, OVER - 1))).toBeInstanceOf(TokenExpired);
    expect(await failure(own.verify(token, OVER))).toBeInstanceOf(TokenInvalid);
    const before = await open(folder, OVER - 1);
    expect(kids(before, OVER - 1)).toEqual([newKid, kid]);
    const after = await open(folder, OVER);
    expect(existsSync(keyFile(folder, kid))).toBe(false);
    expect(kids(after, NOON)).toEqual([newKid]);
    const fresh = forge.compact(forge.header(), { ...WHOLE_CLAIMS, iat: OVER / 1_000, exp: OVER / 1_000 + 900 });
    expect(await failure(after.verify(fresh, OVER))).toBeInstanceOf(TokenInvalid);
  });

  test("drops the keys that are over", async () => {
    const folder = newFolder(rotated);
    const own = await open(folder);
    const next = await own.rotate(OVER);
    expect(readdirSync(folder).sort()).toEqual([`${newKid}.json`, `${next}.json`].sort());
    expect(kids(own, OVER)).toEqual([next, newKid]);
  });

  test("calls at one time run one after the other", async () => {
    const folder = newFolder(single);
    const own = await open(folder);
    const made = await Promise.all([own.rotate(NOON), own.rotate(NOON), own.rotate(NOON)]);
    expect(new Set([kid, ...made]).size).toBe(4);
    expect(own.activeKid).toBe(made[2]);
    const order = [...made.reverse(), kid];
    expect(kids(own, NOON)).toEqual(order);
    expect(kids(await open(folder), NOON)).toEqual(order);
  });

  test("one that fails leaves the old key at work and doesn't stop the next", async () => {
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

  test("one that fails to retire the old key is finished by the next", async () => {
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

  test("the key is the newest even where the clock stepped back", async () => {
    const folder = newFolder(single);
    const next = await (await open(folder)).rotate(NOON - DAY_MS);
    expect(readKey(folder, next)["created_at"]).toBe(NOON + 1);
  });

  test("there are no more than 100 keys that are not over", async () => {
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

  test.each(instants)("%s: the %s key is active, and no live token has ended", async (_name, expected, files) => {
    const folder = writeFolder(files());
    const now = NOON + 60_000;
    const own = await open(folder, now);
    expect(own.activeKid).toBe(expected === "old" ? kid : newKid);
    expect(await own.verify(token, now)).toEqual(WHOLE_CLAIMS);
    expect(await own.verify(await own.sign(CLAIMS, "JWT"), now)).toEqual(WHOLE_CLAIMS);
    expect(readdirSync(folder).filter((name) => !name.endsWith(".json"))).toEqual([]);
    expect(kids(own, now)).toEqual(expected === "old" ? [kid] : [newKid, kid]);
    if (expected === "new") expect(readKey(folder, kid)).not.toHaveProperty("d");
  });

  test("the older of two active keys lives on from the start that retires it", async () => {
    const folder = newFolder(rotated);
    writeFileSync(keyFile(folder, kid), contents().active, { mode: 0o600 });
    // The key may have signed until now: after a partly failed rotation the process may have continued for a long time.
    const own = await open(folder, OVER);
    expect(readKey(folder, kid)["retired_at"]).toBe(OVER);
    expect(kids(own, OVER)).toEqual([newKid, kid]);
  });

  test("every state of the folder that can be seen meanwhile opens", async () => {
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
  test("is made, with those above it, for the owner alone, with a first key", async () => {
    const folder = join(newFolder(), "data", "keys");
    const own = await open(folder);
    expect(mode(folder)).toBe(0o700);
    expect(mode(keyFile(folder, own.activeKid))).toBe(0o600);
    expect(readdirSync(folder)).toEqual([`${own.activeKid}.json`]);
    expect(readKey(folder, own.activeKid)).toMatchObject({ kid: own.activeKid, created_at: NOON });
    expect(await calculateJwkThumbprint(keySet(own, NOON).keys[0]!)).toBe(own.activeKid);
  });

  test("opens again with the same key", async () => {
    const again = await open(newFolder(single), NOON + 1);
    expect(again.activeKid).toBe(kid);
    expect(again.jwks(NOON)).toBe(keys.jwks(NOON));
    expect(await again.verify(token, NOON)).toEqual(WHOLE_CLAIMS);
  });

  test("where all keys are retired there is a new active one", async () => {
    const folder = newFolder(rotated);
    rmSync(keyFile(folder, newKid));
    const own = await open(folder);
    expect(kids(own, NOON)).toEqual([own.activeKid, kid]);
    expect(own.activeKid).not.toBe(kid);
    expect(await own.verify(token, NOON)).toEqual(WHOLE_CLAIMS);
  });

  test.each(["644", "640", "666", "700", "604"])("a key file of mode %s is the owner's alone again", async (wide) => {
    const folder = newFolder(single);
    chmodSync(keyFile(folder, kid), Number.parseInt(wide, 8));
    chmodSync(folder, 0o755);
    await open(folder);
    expect(mode(keyFile(folder, kid))).toBe(0o600);
    expect(mode(folder)).toBe(0o700);
  });

  test("a retired key's file that has its private part yet loses it", async () => {
    const folder = newFolder(rotated);
    writeKey(folder, kid, { ...readKey(single, kid), retired_at: NOON });
    await open(folder, NOON + 5);
    expect(readKey(folder, kid)).toEqual({ ...withoutPrivatePart(readKey(single, kid)), retired_at: NOON });
  });

  test("temporary files of a crash go", async () => {
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

  test.each(wrong)("a file that is %s stops the start, and is named but not quoted", async (_name, spoil) => {
    const folder = newFolder(single);
    const path = await spoil(folder);
    const before = readKey(single, kid);
    const error = await failure(open(folder));
    expect(error.message).toBe(`${path} is not a signing key`);
    expect(error.cause).toBeUndefined();
    const told = `${error.stack}${JSON.stringify(error)}`;
    for (const name of PRIVATE_MEMBERS) expect(told).not.toContain(String(before[name]).slice(0, 12));
    expect(told).not.toContain(SECRET);
  });
});
