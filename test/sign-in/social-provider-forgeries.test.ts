/** Sign-in at a forger, which sends responses that no honest OpenID provider would send, or fails. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { SocialIdentity } from "../../server/sign-in/social-provider.ts";
import { DISCOVERY_MS, MAX_ATTEMPTS, SocialSignIn } from "../../server/sign-in/social-sign-in.ts";
import { FAILED, NOW, providerAt, redirectUri, rejection, signInAt, UNKNOWN, UNREACHABLE } from "./provider-sign-in.ts";

/** The forger's responses in place of the honest provider's. Each receives the parts of the honest response. */
interface Forgery {
  readonly idToken?: (claims: JWTPayload) => string | Promise<string> | undefined;
  readonly discovery?: (document: Record<string, unknown>) => unknown;
  readonly userinfo?: Readonly<Record<string, unknown>>;
  /** Responses by path; they replace the default ones. */
  readonly answers?: Readonly<Record<string, (response: ServerResponse) => void>>;
}

const KEY_ID = "forger";
const DISCOVERY = "/.well-known/openid-configuration";

/** A provider that uses the ID token's nonce as its code, so that it keeps no state. */
class Forger {
  readonly clientId = "exchange";
  readonly clientSecret = "the forger's own: +%/ ü";
  issuer = "";
  forgery: Forgery = {};
  readonly requests: { path: string; authorization: string | undefined; body: URLSearchParams }[] = [];
  readonly keys = generateKeyPair("RS256");
  private readonly server: Server = createServer((request, response) => void this.answer(request, response));

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.issuer = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  async sign(claims: JWTPayload, alg = "RS256", key?: CryptoKey | Uint8Array): Promise<string> {
    const by = key ?? (await this.keys).privateKey;
    return new SignJWT(claims).setProtectedHeader({ alg, kid: KEY_ID }).sign(by);
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url!;
    const body = new URLSearchParams(Buffer.concat(await request.toArray()).toString());
    this.requests.push({ path, authorization: request.headers.authorization, body });
    const special = this.forgery.answers?.[path];
    if (special !== undefined) return special(response);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(await this.honestAnswer(path, body)));
  }

  private async honestAnswer(path: string, body: URLSearchParams): Promise<unknown> {
    const { forgery, issuer } = this;
    if (path === "/jwks") {
      return { keys: [{ ...(await exportJWK((await this.keys).publicKey)), kid: KEY_ID, alg: "RS256", use: "sig" }] };
    }
    if (path === "/userinfo") return forgery.userinfo ?? { sub: "mallory" };
    if (path === "/token") {
      const now = Math.floor(Date.now() / 1_000);
      const claims = { iss: issuer, sub: "mallory", aud: this.clientId, nonce: body.get("code")!, iat: now };
      const complete = { ...claims, exp: now + 300 };
      const idToken = forgery.idToken === undefined ? this.sign(complete) : forgery.idToken(complete);
      return { access_token: "forged-access-token", token_type: "Bearer", id_token: await idToken };
    }
    const document = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      userinfo_endpoint: `${issuer}/userinfo`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ["code"],
      id_token_signing_alg_values_supported: ["RS256", "HS256", "none"],
    };
    return forgery.discovery?.(document) ?? document;
  }
}

