/** Suspension of an account by an operator: rejects its tokens, ends its sockets, cancels its orders. */

import { ApiError, ErrorKind } from "../errors.ts";
import { KeyedMutex } from "../util/keyed-mutex.ts";
import type { AccountWriter } from "./account-writer.ts";
import type { Accounts } from "./accounts.ts";
import { audit, type RequestContext } from "./audit.ts";
import { checkNotOwn, type Operator } from "./operator.ts";
import type { Credential, User } from "./types.ts";
import { changeUser } from "./users.ts";

const BEING_SUSPENDED = "the account is being suspended: try again";

export interface SuspensionOptions {
  readonly accounts: Accounts;
  readonly writer: AccountWriter;
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
    const { accounts, writer, endSockets, cancelOrders } = this.options;
    checkNotOwn(operator, user.id);
    if (user.suspendedAt !== null) throw conflict("the account is already suspended");
    const write = changeUser(user, { suspendedAt: context.now });
    const canceled = cancelOrders(user.id);
    for (const credential of accounts.credentialsOf(user.id)) endSockets(credential);
    await this.beginning.run(user.id, async () => {
      // Before the suspension is durable, so that no crash leaves a suspended user with live orders.
      await canceled;
      await writer.write([write], [audit(context, operator.actor, changeOf("user.suspend", user, note))]);
    });
  }

  /** Canceled orders stay canceled. @throws ApiError 40300 as above, 40900 unless the account is suspended */
  async restore(user: User, note: string | null, operator: Operator, context: RequestContext): Promise<void> {
    checkNotOwn(operator, user.id);
    if (user.suspendedAt === null) throw conflict("the account is not suspended");
    if (this.beginning.has(user.id)) throw conflict(BEING_SUSPENDED);
    const write = changeUser(user, { suspendedAt: null });
    await this.options.writer.write([write], [audit(context, operator.actor, changeOf("user.restore", user, note))]);
  }
}

function changeOf(action: string, { id }: User, note: string | null) {
  return { action, userId: id, subject: id, details: { note } };
}

function conflict(message: string): ApiError {
  return new ApiError(ErrorKind.conflict, message);
}
