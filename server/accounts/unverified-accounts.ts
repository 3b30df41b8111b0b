/**
 * Deletes accounts whose email address was never verified: after seven days, and the oldest when registrations would
 * fill the exchange. Everything of the account goes except its audit log entries, and its address becomes free. An
 * account with a record of money stays. Owned by the gateway thread; deletes from memory first.
 */

import type { AccountWrite } from "../../engine/projection/writes/account-write.ts";
import type { AuditEntry } from "../../engine/projection/writes/audit-log.ts";
import type { AccountWriter } from "./account-writer.ts";
import type { Accounts } from "./accounts.ts";
import { MAX_DELETED_AT_ONCE, MAX_UNVERIFIED_USERS, UNVERIFIED_ACCOUNT_MS } from "./limits.ts";
import type { User } from "./types.ts";

type Reason = "not_verified_in_time" | "too_many_unverified";

export class UnverifiedAccounts {
  private readonly accounts: Accounts;
  private readonly writer: AccountWriter;
  private readonly max: number;

  /** @param max number of unverified accounts */
  constructor(accounts: Accounts, writer: AccountWriter, most = MAX_UNVERIFIED_USERS) {
    this.accounts = accounts;
    this.writer = writer;
    this.max = most;
  }

  /** Deletes a slice of the overdue accounts; resolves with their number once that is durable. */
  async deleteOverdue(now: number): Promise<number> {
    const overdue: User[] = [];
    for (const user of this.accounts.unverifiedUsers()) {
      if (user.createdAt > now - UNVERIFIED_ACCOUNT_MS || overdue.length === MAX_DELETED_AT_ONCE) break;
      overdue.push(user);
    }
    await this.delete(overdue, "not_verified_in_time", now);
    return overdue.length;
  }

  /** Makes room for one more registration: at the maximum, deletes the oldest account. */
  async makeRoom(now: number): Promise<void> {
    if (this.accounts.unverifiedCount < this.max) return;
    for (const oldest of this.accounts.unverifiedUsers()) return this.delete([oldest], "too_many_unverified", now);
  }

  private async delete(users: readonly User[], reason: Reason, now: number): Promise<void> {
    if (users.length === 0) return;
    // From here nobody can verify one: its links are deleted with it.
    for (const user of users) this.accounts.removeUser(user);
    const writes = users.map(({ id }): AccountWrite => ({ kind: "deleteUser", userId: id }));
    const audits = users.map(({ id }, write): AuditEntry => {
      const rest = { requestId: null, address: null, details: { reason } };
      return { at: now, action: "user.delete", actor: "exchange", userId: id, subject: id, write, ...rest };
    });
    const results = await this.writer.write(writes, audits);
    // A deposit committed first: the account stays, without its credentials.
    for (const [i, user] of users.entries()) {
      if (results[i]?.created !== false) continue;
      this.accounts.addUser(user);
      this.accounts.keepUser(user.id);
    }
  }
}
