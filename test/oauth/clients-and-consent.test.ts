/**
 * OAuth 2.0 up to the authorization code: registration of clients, the authorization endpoint and the user's consent.
 * Two independent client libraries run the whole flow; handwritten requests play faulty clients and thieves.
 */
import * as oauth from "oauth4webapi";
import { type AccessToken, AuthorizationCode } from "simple-oauth2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, API_BASE, Client } from "../support/client.ts";
import type { SignedIn } from "../support/identity.ts";
import {
  CALLBACK,
  type Changes,
  changed,
  codeIn,
  decide,
  type OAuthClientJson,
  type OAuthTokensJson,
  type Params,
  type ThirdParty,
} from "../support/third-party.ts";
import { expectRefused } from "../support/trading.ts";
import { ALL_SCOPES, tokenOf, type World } from "../support/world.ts";
import { ask, expectDead, expectOAuthError, grantTo, OAuthStage, READ, WRITE } from "./oauth-stage.ts";

const UNKNOWN_ID = 999_999_999;

let stage: OAuthStage;
let world: World;
let alice: SignedIn;
let bob: SignedIn;
let owner: Client;
beforeAll(async () => {
  stage = await OAuthStage.start(["crowd", "boss"]);
  ({ world, alice, bob, owner } = stage);
});
afterAll(() => stage.stop());

