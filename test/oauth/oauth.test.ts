/**
 * OAuth 2.0 for third parties, against the running server. Two independent client libraries test the regular flows;
 * handwritten requests test faulty clients and thieves. The tests share two users and register their own clients, so
 * that no two tests share a grant.
 */
import { randomBytes } from "node:crypto";
import { decodeJwt, decodeProtectedHeader } from "jose";
import * as oauth from "oauth4webapi";
import { type AccessToken, AuthorizationCode } from "simple-oauth2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell, expectQuiet, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE, askOnce, Client, type Options, type OwnFillJson, ROUTES } from "../support/client.ts";
import { expectUnkept } from "../support/data-dir.ts";
import { Guests, PASSWORD, resetToken, type SignedIn, signIn } from "../support/identity.ts";
import { feeOn, notional, rebateOn } from "../support/reference.ts";
import { Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import {
  basic,
  CALLBACK,
  type Changes,
  changed,
  codeIn,
  decide,
  FORM,
  type OAuthClientJson,
  type OAuthTokensJson,
  type Params,
  postForm,
  ThirdParty,
} from "../support/third-party.ts";
import { alone, expectRefused, restartWith } from "../support/trading.ts";
import { ALL_SCOPES, PUBLIC_URL, tokenOf, World } from "../support/world.ts";

const READ = "portfolio:read";
const WRITE = "orders:write";
const UNKNOWN_ID = 999_999_999;

interface GrantJson {
  readonly id: number;
  readonly client_id: string;
  readonly client_name: string;
  readonly scopes: readonly string[];
  readonly created_at: number;
  readonly last_used_at: number | null;
}

const guests = new Guests();
/** Everything that must appear in no log and in no database. */
const { secrets } = guests;

/** Like `askOnce`, for the world's current server. */
const ask = <T = unknown>(
  of: World,
  token: string | null,
  method: string,
  path: string,
  options: Options = {},
): Promise<Answer<T>> => askOnce<T>(of.server, token, method, path, options);

const register = (of: World, user: Client, confidential = false, redirectUri = CALLBACK): Promise<ThirdParty> =>
  ThirdParty.register(of, user, { confidential, redirectUri, secrets });

/** Expects an error by its name from RFC 6749, section 5.2, in the standard's format. */
function expectOAuthError(answer: Answer, error: string, status: number | readonly number[] = 400): void {
  expect([answer.status, answer.msg]).toEqual([expect.toBeOneOf([status].flat()), error]);
  expect(answer.headers["cache-control"]).toBe("no-store");
}

async function expectDead(party: ThirdParty, tokens: OAuthTokensJson): Promise<void> {
  expect((await ask(party.world, tokens.access_token, "GET", "/me")).code).toBe(40100);
  expectOAuthError(await party.refresh(tokens.refresh_token), "invalid_grant");
}

async function expectAlive(party: ThirdParty, tokens: OAuthTokensJson): Promise<OAuthTokensJson> {
  expect((await ask(party.world, tokens.access_token, "GET", "/me")).code).toBe(0);
  const answer = await party.refresh(tokens.refresh_token);
  expect([answer.status, answer.msg]).toEqual([200, expect.anything()]);
  return answer.data;
}

const grantsOf = (user: Client): Promise<GrantJson[]> => user.all<GrantJson>("/me/oauth-grants");
const grantTo = async (user: Client, party: ThirdParty): Promise<GrantJson | undefined> =>
  (await grantsOf(user)).find(({ client_id }) => client_id === party.clientId);

let world: World;
let alice: SignedIn;
let bob: SignedIn;
/** Registers the clients. */
let owner: Client;
let registered = 0;
const parties = {
  async register(...more: [boolean?, string?]): Promise<ThirdParty> {
    // An owner may have fifty clients: remove those of finished tests.
    if (++registered % 30 === 0) {
      const older = (await owner.all<OAuthClientJson>("/me/oauth-clients")).slice(10);
      for (const { id } of older) await owner.data("DELETE", `/me/oauth-clients/${id}`);
    }
    return register(world, owner, ...more);
  },
};
const signInAs = (name: string): Promise<SignedIn> => guests.signIn(world.server, `${name}@example.com`);

beforeAll(async () => {
  const password = PASSWORD;
  const named = {
    alice: { password, scopes: [ALL_SCOPES] },
    bob: { password },
    owner: { password },
    crowd: { password },
    forgetful: { password },
    boss: { password, role: "operator" as const },
  };
  world = await World.start({ users: 1, named, markets: [2, 2], env: { LOG_LEVEL: "trace" } });
  [alice, bob] = [await signInAs("alice"), await signInAs("bob")];
  owner = (await signInAs("owner")).client;
});

afterAll(async () => {
  guests.close();
  await expectEndsWell(world);
  expectUnlogged(secrets, world.server);
  expectUnkept(secrets, world.server.dataDir);
});

describe("registration of clients", () => {
  const wish = { name: "Robot", redirect_uris: [CALLBACK], confidential: true };
  const create = (body: object): Promise<Answer<OAuthClientJson & { client_secret: string | null }>> =>
    owner.request("POST", "/me/oauth-clients", { body });

  test("made, listed, read and removed; only the answer that makes it has the secret", async () => {
    const secretOne = await create(wish);
    const uris = [CALLBACK, "https://b.example/"];
    const publicOne = await create({ name: "App", redirect_uris: uris, confidential: false });
    expect([secretOne.status, secretOne.headers["cache-control"]]).toEqual([201, "no-store"]);
    const { client_secret: secret, ...row } = secretOne.data;
    expect(secret).toMatch(/^pm_sec_[\w-]{43}$/);
    secrets.add(secret!);
    const { client_secret: none, ...publicRow } = publicOne.data;
    expect(none).toBeNull();
    expect(publicRow).toMatchObject({ name: "App", redirect_uris: uris, confidential: false });
    expect((await owner.all<OAuthClientJson>("/me/oauth-clients")).slice(0, 2)).toEqual([publicRow, row]);
    expect(await owner.get(`/me/oauth-clients/${row.id}`)).toEqual(row);
    for (const { id } of [row, publicRow]) {
      expect(await owner.data("DELETE", `/me/oauth-clients/${id}`)).toBeNull();
      await expectRefused(owner.request("GET", `/me/oauth-clients/${id}`), 404, 4040);
      await expectRefused(owner.request("DELETE", `/me/oauth-clients/${id}`), 404, 4040);
    }
  });

  test("another user's client is not there", async () => {
    const party = await parties.register();
    for (const method of ["GET", "DELETE"]) {
      await expectRefused(alice.client.request(method, `/me/oauth-clients/${party.id}`), 404, 4040);
      for (const id of [UNKNOWN_ID, "0", "x", party.clientId]) {
        await expectRefused(owner.request(method, `/me/oauth-clients/${id}`), 404, 4040);
      }
    }
    expect(await alice.client.all("/me/oauth-clients")).toEqual([]);
    await party.tokens(alice.client);
  });

  test("a name that could pass for something else to whoever reads it is refused", async () => {
    const wrong = [
      ...["", " ", " Robot", "Robot ", "\u200b", "Robot\u202etobor", "Ro\u00adbot", "a\u2028b", "\u2066a", "\ufeffa"],
      ...[`a${"\u0301".repeat(4)}`, "x".repeat(101), "\ue000", "a\nb"],
    ];
    const taken: string[] = [];
    for (const name of wrong) if ((await create({ ...wish, name })).code !== 40000) taken.push(JSON.stringify(name));
    expect(taken).toEqual([]);
    for (const name of ["Rob-o-t 2 (beta)", "Größe & Söhne", "日本の取引", "رباط", "🤖"]) {
      const { data } = await create({ ...wish, name });
      expect(data.name).toBe(name);
      secrets.add(data.client_secret!);
      await owner.data("DELETE", `/me/oauth-clients/${data.id}`);
    }
  });

  test("redirect URIs that would give codes away are refused", async () => {
    const wrong = [
      "javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "blob:https://client.example/1",
      "about:blank", "ftp://client.example/", "app:/callback", "", "/callback", "//client.example/callback", "https://",
      "client.example", "http://client.example/callback", "http://localhost.client.example/", "http://[::2]/",
      "http://127.0.0.1.client.example/", "http://localhost@client.example/", "https://client.example/callback#",
      "https://client.example/callback#part", "https://*.client.example/", "https://client.example/*",
      "https://user@client.example/", "https://user:password@client.example/", "https://:password@client.example/",
      " https://client.example/", "https://client.example/ ", "https://client.example/a b", "https://client.example/\t",
      "https://client.example/a\nb", "https://client.example/\u0000", "\u0001https://client.example/",
      "https://client.example/\u007f", "https:\\\\client.example/", "https://client.example\\@other.example/",
    ]; // biome-ignore format: addresses
    const taken: string[] = [];
    for (const uri of wrong) {
      const { status, code } = await create({ ...wish, redirect_uris: [CALLBACK, uri] });
      if (status !== 400 || code !== 40000) taken.push(`${status} ${code} ${JSON.stringify(uri)}`);
    }
    expect(taken).toEqual([]);
  });

  test("redirect URIs of sites, of apps and of the user's own machine are taken as they are", async () => {
    const right = [
      "https://client.example",
      "https://client.example:8443/a/b?c=d&e",
      "http://localhost:3000/callback",
      "http://127.0.0.1/callback",
      "http://[::1]:9000/",
      "com.example.app:/oauth2redirect",
      "com.example.app://callback",
    ];
    const { status, data } = await create({ ...wish, redirect_uris: right });
    expect([status, data.redirect_uris]).toEqual([201, right]);
    secrets.add(data.client_secret!);
  });

  test("one to ten redirect URIs, and no more and no other fields than there are", async () => {
    const uris = Array.from({ length: 11 }, (_, n) => `https://client.example/${n}`);
    expect((await create({ ...wish, redirect_uris: uris.slice(1) })).status).toBe(201);
    const { confidential: _, ...half } = wish;
    for (const body of [
      { ...wish, redirect_uris: uris },
      { ...wish, redirect_uris: [] },
      { ...wish, redirect_uris: CALLBACK },
      { ...wish, redirect_uris: [1] },
      { ...wish, name: "" },
      { ...wish, name: "a\nb" },
      { ...wish, name: "x".repeat(101) },
      { ...wish, confidential: "yes" },
      { ...wish, client_id: "mine" },
      half,
    ]) {
      const { status, code } = await create(body);
      expect([status, code, body]).toEqual([400, 40000, body]);
    }
  });

  test("a user has fifty clients at most, also when all are asked for at one time", async () => {
    const { accessToken } = await signInAs("crowd");
    const wide = new Client(world.server, accessToken, 20);
    const answers = await Promise.all(
      Array.from({ length: 60 }, () => wide.request<OAuthClientJson>("POST", "/me/oauth-clients", { body: wish })),
    );
    expect(answers.map(({ code }) => code).filter((code) => code !== 0 && code !== 40900)).toEqual([]);
    expect(await wide.all("/me/oauth-clients")).toHaveLength(50);
    await expectRefused(wide.request("POST", "/me/oauth-clients", { body: wish }), 409, 40900);
    const [first] = answers.filter(({ code }) => code === 0);
    await wide.data("DELETE", `/me/oauth-clients/${first!.data.id}`);
    expect((await wide.request("POST", "/me/oauth-clients", { body: wish })).status).toBe(201);
    wide.close();
  });
});

describe("by others' libraries", () => {
  const insecure = { [oauth.allowInsecureRequests]: true };

  async function discover(): Promise<oauth.AuthorizationServer> {
    const issuer = new URL(world.server.root);
    const response = await oauth.discoveryRequest(issuer, { ...insecure, algorithm: "oauth2" });
    return oauth.processDiscoveryResponse(issuer, response);
  }

  /** Plays the browser: calls the authorization endpoint, follows to the consent page, and makes the page's call. */
  async function throughConsent(user: Client, authorizationUrl: URL): Promise<URL> {
    const response = await fetch(authorizationUrl, { redirect: "manual" });
    expect([response.status, response.headers.get("cache-control")]).toEqual([302, "no-store"]);
    const page = new URL(response.headers.get("location")!);
    expect(page.origin + page.pathname).toBe(`${world.server.root}/consent`);
    const { data } = await decide(user, Object.fromEntries(page.searchParams));
    return new URL(data.redirect_to);
  }

  test("the metadata name what there is", async () => {
    const server = await discover();
    const base = world.server.root + API_BASE;
    expect(server).toMatchObject({
      issuer: world.server.root,
      authorization_endpoint: `${base}/oauth/authorize`,
      token_endpoint: `${base}/oauth/token`,
      revocation_endpoint: `${base}/oauth/revoke`,
      introspection_endpoint: `${base}/oauth/introspect`,
      jwks_uri: `${base}/.well-known/jwks.json`,
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
      scopes_supported: expect.arrayContaining(ALL_SCOPES),
      authorization_response_iss_parameter_supported: true,
    });
  });

  for (const method of ["none", "client_secret_basic", "client_secret_post"] as const) {
    test(`oauth4webapi completes the whole flow with ${method}`, async () => {
      const party = await parties.register(method !== "none");
      const server = await discover();
      expect(server.token_endpoint_auth_methods_supported).toContain(method);
      const client: oauth.Client = { client_id: party.clientId };
      const auth =
        method === "none"
          ? oauth.None()
          : method === "client_secret_basic"
            ? oauth.ClientSecretBasic(party.secret!)
            : oauth.ClientSecretPost(party.secret!);

      const verifier = oauth.generateRandomCodeVerifier();
      const state = oauth.generateRandomState();
      const url = new URL(server.authorization_endpoint!);
      url.search = new URLSearchParams({
        client_id: party.clientId,
        redirect_uri: CALLBACK,
        response_type: "code",
        scope: `${READ} ${WRITE}`,
        state,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      }).toString();
      const back = await throughConsent(alice.client, url);
      // Checks the state and, since the metadata announce it, the issuer of RFC 9207.
      const params = oauth.validateAuthResponse(server, client, back, state);
      const answer = await oauth.authorizationCodeGrantRequest(
        server,
        client,
        auth,
        params,
        CALLBACK,
        verifier,
        insecure,
      );
      const tokens = await oauth.processAuthorizationCodeResponse(server, client, answer);
      expect(tokens).toMatchObject({ token_type: "bearer", scope: `${WRITE} ${READ}` });
      expect(tokens.expires_in).toBeGreaterThan(880);
      expect(tokens.expires_in).toBeLessThanOrEqual(900);

      const renewal = await oauth.refreshTokenGrantRequest(server, client, auth, tokens.refresh_token!, insecure);
      const renewed = await oauth.processRefreshTokenResponse(server, client, renewal);
      expect(renewed.refresh_token).not.toBe(tokens.refresh_token);
      for (const { access_token } of [tokens, renewed]) {
        const headers = { Authorization: `Bearer ${access_token}` };
        const resource = new Request(`${world.server.root}${API_BASE}/wallet/balance`, { headers });
        const audience = world.server.root + API_BASE;
        const claims = await oauth.validateJwtAccessToken(server, resource, audience, insecure);
        const sub = String(alice.user.id);
        expect(claims).toMatchObject({ client_id: party.clientId, sub, scope: `${WRITE} ${READ}` });
        expect((await fetch(resource)).status).toBe(200);
      }

      if (method !== "none") {
        const response = await oauth.introspectionRequest(server, client, auth, renewed.access_token, insecure);
        const found = await oauth.processIntrospectionResponse(server, client, response);
        expect(found).toMatchObject({ active: true, client_id: party.clientId, sub: String(alice.user.id) });
      }
      const gone = await oauth.revocationRequest(server, client, auth, renewed.refresh_token!, insecure);
      await oauth.processRevocationResponse(gone);
      await expectDead(party, renewed as unknown as OAuthTokensJson);
    });
  }

  test("oauth4webapi sees the user's refusal, and an answer that another issuer gave", async () => {
    const party = await parties.register();
    const server = await discover();
    const client: oauth.Client = { client_id: party.clientId };
    const { params } = party.request();
    const denied = new URL((await decide(alice.client, params, "deny")).data.redirect_to);
    const state = params["state"]!;
    expect(() => oauth.validateAuthResponse(server, client, denied, state)).toThrow(oauth.AuthorizationResponseError);
    const approved = new URL((await decide(alice.client, params)).data.redirect_to);
    expect(() => oauth.validateAuthResponse(server, client, approved, "other")).toThrow("state");
    approved.searchParams.set("iss", "https://other.example");
    expect(() => oauth.validateAuthResponse(server, client, approved, state)).toThrow("iss");
  });

  for (const authorizationMethod of ["header", "body"] as const) {
    test(`simple-oauth2 completes the flow with its secret in the ${authorizationMethod}`, async () => {
      const party = await parties.register(true);
      const flow = new AuthorizationCode({
        client: { id: party.clientId, secret: party.secret! },
        auth: {
          tokenHost: world.server.root,
          tokenPath: `${API_BASE}/oauth/token`,
          revokePath: `${API_BASE}/oauth/revoke`,
          authorizePath: `${API_BASE}/oauth/authorize`,
        },
        options: { authorizationMethod },
      });
      const { params, verifier } = party.request();
      const { client_id: _, response_type: __, ...rest } = params;
      const back = await throughConsent(bob.client, new URL(flow.authorizeURL(rest)));
      const redeem = { code: back.searchParams.get("code")!, redirect_uri: CALLBACK, code_verifier: verifier };
      const first: AccessToken = await flow.getToken(redeem);
      expect(first.expired()).toBe(false);
      const second = await first.refresh();
      const token = second.token as unknown as OAuthTokensJson;
      expect((await ask(world, token.access_token, "GET", "/wallet/balance")).code).toBe(0);
      await second.revokeAll();
      await expectDead(party, token);
    });
  }
});

describe("authorization endpoint", () => {
  let party: ThirdParty;
  beforeAll(async () => {
    party = await parties.register();
  });

  const visit = (params: Params | string): Promise<Answer> =>
    ask(world, null, "GET", `/oauth/authorize?${typeof params === "string" ? params : new URLSearchParams(params)}`);

  /** Returns the redirect targets of such a request: from the endpoint, and from the consent page after approval. */
  async function sentTo(params: Params): Promise<[string, string]> {
    const [seen, approved] = [await visit(params), await decide(alice.client, params)];
    expect([seen.status, seen.headers["cache-control"], approved.status]).toEqual([302, "no-store", 200]);
    return [seen.headers.location!, approved.data.redirect_to];
  }

  test("sends the browser to the consent page with the request, and gives nothing away before the user decides", async () => {
    const { params } = party.request(`${READ} ${WRITE}`);
    const { status, headers } = await visit(params);
    expect([status, headers["cache-control"]]).toEqual([302, "no-store"]);
    const page = new URL(headers.location!);
    expect(page.origin + page.pathname).toBe(`${world.server.root}/consent`);
    expect(Object.fromEntries(page.searchParams)).toEqual(params);
    expect(await grantTo(alice.client, party)).toBeUndefined();
  });

  test("the answer has the code, the state as it came and the issuer, and nothing else", async () => {
    for (const state of ["x", "a b+c%20d&e=f#g/?;:@", "~".repeat(1_000)]) {
      const { data } = await decide(alice.client, { ...party.request().params, state });
      const back = new URL(data.redirect_to);
      expect(back.origin + back.pathname).toBe(CALLBACK);
      const code = expect.stringMatching(/^[\w-]{43}$/);
      expect(Object.fromEntries(back.searchParams)).toEqual({ code, state, iss: world.server.root });
    }
    const { data } = await decide(alice.client, changed(party.request().params, { state: null }));
    expect([...new URL(data.redirect_to).searchParams.keys()].sort()).toEqual(["code", "iss"]);
  });

  test("parameters that it doesn't know change nothing", async () => {
    const { params } = party.request();
    for (const more of [{ nonce: "n" }, { allowed: "false" }, { decision: "approve" }, { display: "page" }]) {
      const { status, headers } = await visit({ ...params, ...more });
      const page = new URL(headers.location!);
      expect([more, status, page.pathname, page.searchParams.get("code")]).toEqual([more, 302, "/consent", null]);
    }
  });

  test("nobody is sent anywhere for a client or an address that is not registered", async () => {
    const own = await parties.register();
    const { params } = own.request();
    const addresses = [
      "", ` ${CALLBACK}`, `${CALLBACK}/`, `${CALLBACK}?`, `${CALLBACK}?a=b`, `${CALLBACK}#`, `${CALLBACK}/../other`,
      CALLBACK.slice(0, -1), CALLBACK.replace("callback", "Callback"), CALLBACK.replace("callback", "%63allback"),
      CALLBACK.replace("client", "CLIENT"), CALLBACK.replace("client", "user@client"), CALLBACK.replace("https", "http"),
      CALLBACK.replace("https", "HTTPS"), CALLBACK.replace(".example", ".example:443"),
      CALLBACK.replace(".example", ".example."), "https://other.example/callback",
    ]; // biome-ignore format: addresses
    const { client_id: id } = params as { client_id: string };
    const wrong: Changes[] = [null, "", "unknown", id.toUpperCase(), `${id} `].map((client_id) => ({ client_id }));
    wrong.push(...[null, ...addresses].map((redirect_uri) => ({ redirect_uri })));
    for (const changes of wrong) {
      const asked = changed(params, changes);
      const [approved, denied] = [await decide(alice.client, asked), await decide(alice.client, asked, "deny")];
      for (const answer of [await visit(asked), approved, denied]) {
        expect([changes, answer.status, answer.code]).toEqual([changes, 400, 40000]);
        expect(answer.headers.location).toBeUndefined();
      }
    }
    expect(await grantTo(alice.client, own)).toBeUndefined();
  });

  const faults: [what: string, changes: Changes, error: string][] = [
    ["no PKCE", { code_challenge: null, code_challenge_method: null }, "invalid_request"],
    ["no challenge", { code_challenge: null }, "invalid_request"],
    ["an empty challenge", { code_challenge: "" }, "invalid_request"],
    ["a short challenge", { code_challenge: "abc" }, "invalid_request"],
    ["a challenge that is no hash", { code_challenge: "+".repeat(43) }, "invalid_request"],
    ["the plain method", { code_challenge_method: "plain" }, "invalid_request"],
    ["no method, which means plain", { code_challenge_method: null }, "invalid_request"],
    ["an unknown method", { code_challenge_method: "S512" }, "invalid_request"],
    ["a method in lower case", { code_challenge_method: "s256" }, "invalid_request"],
    ["no response type", { response_type: null }, "invalid_request"],
    ["the implicit flow", { response_type: "token" }, "unsupported_response_type"],
    ["a hybrid flow", { response_type: "code token" }, "unsupported_response_type"],
    ["a name that every object has", { response_type: "constructor" }, "unsupported_response_type"],
    ["no scope", { scope: null }, "invalid_scope"],
    ["an empty scope", { scope: "" }, "invalid_scope"],
    ["a blank scope", { scope: "  " }, "invalid_scope"],
    ["an unknown scope", { scope: "admin" }, "invalid_scope"],
    ["an unknown scope among others", { scope: `${READ} admin` }, "invalid_scope"],
    ["a scope in capitals", { scope: READ.toUpperCase() }, "invalid_scope"],
    ["scopes with commas", { scope: `${READ},${WRITE}` }, "invalid_scope"],
  ];
  for (const [what, changes, error] of faults) {
    test(`${what}: the client is told ${error}`, async () => {
      const params = changed(party.request().params, changes);
      for (const location of await sentTo(params)) {
        const back = new URL(location);
        expect([back.origin + back.pathname, back.searchParams.get("error")]).toEqual([CALLBACK, error]);
        expect(back.searchParams.get("state")).toBe(params["state"]);
        expect(back.searchParams.get("iss")).toBe(world.server.root);
        expect(back.searchParams.get("code")).toBeNull();
      }
    });
  }

  test("the user's refusal is told, and gives nothing", async () => {
    const { params } = party.request();
    const { data } = await decide(alice.client, params, "deny");
    const back = new URL(data.redirect_to);
    const { error_description: _, ...rest } = Object.fromEntries(back.searchParams);
    expect(rest).toEqual({ error: "access_denied", state: params["state"], iss: world.server.root });
    await expectRefused(decide(alice.client, params, "perhaps"), 400, 40000);
  });

  test("a scope that is named twice counts once", async () => {
    const code = await party.consent(bob.client, `${READ}  ${READ} ${WRITE}`);
    expect((await party.exchange(code)).data.scope.split(" ").sort()).toEqual([WRITE, READ]);
  });

  test("a parameter that comes twice is refused", async () => {
    const { params } = party.request();
    for (const name of Object.keys(params)) {
      const query = `${new URLSearchParams(params)}&${name}=${encodeURIComponent(params[name]!)}`;
      const { status, code, headers } = await visit(query);
      expect([name, status, code, headers.location]).toEqual([name, 400, 40000, undefined]);
    }
  });

  test("the address keeps its own query, also where the client is told an error", async () => {
    const own = await parties.register(false, "https://client.example/cb?tenant=1&x=%2F");
    const { params } = own.request();
    const approved = new URL((await decide(alice.client, params)).data.redirect_to);
    const denied = new URL((await decide(alice.client, params, "deny")).data.redirect_to);
    const faulty = new URL((await visit({ ...params, scope: "admin" })).headers.location!);
    for (const back of [approved, denied, faulty]) {
      expect(back.origin + back.pathname).toBe("https://client.example/cb");
      const { tenant, x, state, iss } = Object.fromEntries(back.searchParams);
      expect({ tenant, x, state, iss }).toEqual({
        tenant: "1",
        x: "/",
        state: params["state"],
        iss: world.server.root,
      });
    }
    expect(approved.searchParams.get("code")).not.toBeNull();
    expect(denied.searchParams.get("error")).toBe("access_denied");
    expect(faulty.searchParams.get("error")).toBe("invalid_scope");
  });

  test("apps and programs on the user's own machine get their code too", async () => {
    const loopback = ["http://127.0.0.1:51004/cb", "http://[::1]:51004/cb"];
    for (const uri of ["com.example.app:/oauth2redirect", "com.example.app://callback", ...loopback]) {
      const app = await parties.register(false, uri);
      const { params, verifier } = app.request();
      const { redirect_to } = (await decide(alice.client, params)).data;
      expect([redirect_to, redirect_to.startsWith(`${uri}?`)]).toEqual([redirect_to, true]);
      const code = new URLSearchParams(redirect_to.slice(uri.length)).get("code")!;
      expect((await app.exchange({ code, verifier })).status).toBe(200);
    }
    const app = await parties.register(false, "http://127.0.0.1:51004/cb");
    const { params } = app.request();
    await expectRefused(visit({ ...params, redirect_uri: "http://127.0.0.1:51005/cb" }), 400, 40000);
  });

  test("whoever is to decide sees which client asks, and where its answers may go", async () => {
    const { clientId } = party;
    const path = `/oauth/clients/${clientId}`;
    const { data } = await ask(world, bob.accessToken, "GET", path);
    const client = { client_id: clientId, name: expect.any(String), redirect_uris: [CALLBACK] };
    expect(data).toEqual({ ...client, created_at: expect.any(Number) });
    await expectRefused(ask(world, tokenOf("alice"), "GET", path), 403, 40300);
    await expectRefused(ask(world, null, "GET", path), 401, 40100);
    for (const wrong of ["nobody", "1", "__proto__", "%00"]) {
      await expectRefused(ask(world, bob.accessToken, "GET", `/oauth/clients/${wrong}`), 404, 4040);
    }
  });

  test("only the user's own sign-in approves, and an operator's is one", async () => {
    const { params } = party.request();
    const body = { ...params, decision: "approve" };
    const { access_token } = await party.tokens(alice.client, ALL_SCOPES.join(" "));
    for (const token of [access_token, tokenOf("alice")]) {
      await expectRefused(ask(world, token, "POST", "/oauth/authorize", { body }), 403, 40300);
    }
    await expectRefused(ask(world, null, "POST", "/oauth/authorize", { body }), 401, 40100);
    await expectRefused(decide(alice.client, { ...params, allowed: "true" }), 400, 40000);
    expect((await party.tokens((await signInAs("boss")).client)).scope).toBe(READ);
  });
});

describe("token endpoint: codes", () => {
  test("the tokens are what the standards say, and kept nowhere", async () => {
    const party = await parties.register(true);
    const { status, data, headers } = await party.exchange(await party.consent(alice.client, `${READ} ${WRITE}`));
    expect([status, headers["cache-control"], headers["content-type"]]).toEqual([200, "no-store", "application/json"]);
    expect(Object.keys(data).sort()).toEqual(["access_token", "expires_in", "refresh_token", "scope", "token_type"]);
    expect(data).toMatchObject({ token_type: "Bearer", scope: `${WRITE} ${READ}` });
    expect(data.refresh_token).toMatch(/^pm_ref_[\w-]{43,}$/);
    expect(decodeProtectedHeader(data.access_token)).toEqual({ alg: "RS256", typ: "at+jwt", kid: expect.any(String) });
    const { iat, exp, ...claims } = decodeJwt(data.access_token);
    expect(exp! - iat!).toBe(900);
    expect(claims).toMatchObject({
      iss: world.server.root,
      aud: world.server.root + API_BASE,
      sub: String(alice.user.id),
      scope: `${WRITE} ${READ}`,
      client_id: party.clientId,
      jti: expect.any(String),
    });
    const session = decodeProtectedHeader(alice.accessToken);
    expect(session.typ).not.toBe("at+jwt");
    expect(decodeJwt(alice.accessToken)["client_id"]).toBeUndefined();
  });

  test("a wrong verifier spends the code", async () => {
    const party = await parties.register();
    const wrong: [Changes, string[]][] = [
      [{ code_verifier: randomBytes(32).toString("base64url") }, ["invalid_grant"]],
      [{ code_verifier: null }, ["invalid_grant", "invalid_request"]],
      [{ code_verifier: "" }, ["invalid_grant", "invalid_request"]],
      [{ code_verifier: "short" }, ["invalid_grant", "invalid_request"]],
    ];
    for (const [changes, errors] of wrong) {
      const code = await party.consent(alice.client);
      const { status, msg } = await party.exchange(code, changes);
      expect([changes, status, errors.includes(msg)]).toEqual([changes, 400, true]);
      expectOAuthError(await party.exchange(code), "invalid_grant");
    }
    // The challenge itself is not a verifier: that would be the plain method.
    const { params } = party.request();
    const { redirect_to } = (await decide(alice.client, params)).data;
    const code = { code: codeIn(redirect_to), verifier: params["code_challenge"]! };
    expectOAuthError(await party.exchange(code), "invalid_grant");
  });

  test("the address must be the one that the code was asked for with, to the letter", async () => {
    const party = await parties.register();
    const wrong = [
      `${CALLBACK}/`,
      `${CALLBACK}?`,
      `${CALLBACK}?a=b`,
      CALLBACK.slice(0, -1),
      CALLBACK.replace("client", "Client"),
      CALLBACK.replace(".example", ".example:443"),
      "https://other.example/callback",
    ];
    const found: string[] = [];
    for (const redirect_uri of wrong) {
      const { status, msg } = await party.exchange(await party.consent(alice.client), { redirect_uri });
      if (status !== 400 || msg !== "invalid_grant") found.push(`${status} ${msg} ${redirect_uri}`);
    }
    // RFC 6749, section 5.2.
    expect(found).toEqual([]);
    const { status } = await party.exchange(await party.consent(alice.client), { redirect_uri: null });
    expect(status).toBe(400);
  });

  test("a client's code is of no use to another client", async () => {
    const [party, thief] = [await parties.register(), await parties.register()];
    const secretThief = await parties.register(true);
    const code = await party.consent(alice.client);
    for (const other of [thief, secretThief]) expectOAuthError(await other.exchange(code), "invalid_grant");
    // A thief of the code cannot authenticate as the client without its verifier.
    expectOAuthError(await party.exchange({ ...code, verifier: "a".repeat(43) }), "invalid_grant");
    for (const text of ["", "x", "é", code.code.slice(1), `${code.code}=`, "a".repeat(2_048)]) {
      const { status, msg } = await party.exchange({ ...code, code: text });
      expect([text, status, ["invalid_grant", "invalid_request"].includes(msg)]).toEqual([text, 400, true]);
    }
  });

  test("a code that comes again ends what it gave the first time, with its sockets", async () => {
    const party = await parties.register();
    const bystander = await party.tokens(alice.client);
    const code = await party.consent(alice.client);
    const first = (await party.exchange(code)).data;
    const socket = await Socket.open(world.server, first.access_token);
    const renewed = (await party.refresh(first.refresh_token)).data;
    expectOAuthError(await party.exchange(code), "invalid_grant");
    expect(await socket.closed).toBe(4401);
    expect((await ask(world, first.access_token, "GET", "/me")).code).toBe(40100);
    await expectDead(party, renewed);
    expectOAuthError(await party.exchange(code), "invalid_grant");
    await expectAlive(party, bystander);
  });

  test("of two uses of a code at one time one is refused, and nothing of it stays", async () => {
    const party = await parties.register();
    for (let round = 0; round < 10; round++) {
      const code = await party.consent(alice.client);
      const answers = await Promise.all([party.exchange(code), party.exchange(code), party.exchange(code)]);
      const given = answers.filter(({ status }) => status === 200);
      expect(given.length).toBeLessThanOrEqual(1);
      for (const answer of answers) if (answer.status !== 200) expectOAuthError(answer, "invalid_grant");
      for (const { data } of given) await expectDead(party, data);
    }
  });

  test("a code ends with its grant, and with its client", async () => {
    const party = await parties.register();
    const first = await party.consent(bob.client);
    await bob.client.data("DELETE", `/me/oauth-grants/${(await grantTo(bob.client, party))!.id}`);
    expectOAuthError(await party.exchange(first), "invalid_grant");
    // A new consent does not restore the old code.
    const second = await party.consent(bob.client);
    expectOAuthError(await party.exchange(first), "invalid_grant");
    await owner.data("DELETE", `/me/oauth-clients/${party.id}`);
    expectOAuthError(await party.exchange(second), "invalid_client", [400, 401]);
  });

  test("a code that was approved before the password was reset is of no use after it", async () => {
    const { client } = await signInAs("forgetful");
    const other = await parties.register();
    const tokens = await other.tokens(client);
    const code = await other.consent(client);
    await client.data("POST", "/auth/forgot-password", { email: "forgetful@example.com" });
    const token = await resetToken(world.server, "forgetful@example.com");
    await client.data("POST", "/auth/reset-password", { token, password: "another quiet harbour" });
    await expectDead(other, tokens);
    // An attacker who knew the password and approved a client just before loses access, too.
    expectOAuthError(await other.exchange(code), "invalid_grant");
  });
});

describe("token endpoint: clients and requests", () => {
  let open: ThirdParty;
  let confidential: ThirdParty;
  beforeAll(async () => {
    [open, confidential] = [await parties.register(), await parties.register(true)];
  });

  /** Redeems a valid code with other credentials. */
  const attempt = async (party: ThirdParty, changes: Changes, headers: Params = {}): Promise<Answer> =>
    party.exchange(await party.consent(alice.client), changes, headers);

  test("a secret is good in the header or in the form", async () => {
    const { clientId, secret } = confidential;
    expect((await attempt(confidential, {})).status).toBe(200);
    const nowhere = { client_id: null, client_secret: null };
    expect((await attempt(confidential, nowhere, basic(clientId, secret!))).status).toBe(200);
    // The form may repeat the client_id.
    expect((await attempt(confidential, { client_secret: null }, basic(clientId, secret!))).status).toBe(200);
    // RFC 6749, section 2.3.1: the client form-encodes both first.
    const encoded = (text: string): string => text.replaceAll("_", "%5F").replaceAll("-", "%2D");
    expect((await attempt(confidential, nowhere, basic(clientId, encoded(secret!)))).status).toBe(200);
  });

  test("who doesn't show the secret that the client has gets nothing", async () => {
    const { clientId, secret } = confidential;
    const nowhere = { client_id: null, client_secret: null };
    const form: Changes[] = [
      { client_secret: null },
      { client_secret: "" },
      { client_secret: "pm_sec_wrong" },
      { client_secret: secret!.slice(0, -1) },
      { client_secret: secret!.toLowerCase() },
      { client_id: "unknown" },
      nowhere,
    ];
    for (const changes of form) expectOAuthError(await attempt(confidential, changes), "invalid_client", [400, 401]);
    for (const header of [basic(clientId, "wrong"), basic(clientId, ""), basic("unknown", secret!)]) {
      const answer = await attempt(confidential, nowhere, header);
      expectOAuthError(answer, "invalid_client", 401);
      expect(answer.headers["www-authenticate"]).toMatch(/^Basic realm=/);
    }
    const bearer = await attempt(confidential, { client_secret: null }, { Authorization: `Bearer ${secret}` });
    expectOAuthError(bearer, "invalid_client", [400, 401]);
  });

  test("a client without a secret shows none", async () => {
    expect((await attempt(open, {})).status).toBe(200);
    expectOAuthError(await attempt(open, { client_secret: "guess" }), "invalid_client", [400, 401]);
    const header = basic(open.clientId, "guess");
    expectOAuthError(await attempt(open, { client_id: null }, header), "invalid_client", 401);
  });

  test("credentials in two places are refused, right or wrong", async () => {
    const { clientId, secret } = confidential;
    // RFC 6749, section 5.2: the client uses more than one authentication method.
    for (const client_secret of [secret!, "wrong"]) {
      expectOAuthError(await attempt(confidential, { client_secret }, basic(clientId, secret!)), "invalid_request");
    }
    const other = await attempt(
      confidential,
      { client_id: open.clientId, client_secret: null },
      basic(clientId, secret!),
    );
    expect([other.status, ["invalid_request", "invalid_client"].includes(other.msg)]).toEqual([other.status, true]);
    expect(other.status).toBeGreaterThanOrEqual(400);
  });

  test("only the two grants that there are", async () => {
    const fields = { ...confidential.credentials, username: "alice@example.com", password: PASSWORD, scope: READ };
    const others = ["implicit", "urn:ietf:params:oauth:grant-type:jwt-bearer", "constructor", "__proto__"];
    for (const grant_type of ["password", "client_credentials", ...others]) {
      // For any client: confidential, public, or unknown.
      const { username, password, scope } = fields;
      for (const client of [confidential.credentials, { client_id: open.clientId }, { client_id: "nobody" }]) {
        const form = { username, password, scope, ...client, grant_type };
        const { status, msg } = await postForm(world, "/oauth/token", form);
        expect([grant_type, status, msg]).toEqual([grant_type, 400, "unsupported_grant_type"]);
      }
    }
    expectOAuthError(await postForm(world, "/oauth/token", fields), "invalid_request");
    expectOAuthError(await postForm(world, "/oauth/token", { ...fields, grant_type: "" }), "invalid_request");
  });

  test("a request that isn't a form, or says something twice, is refused", async () => {
    const { code, verifier } = await open.consent(alice.client);
    const given = { code, redirect_uri: CALLBACK, code_verifier: verifier };
    const fields: Params = { client_id: open.clientId, grant_type: "authorization_code", ...given };
    const text = new URLSearchParams(fields).toString();
    for (const name of Object.keys(fields)) {
      const twice = `${text}&${new URLSearchParams({ [name]: fields[name]! })}`;
      const { status, msg } = await postForm(world, "/oauth/token", twice);
      expect([name, status, msg]).toEqual([name, 400, "invalid_request"]);
    }
    for (const path of ["/oauth/token", "/oauth/revoke", "/oauth/introspect"]) {
      const body = { ...fields, token: "x" };
      for (const type of ["application/json", "text/plain", "multipart/form-data; boundary=x", ""]) {
        const answer = await ask(world, null, "POST", path, { body, headers: { "Content-Type": type } });
        expect([path, type, answer.status, answer.msg]).toEqual([path, type, 400, "invalid_request"]);
      }
      const long = await postForm(world, path, { ...body, code: "x".repeat(70_000) });
      expect([long.status, long.msg]).toEqual([413, "invalid_request"]);
      await expectRefused(ask(world, null, "GET", path), 405, 40500);
    }
    expectOAuthError(await postForm(world, "/oauth/token", ""), "invalid_client", [400, 401]);
    // None of these requests spent the code.
    const good = await postForm(world, "/oauth/token", text, {
      "Content-Type": `${FORM["Content-Type"]}; charset=utf-8`,
    });
    expect(good.status).toBe(200);
  });
});

describe("token endpoint: refresh", () => {
  test("a refresh token is good once; when it comes again, all that came of the code ends", async () => {
    const party = await parties.register(true);
    const bystander = await party.tokens(alice.client);
    const chain = [await party.tokens(alice.client)];
    for (let n = 0; n < 3; n++) {
      const { status, data, headers } = await party.refresh(chain.at(-1)!.refresh_token);
      expect([status, headers["cache-control"], data.scope]).toEqual([200, "no-store", READ]);
      chain.push(data);
    }
    expect(new Set(chain.map(({ refresh_token }) => refresh_token)).size).toBe(4);
    const last = chain.at(-1)!;
    const socket = await Socket.open(world.server, last.access_token);
    expectOAuthError(await party.refresh(chain[1]!.refresh_token), "invalid_grant");
    expect(await socket.closed).toBe(4401);
    for (const tokens of chain) await expectDead(party, tokens);
    await expectAlive(party, bystander);
  });

  test("of two uses at one time at most one gets tokens, and the reuse ends them", async () => {
    const party = await parties.register();
    for (let round = 0; round < 5; round++) {
      const { refresh_token } = await party.tokens(alice.client);
      const answers = await Promise.all([party.refresh(refresh_token), party.refresh(refresh_token)]);
      const given = answers.filter(({ status }) => status === 200);
      expect(given.length).toBeLessThanOrEqual(1);
      for (const { data } of given) await expectDead(party, data);
    }
  });

  test("needs the client that it was given to, with its secret", async () => {
    const [party, thief] = [await parties.register(true), await parties.register()];
    const tokens = await party.tokens(alice.client);
    expectOAuthError(await thief.refresh(tokens.refresh_token), "invalid_grant");
    for (const client_secret of [null, "wrong"]) {
      expectOAuthError(await party.refresh(tokens.refresh_token, { client_secret }), "invalid_client", [400, 401]);
    }
    for (const text of ["x", tokens.access_token, `${tokens.refresh_token}x`, "pm_ref_"]) {
      expectOAuthError(await party.refresh(text), "invalid_grant");
    }
    expectOAuthError(await party.refresh("", { refresh_token: null }), "invalid_request");
    await expectAlive(party, tokens);
  });

  test("scopes never grow", async () => {
    const party = await parties.register();
    // The user granted more to the same client before.
    await party.tokens(alice.client, ALL_SCOPES.join(" "));
    const tokens = await party.tokens(alice.client, `${READ} markets:read`);
    for (const scope of [WRITE, `${READ} ${WRITE}`, ALL_SCOPES.join(" "), "admin"]) {
      expectOAuthError(await party.refresh(tokens.refresh_token, { scope }), "invalid_scope");
    }
    const widened = await party.exchange(await party.consent(alice.client), { scope: ALL_SCOPES.join(" ") });
    expect([widened.data.scope, decodeJwt(widened.data.access_token)["scope"]]).toEqual([READ, READ]);
    const same = await party.refresh(tokens.refresh_token);
    expect(same.data.scope.split(" ").sort()).toEqual(["markets:read", READ]);
    expect(decodeJwt(same.data.access_token)["scope"]).toBe(same.data.scope);
  });

  test("a client that asks for less gets less", async () => {
    const party = await parties.register();
    const tokens = await party.tokens(alice.client, `${READ} ${WRITE}`);
    const { data } = await party.refresh(tokens.refresh_token, { scope: READ });
    expect(decodeJwt(data.access_token)["scope"]).toBe(data.scope);
    expect(data.scope).toBe(READ);
    const body = terms(world.markets[0]!, 0, BUY, 100, 1);
    expect((await ask(world, data.access_token, "POST", "/orders", { body })).code).toBe(40300);
  });

  test("third parties' refresh tokens and those of sign-ins are not for each other's endpoint", async () => {
    const party = await parties.register();
    const tokens = await party.tokens(bob.client);
    const own = await signInAs("bob");
    const body = { refresh_token: tokens.refresh_token };
    await expectRefused(ask(world, null, "POST", "/auth/refresh", { body }), 401, 40100);
    expectOAuthError(await party.refresh(own.refreshToken), "invalid_grant");
    // The server treated neither as token reuse.
    await expectAlive(party, tokens);
    const { status } = await ask(world, null, "POST", "/auth/refresh", { body: { refresh_token: own.refreshToken } });
    expect(status).toBe(200);
  });
});

describe("revocation and introspection", () => {
  test("either token ends the authorization, sockets too, and no other", async () => {
    const party = await parties.register(true);
    const bystander = await party.tokens(alice.client);
    for (const name of ["access_token", "refresh_token"] as const) {
      for (const hint of [null, "access_token", "refresh_token", "nonsense"]) {
        const tokens = await party.tokens(alice.client);
        const socket = await Socket.open(world.server, tokens.access_token);
        const { status } = await party.revoke(tokens[name], { token_type_hint: hint });
        expect([name, hint, status]).toEqual([name, hint, 200]);
        expect(await socket.closed).toBe(4401);
        await expectDead(party, tokens);
        expect((await party.revoke(tokens[name])).status).toBe(200);
      }
    }
    await expectAlive(party, bystander);
  });

  test("what is not the client's own is left alone and answered 200", async () => {
    const [party, other, open] = [await parties.register(true), await parties.register(true), await parties.register()];
    const tokens = await party.tokens(alice.client);
    const { accessToken, refreshToken, client } = await signInAs("alice");
    for (const stranger of [other, open]) {
      for (const token of [
        tokens.access_token,
        tokens.refresh_token,
        accessToken,
        refreshToken,
        tokenOf("alice"),
        "x",
      ]) {
        expect((await stranger.revoke(token)).status).toBe(200);
      }
    }
    await expectAlive(party, tokens);
    expect((await client.request("GET", "/me")).code).toBe(0);
    expect((await ask(world, tokenOf("alice"), "GET", "/me")).code).toBe(0);
    // A public client revokes its own tokens with its client_id alone.
    const own = await open.tokens(alice.client);
    expect((await open.revoke(own.access_token)).status).toBe(200);
    await expectDead(open, own);
  });

  test("introspection tells a client about its own live tokens", async () => {
    const party = await parties.register(true);
    const tokens = await party.tokens(alice.client, `${READ} ${WRITE}`);
    const base = { active: true, scope: `${WRITE} ${READ}`, client_id: party.clientId, sub: String(alice.user.id) };
    const { jti, iat, exp } = decodeJwt(tokens.access_token);
    const access = await party.introspect(tokens.access_token);
    expect([access.status, access.headers["cache-control"]]).toEqual([200, "no-store"]);
    const { root } = world.server;
    expect(access.data).toMatchObject({
      ...base,
      token_type: "Bearer",
      jti,
      iat,
      exp,
      iss: root,
      aud: root + API_BASE,
    });
    const refresh = await party.introspect(tokens.refresh_token, { token_type_hint: "refresh_token" });
    expect(refresh.data).toMatchObject(base);
    const left = Number(refresh.data["exp"]) - Date.now() / 1_000;
    expect(left > 2_591_000 && left <= 2_592_000).toBe(true);
    const nowhere = { client_id: null, client_secret: null };
    const byHeader = await postForm(
      world,
      "/oauth/introspect",
      changed({ token: tokens.access_token }, nowhere),
      basic(party.clientId, party.secret!),
    );
    expect(byHeader.data).toEqual(access.data);
  });

  test("introspection says nothing of what is another's, ended, spent or no token", async () => {
    const [party, other] = [await parties.register(true), await parties.register(true)];
    const tokens = await party.tokens(alice.client);
    const inactive = async (from: ThirdParty, token: string): Promise<void> => {
      const { status, data } = await from.introspect(token);
      expect([status, data]).toEqual([200, { active: false }]);
    };
    for (const token of [tokens.access_token, tokens.refresh_token]) await inactive(other, token);
    const [header, payload, signature] = tokens.access_token.split(".");
    const more = Buffer.from(JSON.stringify({ ...decodeJwt(tokens.access_token), scope: WRITE })).toString("base64url");
    const forged = `${header}.${more}.${signature}`;
    for (const token of [
      "x",
      alice.accessToken,
      alice.refreshToken,
      tokenOf("alice"),
      forged,
      `${header}.${payload}.`,
    ]) {
      await inactive(party, token);
    }
    const { data } = await party.refresh(tokens.refresh_token);
    await inactive(party, tokens.refresh_token);
    // Introspecting a spent token does not count as reuse.
    expect((await party.introspect(data.refresh_token)).data["active"]).toBe(true);
    await party.revoke(data.access_token);
    for (const token of [tokens.access_token, data.access_token, data.refresh_token]) await inactive(party, token);
  });

  test("introspection is for who shows a secret; both need a client and a token", async () => {
    const [party, open] = [await parties.register(true), await parties.register()];
    const tokens = await party.tokens(alice.client);
    const own = await open.tokens(alice.client);
    expectOAuthError(await open.introspect(own.access_token), "invalid_client", 401);
    for (const path of ["/oauth/introspect", "/oauth/revoke"]) {
      const send = (fields: Params, headers = {}): Promise<Answer> => postForm(world, path, fields, headers);
      const token = tokens.access_token;
      expectOAuthError(await send({ token }), "invalid_client", 401);
      expectOAuthError(await send({ token, client_id: "unknown" }), "invalid_client", 401);
      expectOAuthError(await send({ token, client_id: party.clientId }), "invalid_client", 401);
      expectOAuthError(await send({ token, ...party.credentials, client_secret: "wrong" }), "invalid_client", 401);
      for (const header of [basic(party.clientId, "wrong"), { Authorization: `Bearer ${tokens.access_token}` }]) {
        const answer = await send({ token }, header);
        expectOAuthError(answer, "invalid_client", 401);
        expect(answer.headers["www-authenticate"]).toMatch(/^Basic realm=/);
      }
      expectOAuthError(await send({ ...party.credentials }), "invalid_request");
      expectOAuthError(await send({ ...party.credentials, token: "" }), "invalid_request");
      const twice = await postForm(world, path, `${new URLSearchParams({ ...party.credentials, token })}&token=x`);
      expect([twice.status, twice.msg]).toEqual([400, "invalid_request"]);
    }
    await expectAlive(party, tokens);
  });
});

describe("grants", () => {
  test("a user sees one per client, with all scopes that were given", async () => {
    const [party, other] = [await parties.register(), await parties.register()];
    const since = Date.now();
    await party.consent(bob.client, READ);
    await party.consent(bob.client, WRITE);
    await other.consent(bob.client, "markets:read");
    const [newest, older] = await grantsOf(bob.client);
    expect(newest).toMatchObject({ client_id: other.clientId, client_name: "A third party", scopes: ["markets:read"] });
    expect(older).toMatchObject({ client_id: party.clientId, scopes: [WRITE, READ] });
    expect(older!.created_at).toBeGreaterThanOrEqual(since);
    expect(older!.last_used_at).toBeNull();
    // Concurrent consents also create a single grant.
    const third = await parties.register();
    await Promise.all([READ, WRITE, "markets:read", READ].map((scope) => third.consent(bob.client, scope)));
    const made = (await grantsOf(bob.client)).filter(({ client_id }) => client_id === third.clientId);
    expect(made.map(({ scopes }) => [...scopes].sort())).toEqual([["markets:read", WRITE, READ].sort()]);
    expect(await grantTo(alice.client, third)).toBeUndefined();
  });

  test("what was given is not what an older token may do", async () => {
    const party = await parties.register();
    const tokens = await party.tokens(bob.client, READ);
    await party.consent(bob.client, WRITE);
    const body = terms(world.markets[0]!, 0, BUY, 100, 1);
    const renewed = await party.refresh(tokens.refresh_token);
    for (const token of [tokens.access_token, renewed.data.access_token]) {
      expect((await ask(world, token, "POST", "/orders", { body })).code).toBe(40300);
    }
  });

  test("the last use shows", async () => {
    const party = await parties.register();
    const tokens = await party.tokens(bob.client);
    const since = Date.now();
    expect((await ask(world, tokens.access_token, "GET", "/wallet/balance")).code).toBe(0);
    const used = (await grantTo(bob.client, party))!.last_used_at;
    expect(used).not.toBeNull();
    expect(Math.abs(used! - since)).toBeLessThan(10_000);
  });

  test("revoked: all tokens and sockets of that user end at once, and nobody else's", async () => {
    const party = await parties.register();
    const [first, second] = [await party.tokens(bob.client), await party.tokens(bob.client, WRITE)];
    const others = await party.tokens(alice.client);
    const sockets = await Promise.all([first, second].map((own) => Socket.open(world.server, own.access_token)));
    const stranger = await Socket.open(world.server, others.access_token);
    const { id } = (await grantTo(bob.client, party))!;
    await expectRefused(alice.client.request("DELETE", `/me/oauth-grants/${id}`), 404, 4040);
    await expectRefused(ask(world, first.access_token, "DELETE", `/me/oauth-grants/${id}`), 403, 40300);
    expect(await bob.client.data("DELETE", `/me/oauth-grants/${id}`)).toBeNull();
    for (const socket of sockets) expect(await socket.closed).toBe(4401);
    for (const tokens of [first, second]) await expectDead(party, tokens);
    expect(await grantTo(bob.client, party)).toBeUndefined();
    await expectRefused(bob.client.request("DELETE", `/me/oauth-grants/${id}`), 404, 4040);
    await stranger.settled();
    await stranger.close();
    await expectAlive(party, others);
    // A new consent starts a new grant.
    await party.tokens(bob.client, "markets:read");
    expect((await grantTo(bob.client, party))!.scopes).toEqual(["markets:read"]);
    await expectDead(party, first);
  });

  test("with its client all users' grants end", async () => {
    const party = await parties.register(true);
    const all = [await party.tokens(alice.client), await party.tokens(bob.client)];
    const sockets = await Promise.all(all.map(({ access_token }) => Socket.open(world.server, access_token)));
    await owner.data("DELETE", `/me/oauth-clients/${party.id}`);
    for (const socket of sockets) expect(await socket.closed).toBe(4401);
    for (const tokens of all) {
      expect((await ask(world, tokens.access_token, "GET", "/me")).code).toBe(40100);
      expectOAuthError(await party.refresh(tokens.refresh_token), "invalid_client", [400, 401]);
    }
    for (const user of [alice, bob]) expect(await grantTo(user.client, party)).toBeUndefined();
    expectOAuthError(await party.introspect(all[0]!.access_token), "invalid_client", 401);
    await expectRefused(decide(alice.client, party.request().params), 400, 40000);
  });
});

describe("third parties' access tokens at the API", () => {
  test("each scope opens its own endpoints and no others", async () => {
    const [party, market] = [await parties.register(), world.markets[0]!];
    const body = terms(market, 0, BUY, 100, 1);
    const calls: [scope: string, method: string, path: string, body?: object][] = [
      [WRITE, "POST", "/orders", body],
      [WRITE, "DELETE", "/orders"],
      [WRITE, "POST", "/wallet/split", { market_id: market.id, quantity: 1 }],
      [READ, "GET", "/orders"],
      [READ, "GET", "/wallet/balance"],
      [READ, "GET", "/users/me/balance"],
      [READ, "GET", "/me/positions"],
      [READ, "GET", "/me/fills"],
    ];
    for (const given of ALL_SCOPES) {
      const { access_token } = await party.tokens(alice.client, given);
      for (const [scope, method, path, data] of calls) {
        const { code } = await ask(world, access_token, method, path, data === undefined ? {} : { body: data });
        expect([given, method, path, code]).toEqual([given, method, path, given === scope ? 0 : 40300]);
      }
      const socket = await Socket.open(world.server, access_token);
      const placed = await socket.ask({ op: "order.place", data: body });
      expect([given, placed.code]).toEqual([given, given === WRITE ? 0 : 40300]);
      await socket.close();
    }
  });

  test("what needs the user's own sign-in is closed to them, and an operator's are no better", async () => {
    const boss = (await signInAs("boss")).client;
    const party = await register(world, boss);
    const { access_token } = await party.tokens(boss, ALL_SCOPES.join(" "));
    const routes = ROUTES.filter(({ access, tokens }) => access === "user" && !tokens.includes("oauth"));
    expect(routes.length).toBeGreaterThan(15);
    for (const { method, path } of routes) {
      const { status, code } = await ask(world, access_token, method, path.replaceAll(/:\w+/g, "1"));
      expect([method, path, status, code]).toEqual([method, path, 403, 40300]);
    }
    // Their sessions do not appear as the user's sign-ins.
    const sessions = await boss.all<{ method: string }>("/me/sessions");
    expect(sessions.filter(({ method }) => method !== "password")).toEqual([]);
  });

  test("orders placed with one get the standard maker rebate", async () => {
    const [party, market, taker] = [await parties.register(), world.market(), world.user()];
    const { access_token } = await party.tokens(bob.client, `${WRITE} ${READ}`);
    const maker = new Client(world.server, access_token);
    await maker.data("POST", "/wallet/split", { market_id: market.id, quantity: 700 });
    const { id } = await maker.place(terms(market, 0, SELL, 4_321, 700));
    await taker.place(terms(market, 0, BUY, 4_321, 700));
    const n = notional(4_321, 700);
    const [fill] = await maker.all<OwnFillJson>(`/me/fills?order_id=${id}`);
    expect(fill).toMatchObject({ role: "maker", fee: feeOn(n), rebate: rebateOn(n, false) });
    expect(rebateOn(n, true)).not.toBe(rebateOn(n, false));
    maker.close();
  });
});

test("grants, clients and tokens outlive a restart, and a suspended user's end", async () => {
  const env = { PUBLIC_URL };
  const named = { alice: { password: PASSWORD }, owner: { password: PASSWORD } };
  await alone({ users: 0, named, env }, async (own) => {
    const users = [await signIn(own.server, "alice@example.com"), await signIn(own.server, "owner@example.com")];
    const [user, developer] = users;
    const party = await register(own, developer!.client, true);
    const tokens = await party.tokens(user!.client, `${READ} ${WRITE}`);
    const [ended, code] = [await party.tokens(user!.client), await party.consent(user!.client)];
    await party.revoke(ended.refresh_token);
    const spent = (await party.tokens(user!.client)).refresh_token;
    const renewed = (await party.refresh(spent)).data;
    const grants = await grantsOf(user!.client);
    expect(grants).toHaveLength(1);

    await own.server.stop();
    own.server = await own.server.restart();
    const again = new Client(own.server, user!.accessToken);
    const shown = await grantsOf(again);
    expect(shown.map(({ last_used_at: _, ...rest }) => rest)).toEqual(
      grants.map(({ last_used_at: _, ...rest }) => rest),
    );
    const balance = await ask(own, tokens.access_token, "GET", "/wallet/balance");
    expect(balance.code).toBe(0);
    const next = await expectAlive(party, tokens);
    expect(next.scope).toBe(`${WRITE} ${READ}`);
    await expectDead(party, ended);
    // The server does not persist codes: they live for a minute.
    expectOAuthError(await party.exchange(code), "invalid_grant");
    expectOAuthError(await party.refresh(spent), "invalid_grant");
    await expectDead(party, renewed);
    const pending = await party.tokens(again);
    again.close();

    await restartWith(own, "UPDATE users SET suspended_at = ? WHERE email = ?", Date.now(), "alice@example.com");
    for (const { access_token, refresh_token } of [next, pending]) {
      expect((await ask(own, access_token, "GET", "/wallet/balance")).code).toBe(40300);
      expectOAuthError(await party.refresh(refresh_token), "invalid_grant");
      for (const token of [access_token, refresh_token]) {
        expect((await party.introspect(token)).data).toEqual({ active: false });
      }
      await expect(Socket.open(own.server, access_token)).rejects.toThrow("403");
    }
    const body = { ...party.request().params, decision: "approve" };
    await expectRefused(ask(own, user!.accessToken, "POST", "/oauth/authorize", { body }), 403, 40300);
    expectQuiet(own.server);
    for (const { client } of users) client.close();
  });
});

test("an access token that has expired says so, ends its sockets and is renewed", async () => {
  const env = { ACCESS_TOKEN_TTL: "3" };
  await alone({ users: 0, named: { alice: { password: PASSWORD } }, env }, async (own) => {
    const first = await signIn(own.server, "alice@example.com");
    const party = await register(own, first.client, true);
    // A fresh sign-in with the same short lifetime.
    const { client } = await signIn(own.server, "alice@example.com");
    const tokens = await party.tokens(client);
    const socket = await Socket.open(own.server, tokens.access_token);
    expect(tokens.expires_in).toBeLessThanOrEqual(3);
    expect(await socket.closed).toBe(4401);
    await expectRefused(ask(own, tokens.access_token, "GET", "/wallet/balance"), 401, 2002);
    expect((await party.introspect(tokens.access_token)).data).toEqual({ active: false });
    expect((await party.introspect(tokens.refresh_token)).data["active"]).toBe(true);
    const { data } = await party.refresh(tokens.refresh_token);
    expect((await ask(own, data.access_token, "GET", "/wallet/balance")).code).toBe(0);
    // An expired token of an ended authorization is invalid for good: there is nothing to refresh.
    await party.revoke(data.refresh_token);
    await expectRefused(ask(own, tokens.access_token, "GET", "/wallet/balance"), 401, 40100);
    for (const each of [first.client, client]) each.close();
  });
});
