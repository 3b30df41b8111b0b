/**
 * OAuth 2.0 after the tokens: revocation, introspection, the user's grants, third parties' access at the API, and all of
 * it over one restart, which suspends a user and shortens the life of access tokens.
 */
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectQuiet } from "../support/checks.ts";
import { type Answer, API_BASE, Client, type OwnFillJson, ROUTES } from "../support/client.ts";
import { withDatabase } from "../support/data-dir.ts";
import type { SignedIn } from "../support/identity.ts";
import { feeOn, notional, rebateOn } from "../support/reference.ts";
import { Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import {
  basic,
  type Code,
  changed,
  decide,
  type OAuthTokensJson,
  type Params,
  postForm,
  type ThirdParty,
} from "../support/third-party.ts";
import { expectRefused } from "../support/trading.ts";
import { ALL_SCOPES, PUBLIC_URL, tokenOf, type World } from "../support/world.ts";
import {
  ask,
  expectAlive,
  expectDead,
  expectOAuthError,
  type GrantJson,
  grantsOf,
  grantTo,
  OAuthStage,
  READ,
  WRITE,
} from "./oauth-stage.ts";

let stage: OAuthStage;
let world: World;
let alice: SignedIn;
let bob: SignedIn;
let owner: Client;
beforeAll(async () => {
  stage = await OAuthStage.start(["boss", "keeper", "suspended"], { PUBLIC_URL });
  ({ world, alice, bob, owner } = stage);
});
afterAll(() => stage.stop());

describe("revocation and introspection", () => {
  test("revoking either token ends its authorization with the sockets, and no other", async () => {
    const party = await stage.register(true);
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

  test("revoking a token of somebody else responds 200 and changes nothing", async () => {
    const [party, other, open] = [await stage.register(true), await stage.register(true), await stage.register()];
    const tokens = await party.tokens(alice.client);
    const { accessToken, refreshToken, client } = await stage.signInAs("alice");
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

  test("introspection describes the client's own live tokens", async () => {
    const party = await stage.register(true);
    const tokens = await party.tokens(alice.client, `${READ} ${WRITE}`);
    const base = { active: true, scope: `${WRITE} ${READ}`, client_id: party.clientId, sub: String(alice.user.id) };
    const { jti, iat, exp } = decodeJwt(tokens.access_token);
    const access = await party.introspect(tokens.access_token);
    expect([access.status, access.headers["cache-control"]]).toEqual([200, "no-store"]);
    expect(access.data).toMatchObject({
      ...base,
      token_type: "Bearer",
      jti,
      iat,
      exp,
      iss: PUBLIC_URL,
      aud: PUBLIC_URL + API_BASE,
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

  test("introspection reports foreign, ended, spent and invalid tokens as inactive", async () => {
    const [party, other] = [await stage.register(true), await stage.register(true)];
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

  test("introspection needs a confidential client; both endpoints need a client and a token", async () => {
    const [party, open] = [await stage.register(true), await stage.register()];
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
  test("a user has one grant per client, with all scopes granted so far", async () => {
    const [party, other] = [await stage.register(), await stage.register()];
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
    const third = await stage.register();
    await Promise.all([READ, WRITE, "markets:read", READ].map((scope) => third.consent(bob.client, scope)));
    const made = (await grantsOf(bob.client)).filter(({ client_id }) => client_id === third.clientId);
    expect(made.map(({ scopes }) => [...scopes].sort())).toEqual([["markets:read", WRITE, READ].sort()]);
    expect(await grantTo(alice.client, third)).toBeUndefined();
  });

  test("an extended grant adds no scope to older tokens", async () => {
    const party = await stage.register();
    const tokens = await party.tokens(bob.client, READ);
    await party.consent(bob.client, WRITE);
    const body = terms(world.markets[0]!, 0, BUY, 100, 1);
    const renewed = await party.refresh(tokens.refresh_token);
    for (const token of [tokens.access_token, renewed.data.access_token]) {
      expect((await ask(world, token, "POST", "/orders", { body })).code).toBe(40300);
    }
  });

  test("a grant shows its last use", async () => {
    const party = await stage.register();
    const tokens = await party.tokens(bob.client);
    const since = Date.now();
    expect((await ask(world, tokens.access_token, "GET", "/wallet/balance")).code).toBe(0);
    const used = (await grantTo(bob.client, party))!.last_used_at;
    expect(used).not.toBeNull();
    expect(Math.abs(used! - since)).toBeLessThan(10_000);
  });

  test("a revoked grant ends all its tokens and sockets at once, and no other user's", async () => {
    const party = await stage.register();
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
    await stranger.fence();
    await stranger.close();
    await expectAlive(party, others);
    // A new consent starts a new grant.
    await party.tokens(bob.client, "markets:read");
    expect((await grantTo(bob.client, party))!.scopes).toEqual(["markets:read"]);
    await expectDead(party, first);
  });

  test("a removed client ends the grants of all users", async () => {
    const party = await stage.register(true);
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
  test("each scope of a third party's access token opens its own endpoints and no others", async () => {
    const [party, market] = [await stage.register(), world.markets[0]!];
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

  test("routes that need a sign-in reject third parties' access tokens, an operator's too", async () => {
    const boss = (await stage.signInAs("boss")).client;
    const party = await stage.registerFor(boss);
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

  test("orders placed with a third party's access token get the standard maker rebate", async () => {
    const [party, market, taker] = [await stage.register(), world.market(), world.user()];
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

describe("over a restart", () => {
  let party: ThirdParty;
  let keeper: SignedIn;
  let grants: GrantJson[];
  let code: Code;
  let tokens: OAuthTokensJson;
  let ended: OAuthTokensJson;
  /** Refreshed with the spent one. */
  let renewed: OAuthTokensJson;
  let spent: string;
  let suspended: SignedIn;
  let tokensOfSuspended: OAuthTokensJson[];
  beforeAll(async () => {
    party = await stage.register(true);
    keeper = await stage.signInAs("keeper");
    tokens = await party.tokens(keeper.client, `${READ} ${WRITE}`);
    ended = await party.tokens(keeper.client);
    code = await party.consent(keeper.client);
    await party.revoke(ended.refresh_token);
    spent = (await party.tokens(keeper.client)).refresh_token;
    renewed = (await party.refresh(spent)).data;
    grants = await grantsOf(keeper.client);
    expect(grants).toHaveLength(1);
    suspended = await stage.signInAs("suspended");
    const old = await party.tokens(suspended.client, `${READ} ${WRITE}`);
    tokensOfSuspended = [(await party.refresh(old.refresh_token)).data, await party.tokens(suspended.client)];
    expectQuiet(world.server);
    await world.server.stop();
    stage.expectUnlogged();
    withDatabase(world.server.dataDir, (db) => {
      const sql = "UPDATE users SET suspended_at = ? WHERE email = ?";
      db.prepare(sql).run(Date.now(), "suspended@example.com");
    });
    world.server = await world.server.restart({ ACCESS_TOKEN_TTL: "3" });
  });

  test("grants, clients and tokens stay over a restart, revoked and spent ones too", async () => {
    const client = new Client(world.server, keeper.accessToken);
    const shown = await grantsOf(client);
    client.close();
    expect(shown.map(({ last_used_at: _, ...rest }) => rest)).toEqual(
      grants.map(({ last_used_at: _, ...rest }) => rest),
    );
    expect((await ask(world, tokens.access_token, "GET", "/wallet/balance")).code).toBe(0);
    const next = await expectAlive(party, tokens);
    expect(next.scope).toBe(`${WRITE} ${READ}`);
    await expectDead(party, ended);
    // The server does not persist codes: they live for a minute.
    expectOAuthError(await party.exchange(code), "invalid_grant");
    expectOAuthError(await party.refresh(spent), "invalid_grant");
    await expectDead(party, renewed);
  });

  test("a suspended user's tokens are rejected after a restart", async () => {
    for (const { access_token, refresh_token } of tokensOfSuspended) {
      expect((await ask(world, access_token, "GET", "/wallet/balance")).code).toBe(40300);
      expectOAuthError(await party.refresh(refresh_token), "invalid_grant");
      for (const token of [access_token, refresh_token]) {
        expect((await party.introspect(token)).data).toEqual({ active: false });
      }
      await expect(Socket.open(world.server, access_token)).rejects.toThrow("403");
    }
    const body = { ...party.request().params, decision: "approve" };
    await expectRefused(ask(world, suspended.accessToken, "POST", "/oauth/authorize", { body }), 403, 40300);
  });

  test("after a restart, an expired access token is 2002, its sockets close, and its client refreshes it", async () => {
    const { client } = await stage.signInAs("keeper");
    const short = await party.tokens(client);
    const socket = await Socket.open(world.server, short.access_token);
    expect(short.expires_in).toBeLessThanOrEqual(3);
    expect(await socket.closed).toBe(4401);
    await expectRefused(ask(world, short.access_token, "GET", "/wallet/balance"), 401, 2002);
    expect((await party.introspect(short.access_token)).data).toEqual({ active: false });
    expect((await party.introspect(short.refresh_token)).data["active"]).toBe(true);
    const { data } = await party.refresh(short.refresh_token);
    expect((await ask(world, data.access_token, "GET", "/wallet/balance")).code).toBe(0);
    // An expired token of a revoked authorization is invalid: there is nothing to refresh.
    await party.revoke(data.refresh_token);
    await expectRefused(ask(world, short.access_token, "GET", "/wallet/balance"), 401, 40100);
  });
});
