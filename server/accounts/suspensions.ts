/**
 * Suspension of an account by an operator: ends its sessions for good, rejects its tokens, ends its sockets, cancels its
 * orders. Tokens and grants return with the account only if the operator who restores it says so: a thief's would, too.
 */

import { ApiError, ErrorKind } from "../errors.ts";
import { KeyedMutex } from "../util/keyed-mutex.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RevokeAccess } from "./access-revocation.ts";
import type { Accounts } from "./accounts.ts";
import { audit, type RequestContext } from "./audit.ts";
import { checkNotOwn, type Operator } from "./operator.ts";
import type { Credential, User } from "./types.ts";
import { changeUser } from "./users.ts";

/** What becomes of a suspended account's tokens and grants when the account is restored. */
export const SUSPENDED_TOKENS = ["restore", "revoke"] as const;
export type SuspendedTokens = (typeof SUSPENDED_TOKENS)[number];

const BEING_SUSPENDED = "the account is being suspended: try again";

export interface SuspensionOptions {
  readonly accounts: Accounts;
  readonly writer: LogWriter;
  readonly revokeAccess: RevokeAccess;
  /** Ends the sockets that a credential opened. */
  readonly endSockets: (credential: Credential) => void;
  /** Cancels all of the user's orders; resolves when that is durable, or after a timeout. */
  readonly cancelOrders: (userId: number) => Promise<void>;
}

export class Suspensions {
  private readonly options: SuspensionOptions;
  /** Users whose suspension is not durable yet: a restore must not overtake it. */
  private readonly beginning = new KeyedMutex<number>(BEING_SUSPENDED);

  constructor(options: SuspensionOptions) {
    this.options = options;
  }

  /** @throws ApiError 40300 for the operator's own account, 40900 if it is already suspended */
  async suspend(user: User, note: string | null, operator: Operator, context: RequestContext): Promise<void> {
    const { accounts, writer, endSockets, cancelOrders, revokeAccess } = this.options;
    checkNotOwn(operator, user.id);
    if (user.suspendedAt !== null) throw conflict("the account is already suspended");
    const write = changeUser(user, { suspendedAt: context.now });
    const canceled = cancelOrders(user.id);
    for (const credential of accounts.credentialsOf(user.id)) endSockets(credential);
    await this.beginning.run(user.id, async () => {
      // Before the suspension is durable, so that no crash leaves a suspended user with live orders.
      await canceled;
      const { actor } = operator;
      const ended = revokeAccess(user, { reason: "account_suspended", ends: "sessions", actor }, context);
      await Promise.all([
        ended,
        writer.write([write], [audit(context, actor, changeOf("user.suspend", user, { note }))]),
      ]);
    });
  }

  /**
   * Canceled orders stay canceled, and ended sessions ended.
   * @param tokens what becomes of its tokens and grants @throws ApiError 40300 as above, 40900 unless the account is suspended
   */
  async restore(
    user: User,
    { note, tokens }: { readonly note: string | null; readonly tokens: SuspendedTokens },
    operator: Operator,
    context: RequestContext,
  ): Promise<void> {
    checkNotOwn(operator, user.id);
    if (user.suspendedAt === null) throw conflict("the account is not suspended");
    if (this.beginning.has(user.id)) throw conflict(BEING_SUSPENDED);
    const { writer, revokeAccess } = this.options;
    const { actor } = operator;
    // Sessions of an account that an earlier version suspended end here.
    const ends = tokens === "restore" ? "sessions" : "access";
    const revoked = revokeAccess(user, { reason: "account_restored", ends, actor }, context);
    const write = changeUser(user, { suspendedAt: null });
    const line = audit(context, actor, changeOf("user.restore", user, { note, tokens }));
    await Promise.all([revoked, writer.write([write], [line])]);
  }
}

function changeOf(action: string, { id }: User, details: object) {
  return { action, userId: id, subject: id, details };
}

function conflict(message: string): ApiError {
  return new ApiError(ErrorKind.conflict, message);
}