describe("at a forger", () => {
  const forger = new Forger();
  beforeAll(() => forger.listen());
  afterAll(() => forger.close());
  afterEach(() => {
    forger.forgery = {};
    forger.requests.length = 0;
  });

  const requestsOf = (path: string) => forger.requests.filter((request) => request.path === path);

  /** Runs a whole sign-in. */
  async function tryWith(forgery: Forgery, social = signInAt(providerAt(forger))): Promise<SocialIdentity> {
    forger.forgery = forgery;
    const { location, state, binding } = await social.start("one", null, NOW);
    const nonce = new URL(location).searchParams.get("nonce")!;
    return social.finish("one", `?code=${nonce}&state=${state}`, binding, NOW);
  }

  const secrets = [forger.clientSecret, "forged-access-token", "eyJ"];

  const wrongTokens: Record<string, (claims: JWTPayload) => string | Promise<string> | undefined> = {
    "another nonce": (claims) => forger.sign({ ...claims, nonce: "another" }),
    "no nonce": ({ nonce: _, ...claims }) => forger.sign(claims),
    "another audience": (claims) => forger.sign({ ...claims, aud: "another" }),
    "several audiences and another authorized party": (claims) =>
      forger.sign({ ...claims, aud: ["exchange", "another"], azp: "another" }),
    "another issuer": (claims) => forger.sign({ ...claims, iss: "https://example.com" }),
    "no subject": ({ sub: _, ...claims }) => forger.sign(claims),
    "an end in the past": (claims) => forger.sign({ ...claims, exp: claims.exp! - 600 }),
    "no end": ({ exp: _, ...claims }) => forger.sign(claims),
    "another key under the same name": async (claims) =>
      forger.sign(claims, "RS256", (await generateKeyPair("RS256")).privateKey),
    "the client's secret as its key": (claims) => forger.sign(claims, "HS256", Buffer.from(forger.clientSecret)),
    "the algorithm none": (claims) => {
      const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
      return `${part({ alg: "none" })}.${part(claims)}.`;
    },
    "claims changed after signing": async (claims) => {
      const [header, , signature] = (await forger.sign(claims)).split(".");
      const changed = Buffer.from(JSON.stringify({ ...claims, sub: "alice" })).toString("base64url");
      return `${header}.${changed}.${signature}`;
    },
    "no token at all": () => undefined,
    "a token that is none": () => "token",
  };
  test.for(Object.entries(wrongTokens))("a provider's ID token with %s is rejected", async ([, idToken]) => {
    expect(await tryWith({ idToken: (claims) => forger.sign(claims) })).toMatchObject({ subject: "mallory" });
    expect(await rejection(tryWith({ idToken }), secrets)).toEqual(FAILED);
  });

  const mails: [string, Record<string, unknown>, Record<string, unknown> | null, string | null, boolean][] = [
    ["the ID token's", { email: "A@X.org", email_verified: true }, { email: "b@x.org" }, "a@x.org", true],
    ["verified in words", { email: "a@x.org", email_verified: "true" }, null, "a@x.org", true],
    ["denied in words", { email: "a@x.org", email_verified: "false" }, null, "a@x.org", false],
    ["verified by a number", { email: "a@x.org", email_verified: 1 }, null, "a@x.org", false],
    ["userinfo's", {}, { email: "B@x.org", email_verified: true }, "b@x.org", true],
    ["userinfo's word on its own address", { email: "a@x.org" }, { email: "b@x.org" }, "b@x.org", false],
    ["not verified by userinfo without one", { email: "a@x.org" }, { email_verified: true }, "a@x.org", false],
    ["not verified for another's", { email_verified: true }, { email: "b@x.org" }, "b@x.org", false],
    ["nowhere", {}, null, null, false],
    ["no address", { email: "nobody", email_verified: true }, null, null, false],
    ["no text", { email: ["a@x.org"], email_verified: true }, null, null, false],
    ["empty", { email: "", email_verified: true }, null, null, false],
    ["too long", { email: `${"a".repeat(250)}@x.org`, email_verified: true }, null, null, false],
    ["lower case in ASCII only", { email: "\u212AATE@x.org", email_verified: true }, null, "\u212Aate@x.org", true],
  ];
  test.for(mails)("a provider's e-mail address is %s", async ([, inToken, inUserinfo, email, emailVerified]) => {
    const forgery: Forgery = {
      idToken: (claims) => forger.sign({ ...claims, ...inToken }),
      userinfo: { sub: "mallory", ...inUserinfo },
    };
    expect(await tryWith(forgery)).toEqual({ issuer: forger.issuer, subject: "mallory", email, emailVerified });
  });

  test("a provider's userinfo of another subject is rejected", async () => {
    const userinfo = { sub: "alice", email: "alice@example.com", email_verified: true };
    expect(await rejection(tryWith({ userinfo }), secrets)).toEqual(FAILED);
  });

  test("a provider's document of almost a megabyte is read", async () => {
    const discovery = (document: Record<string, unknown>) => ({ ...document, padding: "x".repeat(2 ** 20 - 1_000) });
    expect(await tryWith({ discovery })).toMatchObject({ subject: "mallory" });
  });

  test("a provider without userinfo is asked for none", async () => {
    const discovery = ({ userinfo_endpoint: _, ...document }: Record<string, unknown>) => document;
    expect(await tryWith({ discovery })).toMatchObject({ subject: "mallory", email: null });
  });

  test("the client's secret goes into the header, or into the body where the provider lists that", async () => {
    await tryWith({});
    await tryWith({
      discovery: (document) => ({
        ...document,
        token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
      }),
    });
    const [basic, post] = requestsOf("/token");
    expect(basic!.body.has("client_secret")).toBe(false);
    const [user, password] = Buffer.from(basic!.authorization!.slice("Basic ".length), "base64").toString().split(":");
    expect([...new URLSearchParams(`${user}=${password}`)]).toEqual([[forger.clientId, forger.clientSecret]]);
    expect(post!.authorization).toBeUndefined();
    expect(post!.body.get("client_secret")).toBe(forger.clientSecret);
    expect(post!.body.get("redirect_uri")).toBe(redirectUri("one"));
  });

  test("our callback at a provider is normalized", async () => {
    const social = new SocialSignIn({ providers: [providerAt(forger)], redirectUri: () => "HTTP://127.0.0.1:80/a/.." });
    const { location } = await social.start("one", null, NOW);
    expect(new URL(location).searchParams.get("redirect_uri")).toBe("http://127.0.0.1/");
    await tryWith({}, social);
    expect(requestsOf("/token")[0]!.body.get("redirect_uri")).toBe("http://127.0.0.1/");
  });

  test("concurrent sign-ins at a provider share one discovery, which lasts an hour", async () => {
    const social = signInAt(providerAt(forger));
    const discoveries = () => requestsOf(DISCOVERY).length;
    await Promise.all(Array.from({ length: 5 }, () => social.start("one", null, NOW)));
    await social.start("one", null, NOW + DISCOVERY_MS - 1);
    expect(discoveries()).toBe(1);
    await social.start("one", null, NOW + DISCOVERY_MS);
    expect(discoveries()).toBe(2);
  });

  const broken: Record<string, Forgery> = {
    "responds with 500": { answers: { [DISCOVERY]: (response) => response.writeHead(500).end() } },
    "has no such page": {
      answers: { [DISCOVERY]: (response) => response.writeHead(404).end() },
    },
    redirects: {
      answers: {
        [DISCOVERY]: (response) => response.writeHead(302, { location: "/elsewhere" }).end(),
      },
    },
    "hangs up": { answers: { [DISCOVERY]: (response) => response.destroy() } },
    "responds with more than a megabyte": { discovery: (document) => ({ ...document, padding: "x".repeat(2 ** 20) }) },
    "responds with another issuer's document": {
      discovery: (document) => ({ ...document, issuer: "https://example.com" }),
    },
    "has no sign-in page": { discovery: ({ authorization_endpoint: _, ...document }) => document },
    "has a script for its sign-in page": {
      discovery: (document) => ({ ...document, authorization_endpoint: "javascript:alert(1)" }),
    },
  };
  test.for(Object.entries(broken))("a provider that %s is unreachable, until it works", async ([, forgery]) => {
    const social = signInAt(providerAt(forger));
    forger.forgery = forgery;
    const both = [1, 2].map(() => rejection(social.start("one", null, NOW), [forger.clientSecret]));
    expect(await Promise.all(both)).toEqual([UNREACHABLE, UNREACHABLE]);
    expect(requestsOf(DISCOVERY)).toHaveLength(1);
    expect(await tryWith({}, social)).toMatchObject({ subject: "mallory" });
  });

  test.for(["/token", "/jwks", "/userinfo"])("a provider whose %s fails is unreachable", async (path) => {
    const failures: ((response: ServerResponse) => void)[] = [
      (response) => response.writeHead(500).end("forged-access-token"),
      (response) => response.writeHead(429).end(),
      (response) => response.destroy(),
      (response) => {
        response.writeHead(200, { "content-length": "9" }).write("{");
        setImmediate(() => response.destroy());
      },
    ];
    for (const fail of failures) {
      expect(await rejection(tryWith({ answers: { [path]: fail } }), secrets)).toEqual(UNREACHABLE);
    }
    const refuse = (response: ServerResponse): void => {
      response.writeHead(400, { "content-type": "application/json" }).end('{"error":"invalid_grant"}');
    };
    expect(await rejection(tryWith({ answers: { [path]: refuse } }), secrets)).toEqual(FAILED);
  });

  test("a provider that does not respond within five seconds is unreachable", async () => {
    const begin = performance.now();
    const forgery: Forgery = { answers: { [DISCOVERY]: () => {} } };
    expect(await rejection(tryWith(forgery))).toEqual(UNREACHABLE);
    expect(performance.now() - begin).toBeGreaterThan(4_900);
  });

  test("past 10 000 sign-ins at a provider only the oldest is forgotten", async () => {
    const social = signInAt(providerAt(forger));
    const begin = async () => {
      const { location, state, binding } = await social.start("one", null, NOW);
      return { query: `code=${new URL(location).searchParams.get("nonce")}&state=${state}`, binding };
    };
    const [first, second] = [await begin(), await begin()];
    for (let index = 1; index < MAX_ATTEMPTS; index++) await begin();
    expect(await rejection(social.finish("one", first.query, first.binding, NOW))).toEqual(UNKNOWN);
    expect(await social.finish("one", second.query, second.binding, NOW)).toMatchObject({ subject: "mallory" });
  });
});
