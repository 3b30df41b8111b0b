/**
 * Sign-in at a real OpenID provider, and the setting SOCIAL_PROVIDERS. For a provider that forges its responses, see
 * social-provider-forgeries.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readSocialProviders, type SocialIdentity } from "../../server/sign-in/social-provider.ts";
import { ATTEMPT_MS, type SocialSignIn } from "../../server/sign-in/social-sign-in.ts";
import { TestProvider } from "../support/oidc-provider.ts";
import { FAILED, NOW, providerAt, redirectUri, rejection, signInAt, UNKNOWN, UNREACHABLE } from "./provider-sign-in.ts";

const REDIRECT_URIS = [redirectUri("one"), redirectUri("two")];

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

  test("a sign-in at a provider returns its subject, and the verified e-mail address in lower case", async () => {
    expect(await identityOf("alice")).toEqual({
      issuer: real.issuer,
      subject: "alice",
      email: "alice@example.com",
      emailVerified: true,
    });
  });

  test("a provider's address that is not verified, or missing, is reported as such", async () => {
    const issuer = real.issuer;
    expect(await identityOf("unverified")).toEqual({
      issuer,
      subject: "unverified",
      email: "unverified@example.com",
      emailVerified: false,
    });
    expect(await identityOf("mailless")).toEqual({ issuer, subject: "mailless", email: null, emailVerified: false });
  });

  test("the redirect to a provider has PKCE, state, nonce and our callback, and not the client's secret", async () => {
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

  test("a provider's state is used once", async () => {
    const social = signInAt(providerAt(real));
    const { query, binding } = await callbackOf(social, "bob");
    expect(await social.finish("one", query, binding, NOW)).toMatchObject({ subject: "bob" });
    expect(await rejection(social.finish("one", query, binding, NOW))).toEqual(UNKNOWN);
  });

  test("of two concurrent callbacks with one state one is rejected", async () => {
    const social = signInAt(providerAt(real));
    const { query, binding } = await callbackOf(social, "bob");
    const both = await Promise.allSettled([1, 2].map(() => social.finish("one", query, binding, NOW)));
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });

  test("a callback with an unknown state is rejected, and with a missing one", async () => {
    const social = signInAt(providerAt(real));
    const { query, state, binding } = await callbackOf(social, "bob");
    const strange = query.replace(state, "A".repeat(43));
    expect(await rejection(social.finish("one", strange, binding, NOW))).toEqual(UNKNOWN);
    for (const none of ["", "?", "?state", "?code=abc", "?error=access_denied", "%%%"]) {
      expect(await rejection(social.finish("one", none, binding, NOW))).toEqual(UNKNOWN);
    }
    expect(await social.finish("one", query, binding, NOW)).toMatchObject({ subject: "bob" });
  });

  test("a provider's state lives for ten minutes", async () => {
    const social = signInAt(providerAt(real));
    const [inTime, late] = [await callbackOf(social, "bob"), await callbackOf(social, "bob")];
    expect(await social.finish("one", inTime.query, inTime.binding, NOW + ATTEMPT_MS - 1)).toBeDefined();
    expect(await rejection(social.finish("one", late.query, late.binding, NOW + ATTEMPT_MS))).toEqual(UNKNOWN);
  });

  test("another browser cannot finish a sign-in at a provider, and its attempt uses up the state", async () => {
    const social = signInAt(providerAt(real));
    const theirs = await callbackOf(social, "bob");
    for (const wrong of [null, "", "A".repeat(43), theirs.binding]) {
      const { query, binding } = await callbackOf(social, "alice");
      expect(await rejection(social.finish("one", query, wrong, NOW), [binding])).toEqual(UNKNOWN);
      expect(await rejection(social.finish("one", query, binding, NOW), [binding])).toEqual(UNKNOWN);
    }
  });

  test("a sign-in that began at one provider does not finish at another, nor at one that does not exist", async () => {
    const social = signInAt(providerAt(real, "one"), providerAt(other, "two"));
    for (const elsewhere of ["two", "three", "constructor"]) {
      const { query, binding } = await callbackOf(social, "alice", "one");
      expect(await rejection(social.finish(elsewhere, query, binding, NOW))).toEqual(UNKNOWN);
    }
    const { query, binding } = await callbackOf(social, "alice", "two");
    expect(await social.finish("two", query, binding, NOW)).toMatchObject({ issuer: other.issuer });
  });

  test("a callback that names another issuer, or none, is rejected (RFC 9207)", async () => {
    const social = signInAt(providerAt(real));
    for (const issuer of [other.issuer, null]) {
      const { query, binding } = await callbackOf(social, "alice");
      const parameters = new URLSearchParams(query);
      expect(parameters.get("iss")).toBe(real.issuer);
      if (issuer === null) parameters.delete("iss");
      else parameters.set("iss", issuer);
      expect(await rejection(social.finish("one", parameters.toString(), binding, NOW))).toEqual(FAILED);
    }
  });

  test("a user who declines at the provider gets that error", async () => {
    const social = signInAt(providerAt(real));
    const { query, binding } = await callbackOf(social, null);
    expect(query).toContain("error=access_denied");
    expect(await rejection(social.finish("one", query, binding, NOW))).toEqual([
      40100,
      "the sign-in was denied at one",
    ]);
  });

  test("a provider's code that is tampered with, missing, doubled or of another sign-in is rejected", async () => {
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
      expect(await rejection(social.finish("one", parameters.toString(), binding, NOW), secrets)).toEqual(FAILED);
    }
  });

  test("a wrong client secret is rejected by the provider, and not disclosed", async () => {
    const social = signInAt({ ...providerAt(real), clientSecret: "not the secret" });
    const { query, binding } = await callbackOf(social, "alice");
    expect(await rejection(social.finish("one", query, binding, NOW), ["not the secret"])).toEqual(FAILED);
  });

  test("a provider that is down is unreachable, and works once it is up", async () => {
    const before = await TestProvider.start(REDIRECT_URIS);
    await before.close();
    const social = signInAt({ ...providerAt(before), clientSecret: "unused so far" });
    expect(await rejection(social.start("one", null, NOW))).toEqual(UNREACHABLE);
    const after = await TestProvider.start(REDIRECT_URIS, before.port);
    try {
      const { location } = await social.start("one", null, NOW);
      expect(await after.signInAt(location, "alice")).toContain("code=");
    } finally {
      await after.close();
    }
  });

  test("a provider that goes down during a sign-in is unreachable", async () => {
    const mortal = await TestProvider.start(REDIRECT_URIS);
    const social = signInAt(providerAt(mortal));
    const { location, binding } = await social.start("one", null, NOW);
    const query = new URL(await mortal.signInAt(location, "alice")).search;
    await mortal.close();
    const secrets = [binding, mortal.clientSecret, new URLSearchParams(query).get("code")!];
    expect(await rejection(social.finish("one", query, binding, NOW), secrets)).toEqual(UNREACHABLE);
  });

  test("a provider is offered, and starts a sign-in, only in its jurisdictions", async () => {
    const social = signInAt(providerAt(real, "one", ["US", "DE"]), providerAt(other, "two"));
    expect(social.offered("US")).toEqual(["one", "two"]);
    expect(social.offered("FR")).toEqual(["two"]);
    expect(social.offered(null)).toEqual(["two"]);
    expect(await rejection(social.start("one", "FR", NOW))).toEqual([40300, "one is not offered in this jurisdiction"]);
    expect(await rejection(social.start("one", null, NOW))).toEqual([40000, "jurisdiction: required for one"]);
    expect(await rejection(social.start("three", "US", NOW))).toEqual([4040, "no such sign-in provider"]);
    expect(await rejection(social.start("__proto__", "US", NOW))).toEqual([4040, "no such sign-in provider"]);
    expect((await social.start("one", "DE", NOW)).location).toContain(real.issuer);
    expect((await social.start("two", null, NOW)).location).toContain(other.issuer);
  });
});

test("over http only a loopback issuer is asked", async () => {
  const remote = { issuer: "http://example.com", clientId: "exchange", clientSecret: "secret" };
  const social = signInAt({ ...remote, name: "one", jurisdictions: null, scope: "openid" });
  await expect(social.start("one", null, NOW)).rejects.toMatchObject({ cause: "OAUTH_HTTP_REQUEST_FORBIDDEN" });
});

describe("SOCIAL_PROVIDERS", () => {
  const right = { issuer: "https://accounts.example.com", client_id: "exchange", client_secret: "s3cret" };

  test("SOCIAL_PROVIDERS is read", () => {
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
  test.for(wrong)("SOCIAL_PROVIDERS is rejected: %j: %s", ([value, message]) => {
    const json = typeof value === "string" ? value : JSON.stringify(value);
    expect(() => readSocialProviders(json)).toThrow(new Error(message));
    expect(message).not.toContain("s3cret");
  });
});
