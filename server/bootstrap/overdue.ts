/**
 * Deletes what is overdue: accounts whose email was never verified, and rows of ended sessions and the like. A backlog is
 * deleted slice by slice, so that no commit waits for all of it.
 */

import type { Clock } from "../../engine/util/clock.ts";
import { KEEP_ENDED_SESSIONS_MS } from "../accounts/limits.ts";
import type { UnverifiedAccounts } from "../accounts/unverified-accounts.ts";
import type { History } from "../queries/history.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { Lifecycle } from "./lifecycle.ts";

export class OverdueDeletion {
  private readonly unverified: UnverifiedAccounts;
  private readonly writer: LogWriter;
  private readonly history: History;
  private readonly lifecycle: Lifecycle;
  private readonly clock: Clock;

  constructor(unverified: UnverifiedAccounts, writer: LogWriter, history: History, lifecycle: Lifecycle, clock: Clock) {
    this.unverified = unverified;
    this.writer = writer;
    this.history = history;
    this.lifecycle = lifecycle;
    this.clock = clock;
  }

  /** Deletes the first slice of each; goes on until the backlog is empty or the server is no longer ready. */
  begin(): void {
    this.deleteAccounts();
    this.deleteRows();
  }

  private deleteAccounts(): void {
    this.unverified.deleteOverdue(this.clock.now()).then(
      (deleted) => {
        if (deleted > 0 && this.lifecycle.phase === "ready") this.deleteAccounts();
      },
      // The journal has failed, and reports that itself.
      () => {},
    );
  }

  private deleteRows(): void {
    this.sweep().then(
      (deleted) => {
        if (deleted && this.lifecycle.phase === "ready") this.deleteRows();
      },
      // The journal has failed, or too many reads wait: the next timer tries again.
      () => {},
    );
  }

  /** Deletes a slice of obsolete rows; resolves with false if there are none. */
  private async sweep(): Promise<boolean> {
    const at = this.clock.now();
    const endedBefore = at - KEEP_ENDED_SESSIONS_MS;
    if (!(await this.history.hasObsoleteRows({ endedBefore, at }))) return false;
    await this.writer.write([{ kind: "sweep", endedBefore, at }]);
    return true;
  }
}
