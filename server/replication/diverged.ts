/**
 * Ends a log that went on separately where the stream's log and it are still the same. What was beyond, nobody has seen, but
 * where acknowledgements wait for nothing (STANDBY_ACK=none): it stays in a file.
 */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { StreamInfo } from "@nats-io/jetstream";
import { DivergedLog, type LogCopy } from "../../engine/log/log-copy.ts";
import type { Cut } from "../../engine/log/truncate.ts";
import { loadProjection } from "../../engine/projection/load/projection.ts";
import { lastEqual } from "../../engine/replication/positions.ts";
import { syncPath } from "../../engine/util/durable-file.ts";
import { openReadOnly, removeDatabase } from "../../engine/util/wal-database.ts";
import { RefusedSetup } from "./errors.ts";
import type { LogStream } from "./stream.ts";
import { beginOf, hashInStream } from "./sync.ts";

export interface CutOptions {
  readonly stream: LogStream;
  readonly info: StreamInfo;
  readonly log: LogCopy;
  /** The last batch that the stream is known to have as the log has it; 0 for none. */
  readonly known: number;
  /** Where what is cut stays. */
  readonly folder: string;
  /** exchange.db where nobody has it open: tables with anything that is cut are deleted, and the start builds new ones. */
  readonly tables: string | null;
}

/** @throws RefusedSetup where the logs have no batch in common any more, DivergedLog where the tables that are open have what differs */
export async function cutDiverged({ stream, info, log, known, folder, tables }: CutOptions): Promise<Cut> {
  const oldest = await stream.message(info.state.first_seq);
  // A base has the hash of the batch before those that follow.
  const begin = oldest.base?.batch ?? beginOf(oldest);
  const end = await stream.end(info);
  const first = Math.max(1, begin, log.first ?? 0, known);
  const last = Math.min(log.batch, end.position?.batch ?? 0);
  const isEqual = async (batch: number): Promise<boolean> => {
    const [own, other] = [log.hashOf(batch), await hashInStream(stream, info, batch)];
    return own !== null && other !== null && own.equals(other);
  };
  if (first > last || !(await isEqual(first))) {
    if (known > 0) throw new DivergedLog(known);
    throw new RefusedSetup("this box's log and the stream's have no batch in common: begin again from an empty folder");
  }
  const equal = await lastEqual(first, last, isEqual);
  if (tables !== null && existsSync(tables) && lastIn(tables) > equal) {
    removeDatabase(tables);
    // A power loss must not bring them back beside a shorter log.
    syncPath(dirname(tables));
  }
  return log.cutAfter(equal, folder);
}

/** The last batch that the tables include. */
function lastIn(tables: string): number {
  const db = openReadOnly(tables);
  try {
    return loadProjection(db).batch;
  } finally {
    db.close();
  }
}
