/**
 * GET /metrics: the exchange's figures, and prom-client's own of the process, in Prometheus' text format. Nothing is
 * counted here: each figure is read from its owner when it is scraped.
 */
import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { collectDefaultMetrics, type MetricType, Registry } from "prom-client";
import { ORDER_STATUSES } from "../../engine/constants.ts";
import { type LogProgress, Obstacle } from "../../engine/log/progress.ts";
import type { Histogram } from "../../engine/util/histogram.ts";
import type { History } from "../queries/history.ts";
import type { Exchange } from "../trading/exchange.ts";
import type { ExchangeTotals } from "../trading/types.ts";
import type { Counters } from "../util/counters.ts";
import { BOOK_HISTORY_BEHIND, BOOK_HISTORY_FAILURES, type BookHistory } from "./book-history.ts";
import { lastBackupAt } from "./last-backup.ts";
import type { LogUpkeep } from "./log-upkeep.ts";
import { PacedText } from "./paced-text.ts";
import { Figure, MICROSECONDS, plain, type Sample, samplesOf } from "./samples.ts";
import { addStandby, type StandbyFigures } from "./standby-metrics.ts";

export interface MetricsOptions {
  readonly totals: () => ExchangeTotals;
  readonly progress: LogProgress;
  /** How far the tables are behind the log. */
  readonly lag: { readonly events: number; readonly ageMs: number };
  /** What is wrong with the log's archives. */
  readonly faults: { readonly count: number };
  readonly counters: Counters;
  readonly exchange: Exchange;
  readonly history: History;
  readonly dataDir: string;
  readonly databasePath: string;
  readonly journalPath: string;
  /** The folder of the log's archives. */
  readonly archives: string;
  readonly upkeep: Pick<LogUpkeep, "failures" | "unarchivedMs">;
  readonly bookHistory: Pick<BookHistory, "behindSeconds" | "bytes" | "failures">;
  /** The program's own log. */
  readonly output: { readonly dropped: number };
  /** Why the exchange does not trade; null while it does. */
  readonly unready: () => string | null;
  /** By engine thread: commands in its batches. */
  readonly batchCommands: readonly Histogram[];
  /** The log's commits: their duration in µs, and their placements. */
  readonly commitTimes: Histogram;
  readonly commitOrders: Histogram;
  /** Open WebSockets and their subscriptions, plain HTTP connections, and connections rejected so far. */
  readonly sockets: () => Readonly<Record<"connections" | "subscriptions" | "plain" | "refused", number>>;
  /** When the certificate ends, ms; null without one. */
  readonly certificateEndsAt: () => number | null;
  /** Null on a single box. */
  readonly standby: StandbyFigures | null;
}

/** 0 where the file does not exist. */
async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

