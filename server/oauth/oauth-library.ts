/** What the endpoints share of @node-oauth/oauth2-server: our clients as its model describes them, and its errors. */
import OAuth2Server from "@node-oauth/oauth2-server";
import type { OAuthClient } from "../accounts/types.ts";
import { GRANT_TYPES } from "./types.ts";

export const { InvalidClientError, InvalidRequestError, InvalidScopeError, InvalidGrantError, ServerError } =
  OAuth2Server;

export type LibraryClient = OAuth2Server.Client & { readonly own: OAuthClient };

export function libraryClientOf(client: OAuthClient): LibraryClient {
  const redirectUris = [...client.redirectUris];
  return { id: client.row.clientId, redirectUris, grants: [...GRANT_TYPES], own: client };
}

/** The error that the library wrapped, possibly several times. */
export function rootCauseOf(error: unknown): unknown {
  const { inner } = error as { inner?: unknown };
  return inner === undefined ? error : rootCauseOf(inner);
}
