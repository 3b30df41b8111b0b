/** GET /metrics of a box that isn't active: what it is, how far it is behind, and prom-client's own of the process. */
import { collectDefaultMetrics, Registry } from "prom-client";
import type { LogProgress } from "../../engine/log/progress.ts";
import type { Replication } from "../replication/replication.ts";
import { BOOK_HISTORY_BEHIND, BOOK_HISTORY_FAILURES, type BookHistory } from "./book-history.ts";
import { PacedText } from "./paced-text.ts";
import { Figure, plain } from "./samples.ts";
import { addDifferences } from "./standby-metrics.ts";

export function createStandingByMetrics(
  { status, settings }: Pick<Replication, "status" | "settings">,
  progress: LogProgress,
  bookHistory: () => Pick<BookHistory, "behindSeconds" | "failures"> | null,
): () => Promise<string> {
  const registry = new Registry();
  const gauge = (name: string, help: string, read: () => number): void =>
    new Figure("gauge", name, help, () => plain(read())).addTo(registry);
  new Figure("gauge", "standby_role", "1 for what this box is", () => [
    { labels: { role: "standby" }, value: 1 },
  ]).addTo(registry);
  new Figure("gauge", "standby_ack", "1 for what an acknowledgement waits for", () => [
    { labels: { policy: settings.ack }, value: 1 },
  ]).addTo(registry);
  gauge("standby_epoch", "Rises by 1 with each box that becomes active", () => status.get("epoch"));
  gauge("standby_behind_batches", "Batches of the active box that this one's log lacks", () => status.behindBatches);
  gauge("standby_keys_equal", "1 where this box has the active box's keys", () => status.get("keysEqual"));
  addDifferences(status, (name, ...more) => gauge(`standby_${name}`, ...more));
  new Figure(
    "counter",
    "standby_cut_batches_total",
    "Batches cut off this box's log: the other's went on differently",
    () => plain(status.get("cutBatches")),
  ).addTo(registry);
  gauge("projection_lag_batches", "Batches that the stream has and the tables lack", () =>
    Math.max(0, progress.committedBatch - progress.projectedBatch),
  );
  gauge("book_history_behind_seconds", BOOK_HISTORY_BEHIND, () => bookHistory()?.behindSeconds ?? 0);
  new Figure("counter", "book_history_failures_total", BOOK_HISTORY_FAILURES, () =>
    plain(bookHistory()?.failures ?? 0),
  ).addTo(registry);
  collectDefaultMetrics({ register: registry });
  const paced = new PacedText(() => registry.metrics());
  return () => paced.text();
}
