/**
 * Forged tokens with a wrong algorithm, key or signature. The variants follow the public Wycheproof vectors for JWS and
 * RSA signatures.
 */
import {
  constants,
  createHash,
  createHmac,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign as signBytes,
} from "node:crypto";
import {
  block,
  encode,
  type Forge,
  hashOf,
  pkcs1Der,
  pkcs1Pem,
  publicJwk,
  SHA256_INFO,
  spkiDer,
  spkiPem,
  type Variant,
} from "./forge.ts";

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

export const HMACS: Variant[] = SECRETS.flatMap(([name, secret]): Variant[] =>
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

export const ALGORITHMS: Variant[] = [
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

export const SIGNATURES: Variant[] = [
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
  ["another session's number in the payload", (f) => `${f.h}.${encode({ ...f.claims, sid: f.other["sid"] })}.${f.s}`],
  ["a later end in the payload", (f) => `${f.h}.${encode({ ...f.claims, exp: 4_102_444_800 })}.${f.s}`],
  ["more scopes in the payload", (f) => `${f.h}.${encode({ ...f.claims, scope: "admin" })}.${f.s}`],
  ["the other kind in the header", (f) => f.withHeader({ typ: f.head["typ"] === "JWT" ? "at+jwt" : "JWT" })],
];

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
export const PADDINGS: Variant[] = [
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
