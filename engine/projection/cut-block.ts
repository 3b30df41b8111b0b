/**
 * Finds what stays of the index of order updates where the log's beginning moves into the middle of a block: from where on
 * each user's updates can still be read in full. Reads the log; never writes.
 */
import { blockOf, readHeader, recordsOf } from "../log/batch-format.ts";
import { BrokenLog } from "../log/broken-log.ts";
import type { LogReader } from "../log/log-reader.ts";
import * as R from "../ring/records.ts";

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

const { EventKind } = R;
const HAS_ORDER: ReadonlySet<number> = new Set([
  EventKind.orderPlaced,
  EventKind.orderFilled,
  EventKind.orderReduced,
  EventKind.orderAmended,
  EventKind.orderCanceled,
]);

/** The block that a batch of the log is in; null if the log can't be read there. */
export function blockOfBatch(log: LogReader, batch: number): number | null {
  try {
    for (const body of log.bodies(batch)) return blockOf(readHeader(body).position);
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
  for (const body of log.bodies(from)) {
    const header = readHeader(body);
    const own = blockOf(header.position);
    if (header.number >= end || own > block) break;
    const { words, doubles } = recordsOf(body, header);
    for (let w = 0; w < words.length; w += R.RECORD_WORDS) {
      const kind = R.kindOf(words[w]!);
      if (!HAS_ORDER.has(kind)) continue;
      const order = doubles[(w >> 1) + R.D_ORDER_ID]!;
      const first = unreported.get(order) ?? header.number;
      const sequence = doubles[(w >> 1) + R.D_USER_SEQUENCE]!;
      if (sequence === 0) {
        if (kind === EventKind.orderFilled) unreported.set(order, first);
        continue;
      }
      unreported.delete(order);
      if (own === block) addUpdate(entries, words[w + R.W_USER]!, sequence, first, before);
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
