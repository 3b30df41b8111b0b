/**
 * Finds what stays of the index of order updates where the log's beginning moves into the middle of a block: from where on
 * each user's updates can still be read in full. Reads the log; never writes.
 */
import { blockOf, readHeader, recordsOf } from "../log/batch-format.ts";
import { BrokenLog } from "../log/broken-log.ts";
import type { LogReader } from "../log/log-reader.ts";
import { EngineEvent } from "../ring/engine-event.ts";
import { EventKind } from "../ring/records.ts";

/** The user's updates of a block from this one on. */
export interface IndexEntry {
  readonly sequence: number;
  /** The first batch to read for them. */
  batch: number;
}

/** Part of a block. */
export interface BlockPart {
  readonly block: number;
  /** The first batch whose fills its updates may report. */
  readonly from: number;
  /** The first batch that stays. */
  readonly before: number;
  /** The first batch after the part, if it ends before its block does. */
  readonly end: number;
}

/** The block that a batch of the log is in; null if the log can't be read there. */
export function blockOfBatch(log: LogReader, batch: number): number | null {
  try {
    for (const body of log.bodies(batch)) return blockOf(readHeader(body).recordsBefore);
  } catch (error) {
    if (!(error instanceof BrokenLog)) throw error;
  }
  return null;
}

/** By user: which of the block's updates can be read without a batch before `before`. A user without any is absent. */
export function remainingUpdates(log: LogReader, part: BlockPart): Map<number, IndexEntry> {
  try {
    return scan(log, part);
  } catch (error) {
    if (!(error instanceof BrokenLog)) throw error;
  }
  // The tables are older than the log's archives. An order in the middle of its matching at `before` can't be told then:
  // its update would show the later fills alone.
  try {
    return scan(log, { ...part, from: part.before });
  } catch (error) {
    if (!(error instanceof BrokenLog)) throw error;
    return new Map();
  }
}

function scan(log: LogReader, { block, from, before, end }: BlockPart): Map<number, IndexEntry> {
  const entries = new Map<number, IndexEntry>();
  /** By order: the batch of its first fill that no update has reported. */
  const unreported = new Map<number, number>();
  const event = new EngineEvent();
  for (const body of log.bodies(from)) {
    const header = readHeader(body);
    const own = blockOf(header.recordsBefore);
    if (header.batch >= end || own > block) break;
    const { words, doubles, count } = recordsOf(body, header);
    event.at(words, doubles, 0);
    for (let i = 0; i < count; i++, event.next()) {
      if (!event.traits.changesOrder) continue;
      const { orderId, userSequence } = event;
      const first = unreported.get(orderId) ?? header.batch;
      if (userSequence === 0) {
        if (event.kind === EventKind.orderFilled) unreported.set(orderId, first);
        continue;
      }
      unreported.delete(orderId);
      if (own === block) addUpdate(entries, event.user, userSequence, first, before);
    }
  }
  return entries;
}

function addUpdate(
  entries: Map<number, IndexEntry>,
  user: number,
  sequence: number,
  batch: number,
  before: number,
): void {
  const entry = entries.get(user);
  if (batch < before) entries.delete(user);
  else if (entry === undefined) entries.set(user, { sequence, batch });
  else entry.batch = Math.min(entry.batch, batch);
}
