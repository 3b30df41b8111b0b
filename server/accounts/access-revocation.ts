/** Revokes an account's access: sessions, personal access tokens, grants to third parties, and its own OAuth clients. */
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedAudit, RequestedWrite } from "../writes/types.ts";
import type { Accounts } from "./accounts.ts";
import { audit, type RequestContext } from "./audit.ts";
import type { Session } from "./credentials.ts";
import { clientRemoval } from "./oauth-client-removal.ts";
import type { Grant, User } from "./types.ts";

interface AccessRevocation {
  /** Why sessions ended, for the audit log. */
  readonly reason: "email_verified" | "email_claimed" | "password_reset" | "account_suspended" | "account_restored";
  /**
   * "sessions": those that the user opened; "access": all sessions, tokens and grants; "everything": also the account's OAuth
   * clients, with the grants of others to them.
   */
  readonly ends: "sessions" | "access" | "everything";
  /** Who revokes, for the audit log. */
  readonly actor: string;
  /** The session that stays. */
  readonly keep?: Session | null;
}

export type RevokeAccess = (user: User, revocation: AccessRevocation, context: RequestContext) => Promise<void>;

export interface AccessRevokerOptions {
  readonly accounts: Accounts;
  readonly sessions: {
    end(ending: readonly Session[], reason: string, actor: string, context: RequestContext): Promise<void>;
  };
  readonly writer: Pick<LogWriter, "write">;
}

/**
 * Returns a function that revokes access at once and resolves when that is durable. The caller saves the change that it
 * belongs to afterwards, so that no crash leaves that change without the revocation.
 */
export function createAccessRevoker({ accounts, sessions, writer }: AccessRevokerOptions): RevokeAccess {
  return async (user, { reason, ends, actor, keep = null }, context) => {
    const own = accounts.sessions.of(user.id).filter(({ grant }) => grant === null || ends !== "sessions");
    const ending = new Set(own.filter((session) => session !== keep));
    const set = { revokedAt: context.now };
    const writes: RequestedWrite[] = [];
    const audits: RequestedAudit[] = [];
    const end = (write: RequestedWrite & { kind: "update" }, action: string): void => {
      const change = { action, userId: user.id, subject: write.id, write: writes.length };
      audits.push(audit(context, actor, change));
      writes.push(write);
    };
    for (const pat of ends === "sessions" ? [] : accounts.pats.of(user.id)) {
      accounts.endPat(pat);
      end({ kind: "update", table: "personal_access_tokens", id: pat.id, set }, "pat.revoke");
    }
    for (const grant of grantsToRevoke(accounts, user, ends)) {
      for (const session of accounts.sessionsOfGrant(grant)) ending.add(session);
      accounts.removeGrant(grant);
      end({ kind: "update", table: "oauth_grants", id: grant.row.id, set }, "grant.revoke");
    }
    for (const client of ends === "everything" ? accounts.clients.of(user.id) : []) {
      accounts.removeClient(client);
      const { id } = client.row;
      end(clientRemoval(id, context.now), "client.remove");
    }
    const written = writes.length === 0 ? null : writer.write(writes, audits);
    await Promise.all([written, sessions.end([...ending], reason, actor, context)]);
  };
}

function grantsToRevoke({ grants }: Accounts, user: User, ends: AccessRevocation["ends"]): Grant[] {
  if (ends === "sessions") return [];
  if (ends === "access") return grants.of(user.id);
  return [...grants.values()].filter(({ row, client }) => row.userId === user.id || client.row.userId === user.id);
}
