/** The token endpoint: exchanges an authorization code or a refresh token for new tokens (RFC 6749, sections 4.1.3 and 6). */
import OAuth2Server from "@node-oauth/oauth2-server";
import { assert } from "../../engine/util/assert.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { RequestContext } from "../accounts/audit.ts";
import { rejectedAs } from "../errors.ts";
import type { RefreshToken, Sessions, Tokens } from "../sign-in/sessions.ts";
import type { AuthorizationCode, AuthorizationCodes } from "./authorization-codes.ts";
import { authenticateClient, invalidClient, NO_STORE, withHeaderCredentials } from "./client-authentication.ts";
import { InvalidClientError, InvalidGrantError, libraryClientOf, rootCauseOf, ServerError } from "./oauth-library.ts";
import { isSameAddress } from "./redirect-address.ts";
import { GRANT_TYPES, type GrantType, type OAuthResponse, type Params } from "./types.ts";

/** In place of the tokens that the library asks for before `saveToken` makes them. */
const MADE_LATER = "-";
const FORM = { "content-type": "application/x-www-form-urlencoded", "content-length": "1" };

type TokenModel = OAuth2Server.AuthorizationCodeModel & OAuth2Server.RefreshTokenModel;

export interface TokenEndpointOptions {
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly codes: AuthorizationCodes;
  readonly accessTtlMs: number;
  readonly refreshTtlMs: number;
}

export class TokenEndpoint {
  private readonly options: TokenEndpointOptions;

  constructor(options: TokenEndpointOptions) {
    this.options = options;
  }

  /** @param authorization the request's Authorization header, or "" */
  async respond(params: Params, authorization: string, context: RequestContext): Promise<OAuthResponse> {
    // Before authentication: the library would authenticate the client first, and it accepts more grant types than we do.
    const grantType = params["grant_type"] ?? "";
    if (grantType !== "" && !GRANT_TYPES.includes(grantType as GrantType)) {
      return { status: 400, body: { error: "unsupported_grant_type" }, headers: NO_STORE };
    }
    const form = withHeaderCredentials(params, authorization);
    if ("status" in form) return form;
    const request = new OAuth2Server.Request({ headers: FORM, method: "POST", query: {}, body: form.params });
    const response = new OAuth2Server.Response({});
    const { accessTtlMs, refreshTtlMs } = this.options;
    const server = new OAuth2Server({ model: this.model(params, context) });
    const options = {
      accessTokenLifetime: accessTtlMs / 1_000,
      refreshTokenLifetime: refreshTtlMs / 1_000,
      // Public clients have no secret; the model authenticates all others.
      requireClientAuthentication: { authorization_code: false, refresh_token: false },
    };
    try {
      await server.token(request, response, options);
    } catch (error) {
      if (error instanceof ServerError) throw rootCauseOf(error);
      if (error instanceof InvalidClientError) return invalidClient(authorization);
      return { status: (error as OAuth2Server.OAuthError).code, body: response.body as object, headers: NO_STORE };
    }
    // The library omits a lifetime of less than a second.
    const body = { ...(response.body as object), expires_in: accessTtlMs / 1_000 };
    return { status: 200, body, headers: NO_STORE };
  }

  /** What the library calls during one request. */
  private model(params: Params, context: RequestContext): TokenModel {
    const { accounts, sessions, codes } = this.options;
    let code: AuthorizationCode | null = null;
    let refresh: RefreshToken | null = null;
    const model = {
      getClient: async (id: string, secret: string | undefined) => {
        const client = authenticateClient(accounts, id, secret);
        return client === null ? null : libraryClientOf(client);
      },
      getAuthorizationCode: async (text: string) => {
        code = await codes.find(text, context);
        return code === null ? null : libraryCodeOf(text, code);
      },
      // Of two requests with one code, only the first counts a first use here.
      revokeAuthorizationCode: async () => code !== null && ++code.uses === 1,
      getRefreshToken: async (text: string) => {
        refresh = await sessions.find(text, true, context).catch(rejectedAs(null));
        if (refresh === null) return null;
        const { row, user, grant } = refresh.session;
        assert(grant !== null, "a third party's session belongs to a grant");
        const expires = { refreshToken: text, refreshTokenExpiresAt: new Date(row.expiresAt) };
        return { ...expires, scope: row.scopes.split(" "), client: libraryClientOf(grant.client), user };
      },
      // `saveToken` revokes it with the rotation.
      revokeToken: async () => true,
      validateScope: async (_user: object, _client: object, scope: string[]) => scope,
      generateAccessToken: async () => MADE_LATER,
      generateRefreshToken: async () => MADE_LATER,
      saveToken: async (token: OAuth2Server.Token, client: OAuth2Server.Client, user: OAuth2Server.User) => {
        const tokens = await this.exchange(code, refresh, params, token.scope ?? null, context);
        const { accessToken, refreshToken } = tokens;
        return { accessToken, refreshToken, scope: [...tokens.scopes], client, user };
      },
    };
    return model as unknown as TokenModel;
  }

  /** @throws InvalidGrantError */
  private async exchange(
    code: AuthorizationCode | null,
    refresh: RefreshToken | null,
    params: Params,
    scopes: readonly string[] | null,
    context: RequestContext,
  ): Promise<Tokens> {
    const { sessions, codes } = this.options;
    // The library would report this as invalid_request.
    if (code !== null && !isSameAddress(params["redirect_uri"] ?? "", code.redirectUri)) {
      throw new InvalidGrantError("Invalid grant: `redirect_uri` differs from the one in the authorization request");
    }
    assert(code !== null || refresh !== null, "the library found a code or a refresh token");
    const made =
      code !== null ? codes.redeem(code, context) : sessions.rotate(refresh as RefreshToken, context, scopes);
    const tokens = await made.catch(rejectedAs(null));
    if (tokens === null) throw new InvalidGrantError("Invalid grant: it has ended");
    return tokens;
  }
}

function libraryCodeOf(text: string, { client, user, scopes, challenge, expiresAt }: AuthorizationCode) {
  return {
    authorizationCode: text,
    expiresAt: new Date(expiresAt),
    scope: scopes,
    codeChallenge: challenge,
    codeChallengeMethod: "S256",
    client: libraryClientOf(client),
    user,
  };
}
