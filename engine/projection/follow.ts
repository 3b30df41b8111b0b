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
  const { batch, records } = projector.position;
  const committed = progress.committedBatch;
  if (batch >= committed) return 0;
  for (const body of log.bodies(batch + 1)) {
    projector.apply(body);
    const { position } = projector;
    if (position.batch >= committed || position.records - records >= MAX_RECORDS) break;
    if (progress.isWanted && position.batch >= progress.wantedBatch) break;
  }
  projector.commit();
  progress.project(projector.position);
  return projector.position.records - records;
}

/** Projects the whole rest of the log. @param onTransaction called after each transaction with the batches projected */
export function projectAll(
  projector: Projector,
  log: LogReader,
  onTransaction: (batch: number) => void = () => {},
): void {
  let { records } = projector.position;
  for (const body of log.bodies(projector.position.batch + 1)) {
    projector.apply(body);
    const { position } = projector;
    if (position.records - records < MAX_RECORDS) continue;
    projector.commit();
    records = position.records;
    onTransaction(position.batch);
  }
  projector.commit();
}
