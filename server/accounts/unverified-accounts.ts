/**
 * Deletes accounts whose email address was never verified: after seven days, and the oldest when registrations would
 * fill the exchange. Everything of the account goes except its audit log entries, and its address becomes free. An
 * account with a record of money stays. Owned by the gateway thread; deletes from memory first.
 */

import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedAudit, RequestedWrite } from "../writes/types.ts";
import type { Accounts } from "./accounts.ts";
import { MAX_DELETED_AT_ONCE, MAX_UNVERIFIED_USERS, UNVERIFIED_ACCOUNT_MS } from "./limits.ts";
import type { User } from "./types.ts";
import { mustVerify } from "./users.ts";

type Reason = "not_verified_in_time" | "too_many_unverified";

export class UnverifiedAccounts {
  private readonly accounts: Accounts;
  private readonly writer: LogWriter;
  private readonly max: number;

  /** @param max number of unverified accounts */
  constructor(accounts: Accounts, writer: LogWriter, most = MAX_UNVERIFIED_USERS) {
    this.accounts = accounts;
    this.writer = writer;
    this.max = most;
  }

  /** Deletes a slice of the overdue accounts; resolves with their number once that is durable. */
  async deleteOverdue(now: number): Promise<number> {
    const overdue: User[] = [];
    for (const user of this.accounts.unverifiedUsers()) {
      if (user.createdAt > now - UNVERIFIED_ACCOUNT_MS || overdue.length === MAX_DELETED_AT_ONCE) break;
      if (this.canDelete(user)) overdue.push(user);
    }
    await this.delete(overdue, "not_verified_in_time", now);
    return overdue.length;
  }

  /** Makes room for one more registration: at the maximum, deletes the oldest account. */
  async makeRoom(now: number): Promise<void> {
    if (this.accounts.unverifiedCount < this.max) return;
    for (const oldest of this.accounts.unverifiedUsers()) {
      if (this.canDelete(oldest)) return this.delete([oldest], "too_many_unverified", now);
    }
  }

  /** False while what keeps the account is on its way to the log: its verification, or a deposit. */
  private canDelete(user: User): boolean {
    return mustVerify(user) && !this.accounts.isFunding(user.id);
  }

  private async delete(users: readonly User[], reason: Reason, now: number): Promise<void> {
    if (users.length === 0) return;
    // From here nobody can verify one, because its links are deleted with it, and no deposit finds it.
    for (const user of users) this.accounts.removeUser(user);
    const writes = users.map(({ id }): RequestedWrite => ({ kind: "deleteUser", userId: id }));
    const audits = users.map(({ id }, write): RequestedAudit => {
      const rest = { requestId: null, address: null, details: { reason } };
      return { at: now, action: "user.delete", actor: "exchange", userId: id, subject: id, write, ...rest };
    });
    await this.writer.write(writes, audits);
  }
}
