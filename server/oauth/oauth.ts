/**
 * The OAuth 2.0 authorization server for third-party clients: code flow with PKCE S256, refresh with rotation,
 * revocation (RFC 7009), introspection (RFC 7662), metadata (RFC 8414), best practice of RFC 9700. The protocol is
 * @node-oauth/oauth2-server's; the parts that this file wires together keep clients, grants and codes, and open our
 * sessions.
 */
import type { Accounts } from "../accounts/accounts.ts";
import type { Authenticator } from "../sign-in/authenticator.ts";
import type { Sessions } from "../sign-in/sessions.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import { AuthorizationCodes } from "./authorization-codes.ts";
import type { AuthorizationEndpoint } from "./authorization-endpoint.ts";
import { OAuthClients } from "./clients.ts";
import { OAuthGrants } from "./grants.ts";
import type { TokenEndpoint } from "./token-endpoint.ts";
import { TokenManagement } from "./token-management.ts";

export interface OAuthOptions {
  readonly accounts: Accounts;
  readonly authenticator: Authenticator;
  readonly sessions: Sessions;
  readonly writer: LogWriter;
  readonly accessTtlMs: number;
  readonly refreshTtlMs: number;
  readonly issuer: () => string;
}

/** What runs on the library. */
interface Endpoints {
  readonly authorization: AuthorizationEndpoint;
  readonly tokens: TokenEndpoint;
}

export class OAuth {
  readonly grants: OAuthGrants;
  readonly clients: OAuthClients;
  readonly codes: AuthorizationCodes;
  readonly management: TokenManagement;
  private readonly options: OAuthOptions;
  private loaded: Promise<Endpoints> | null = null;

  constructor(options: OAuthOptions) {
    const { accounts, authenticator, sessions, writer } = options;
    this.options = options;
    this.grants = new OAuthGrants(accounts, writer, sessions);
    this.clients = new OAuthClients(accounts, writer, this.grants);
    this.codes = new AuthorizationCodes(accounts, sessions);
    this.management = new TokenManagement(accounts, authenticator, sessions);
  }

  /** The first request loads their library. */
  endpoints(): Promise<Endpoints> {
    this.loaded ??= this.load();
    return this.loaded;
  }

  private async load(): Promise<Endpoints> {
    const [{ AuthorizationEndpoint }, { TokenEndpoint }] = await Promise.all([
      import("./authorization-endpoint.ts"),
      import("./token-endpoint.ts"),
    ]);
    const { grants, codes } = this;
    const { accounts, sessions, accessTtlMs, refreshTtlMs, issuer } = this.options;
    return {
      authorization: new AuthorizationEndpoint(accounts, grants, codes, issuer),
      tokens: new TokenEndpoint({ accounts, sessions, codes, accessTtlMs, refreshTtlMs }),
    };
  }
}
