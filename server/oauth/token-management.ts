/** The revocation endpoint (RFC 7009) and the introspection endpoint (RFC 7662): what a client may do with its own tokens. */
import type { Accounts } from "../accounts/accounts.ts";
import type { RequestContext } from "../accounts/audit.ts";
import { Session } from "../accounts/credentials.ts";
import type { OAuthClient } from "../accounts/types.ts";
import { rejectedAs } from "../errors.ts";
import type { Authenticator } from "../sign-in/authenticator.ts";
import type { Sessions } from "../sign-in/sessions.ts";
import { claimsOf } from "../sign-in/signing-keys.ts";
import { authenticateForm, invalidClient, NO_STORE, withHeaderCredentials } from "./client-authentication.ts";
import type { OAuthResponse, Params } from "./types.ts";

export class TokenManagement {
  private readonly accounts: Accounts;
  private readonly authenticator: Authenticator;
  private readonly sessions: Sessions;

  constructor(accounts: Accounts, authenticator: Authenticator, sessions: Sessions) {
    this.accounts = accounts;
    this.authenticator = authenticator;
    this.sessions = sessions;
  }

  /** Ends the token's session. An unknown token, or another client's, changes nothing. */
  async revoke(params: Params, authorization: string, context: RequestContext): Promise<OAuthResponse> {
    const form = withHeaderCredentials(params, authorization);
    if ("status" in form) return form;
    const client = authenticateForm(this.accounts, form.params);
    if (client === null) return invalidClient(authorization);
    const token = params["token"] ?? "";
    if (token === "") return { status: 400, body: { error: "invalid_request" }, headers: NO_STORE };
    const session = await this.sessionOf(token, client, context.now);
    if (session !== null) await this.sessions.end([session], "revoked", `oauth client ${client.row.id}`, context);
    return { status: 200, body: {}, headers: NO_STORE };
  }

  /** For confidential clients. */
  async introspect(params: Params, authorization: string, now: number): Promise<OAuthResponse> {
    const form = withHeaderCredentials(params, authorization);
    if ("status" in form) return form;
    const client = authenticateForm(this.accounts, form.params);
    if (client === null || client.row.secretHash === null) return invalidClient(authorization);
    const token = params["token"] ?? "";
    if (token === "") return { status: 400, body: { error: "invalid_request" }, headers: NO_STORE };
    const session = await this.sessionOf(token, client, now);
    if (session === null || session.user.suspendedAt !== null) {
      return { status: 200, body: { active: false }, headers: NO_STORE };
    }
    const isRefresh = this.sessions.peek(token, now) !== null;
    const claims = isRefresh ? { exp: Math.floor(session.row.expiresAt / 1_000) } : claimsOf(token);
    const body = {
      active: true,
      scope: session.row.scopes,
      client_id: client.row.clientId,
      sub: String(session.user.id),
      ...claims,
      ...(isRefresh ? {} : { token_type: "Bearer" }),
    };
    return { status: 200, body, headers: NO_STORE };
  }

  /** The live session of this client that an access or refresh token belongs to. */
  private async sessionOf(token: string, client: OAuthClient, now: number): Promise<Session | null> {
    const session = this.sessions.peek(token, now) ?? (await this.sessionOfAccessToken(token, now));
    if (session === null || session.isEnded || session.kind !== "oauth") return null;
    return session.grant?.client === client ? session : null;
  }

  private async sessionOfAccessToken(token: string, now: number): Promise<Session | null> {
    const principal = await this.authenticator.verify(token, now).catch(rejectedAs(null));
    const credential = principal?.credential;
    return credential instanceof Session ? credential : null;
  }
}
