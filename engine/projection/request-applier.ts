/**
 * Applies the log's requests: writes, the audit log's lines about them, and Idempotency-Keys. The gateway checked
 * everything that could reject a write before it posted the request.
 */
import type { LoggedRequest } from "../log/request.ts";
import { entriesOf, type Write } from "../log/writes.ts";
import { assert } from "../util/assert.ts";
import type { ProjectorParts } from "./parts.ts";
import { type AppendAudit, prepareAudit } from "./writes/audit-log.ts";
import type { ApplyWrite } from "./writes/context.ts";
import { prepareWrites } from "./writes/prepare-writes.ts";

export class RequestApplier {
  private readonly parts: ProjectorParts;
  private readonly flushRows: () => void;
  private readonly applyWrite: ApplyWrite;
  private readonly appendAudit: AppendAudit;

  /** @param flushRows writes dirty rows, before a write that changes or reads them */
  constructor(parts: ProjectorParts, flushRows: () => void) {
    this.parts = parts;
    this.flushRows = flushRows;
    this.applyWrite = prepare(parts);
    this.appendAudit = prepareAudit(parts.db);
  }

  apply({ writes, audits, kept }: LoggedRequest): void {
    const before = this.parts.counters.lastEntryId;
    let entries = 0;
    for (const write of writes) {
      if (touchesDirtyRows(write)) this.flushRows();
      this.applyWrite(write);
      entries += entriesOf(write);
    }
    assert(this.parts.counters.lastEntryId === before + entries, "each write creates the entries that it announces");
    for (const line of audits) this.appendAudit(line, entries === 0 ? 0 : before + 1);
    if (kept === null) return;
    const { keys } = this.parts;
    if (kept.reference !== null) keys.await(kept.reference, kept);
    else {
      assert(kept.subject !== null, "a kept request without a command has a row");
      keys.keep(kept, kept.subject, 0);
    }
  }
}

/** True if the write changes or reads rows that events may have made dirty: of orders, their updates and markets. */
function touchesDirtyRows(write: Write): boolean {
  if (write.kind === "update") return write.table === "orders" || write.table === "markets";
  return write.kind === "settleMarket" || write.kind === "deleteUser" || write.kind === "forgetLog";
}

function prepare(parts: ProjectorParts): ApplyWrite {
  const { counters, db, dirtyAccounts, holdings, ledger, links, markets, updates } = parts;
  return prepareWrites(db, {
    ledger,
    nextEntryId: () => ++counters.lastEntryId,
    forgetUpdates: (batch) => updates.forget(batch),
    newestFill: (user) => links.newestFill(user),
    addMarket: (market, first, outcomes) => markets.add(market, first, outcomes),
    forgetMarket: (market) => markets.forget(market),
    outcomesOf: (market) => ({ first: markets.firstOutcome(market), count: markets.outcomeCount(market) }),
    markUser(user, at, before) {
      holdings.balanceChanged(user, at, before);
      dirtyAccounts.users.add(user);
    },
    markPosition(position, at, before) {
      holdings.positionChanged(position, at, before);
      dirtyAccounts.positions.add(position);
    },
    markMarket: (market) => dirtyAccounts.markets.add(market),
  });
}
