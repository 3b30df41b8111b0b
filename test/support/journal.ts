/** Account writes of the journal on the database of a stopped server, for changes that the API doesn't offer. */
import { join } from "node:path";
import { Journal } from "../../engine/log/journal.ts";
import { CommittedTotals } from "../../engine/log/totals.ts";
import { openDatabase } from "../../engine/projection/database.ts";
import type { AccountWrite } from "../../engine/projection/writes/account-write.ts";
import { OrderTexts } from "../../engine/ring/order-texts.ts";

export function writeInto(dataDir: string, ...writes: AccountWrite[]): void {
  const journal = new Journal({
    db: openDatabase(join(dataDir, "exchange.db"), "off"),
    gates: [],
    texts: new OrderTexts(1),
    totals: new CommittedTotals(),
    now: Date.now,
    clock: () => 0,
    onCommit: () => {},
    requestCheckpoint: () => {},
  });
  journal.commit(() => [{ id: 1, at: 0, writes, audits: [], kept: null }]);
  journal.close();
}
