/** Grants: what users allow OAuth clients to do. A user has at most one grant per client, with the scopes of all consents. */

import type { Accounts } from "../accounts/accounts.ts";
import { actorOf, audit, type RequestContext } from "../accounts/audit.ts";
import { type Grant, type OAuthClient, type Principal, SCOPES } from "../accounts/types.ts";
import { ApiError, ErrorKind, notFound } from "../errors.ts";
import type { Sessions } from "../sign-in/sessions.ts";
import { InFlightCounter } from "../util/in-flight-counter.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";
import { MAX_GRANTS_PER_USER } from "./limits.ts";

export class OAuthGrants {
  private readonly accounts: Accounts;
  private readonly writer: LogWriter;
  private readonly sessions: Sessions;
  /** Grants on their way to the database, by user and client: one each. */
  private readonly creating = new Map<string, Promise<Grant>>();
  private readonly creatingByUser = new InFlightCounter();

  constructor(accounts: Accounts, writer: LogWriter, sessions: Sessions) {
    this.accounts = accounts;
    this.writer = writer;
    this.sessions = sessions;
  }

  /** The user's grant to the client, extended by these scopes. @throws ApiError 40900 when the user has the maximum number */
  async consent(
    principal: Principal,
    client: OAuthClient,
    scopes: readonly string[],
    context: RequestContext,
  ): Promise<Grant> {
    const { userId } = principal;
    const key = `${userId} ${client.row.id}`;
    // Without a pause before `creating` has the key: two consents of one turn would each create a grant.
    const found = this.accounts.grantOf(userId, client) ?? this.creating.get(key);
    if (found !== undefined) return this.extend(await found, principal, scopes, context);
    const creating = this.create(principal, client, scopes, context);
    this.creating.set(key, creating);
    return creating.finally(() => this.creating.delete(key));
  }

  private async extend(
    grant: Grant,
    principal: Principal,
    scopes: readonly string[],
    context: RequestContext,
  ): Promise<Grant> {
    const granted = grant.row.scopes.split(" ");
    const all = SCOPES.filter((scope) => granted.includes(scope) || scopes.includes(scope));
    if (all.length === granted.length) return grant;
    grant.row.scopes = all.join(" ");
    const { id, userId } = grant.row;
    const change = { action: "grant.extend", userId, subject: id, details: { scopes: all } };
    const write: RequestedWrite = { kind: "update", table: "oauth_grants", id, set: { scopes: grant.row.scopes } };
    await this.writer.write([write], [audit(context, actorOf(principal), change)]);
    return grant;
  }

  private async create(
    principal: Principal,
    client: OAuthClient,
    scopes: readonly string[],
    context: RequestContext,
  ): Promise<Grant> {
    const { accounts, writer } = this;
    const { userId } = principal;
    if (accounts.grants.countOf(userId) + this.creatingByUser.of(userId) >= MAX_GRANTS_PER_USER) {
      throw new ApiError(ErrorKind.conflict, `at most ${MAX_GRANTS_PER_USER} grants: revoke one first`);
    }
    const row = { userId, clientId: client.row.id, scopes: scopes.join(" "), createdAt: context.now };
    const change = { action: "grant.create", userId, details: { client: client.row.clientId, scopes: row.scopes } };
    const write: RequestedWrite = { kind: "insert", table: "oauth_grants", row };
    const id = await this.creatingByUser.during(userId, () => {
      return writer.insert(write, [audit(context, actorOf(principal), change)]);
    });
    const grant = accounts.addGrant({ ...row, id, lastUsedAt: null });
    if (grant === null) throw new ApiError(ErrorKind.conflict, "the client was removed");
    // A password reset may have ended all access during the write.
    if (principal.credential.isEnded) {
      await this.end(grant, actorOf(principal), context);
      throw new ApiError(ErrorKind.unauthenticated, "the session has ended");
    }
    return grant;
  }

  /** @throws ApiError 4040 unless the caller gave it */
  async revoke(principal: Principal, id: number, context: RequestContext): Promise<void> {
    const grant = this.accounts.grants.get(id);
    if (grant === undefined || grant.row.userId !== principal.userId) throw notFound("grant");
    await this.end(grant, actorOf(principal), context);
  }

  /** Ends the grant and its sessions at once; resolves when that is durable. */
  async end(grant: Grant, actor: string, context: RequestContext): Promise<void> {
    const { accounts, writer, sessions } = this;
    const { id, userId } = grant.row;
    const ended = sessions.end(accounts.sessionsOfGrant(grant), "grant_revoked", actor, context);
    accounts.removeGrant(grant);
    const change = { action: "grant.revoke", userId, subject: id };
    const write: RequestedWrite = { kind: "update", table: "oauth_grants", id, set: { revokedAt: context.now } };
    await Promise.all([ended, writer.write([write], [audit(context, actor, change)])]);
  }
}
