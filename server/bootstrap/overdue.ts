/**
 * Deletes what is overdue: accounts whose email was never verified, and rows of ended sessions and the like. A backlog is
 * deleted slice by slice, so that no commit waits for all of it.
 */

import type { AccountWriter } from "../accounts/account-writer.ts";
import { KEEP_ENDED_SESSIONS_MS } from "../accounts/limits.ts";
import type { UnverifiedAccounts } from "../accounts/unverified-accounts.ts";
import type { Lifecycle } from "./lifecycle.ts";

export class OverdueDeletion {
  private readonly unverified: UnverifiedAccounts;
  private readonly writer: AccountWriter;
  private readonly lifecycle: Lifecycle;

  constructor(unverified: UnverifiedAccounts, writer: AccountWriter, lifecycle: Lifecycle) {
    this.unverified = unverified;
    this.writer = writer;
    this.lifecycle = lifecycle;
  }

  /** Deletes the first slice of each; goes on until the backlog is empty or the server is no longer ready. */
  begin(): void {
    this.deleteAccounts();
    this.deleteRows();
  }

  private deleteAccounts(): void {
    this.unverified.deleteOverdue(Date.now()).then(
      (deleted) => {
        if (deleted > 0 && this.lifecycle.phase === "ready") this.deleteAccounts();
      },
      // The journal has failed, and reports that itself.
      () => {},
    );
  }

  private deleteRows(): void {
    const at = Date.now();
    this.writer.write([{ kind: "sweep", endedBefore: at - KEEP_ENDED_SESSIONS_MS, at }]).then(
      ([swept]) => {
        if (swept?.created === true && this.lifecycle.phase === "ready") this.deleteRows();
      },
      () => {},
    );
  }
}
