/** Forged tokens that are encoded wrongly: other alphabets, other parts, other characters, and damage. */
import assert from "node:assert";
import { createHash, randomBytes } from "node:crypto";
import { CompactEncrypt } from "jose";
import { encode, type Forge, type Variant } from "./forge.ts";

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

export const ENCODINGS: Variant[] = [
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
export const DAMAGED: Variant[] = [
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
