/** The owner's side of sessions: sign-in, refresh, logout, the list of sessions, and what a valid token can do. */
import { decodeJwt } from "jose";
import type { Static } from "typebox";
import { expect } from "vitest";
import type { Session } from "../../server/accounts/schemas.ts";
import { type Answer, askOnce, type Client } from "../support/client.ts";
import type { Guests, SignedIn, TokensJson } from "../support/identity.ts";
import type { TestServer } from "../support/server.ts";
import { expectRefused } from "../support/trading.ts";
import type { World } from "../support/world.ts";

export type SessionJson = Static<typeof Session>;

export const post = <T = unknown>(server: TestServer, path: string, body: unknown, headers = {}): Promise<Answer<T>> =>
  askOnce(server, null, "POST", path, { body, headers });

export const refresh = (server: TestServer, refresh_token: unknown): Promise<Answer<TokensJson>> =>
  post<TokensJson>(server, "/auth/refresh", { refresh_token });

export const askMe = (client: Client): Promise<Answer> => client.request("GET", "/me");

/** Expects the client's token to be unknown. */
export const isGone = (client: Client): Promise<Answer> => expectRefused(askMe(client), 401, 40100);

export const sessionsOf = (client: Client, limit = 200): Promise<SessionJson[]> => client.all("/me/sessions", limit);

export const logout = (client: Client): Promise<Answer> => client.request("POST", "/auth/logout");

/** Returns the expiry of an access token in ms. */
export const endOf = (token: string): number => decodeJwt(token).exp! * 1_000;

/** The actions that keep their clients and tokens with the test file's guests. */
export function sessionHolder(guests: Guests) {
  const clientOf = (server: TestServer, token: string | null, sockets = 1): Client =>
    guests.client(server, token, sockets);

  /** Signs a seeded user in. */
  const enter = (at: World, name: string): Promise<SignedIn> => guests.signIn(at.server, `${name}@example.com`);

  /** Spends the refresh token. Fails if the server rejects it. */
  const refreshed = async (server: TestServer, token: string): Promise<TokensJson> => {
    const { code, msg, data } = await refresh(server, token);
    expect([code, msg]).toEqual([0, expect.any(String)]);
    guests.secrets.add(data.access_token).add(data.refresh_token);
    return data;
  };

  /** Expects the client's token and a refresh token to work. */
  const isCurrent = async (client: Client, token: string): Promise<void> => {
    expect((await askMe(client)).code).toBe(0);
    await refreshed(client.server, token);
  };

  return { clientOf, enter, refreshed, isCurrent };
}