describe("registration of clients", () => {
  const wish = { name: "Robot", redirect_uris: [CALLBACK], confidential: true };
  const create = (body: object): Promise<Answer<OAuthClientJson & { client_secret: string | null }>> =>
    owner.request("POST", "/me/oauth-clients", { body });

  test("third-party clients are created, listed, read and removed; only the creation returns the secret", async () => {
    const secretOne = await create(wish);
    const uris = [CALLBACK, "https://b.example/"];
    const publicOne = await create({ name: "App", redirect_uris: uris, confidential: false });
    expect([secretOne.status, secretOne.headers["cache-control"]]).toEqual([201, "no-store"]);
    const { client_secret: secret, ...row } = secretOne.data;
    expect(secret).toMatch(/^pm_sec_[\w-]{43}$/);
    stage.secrets.add(secret!);
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

  test("another user's client is 4040", async () => {
    const party = await stage.register();
    for (const method of ["GET", "DELETE"]) {
      await expectRefused(alice.client.request(method, `/me/oauth-clients/${party.id}`), 404, 4040);
      for (const id of [UNKNOWN_ID, "0", "x", party.clientId]) {
        await expectRefused(owner.request(method, `/me/oauth-clients/${id}`), 404, 4040);
      }
    }
    expect(await alice.client.all("/me/oauth-clients")).toEqual([]);
    await party.tokens(alice.client);
  });

  test("a client's name with invisible or confusable characters is rejected", async () => {
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
      stage.secrets.add(data.client_secret!);
      await owner.data("DELETE", `/me/oauth-clients/${data.id}`);
    }
  });

  test("redirect URIs that would leak codes are rejected", async () => {
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

  test("redirect URIs of sites, of apps and of the user's own machine are kept as given", async () => {
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
    stage.secrets.add(data.client_secret!);
  });

  test("a client has one to ten redirect URIs and no unknown fields", async () => {
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

  test("a user has fifty clients at most, also when all are created concurrently", async () => {
    const { accessToken } = await stage.signInAs("crowd");
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

describe("independent client libraries", () => {
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

  test("independent client libraries discover the endpoints and methods from the metadata", async () => {
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
    test(`an independent client library completes the whole flow: oauth4webapi with ${method}`, async () => {
      const party = await stage.register(method !== "none");
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

  test("independent client libraries detect the user's denial, and a response of another issuer", async () => {
    const party = await stage.register();
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
    test(`an independent client library completes the flow: simple-oauth2 with its secret in the ${authorizationMethod}`, async () => {
      const party = await stage.register(true);
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
    party = await stage.register();
  });

  const visit = (params: Params | string): Promise<Answer> =>
    ask(world, null, "GET", `/oauth/authorize?${typeof params === "string" ? params : new URLSearchParams(params)}`);

  /** Returns the redirect targets of such a request: from the endpoint, and from the consent page after approval. */
  async function sentTo(params: Params): Promise<[string, string]> {
    const [seen, approved] = [await visit(params), await decide(alice.client, params)];
    expect([seen.status, seen.headers["cache-control"], approved.status]).toEqual([302, "no-store", 200]);
    return [seen.headers.location!, approved.data.redirect_to];
  }

  test("the authorization endpoint sends the browser to the consent page with the request, and grants nothing before the user decides", async () => {
    const { params } = party.request(`${READ} ${WRITE}`);
    const { status, headers } = await visit(params);
    expect([status, headers["cache-control"]]).toEqual([302, "no-store"]);
    const page = new URL(headers.location!);
    expect(page.origin + page.pathname).toBe(`${world.server.root}/consent`);
    expect(Object.fromEntries(page.searchParams)).toEqual(params);
    expect(await grantTo(alice.client, party)).toBeUndefined();
  });

  test("the authorization endpoint redirects back with the code, the unchanged state and the issuer, and nothing else", async () => {
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

  test("the authorization endpoint ignores unknown parameters", async () => {
    const { params } = party.request();
    for (const more of [{ nonce: "n" }, { allowed: "false" }, { decision: "approve" }, { display: "page" }]) {
      const { status, headers } = await visit({ ...params, ...more });
      const page = new URL(headers.location!);
      expect([more, status, page.pathname, page.searchParams.get("code")]).toEqual([more, 302, "/consent", null]);
    }
  });

  test("the authorization endpoint redirects nobody for an unregistered client or redirect URI", async () => {
    const own = await stage.register();
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
    test(`the authorization endpoint redirects with ${error}: ${what}`, async () => {
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

  test("the authorization endpoint redirects with access_denied after the user's denial, without a code", async () => {
    const { params } = party.request();
    const { data } = await decide(alice.client, params, "deny");
    const back = new URL(data.redirect_to);
    const { error_description: _, ...rest } = Object.fromEntries(back.searchParams);
    expect(rest).toEqual({ error: "access_denied", state: params["state"], iss: world.server.root });
    await expectRefused(decide(alice.client, params, "perhaps"), 400, 40000);
  });

  test("the authorization endpoint counts a repeated scope once", async () => {
    const code = await party.consent(bob.client, `${READ}  ${READ} ${WRITE}`);
    expect((await party.exchange(code)).data.scope.split(" ").sort()).toEqual([WRITE, READ]);
  });

  test("the authorization endpoint rejects a repeated parameter", async () => {
    const { params } = party.request();
    for (const name of Object.keys(params)) {
      const query = `${new URLSearchParams(params)}&${name}=${encodeURIComponent(params[name]!)}`;
      const { status, code, headers } = await visit(query);
      expect([name, status, code, headers.location]).toEqual([name, 400, 40000, undefined]);
    }
  });

  test("the authorization endpoint keeps the query of the redirect URI, also with an error", async () => {
    const own = await stage.register(false, "https://client.example/cb?tenant=1&x=%2F");
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

  test("the authorization endpoint redirects to apps and to programs on the user's own machine", async () => {
    const loopback = ["http://127.0.0.1:51004/cb", "http://[::1]:51004/cb"];
    for (const uri of ["com.example.app:/oauth2redirect", "com.example.app://callback", ...loopback]) {
      const app = await stage.register(false, uri);
      const { params, verifier } = app.request();
      const { redirect_to } = (await decide(alice.client, params)).data;
      expect([redirect_to, redirect_to.startsWith(`${uri}?`)]).toEqual([redirect_to, true]);
      const code = new URLSearchParams(redirect_to.slice(uri.length)).get("code")!;
      expect((await app.exchange({ code, verifier })).status).toBe(200);
    }
  });

  test.each([
    // RFC 8252, section 7.3: the port is the one that the system gave the app.
    ["http://127.0.0.1/cb", ["http://127.0.0.1/cb", "http://127.0.0.1:1/cb", "http://127.0.0.1:65535/cb"]],
    ["http://127.0.0.1:51004/cb?a=b", ["http://127.0.0.1:51005/cb?a=b", "http://127.0.0.1/cb?a=b"]],
    ["http://[::1]:8000/", ["http://[::1]:51005/", "http://[::1]:51005", "http://[::1]"]],
    ["http://localhost:3000", ["http://localhost:3000", "http://localhost:3000/", "http://localhost:51005/"]],
    ["http://localhost/?a=b", ["http://localhost:3000?a=b", "http://localhost/?a=b"]],
    ["https://app.example", ["https://app.example", "https://app.example/"]],
    ["https://app.example:8443/?a=b", ["https://app.example:8443?a=b", "https://app.example:8443/?a=b"]],
  ])("a client registered as %s is redirected to %j", async (registered, requested) => {
    const app = await stage.register(false, registered);
    for (const redirect_uri of requested) {
      const { params, verifier } = app.request();
      const asked = { ...params, redirect_uri };
      expect(new URL((await visit(asked)).headers.location!).pathname).toBe("/consent");
      const back = new URL((await decide(alice.client, asked)).data.redirect_to);
      const code = back.searchParams.get("code")!;
      for (const name of ["code", "state", "iss"]) back.searchParams.delete(name);
      expect(back.href).toBe(new URL(redirect_uri).href);
      // The code is bound to the port that it was sent to; with or without the slash is one address.
      const twin = redirect_uri.endsWith("/") ? redirect_uri.slice(0, -1) : redirect_uri;
      expect((await app.exchange({ code, verifier }, { redirect_uri: twin })).status).toBe(200);
      const again = codeIn((await decide(alice.client, asked)).data.redirect_to);
      const other = new URL(redirect_uri);
      other.port = "51006";
      expectOAuthError(await app.exchange({ code: again, verifier }, { redirect_uri: other.href }), "invalid_grant");
    }
  });

  test.each([
    [
      "http://127.0.0.1/cb",
      ["http://127.0.0.1:1/", "http://127.0.0.1:1/cb/", "http://127.0.0.1:1/CB", "http://localhost/cb"],
    ],
    ["http://127.0.0.1:80/cb", ["http://127.0.0.1:65536/cb", "http://127.0.0.1:-1/cb", "http://127.0.0.1:/cb"]],
    [
      "http://localhost/",
      ["http://localhost.other.example/", "http://localhost:1@other.example/", "https://localhost:1/"],
    ],
    [
      "http://localhost",
      ["http://localhost:1#", "http://localhost:1/?", "http://localhost:1\\@other.example", "http://localhost: 1"],
    ],
    ["http://[::1]/cb", ["http://[::2]:1/cb", "http://[::1]1/cb", "http://127.0.0.1:1/cb"]],
    [
      "https://app.example",
      ["https://app.example:8443", "https://app.example//", "https://app.example/?", "http://app.example"],
    ],
    ["https://app.example/cb", ["https://app.example:8443/cb", "https://app.example/cb/"]],
    ["com.example.app:/cb", ["com.example.app:/cb/", "com.example.app:51004/cb", "com.example.app://cb"]],
  ])("a client registered as %s is not redirected to %j", async (registered, requested) => {
    const app = await stage.register(false, registered);
    const { params } = app.request();
    for (const redirect_uri of requested) {
      await expectRefused(visit({ ...params, redirect_uri }), 400, 40000);
      await expectRefused(decide(alice.client, { ...params, redirect_uri }), 400, 40000);
    }
  });

  test("the consent shows the deciding user the client and its redirect URIs", async () => {
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

  test("the consent takes an approval only from a sign-in session, an operator's included", async () => {
    const { params } = party.request();
    const body = { ...params, decision: "approve" };
    const { access_token } = await party.tokens(alice.client, ALL_SCOPES.join(" "));
    for (const token of [access_token, tokenOf("alice")]) {
      await expectRefused(ask(world, token, "POST", "/oauth/authorize", { body }), 403, 40300);
    }
    await expectRefused(ask(world, null, "POST", "/oauth/authorize", { body }), 401, 40100);
    await expectRefused(decide(alice.client, { ...params, allowed: "true" }), 400, 40000);
    expect((await party.tokens((await stage.signInAs("boss")).client)).scope).toBe(READ);
  });
});
