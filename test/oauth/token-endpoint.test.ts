/**
 * OAuth 2.0's token endpoint: codes, client authentication and refresh tokens, from valid clients, faulty clients and
 * thieves.
 */
import { randomBytes } from "node:crypto";
import { decodeJwt, decodeProtectedHeader } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_AUTHORIZATION_CODES_PER_USER } from "../../server/oauth/limits.ts";
import { type Answer, API_BASE, type Client } from "../support/client.ts";
import { PASSWORD, resetToken, type SignedIn } from "../support/identity.ts";
import { Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import {
  basic,
  CALLBACK,
  type Changes,
  codeIn,
  decide,
  FORM,
  type Params,
  postForm,
  type ThirdParty,
} from "../support/third-party.ts";
import { expectRefused } from "../support/trading.ts";
import { ALL_SCOPES, type World } from "../support/world.ts";
import { ask, expectAlive, expectDead, expectOAuthError, grantTo, OAuthStage, READ, WRITE } from "./oauth-stage.ts";

let stage: OAuthStage;
let world: World;
let alice: SignedIn;
let bob: SignedIn;
let owner: Client;
beforeAll(async () => {
  stage = await OAuthStage.start(["forgetful"]);
  ({ world, alice, bob, owner } = stage);
});
afterAll(() => stage.stop());

describe("token endpoint: codes", () => {
  test("a user's new codes replace the user's oldest ones, and no one else's", async () => {
    const party = await stage.register(true);
    const others = await party.consent(bob.client);
    const codes: Awaited<ReturnType<typeof party.consent>>[] = [];
    for (let i = 0; i <= MAX_AUTHORIZATION_CODES_PER_USER; i++) codes.push(await party.consent(alice.client));
    expectOAuthError(await party.exchange(codes[0]!), "invalid_grant");
    for (const code of [codes[1]!, codes.at(-1)!, others]) expect((await party.exchange(code)).status).toBe(200);
  });

  test("the tokens of a code follow the standards, and the server stores neither", async () => {
    const party = await stage.register(true);
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

  test("a wrong verifier consumes the code", async () => {
    const party = await stage.register();
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

  test("the redirect URI of the token request must equal that of the authorization request exactly", async () => {
    const party = await stage.register();
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

  test("another client cannot redeem the code", async () => {
    const [party, thief] = [await stage.register(), await stage.register()];
    const secretThief = await stage.register(true);
    const code = await party.consent(alice.client);
    for (const other of [thief, secretThief]) expectOAuthError(await other.exchange(code), "invalid_grant");
    // A thief of the code cannot authenticate as the client without its verifier.
    expectOAuthError(await party.exchange({ ...code, verifier: "a".repeat(43) }), "invalid_grant");
    for (const text of ["", "x", "é", code.code.slice(1), `${code.code}=`, "a".repeat(2_048)]) {
      const { status, msg } = await party.exchange({ ...code, code: text });
      expect([text, status, ["invalid_grant", "invalid_request"].includes(msg)]).toEqual([text, 400, true]);
    }
  });

  test("a reused code revokes the tokens of its first use and closes their sockets", async () => {
    const party = await stage.register();
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

  test("concurrent uses of a code get at most one set of tokens, and the reuse revokes it", async () => {
    const party = await stage.register();
    for (let round = 0; round < 10; round++) {
      const code = await party.consent(alice.client);
      const answers = await Promise.all([party.exchange(code), party.exchange(code), party.exchange(code)]);
      const given = answers.filter(({ status }) => status === 200);
      expect(given.length).toBeLessThanOrEqual(1);
      for (const answer of answers) if (answer.status !== 200) expectOAuthError(answer, "invalid_grant");
      for (const { data } of given) await expectDead(party, data);
    }
  });

  test("an authorization code ends with its grant and with its client", async () => {
    const party = await stage.register();
    const first = await party.consent(bob.client);
    await bob.client.data("DELETE", `/me/oauth-grants/${(await grantTo(bob.client, party))!.id}`);
    expectOAuthError(await party.exchange(first), "invalid_grant");
    // A new consent does not restore the old code.
    const second = await party.consent(bob.client);
    expectOAuthError(await party.exchange(first), "invalid_grant");
    await owner.data("DELETE", `/me/oauth-clients/${party.id}`);
    expectOAuthError(await party.exchange(second), "invalid_client", [400, 401]);
  });

  test("a password reset ends the codes and tokens from before", async () => {
    const { client } = await stage.signInAs("forgetful");
    const other = await stage.register();
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
    [open, confidential] = [await stage.register(), await stage.register(true)];
  });

  /** Redeems a valid code with other credentials. */
  const attempt = async (party: ThirdParty, changes: Changes, headers: Params = {}): Promise<Answer> =>
    party.exchange(await party.consent(alice.client), changes, headers);

  test("a client sends its secret to the token endpoint in the header or in the form", async () => {
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

  test("a confidential client without its secret is rejected", async () => {
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

  test("a public client that sends a secret is rejected", async () => {
    expect((await attempt(open, {})).status).toBe(200);
    expectOAuthError(await attempt(open, { client_secret: "guess" }), "invalid_client", [400, 401]);
    const header = basic(open.clientId, "guess");
    expectOAuthError(await attempt(open, { client_id: null }, header), "invalid_client", 401);
  });

  test("client credentials in two places are rejected, valid or not", async () => {
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

  test("the token endpoint supports two grant types only", async () => {
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

  test("a token request that is no form, or repeats a parameter, is rejected", async () => {
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
  test("a refresh token works once; its reuse revokes all tokens of the code", async () => {
    const party = await stage.register(true);
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

  test("of two concurrent uses of a refresh token at most one gets tokens, and the reuse revokes them", async () => {
    const party = await stage.register();
    for (let round = 0; round < 5; round++) {
      const { refresh_token } = await party.tokens(alice.client);
      const answers = await Promise.all([party.refresh(refresh_token), party.refresh(refresh_token)]);
      const given = answers.filter(({ status }) => status === 200);
      expect(given.length).toBeLessThanOrEqual(1);
      for (const { data } of given) await expectDead(party, data);
    }
  });

  test("a refresh token needs its client, with the client's secret", async () => {
    const [party, thief] = [await stage.register(true), await stage.register()];
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

  test("the scopes of a refresh token never grow", async () => {
    const party = await stage.register();
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

  test("a client may narrow the scopes of its refresh token", async () => {
    const party = await stage.register();
    const tokens = await party.tokens(alice.client, `${READ} ${WRITE}`);
    const { data } = await party.refresh(tokens.refresh_token, { scope: READ });
    expect(decodeJwt(data.access_token)["scope"]).toBe(data.scope);
    expect(data.scope).toBe(READ);
    const body = terms(world.markets[0]!, 0, BUY, 100, 1);
    expect((await ask(world, data.access_token, "POST", "/orders", { body })).code).toBe(40300);
  });

  test("refresh tokens of third parties and of sign-ins fail at each other's endpoint", async () => {
    const party = await stage.register();
    const tokens = await party.tokens(bob.client);
    const own = await stage.signInAs("bob");
    const body = { refresh_token: tokens.refresh_token };
    await expectRefused(ask(world, null, "POST", "/auth/refresh", { body }), 401, 40100);
    expectOAuthError(await party.refresh(own.refreshToken), "invalid_grant");
    // The server treated neither as token reuse.
    await expectAlive(party, tokens);
    const { status } = await ask(world, null, "POST", "/auth/refresh", { body: { refresh_token: own.refreshToken } });
    expect(status).toBe(200);
  });
});
