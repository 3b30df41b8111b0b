/** What an operator reads about this box and the copy of its log: `admin standby status`, and the fields of /readyz. */
import { setTimeout as delay } from "node:timers/promises";
import type { LogProgress } from "../../engine/log/progress.ts";
import { systemClock } from "../../engine/util/clock.ts";
import type { Histogram } from "../../engine/util/histogram.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import { KEYS_COPY_MS, KEYS_POLL_MS } from "./limits.ts";
import type { Replication } from "./replication.ts";

const MICROS_PER_MS = 1_000;

/** Batches that the nodes don't have yet, and the age of the oldest, ms. */
interface Behind {
  readonly batches: number;
  readonly ageMs: number;
}

export interface StandbyStatusOptions {
  /** Null on a single box. */
  readonly replication: Replication | null;
  readonly progress: LogProgress;
  readonly behind: Behind | null;
  /** The log's commits, µs. */
  readonly commitTimes: Histogram;
}

/** Resolves with this box, the gate and the stream; the stream is null while the nodes don't respond. */
export async function standbyStatus(options: StandbyStatusOptions): Promise<object> {
  const { replication, progress, behind, commitTimes } = options;
  if (replication === null) return { role: "single", pid: process.pid, batch: progress.committedBatch };
  const { status, settings, releaseTimes } = replication;
  const described = await replication.describe();
  return {
    role: "active",
    box: settings.box,
    pid: process.pid,
    epoch: status.get("epoch"),
    batch: progress.appendedBatch,
    behind_batches: behind?.batches ?? 0,
    behind_ms: Math.round(behind?.ageMs ?? 0),
    ack: settings.ack,
    commit_ms: medianMs(commitTimes),
    shown_ms: settings.ack === "none" ? null : medianMs(releaseTimes),
    ...(settings.ack === "standby" && { alone: status.get("alone") === 1, standby_batch: status.get("standbyBatch") }),
    unknown_outcomes: status.get("unknownOutcomes"),
    syncs_each_write: settings.monitors.length === 0 ? "unknown" : status.get("syncChecked") === 1,
    ...described,
  };
}

/** Hands over to a standby; resolves with its name. @throws ApiError 40900 with why it doesn't */
export async function demote(replication: Replication | null): Promise<object> {
  if (replication === null) throw new ApiError(ErrorKind.conflict, "this is a single box: STANDBY_NATS isn't set");
  const result = await replication.demote();
  if ("reason" in result) throw new ApiError(ErrorKind.conflict, result.reason);
  return { box: replication.settings.box, to: result.to };
}

/** Resolves once the standbys have this box's keys, or after a few seconds, with what an operator reads; null on a single box. */
export async function keysCopied(replication: Replication | null): Promise<string | null> {
  if (replication === null) return null;
  for (const since = systemClock.elapsed(); ; await delay(KEYS_POLL_MS)) {
    const { boxes } = await replication.describe();
    const standbys = boxes.filter(({ role }) => role === "standby");
    if (standbys.length === 0) return "none is heard";
    const missing = standbys.find((standby) => !standby.keys_equal);
    if (missing === undefined) return "has the new key";
    if (systemClock.elapsed() - since > KEYS_COPY_MS) return `the box ${missing.box} doesn't have the new key yet`;
  }
}

/** Resolves with this box while it isn't active, and with the stream; that is null while the nodes don't respond. */
export async function standingByStatus(replication: Replication): Promise<object> {
  const { status, settings, role, active } = replication;
  return {
    role: role === "standby" ? role : "starting",
    box: settings.box,
    pid: process.pid,
    epoch: status.get("epoch"),
    batch: status.get("batch"),
    behind_batches: status.behindBatches,
    active,
    keys_equal: status.get("keysEqual") === 1,
    ...(await replication.describe()),
  };
}

/** The median since the start, to the bucket of the histogram; null without a value. */
function medianMs(histogram: Histogram): number | null {
  const buckets = histogram.cumulated();
  const total = buckets.at(-1)?.count ?? 0;
  const bound = buckets.find(({ count }) => count >= total / 2)?.bound;
  return total === 0 || bound === undefined ? null : Number((bound / MICROS_PER_MS).toFixed(2));
}
