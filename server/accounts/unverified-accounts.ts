/**
 * Deletes accounts whose e-mail address nobody verified: those of seven days ago, and the oldest where there are so many
 * that registrations could fill the exchange. An account goes with everything it left but its lines in the audit log;
 * its address is free again. One with a record of money stays. Owned by the gateway thread: memory first, at once.
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

  /** @param most that there may be at one time */
  constructor(accounts: Accounts, writer: AccountWriter, most = MAX_UNVERIFIED_USERS) {
    this.accounts = accounts;
    this.writer = writer;
    this.max = most;
  }

  /** Deletes a slice of those whose time is over; resolves, when that is durable, with their number. */
  async deleteOverdue(now: number): Promise<number> {
    const overdue: User[] = [];
    for (const user of this.accounts.unverifiedUsers()) {
      if (user.createdAt > now - UNVERIFIED_ACCOUNT_MS || overdue.length === MAX_DELETED_AT_ONCE) break;
      overdue.push(user);
    }
    await this.delete(overdue, "not_verified_in_time", now);
    return overdue.length;
  }

  /** Makes room for one more registration: the oldest goes where there are as many as may be. */
  async makeRoom(now: number): Promise<void> {
    if (this.accounts.unverifiedCount < this.max) return;
    for (const oldest of this.accounts.unverifiedUsers()) return this.delete([oldest], "too_many_unverified", now);
  }

  private async delete(users: readonly User[], reason: Reason, now: number): Promise<void> {
    if (users.length === 0) return;
    // From here nobody can verify one: its links are gone with it.
    for (const user of users) this.accounts.removeUser(user);
    const writes = users.map(({ id }): AccountWrite => ({ kind: "deleteUser", userId: id }));
    const audits = users.map(({ id }, write): AuditEntry => {
      const rest = { requestId: null, address: null, details: { reason } };
      return { at: now, action: "user.delete", actor: "exchange", userId: id, subject: id, write, ...rest };
    });
    const results = await this.writer.write(writes, audits);
    // Money that was on its way came first: the account stays, without what opened it.
    results.forEach(({ created }, i) => {
      if (created) return;
      this.accounts.addUser(users[i]!);
      this.accounts.keepUser(users[i]!.id);
    });
  }
}
