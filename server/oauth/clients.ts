/** OAuth clients: third parties' registrations, created and removed by the developer's account. */
import { randomBytes } from "node:crypto";
import type { Accounts } from "../accounts/accounts.ts";
import { actorOf, audit, type RequestContext } from "../accounts/audit.ts";
import { clientRemoval } from "../accounts/oauth-client-removal.ts";
import { hashToken } from "../accounts/token-hash.ts";
import type { OAuthClient, Principal } from "../accounts/types.ts";
import { ApiError, ErrorKind, notFound } from "../errors.ts";
import { InFlightCounter } from "../util/in-flight-counter.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";
import type { OAuthGrants } from "./grants.ts";
import { MAX_CLIENTS_PER_USER } from "./limits.ts";
import { redirectUriText } from "./redirect-uris.ts";

const CLIENT_ID_BYTES = 12;
const SECRET_BYTES = 32;
const SECRET_PREFIX = "pm_sec_";

export interface ClientRegistration {
  readonly name: string;
  readonly redirectUris: readonly string[];
  /** A confidential client gets a secret; a public client has none. */
  readonly isConfidential: boolean;
}

export class OAuthClients {
  private readonly accounts: Accounts;
  private readonly writer: LogWriter;
  private readonly grants: OAuthGrants;
  /** By user: clients on their way to the database. */
  private readonly creating = new InFlightCounter();

  constructor(accounts: Accounts, writer: LogWriter, grants: OAuthGrants) {
    this.accounts = accounts;
    this.writer = writer;
    this.grants = grants;
  }

  /** The secret is null for a public client. @throws ApiError 40000; 40900 when the user has the maximum number */
  async create(
    principal: Principal,
    registration: ClientRegistration,
    context: RequestContext,
  ): Promise<{ client: OAuthClient; secret: string | null }> {
    const { accounts, writer } = this;
    const { userId } = principal;
    const redirectUris = redirectUriText(registration.redirectUris);
    if (accounts.clients.countOf(userId) + this.creating.of(userId) >= MAX_CLIENTS_PER_USER) {
      throw new ApiError(ErrorKind.conflict, `at most ${MAX_CLIENTS_PER_USER} clients: remove one first`);
    }
    const secret = registration.isConfidential ? SECRET_PREFIX + randomBytes(SECRET_BYTES).toString("base64url") : null;
    const row = {
      userId,
      clientId: randomBytes(CLIENT_ID_BYTES).toString("hex"),
      name: registration.name,
      redirectUris,
      secretHash: secret === null ? null : hashToken(secret),
      createdAt: context.now,
    };
    const change = { action: "client.create", userId, details: { client: row.clientId, name: row.name } };
    const write: RequestedWrite = { kind: "insert", table: "oauth_clients", row };
    const id = await this.creating.during(userId, () => {
      return writer.insert(write, [audit(context, actorOf(principal), change)]);
    });
    const client = accounts.addClient({ ...row, id });
    // A password reset may have ended all access during the write.
    if (principal.credential.isEnded) {
      await this.remove(principal, id, context);
      throw new ApiError(ErrorKind.unauthenticated, "the session has ended");
    }
    return { client, secret };
  }

  /** Also ends every grant to the client. @throws ApiError 4040 unless the caller owns it */
  async remove(principal: Principal, id: number, context: RequestContext): Promise<void> {
    const { accounts, writer } = this;
    const client = accounts.clients.get(id);
    if (client === undefined || client.row.userId !== principal.userId) throw notFound("client");
    accounts.removeClient(client);
    const grants = [...accounts.grants.values()].filter((grant) => grant.client === client);
    const ended = grants.map((grant) => this.grants.end(grant, actorOf(principal), context));
    const change = { action: "client.remove", userId: principal.userId, subject: id };
    const write = clientRemoval(id, context.now);
    await Promise.all([...ended, writer.write([write], [audit(context, actorOf(principal), change)])]);
  }
}
