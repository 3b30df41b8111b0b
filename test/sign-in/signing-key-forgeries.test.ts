/**
 * Forged tokens against the signing keys: algorithms, signatures, encodings, headers and payloads. For forged tokens
 * over the API, see forged-tokens.test.ts.
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
  sign as signBytes,
} from "node:crypto";
import { CompactEncrypt, calculateJwkThumbprint } from "jose";
import { beforeAll, describe, expect, test } from "vitest";
import { TokenExpired, TokenInvalid } from "../../server/sign-in/signing-keys.ts";
import {
  AUDIENCE,
  encode,
  failure,
  ISSUER,
  type Json,
  keys,
  kid,
  LATER,
  makeKeyFolders,
  NOON,
  readKey,
  SECOND,
  single,
  token,
  WHOLE_CLAIMS,
} from "./key-folders.ts";

makeKeyFolders();

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

describe("a forged token is rejected", () => {
  test("the forge makes genuine tokens where it changes nothing", async () => {
    expect(await keys.verify(forge.compact(forge.header(), WHOLE_CLAIMS), NOON)).toEqual(WHOLE_CLAIMS);
    const typed = forge.compact(forge.header({ typ: "at+jwt" }), WHOLE_CLAIMS);
    expect(await keys.verify(typed, NOON)).toEqual(WHOLE_CLAIMS);
    const several = forge.compact(forge.header(), { ...WHOLE_CLAIMS, aud: ["https://other.example", AUDIENCE] });
    expect(await keys.verify(several, NOON)).toMatchObject({ aud: ["https://other.example", AUDIENCE] });
    expect(await failure(keys.verify(several, LATER))).toBeInstanceOf(TokenExpired);
  });

  test.each([...ALGORITHMS, ...SIGNATURES, ...ENCODINGS, ...HEADERS, ...PAYLOADS])(
    "a forged token is rejected: %s",
    async (_name, make) => {
      const forged = await make(forge);
      expect(forged).not.toBe(token);
      // A forged token never reports expiry, not even after `exp`: only a genuine token expires.
      for (const now of [NOON, LATER]) {
        const error = await failure(keys.verify(forged, now));
        expect(error).toBeInstanceOf(TokenInvalid);
        expect(error.cause).toBeUndefined();
        expect(error.message).toMatch(/^the token is [a-z ]+$/);
      }
    },
  );

  test("a genuine token with any one character changed is rejected", async () => {
    for (let at = 0; at < token.length; at++) {
      const other = token[at] === "A" ? "B" : "A";
      const changed = token.slice(0, at) + other + token.slice(at + 1);
      expect(await failure(keys.verify(changed, NOON)), changed).toBeInstanceOf(TokenInvalid);
    }
  });

  test("any prefix of a genuine token is rejected", async () => {
    for (let length = 0; length < token.length; length++) {
      expect(await failure(keys.verify(token.slice(0, length), NOON))).toBeInstanceOf(TokenInvalid);
    }
  });

  test("a token's nbf is exact to the second", async () => {
    const early = forge.compact(forge.header(), { ...WHOLE_CLAIMS, nbf: SECOND });
    expect(await failure(keys.verify(early, NOON - 1))).toBeInstanceOf(TokenInvalid);
    expect(await keys.verify(early, NOON)).toMatchObject({ nbf: SECOND });
  });
});
