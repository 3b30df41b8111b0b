/** Forged tokens with a header or a payload that the server must reject, most of them under a genuine signature. */
import { createHmac, createPublicKey, randomBytes } from "node:crypto";
import { ALL_SCOPES } from "../support/world.ts";
import { encode, type Forge, type Json, publicJwk, type Variant } from "./forge.ts";

const DAY_S = 86_400;

/**
 * Signed with the server's own key, or with a key that the header carries. The server must reject them by the header
 * alone.
 */
export const HEADERS: Variant[] = [
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
export const CLAIMS: Variant[] = [
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

/** The session claims that the server requires. Signed with the server's own key, and live. */
export const SESSIONS: readonly (readonly [string, (f: Forge) => Json])[] = [
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
  ["sid of another user's session", (f) => ({ sid: f.other["sid"] })],
  ["sub of another user", (f) => ({ sub: f.other["sub"] })],
  ["sub of nobody", () => ({ sub: "999999999" })],
  ["sub with a zero before", (f) => ({ sub: `0${String(f.claims["sub"])}` })],
  ["sub with a space", (f) => ({ sub: `${String(f.claims["sub"])} ` })],
];
