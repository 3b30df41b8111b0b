/** The figures of the copy of the log that other boxes get: none of them exists on a single box. */
import type { MetricType } from "prom-client";
import type { AckPolicy } from "../../engine/replication/release.ts";
import type { Histogram } from "../../engine/util/histogram.ts";
import type { ReplicationStatus } from "../replication/replication-status.ts";
import { MICROSECONDS, plain, type Sample, samplesOf } from "./samples.ts";

export interface StandbyFigures {
  readonly status: Pick<ReplicationStatus, "get">;
  readonly ack: AckPolicy;
  /** Batches that the nodes don't have yet, and the age of the oldest, ms. */
  readonly held: { readonly batches: number; readonly ageMs: number };
  /** Of the log: a commit on this box, and from the beginning of its pass until it was shown, µs. */
  readonly commitTimes: Histogram;
  readonly releaseTimes: Histogram;
}

/** Adds a metric, as Metrics does. */
type Add = (type: `${MetricType}`, name: string, help: string, read: () => readonly Sample[]) => void;

/** What speaks against going on at the other box. @param gauge adds a metric, whose name begins with standby_ */
export function addDifferences(
  status: Pick<ReplicationStatus, "get">,
  gauge: (name: string, help: string, read: () => number) => void,
): void {
  gauge("settings_equal", "1 where no other box has other settings", () => status.get("settingsEqual"));
  gauge("clock_ahead_seconds", "How far the clock of the other box is ahead of this one's", () => {
    return status.get("clockMs") / 1_000;
  });
}

export function addStandby({ status, ack, held, commitTimes, releaseTimes }: StandbyFigures, add: Add): void {
  const gauge = (name: string, help: string, read: () => number): void =>
    add("gauge", `standby_${name}`, help, () => plain(read()));
  const counter = (name: string, help: string, read: () => number): void =>
    add("counter", `standby_${name}`, help, () => plain(read()));
  add("gauge", "standby_role", "1 for what this box is", () => [{ labels: { role: "active" }, value: 1 }]);
  add("gauge", "standby_ack", "1 for what an acknowledgement waits for", () => [{ labels: { policy: ack }, value: 1 }]);
  gauge("epoch", "Rises by 1 with each box that becomes active", () => status.get("epoch"));
  gauge("behind_batches", "Batches of the log that the nodes don't have yet", () => held.batches);
  gauge("behind_seconds", "How long the oldest of them has waited", () => held.ageMs / 1_000);
  gauge("held_batches", "Batches that nobody may see yet", () => (ack === "none" ? 0 : held.batches));
  add("histogram", "standby_gate_seconds", "Batches from the beginning of their commit, by what had them", () => [
    ...samplesOf("standby_gate_seconds", commitTimes, MICROSECONDS, { stage: "commit" }),
    ...(ack === "none" ? [] : samplesOf("standby_gate_seconds", releaseTimes, MICROSECONDS, { stage: ack })),
  ]);
  gauge("alone", "1 while acknowledgements don't wait for a standby, although they should", () => status.get("alone"));
  gauge("keys_equal", "1 while a standby is heard that has the same keys", () => status.get("keysEqual"));
  addDifferences(status, gauge);
  counter("shipped_messages_total", "Messages that the stream has acknowledged", () => status.get("shippedMessages"));
  counter("shipped_bytes_total", "Bytes of these messages", () => status.get("shippedBytes"));
  counter("unknown_outcomes_total", "Publishes without a response in time, which were sent again", () => {
    return status.get("unknownOutcomes");
  });
  counter("takeovers_total", "1 where this process took over from a box that was heard no more", () => {
    return status.get("takeovers");
  });
  counter("cut_batches_total", "Batches cut off this box's log before it became active", () => {
    return status.get("cutBatches");
  });
  gauge("stream_bytes", "Size of the stream, as of the last minute", () => status.get("streamBytes"));
  gauge("leader_is_local", "1 while the node that this box uses leads the stream", () => status.get("leaderIsLocal"));
  gauge("sync_checked", "1 where all nodes said that they sync each write", () => status.get("syncChecked"));
}
