/**
 * The authorization endpoint: checks a client's request, and after the user's decision redirects the browser back to the
 * client with a code or an error. Code flow with PKCE S256 only (RFC 6749, 7636, 9207).
 */
import OAuth2Server from "@node-oauth/oauth2-server";
import { assert } from "../../engine/util/assert.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { RequestContext } from "../accounts/audit.ts";
import { type Principal, SCOPES } from "../accounts/types.ts";
import { badRequest } from "../errors.ts";
import type { AuthorizationCodes } from "./authorization-codes.ts";
import type { OAuthGrants } from "./grants.ts";
import { AUTHORIZATION_CODE_MS } from "./limits.ts";
import {
  InvalidRequestError,
  InvalidScopeError,
  type LibraryClient,
  libraryClientOf,
  rootCauseOf,
  ServerError,
} from "./oauth-library.ts";
import { isRegisteredAddress } from "./redirect-address.ts";
import type { Params } from "./types.ts";

const S256_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;
/** The parameters that the library reads. */
const AUTHORIZATION_PARAMS = [
  "client_id",
  "redirect_uri",
  "response_type",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
];

/** A signed-in user's decision about a client's request. */
interface Decision {
  readonly principal: Principal;
  readonly isApproved: boolean;
}

export class AuthorizationEndpoint {
  private readonly accounts: Accounts;
  private readonly grants: OAuthGrants;
  private readonly codes: AuthorizationCodes;
  private readonly issuer: () => string;

  constructor(accounts: Accounts, grants: OAuthGrants, codes: AuthorizationCodes, issuer: () => string) {
    this.accounts = accounts;
    this.grants = grants;
    this.codes = codes;
    this.issuer = issuer;
  }

  /**
   * Checks an authorization request. Returns the client's address with an error, or null when the browser can go on to
   * the consent page.
   * @throws ApiError 40000 for a wrong client or redirect URI: the browser is not redirected then
   */
  inspect(params: Params, context: RequestContext): Promise<string | null> {
    return this.authorize(params, null, context);
  }

  /** Returns the client's address with a code, or with an error. @throws ApiError 40000, 40900 */
  async decide(params: Params, principal: Principal, isApproved: boolean, context: RequestContext): Promise<string> {
    const location = await this.authorize(params, { principal, isApproved }, context);
    assert(location !== null, "a decision redirects the browser");
    return location;
  }

  private async authorize(params: Params, decision: Decision | null, context: RequestContext): Promise<string | null> {
    // Without this check the library would use the first registered URI.
    if ((params["redirect_uri"] ?? "") === "") throw badRequest("redirect_uri: required");
    const known = Object.entries(params).filter(([name]) => AUTHORIZATION_PARAMS.includes(name));
    const allowed = decision === null ? {} : { allowed: String(decision.isApproved) };
    const body = { ...Object.fromEntries(known), ...allowed };
    const request = new OAuth2Server.Request({ headers: {}, method: "GET", query: {}, body });
    const response = new OAuth2Server.Response({});
    const server = new OAuth2Server({ model: this.model(params, decision?.principal ?? null, context) });
    const options = {
      authenticateHandler: { handle: () => ({}) },
      allowEmptyState: true,
      authorizationCodeLifetime: AUTHORIZATION_CODE_MS / 1_000,
    };
    try {
      await server.authorize(request, response, options);
    } catch (error) {
      if (error instanceof ServerError) throw rootCauseOf(error);
      // Without a redirect, the client or its redirect URI is wrong.
      if (response.get("location") === undefined) throw badRequest((error as Error).message);
      const { name, message } = error as OAuth2Server.OAuthError;
      const { redirect_uri = "", state } = params;
      return this.redirectTo(redirect_uri, { error: name, error_description: message, ...(state ? { state } : {}) });
    }
    return decision === null ? null : this.redirectTo(response.get("location") as string, {});
  }

  /** What the library calls during one request. @param principal null while nobody has decided: no code is issued */
  private model(
    params: Params,
    principal: Principal | null,
    context: RequestContext,
  ): OAuth2Server.AuthorizationCodeModel {
    const model = {
      getClient: async (id: string) => {
        const client = this.accounts.clientByName(id);
        return client === undefined ? null : libraryClientOf(client);
      },
      validateRedirectUri: async (uri: string, { own }: LibraryClient) => isRegisteredAddress(own.redirectUris, uri),
      validateScope: async (_user: object, _client: object, scopes?: string[]) => knownScopes(scopes),
      saveAuthorizationCode: async (code: OAuth2Server.AuthorizationCode, client: OAuth2Server.Client) => {
        const { codeChallenge = "" } = code;
        // The library reads a missing method as S256; RFC 7636 reads it as plain.
        if (params["code_challenge_method"] !== "S256" || !S256_CHALLENGE.test(codeChallenge)) {
          throw new InvalidRequestError("code_challenge with code_challenge_method S256 is required");
        }
        if (principal === null) return { ...code, client, user: {} };
        const { own } = client as LibraryClient;
        const scopes = code.scope ?? [];
        const grant = await this.grants.consent(principal, own, scopes, context);
        const { credential } = principal;
        const authorizationCode = this.codes.issue(
          {
            client: own,
            user: credential.user,
            grant,
            scopes,
            redirectUri: code.redirectUri,
            challenge: codeChallenge,
            approvedBy: credential,
          },
          context.now,
        );
        return { ...code, authorizationCode, client, user: {} };
      },
    };
    return model as unknown as OAuth2Server.AuthorizationCodeModel;
  }

  /** The client's address with these parameters and the issuer (RFC 9207). */
  private redirectTo(location: string, params: Params): string {
    const url = new URL(location);
    for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value);
    url.searchParams.set("iss", this.issuer());
    return url.href;
  }
}

/** @throws InvalidScopeError */
function knownScopes(scopes: readonly string[] | undefined): string[] {
  const requested = new Set(scopes ?? []);
  if (requested.size === 0) throw new InvalidScopeError(`scope: required, of ${SCOPES.join(", ")}`);
  const known = SCOPES.filter((scope) => requested.has(scope));
  if (known.length < requested.size) throw new InvalidScopeError(`scope: must be of ${SCOPES.join(", ")}`);
  return known;
}
