/** Lets a projector follow the log, one transaction at a time. */
import type { LogReader } from "../log/log-reader.ts";
import type { LogProgress } from "../log/progress.ts";
import type { Projector } from "./projector.ts";

/** Records of one transaction, unless a reader waits for an earlier one: about 200 ms of work. Larger ones gain nothing. */
export const MAX_RECORDS = 2 ** 18;

/**
 * Projects what is committed and not projected yet, up to one transaction's worth. Returns the records projected.
 * @throws BrokenLog, SqliteError
 */
export function projectNext(projector: Projector, log: LogReader, progress: LogProgress): number {
  const { batch, records } = projector.point;
  const committed = progress.committedBatch;
  if (batch >= committed) return 0;
  for (const body of log.bodies(batch + 1)) {
    projector.apply(body);
    const { point } = projector;
    if (point.batch >= committed || point.records - records >= MAX_RECORDS) break;
    if (progress.isWanted && point.batch >= progress.wantedBatch) break;
  }
  projector.commit();
  progress.project(projector.point);
  return projector.point.records - records;
}

/** Projects the whole rest of the log. @param onTransaction called after each transaction with the batches projected */
export function projectAll(
  projector: Projector,
  log: LogReader,
  onTransaction: (batch: number) => void = () => {},
): void {
  let { records } = projector.point;
  for (const body of log.bodies(projector.point.batch + 1)) {
    projector.apply(body);
    const { point } = projector;
    if (point.records - records < MAX_RECORDS) continue;
    projector.commit();
    records = point.records;
    onTransaction(point.batch);
  }
  projector.commit();
}
