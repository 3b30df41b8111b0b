/** Sign-in at a real OpenID provider, and at a forger that sends responses no honest provider would. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  ATTEMPT_MS,
  DISCOVERY_MS,
  MAX_ATTEMPTS,
  readSocialProviders,
  type SocialIdentity,
  type SocialProvider,
  SocialSignIn,
} from "../../server/accounts/social-sign-in.ts";
import { ApiError } from "../../server/errors.ts";
import { TestProvider } from "../support/oidc-provider.ts";

const redirectUri = (provider: string): string => `http://127.0.0.1/auth/social/${provider}/callback`;
const REDIRECT_URIS = [redirectUri("one"), redirectUri("two")];
const NOW = 1_700_000_000_000;

function providerAt(at: TestProvider | Forger, name = "one", jurisdictions: string[] | null = null): SocialProvider {
  const { issuer, clientId, clientSecret } = at;
  return { name, issuer, clientId, clientSecret, jurisdictions, scope: "openid email" };
}

function signInAt(...providers: SocialProvider[]): SocialSignIn {
  return new SocialSignIn({ providers, redirectUri });
}

/** The refusal. Neither the response nor the log may contain a secret. */
async function refusal(promise: Promise<unknown>, secrets: readonly string[] = []): Promise<[number, string]> {
  const thrown: unknown = await promise.then(
    (value) => expect.fail(`not refused: ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ApiError);
  const { kind, message, cause, retryAfter } = thrown as ApiError;
  expect(typeof cause === "string" || cause === undefined).toBe(true);
  for (const secret of secrets) expect(`${message} ${cause}`).not.toContain(secret);
  expect(retryAfter).toBe(kind.status === 503 ? 1 : null);
  return [kind.code, message];
}

const UNKNOWN = [40100, "this browser has started no such sign-in in the last ten minutes"];
const FAILED = [40100, "the sign-in with one failed"];
const UNREACHABLE = [50300, "one cannot be reached"];

describe("at a real provider", () => {
  let real: TestProvider;
  let other: TestProvider;
  beforeAll(async () => {
    real = await TestProvider.start(REDIRECT_URIS);
    other = await TestProvider.start(REDIRECT_URIS);
  });
  afterAll(() => Promise.all([real.close(), other.close()]));

  /** Runs a sign-in up to the callback. */
  async function callbackOf(social: SocialSignIn, account: string | null, name = "one") {
    const { location, state, binding } = await social.start(name, null, NOW);
    const at = name === "one" ? real : other;
    const query = new URL(await at.signInAt(location, account)).search;
    return { query, state, binding };
  }

  async function identityOf(account: string): Promise<SocialIdentity> {
    const social = signInAt(providerAt(real));
    const { query, binding } = await callbackOf(social, account);
    return social.finish("one", query, binding, NOW);
  }

  test("who signs in is who the provider says, with a verified e-mail address in lower case", async () => {
    expect(await identityOf("alice")).toEqual({
      issuer: real.issuer,
      subject: "alice",
      email: "alice@example.com",
      emailVerified: true,
    });
  });

  test("an address that is not verified, or missing, is reported as such", async () => {
    const issuer = real.issuer;
    expect(await identityOf("unverified")).toEqual({
      issuer,
      subject: "unverified",
      email: "unverified@example.com",
      emailVerified: false,
    });
    expect(await identityOf("mailless")).toEqual({ issuer, subject: "mailless", email: null, emailVerified: false });
  });

  test("the browser is sent with PKCE, state, nonce and our callback, and without the client's secret", async () => {
    const { location, state, binding } = await signInAt(providerAt(real)).start("one", null, NOW);
    const { origin, searchParams } = new URL(location);
    expect(origin).toBe(real.issuer);
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: real.clientId,
      response_type: "code",
      redirect_uri: redirectUri("one"),
      scope: "openid email",
      state,
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: "S256",
    });
    expect(state).toMatch(/^[\w-]{43}$/);
    expect(binding).toMatch(/^[\w-]{43}$/);
    expect(new Set([state, binding, searchParams.get("nonce"), searchParams.get("code_challenge")]).size).toBe(4);
    expect(location).not.toContain(binding);
    expect(location).not.toContain(real.clientSecret);
  });

  test("a state is used once", async () => {
    const social = signInAt(providerAt(real));
    const { query, binding } = await callbackOf(social, "bob");
    expect(await social.finish("one", query, binding, NOW)).toMatchObject({ subject: "bob" });
    expect(await refusal(social.finish("one", query, binding, NOW))).toEqual(UNKNOWN);
  });

  test("of two finishes of one state at a time one is refused", async () => {
    const social = signInAt(providerAt(real));
    const { query, binding } = await callbackOf(social, "bob");
    const both = await Promise.allSettled([1, 2].map(() => social.finish("one", query, binding, NOW)));
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });

  test("a state that was never given is refused, and none at all", async () => {
    const social = signInAt(providerAt(real));
    const { query, state, binding } = await callbackOf(social, "bob");
    const strange = query.replace(state, "A".repeat(43));
    expect(await refusal(social.finish("one", strange, binding, NOW))).toEqual(UNKNOWN);
    for (const none of ["", "?", "?state", "?code=abc", "?error=access_denied", "%%%"]) {
      expect(await refusal(social.finish("one", none, binding, NOW))).toEqual(UNKNOWN);
    }
    expect(await social.finish("one", query, binding, NOW)).toMatchObject({ subject: "bob" });
  });

  test("a state lives for ten minutes", async () => {
    const social = signInAt(providerAt(real));
    const [inTime, late] = [await callbackOf(social, "bob"), await callbackOf(social, "bob")];
    expect(await social.finish("one", inTime.query, inTime.binding, NOW + ATTEMPT_MS - 1)).toBeDefined();
    expect(await refusal(social.finish("one", late.query, late.binding, NOW + ATTEMPT_MS))).toEqual(UNKNOWN);
  });

  test("another browser cannot finish, and the state is used up by its try", async () => {
    const social = signInAt(providerAt(real));
    const theirs = await callbackOf(social, "bob");
    for (const wrong of [null, "", "A".repeat(43), theirs.binding]) {
      const { query, binding } = await callbackOf(social, "alice");
      expect(await refusal(social.finish("one", query, wrong, NOW), [binding])).toEqual(UNKNOWN);
      expect(await refusal(social.finish("one", query, binding, NOW), [binding])).toEqual(UNKNOWN);
    }
  });

  test("a sign-in that began at one provider does not finish at another, nor at one that does not exist", async () => {
    const social = signInAt(providerAt(real, "one"), providerAt(other, "two"));
    for (const elsewhere of ["two", "three", "constructor"]) {
      const { query, binding } = await callbackOf(social, "alice", "one");
      expect(await refusal(social.finish(elsewhere, query, binding, NOW))).toEqual(UNKNOWN);
    }
    const { query, binding } = await callbackOf(social, "alice", "two");
    expect(await social.finish("two", query, binding, NOW)).toMatchObject({ issuer: other.issuer });
  });

  test("an answer that names another issuer, or none, is refused (RFC 9207)", async () => {
    const social = signInAt(providerAt(real));
    for (const issuer of [other.issuer, null]) {
      const { query, binding } = await callbackOf(social, "alice");
      const parameters = new URLSearchParams(query);
      expect(parameters.get("iss")).toBe(real.issuer);
      if (issuer === null) parameters.delete("iss");
      else parameters.set("iss", issuer);
      expect(await refusal(social.finish("one", parameters.toString(), binding, NOW))).toEqual(FAILED);
    }
  });

  test("who declines at the provider is told so", async () => {
    const social = signInAt(providerAt(real));
    const { query, binding } = await callbackOf(social, null);
    expect(query).toContain("error=access_denied");
    expect(await refusal(social.finish("one", query, binding, NOW))).toEqual([40100, "the sign-in was denied at one"]);
  });

  test("a code that is tampered with, missing, doubled or of another sign-in is refused", async () => {
    const social = signInAt(providerAt(real));
    const foreign = new URLSearchParams((await callbackOf(social, "bob")).query).get("code")!;
    const tamper: ((parameters: URLSearchParams) => void)[] = [
      (parameters) => parameters.set("code", `${parameters.get("code")}x`),
      (parameters) => parameters.delete("code"),
      (parameters) => parameters.append("code", parameters.get("code")!),
      (parameters) => parameters.append("state", parameters.get("state")!),
      (parameters) => parameters.set("code", foreign),
    ];
    for (const change of tamper) {
      const { query, binding } = await callbackOf(social, "alice");
      const parameters = new URLSearchParams(query);
      const code = parameters.get("code")!;
      change(parameters);
      const secrets = [code, foreign, binding, real.clientSecret];
      expect(await refusal(social.finish("one", parameters.toString(), binding, NOW), secrets)).toEqual(FAILED);
    }
  });

  test("a wrong client secret is refused, and not told", async () => {
    const social = signInAt({ ...providerAt(real), clientSecret: "not the secret" });
    const { query, binding } = await callbackOf(social, "alice");
    expect(await refusal(social.finish("one", query, binding, NOW), ["not the secret"])).toEqual(FAILED);
  });

  test("while a provider is down it is out of reach, and afterwards it works", async () => {
    const before = await TestProvider.start(REDIRECT_URIS);
    await before.close();
    const social = signInAt({ ...providerAt(before), clientSecret: "unused so far" });
    expect(await refusal(social.start("one", null, NOW))).toEqual(UNREACHABLE);
    const after = await TestProvider.start(REDIRECT_URIS, before.port);
    try {
      const { location } = await social.start("one", null, NOW);
      expect(await after.signInAt(location, "alice")).toContain("code=");
    } finally {
      await after.close();
    }
  });

  test("a provider that goes down in the middle is out of reach", async () => {
    const mortal = await TestProvider.start(REDIRECT_URIS);
    const social = signInAt(providerAt(mortal));
    const { location, binding } = await social.start("one", null, NOW);
    const query = new URL(await mortal.signInAt(location, "alice")).search;
    await mortal.close();
    const secrets = [binding, mortal.clientSecret, new URLSearchParams(query).get("code")!];
    expect(await refusal(social.finish("one", query, binding, NOW), secrets)).toEqual(UNREACHABLE);
  });

  test("a provider is offered and begun only in its jurisdictions", async () => {
    const social = signInAt(providerAt(real, "one", ["US", "DE"]), providerAt(other, "two"));
    expect(social.offered("US")).toEqual(["one", "two"]);
    expect(social.offered("FR")).toEqual(["two"]);
    expect(social.offered(null)).toEqual(["two"]);
    expect(await refusal(social.start("one", "FR", NOW))).toEqual([40300, "one is not offered in this jurisdiction"]);
    expect(await refusal(social.start("one", null, NOW))).toEqual([40000, "jurisdiction: required for one"]);
    expect(await refusal(social.start("three", "US", NOW))).toEqual([4040, "no such sign-in provider"]);
    expect(await refusal(social.start("__proto__", "US", NOW))).toEqual([4040, "no such sign-in provider"]);
    expect((await social.start("one", "DE", NOW)).location).toContain(real.issuer);
    expect((await social.start("two", null, NOW)).location).toContain(other.issuer);
  });
});

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
  test.for(Object.entries(wrongTokens))("an ID token with %s is refused", async ([, idToken]) => {
    expect(await tryWith({ idToken: (claims) => forger.sign(claims) })).toMatchObject({ subject: "mallory" });
    expect(await refusal(tryWith({ idToken }), secrets)).toEqual(FAILED);
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
  test.for(mails)("the e-mail address is %s", async ([, inToken, inUserinfo, email, emailVerified]) => {
    const forgery: Forgery = {
      idToken: (claims) => forger.sign({ ...claims, ...inToken }),
      userinfo: { sub: "mallory", ...inUserinfo },
    };
    expect(await tryWith(forgery)).toEqual({ issuer: forger.issuer, subject: "mallory", email, emailVerified });
  });

  test("userinfo of another subject is refused", async () => {
    const userinfo = { sub: "alice", email: "alice@example.com", email_verified: true };
    expect(await refusal(tryWith({ userinfo }), secrets)).toEqual(FAILED);
  });

  test("a document of almost a megabyte is read", async () => {
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

  test("our callback is written in one way, however it is given", async () => {
    const social = new SocialSignIn({ providers: [providerAt(forger)], redirectUri: () => "HTTP://127.0.0.1:80/a/.." });
    const { location } = await social.start("one", null, NOW);
    expect(new URL(location).searchParams.get("redirect_uri")).toBe("http://127.0.0.1/");
    await tryWith({}, social);
    expect(requestsOf("/token")[0]!.body.get("redirect_uri")).toBe("http://127.0.0.1/");
  });

  test("discovery is shared by those who wait for it, and lasts an hour", async () => {
    const social = signInAt(providerAt(forger));
    const discoveries = () => requestsOf(DISCOVERY).length;
    await Promise.all(Array.from({ length: 5 }, () => social.start("one", null, NOW)));
    await social.start("one", null, NOW + DISCOVERY_MS - 1);
    expect(discoveries()).toBe(1);
    await social.start("one", null, NOW + DISCOVERY_MS);
    expect(discoveries()).toBe(2);
  });

  const broken: Record<string, Forgery> = {
    "answers 500": { answers: { [DISCOVERY]: (response) => response.writeHead(500).end() } },
    "has no such page": {
      answers: { [DISCOVERY]: (response) => response.writeHead(404).end() },
    },
    redirects: {
      answers: {
        [DISCOVERY]: (response) => response.writeHead(302, { location: "/elsewhere" }).end(),
      },
    },
    "hangs up": { answers: { [DISCOVERY]: (response) => response.destroy() } },
    "answers more than a megabyte": { discovery: (document) => ({ ...document, padding: "x".repeat(2 ** 20) }) },
    "answers another issuer's document": { discovery: (document) => ({ ...document, issuer: "https://example.com" }) },
    "has no sign-in page": { discovery: ({ authorization_endpoint: _, ...document }) => document },
    "has a script for its sign-in page": {
      discovery: (document) => ({ ...document, authorization_endpoint: "javascript:alert(1)" }),
    },
  };
  test.for(Object.entries(broken))("a provider that %s is out of reach, until it works", async ([, forgery]) => {
    const social = signInAt(providerAt(forger));
    forger.forgery = forgery;
    const both = [1, 2].map(() => refusal(social.start("one", null, NOW), [forger.clientSecret]));
    expect(await Promise.all(both)).toEqual([UNREACHABLE, UNREACHABLE]);
    expect(requestsOf(DISCOVERY)).toHaveLength(1);
    expect(await tryWith({}, social)).toMatchObject({ subject: "mallory" });
  });

  test.for(["/token", "/jwks", "/userinfo"])("a provider whose %s fails is out of reach", async (path) => {
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
      expect(await refusal(tryWith({ answers: { [path]: fail } }), secrets)).toEqual(UNREACHABLE);
    }
    const refuse = (response: ServerResponse): void => {
      response.writeHead(400, { "content-type": "application/json" }).end('{"error":"invalid_grant"}');
    };
    expect(await refusal(tryWith({ answers: { [path]: refuse } }), secrets)).toEqual(FAILED);
  });

  test("a provider that does not answer within five seconds is out of reach", async () => {
    const begin = performance.now();
    const forgery: Forgery = { answers: { [DISCOVERY]: () => {} } };
    expect(await refusal(tryWith(forgery))).toEqual(UNREACHABLE);
    expect(performance.now() - begin).toBeGreaterThan(4_900);
  });

  test("past 10 000 sign-ins the oldest is forgotten, and no other", async () => {
    const social = signInAt(providerAt(forger));
    const begin = async () => {
      const { location, state, binding } = await social.start("one", null, NOW);
      return { query: `code=${new URL(location).searchParams.get("nonce")}&state=${state}`, binding };
    };
    const [first, second] = [await begin(), await begin()];
    for (let index = 1; index < MAX_ATTEMPTS; index++) await begin();
    expect(await refusal(social.finish("one", first.query, first.binding, NOW))).toEqual(UNKNOWN);
    expect(await social.finish("one", second.query, second.binding, NOW)).toMatchObject({ subject: "mallory" });
  });
});

test("over http only a loopback issuer is asked", async () => {
  const remote = { issuer: "http://example.com", clientId: "exchange", clientSecret: "secret" };
  const social = signInAt({ ...remote, name: "one", jurisdictions: null, scope: "openid" });
  await expect(social.start("one", null, NOW)).rejects.toMatchObject({ cause: "OAUTH_HTTP_REQUEST_FORBIDDEN" });
});

describe("SOCIAL_PROVIDERS", () => {
  const right = { issuer: "https://accounts.example.com", client_id: "exchange", client_secret: "s3cret" };

  test("is read", () => {
    const json = { google: right, "id-2": { ...right, issuer: "http://[::1]:8080/x", jurisdictions: ["US", "DE"] } };
    expect(readSocialProviders("{}")).toEqual([]);
    const provider = { clientId: "exchange", clientSecret: "s3cret", scope: "openid email" };
    expect(readSocialProviders(JSON.stringify(json))).toEqual([
      { ...provider, name: "google", issuer: right.issuer, jurisdictions: null },
      { ...provider, name: "id-2", issuer: "http://[::1]:8080/x", jurisdictions: ["US", "DE"] },
    ]);
    const own = { google: { ...right, jurisdictions: null, scope: "email openid profile" } };
    expect(readSocialProviders(JSON.stringify(own))).toMatchObject([{ scope: "email openid profile" }]);
  });

  const https = "SOCIAL_PROVIDERS: google.issuer must be an https URL, or an http URL of a loopback host";
  const jurisdictions =
    "SOCIAL_PROVIDERS: google.jurisdictions must be null, or a non-empty list of two-letter country codes in capitals";
  const scope = 'SOCIAL_PROVIDERS: google.scope must be space-separated words that include "openid"';
  const name =
    "SOCIAL_PROVIDERS: a provider's name must have 1 to 32 characters of a-z, 0-9, _ and -, starting with a letter";
  const text = (field: string): string => `SOCIAL_PROVIDERS: google.${field} must be a non-empty string`;
  const wrong: [unknown, string][] = [
    ['{"google":s3cret', "SOCIAL_PROVIDERS must be JSON"],
    ["", "SOCIAL_PROVIDERS must be JSON"],
    [[right], "SOCIAL_PROVIDERS must be a JSON object of providers by name"],
    [null, "SOCIAL_PROVIDERS must be a JSON object of providers by name"],
    [{ "": right }, name],
    [{ Google: right }, name],
    [{ "a/b": right }, name],
    ['{"__proto__":{}}', name],
    [{ google: "s3cret" }, "SOCIAL_PROVIDERS: google must be an object"],
    [{ google: [right] }, "SOCIAL_PROVIDERS: google must be an object"],
    [
      { google: { ...right, s3cret: "" } },
      `SOCIAL_PROVIDERS: google has an unknown field; the known ones are issuer, client_id, client_secret, jurisdictions, scope`,
    ],
    [{ google: {} }, text("issuer")],
    [{ google: { ...right, issuer: "s3cret" } }, "SOCIAL_PROVIDERS: google.issuer must be a URL"],
    [{ google: { ...right, issuer: "http://example.com" } }, https],
    [{ google: { ...right, issuer: "http://127.0.0.1.example.com" } }, https],
    [{ google: { ...right, issuer: "ftp://127.0.0.1" } }, https],
    [
      { google: { ...right, issuer: "https://user:s3cret@example.com" } },
      "SOCIAL_PROVIDERS: google.issuer must be a URL without user and password",
    ],
    [
      { google: { ...right, issuer: "https://example.com/?s3cret" } },
      "SOCIAL_PROVIDERS: google.issuer must be a URL without query and fragment",
    ],
    [
      { google: { ...right, issuer: "https://example.com/.well-known/openid-configuration" } },
      "SOCIAL_PROVIDERS: google.issuer must be the issuer, not the URL of its discovery document",
    ],
    [{ google: { ...right, client_id: 7 } }, text("client_id")],
    [{ google: { ...right, client_secret: "" } }, text("client_secret")],
    [{ google: { ...right, client_secret: null } }, text("client_secret")],
    [{ google: { ...right, jurisdictions: "US" } }, jurisdictions],
    [{ google: { ...right, jurisdictions: [] } }, jurisdictions],
    [{ google: { ...right, jurisdictions: ["US", "de"] } }, jurisdictions],
    [{ google: { ...right, jurisdictions: ["USA"] } }, jurisdictions],
    [{ google: { ...right, jurisdictions: [1] } }, jurisdictions],
    [{ google: { ...right, scope: ["openid"] } }, text("scope")],
    [{ google: { ...right, scope: "email openidx" } }, scope],
  ];
  test.for(wrong)("%j is refused: %s", ([value, message]) => {
    const json = typeof value === "string" ? value : JSON.stringify(value);
    expect(() => readSocialProviders(json)).toThrow(new Error(message));
    expect(message).not.toContain("s3cret");
  });
});
