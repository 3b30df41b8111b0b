/** What other boxes have that this one hasn't, although the exchange may go on there. */
import type { ReplicationStatus } from "./replication-status.ts";
import type { OtherBox } from "./types.ts";

/** Notes it for the metrics. @param boxes that the exchange may go on at, or come from */
export function noteDifferences(status: ReplicationStatus, boxes: readonly OtherBox[]): void {
  status.set("settingsEqual", boxes.every(({ settings_differ: names }) => names.length === 0) ? 1 : 0);
  const clocks = boxes.map(({ clock_ms: ms }) => ms).sort((a, b) => Math.abs(b) - Math.abs(a));
  status.set("clockMs", Math.round(clocks[0] ?? 0));
}