/** The sum of a folder's files; 0 where there is no folder. */
async function sizeOfFolder(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(names.map((name) => sizeOf(join(folder, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Bytes of the file system that holds `folder`, in total and available to the exchange. */
async function diskOf(folder: string): Promise<{ size: number; free: number }> {
  const { blocks, bavail, bsize } = await statfs(folder);
  return { size: blocks * bsize, free: bavail * bsize };
}

export class Metrics {
  private readonly registry = new Registry();
  private readonly options: MetricsOptions;
  private readonly paced = new PacedText(() => this.registry.metrics());

  constructor(options: MetricsOptions) {
    this.options = options;
    this.addTrading();
    this.addTransports();
    this.addPipeline();
    this.addUpkeep();
    if (options.standby !== null) addStandby(options.standby, this.add.bind(this));
    collectDefaultMetrics({ register: this.registry });
  }

  /** All figures, none older than this call. */
  text(): Promise<string> {
    return this.paced.text();
  }

  private add(
    type: `${MetricType}`,
    name: string,
    help: string,
    read: () => readonly Sample[] | Promise<readonly Sample[]>,
  ): void {
    new Figure(type, name, help, read).addTo(this.registry);
  }

  private counter(name: string, help: string, read: () => number): void {
    this.add("counter", name, help, () => plain(read()));
  }

  private gauge(name: string, help: string, read: () => number): void {
    this.add("gauge", name, help, () => plain(read()));
  }

  private addTrading(): void {
    const { counters, exchange, totals } = this.options;
    this.counter("orders_total", "Durable placements, including those that the book rejected", () => {
      return counters.orders;
    });
    this.add("counter", "order_updates_total", "Orders that reached a status, by status", () =>
      counters.orderUpdates.flatMap((value, code) => {
        const status = ORDER_STATUSES[code];
        // Every order starts as queued: that is not an update.
        return status && status !== "queued" ? [{ labels: { status }, value }] : [];
      }),
    );
    this.counter("fills_total", "Sides of matches", () => counters.fills);
    this.counter("trades_total", "Matches", () => counters.trades);
    this.add(
      "gauge",
      "money_micro",
      "Micro-USDC as of the last commit, by account; a negative house is out of balance",
      () => {
        const { deposits, withdrawals, usersTotal: users, collateral, house } = totals();
        const sums = { deposits, withdrawals, users, collateral, house };
        return Object.entries(sums).map(([account, value]) => ({ labels: { account }, value }));
      },
    );
    this.add("counter", "refusals_total", "Requests, and operations of batches, that got an error, by its code", () =>
      [...counters.rejections].map(([code, value]) => ({ labels: { code }, value })),
    );
    this.gauge("live_orders", "Orders resting or in flight", () => exchange.store.liveCount);
    this.gauge("pending_answers", "Responses that wait for a commit", () => exchange.pending.size);
    const { latencies } = exchange.times;
    const stages = "Placements from receipt to response, by stage";
    this.add("histogram", "latency_seconds", stages, () =>
      Object.entries(latencies).flatMap(([stage, histogram]) => {
        return samplesOf("latency_seconds", histogram, MICROSECONDS, { stage });
      }),
    );
  }

  private addTransports(): void {
    const { counters, sockets } = this.options;
    const transports = [
      ["http", counters.http],
      ["websocket", counters.webSocket],
    ] as const;
    const traffic = (name: string, help: string, field: "requests" | "receivedBytes" | "sentBytes"): void =>
      this.add("counter", name, help, () =>
        transports.map(([transport, counted]) => ({ labels: { transport }, value: counted[field] })),
      );
    traffic("requests_total", "HTTP requests and WebSocket messages received", "requests");
    traffic("received_bytes_total", "Bytes of request bodies and of WebSocket messages", "receivedBytes");
    traffic("sent_bytes_total", "Bytes of response bodies and of WebSocket messages", "sentBytes");
    this.gauge("websocket_connections", "Open WebSockets", () => sockets().connections);
    this.gauge("http_connections", "Open HTTP connections that are no WebSockets", () => sockets().plain);
    this.counter(
      "connections_refused_total",
      "Connections closed at once: too many were open",
      () => sockets().refused,
    );
    this.gauge(
      "websocket_subscriptions",
      "Subscriptions of WebSockets to channels of outcomes and markets",
      () => sockets().subscriptions,
    );
  }

  private addPipeline(): void {
    const { exchange, history, lag, progress, batchCommands, commitTimes, commitOrders } = this.options;
    const { links } = exchange;
    const rings = (name: string, help: string, read: (link: (typeof links)[number]) => number): void =>
      this.add("gauge", name, help, () => links.map((link, i) => ({ labels: { engine: i + 1 }, value: read(link) })));
    rings("command_ring_records", "Commands waiting for their engine thread", ({ commands }) => commands.depth());
    rings("event_ring_records", "Events waiting for the log or the gateway", ({ events }) => events.depth());
    this.add("histogram", "batch_commands", "Commands in one batch of an engine thread", () =>
      batchCommands.flatMap((histogram, i) => samplesOf("batch_commands", histogram, 1, { engine: i + 1 })),
    );
    this.add("histogram", "commit_seconds", "Commits of the log", () =>
      samplesOf("commit_seconds", commitTimes, MICROSECONDS),
    );
    this.add("histogram", "commit_orders", "Placements in one commit of the log", () =>
      samplesOf("commit_orders", commitOrders, 1),
    );
    this.gauge("projection_lag_events", "Events committed and not in the tables yet", () => lag.events);
    this.gauge("projection_lag_seconds", "Age of the oldest commit that isn't in the tables yet", () => {
      return lag.ageMs / 1_000;
    });
    this.gauge("projection_blocked", "1 while a lock or a full disk keeps exchange.db from being written", () => {
      return progress.obstacle === Obstacle.none ? 0 : 1;
    });
    this.gauge("tables_checkpoint_failed", "1 while the WAL of exchange.db can't be copied into it, and grows", () => {
      return progress.hasCheckpointFailed ? 1 : 0;
    });
    this.gauge("history_queue", "Reads waiting for a thread of the history pool", () => history.queued);
  }

  /** Whether the exchange trades, and what operators watch: backups and the disk. */
  private addUpkeep(): void {
    const { archives, bookHistory, dataDir, databasePath, faults, journalPath, output, unready, upkeep } = this.options;
    this.gauge("ready", "1 while the exchange trades, 0 while it starts or stops or after trading has stopped", () =>
      unready() === null ? 1 : 0,
    );
    this.add(
      "gauge",
      "last_backup_timestamp_seconds",
      "When the last backup of the data folder ended, since the epoch; 0 if there was none",
      async () => plain((await lastBackupAt(dataDir)) / 1_000),
    );
    this.add(
      "gauge",
      "certificate_end_timestamp_seconds",
      "When the certificate of TLS_CERT ends, since the epoch; 0 without one",
      () => plain((this.options.certificateEndsAt() ?? 0) / 1_000),
    );
    this.add("gauge", "disk_bytes", "The file system that holds the data folder", async () => {
      const { size, free } = await diskOf(dataDir);
      return [
        { labels: { state: "size" }, value: size },
        { labels: { state: "free" }, value: free },
      ];
    });
    this.add("gauge", "database_bytes", "Size of the tables' and the log's files", async () => [
      { labels: { file: "main" }, value: await sizeOf(databasePath) },
      { labels: { file: "wal" }, value: await sizeOf(`${databasePath}-wal`) },
      { labels: { file: "log" }, value: await sizeOf(journalPath) },
      { labels: { file: "log_wal" }, value: await sizeOf(`${journalPath}-wal`) },
      { labels: { file: "archives" }, value: await sizeOfFolder(archives) },
      { labels: { file: "book_history" }, value: bookHistory.bytes },
    ]);
    this.gauge("log_unarchived_seconds", "How long a finished day of the log has waited for its archive", () => {
      return upkeep.unarchivedMs / 1_000;
    });
    this.gauge("book_history_behind_seconds", BOOK_HISTORY_BEHIND, () => bookHistory.behindSeconds);
    this.counter("book_history_failures_total", BOOK_HISTORY_FAILURES, () => bookHistory.failures);
    this.counter(
      "log_lines_dropped_total",
      "Lines of the program's own log that nobody read in time",
      () => output.dropped,
    );
    this.gauge(
      "log_faults",
      "Missing or damaged parts of the log, found at the start and by reads",
      () => faults.count,
    );
    this.counter("log_upkeep_failures_total", "Runs that failed to archive the log, or to delete archives", () => {
      return upkeep.failures;
    });
  }
}
