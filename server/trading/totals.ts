/** The exchange's totals as of what the gateway has applied, for /solvency and the metrics. */
import type { Ledger } from "../../engine/ledger.ts";
import type { LogProgress } from "../../engine/log/progress.ts";
import type { ExchangeTotals } from "./types.ts";

/** Returns a function that reads the totals. */
export function readTotals(ledger: Ledger, progress: LogProgress): () => ExchangeTotals {
  return () => {
    const { batch: sequence, at } = progress.committed;
    return { ...ledger.totals, sequence, at };
  };
}
