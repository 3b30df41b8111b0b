/**
 * A log in memory: numbers event records as the log stage does, packs them into batches, and hands them to a projector and
 * to readers. Its users have money and shares enough for any fill.
 */

import {
  type BatchHeader,
  BLOCK_RECORDS,
  bodyBytes,
  FLAG_STARTED,
  HEADER_BYTES,
  hashOf,
  writeHeader,
} from "../../engine/log/batch-format.ts";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import type { LogReader } from "../../engine/log/log-reader.ts";
import { Numbering } from "../../engine/log/numbering.ts";
import { packRequest } from "../../engine/log/request.ts";
import { UserRates } from "../../engine/log/user-rates.ts";
import type { Write } from "../../engine/log/writes.ts";
import { migrate } from "../../engine/projection/database.ts";
import { loadProjection } from "../../engine/projection/load/projection.ts";
import { Projector } from "../../engine/projection/projector.ts";
import { EngineEvent } from "../../engine/ring/engine-event.ts";
import * as R from "../../engine/ring/records.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";

export type Fields = Readonly<
  Partial<
    Record<"slot" | "user" | "outcome" | "price" | "quantity" | "remaining" | "reference", number> &
      Record<"id" | "at" | "detail", number>
  >
>;

/** An event record. @param packed its first word */
export function record(packed: number, fields: Fields): Int32Array {
  const words = new Int32Array(R.RECORD_WORDS);
  const doubles = new Float64Array(words.buffer);
  words[R.W_PACKED] = packed;
  words[R.W_SLOT] = fields.slot ?? 0;
  words[R.W_USER] = fields.user ?? 0;
  words[R.W_OUTCOME] = fields.outcome ?? 0;
  words[R.W_PRICE] = fields.price ?? 0;
  words[R.W_QUANTITY] = fields.quantity ?? 0;
  words[R.W_REMAINING] = fields.remaining ?? 0;
  words[R.W_CORRELATION] = fields.reference ?? 0;
  doubles[R.D_ORDER_ID] = fields.id ?? 0;
  doubles[R.D_AT] = fields.at ?? 0;
  doubles[R.D_DETAIL] = fields.detail ?? 0;
  return words;
}

const DEPOSIT = 1e15;
const SHARES = 1e8;
const CAPACITY = 2 ** 14;

export class MemoryLog implements LogReader {
  readonly db = openSqlite(":memory:");
  /** The records of all batches, with their numbers. */
  readonly records: Int32Array[] = [];
  readonly batches: Buffer[] = [];
  private readonly numbering: Numbering;
  private projector: Projector | null = null;
  private hash: Buffer;
  private position: number;
  private trimmed = 0;

  /** @param outcomeCounts of each market @param prepare changes the tables before the first batch */
  constructor(users: number, outcomeCounts: readonly number[], prepare: (log: MemoryLog) => void = () => {}) {
    migrate(this.db);
    prepare(this);
    const { records: position, hash } = loadProjection(this.db);
    this.position = position;
    this.hash = Buffer.from(hash.padStart(64, "0"), "hex");
    const { last_entry_id: entry, at } = this.db.prepare("SELECT last_entry_id, at FROM totals").get() as Record<
      "last_entry_id" | "at",
      number
    >;
    const updates = this.db.prepare("SELECT user_id, update_sequence FROM newest_of_user").raw().all();
    this.numbering = new Numbering({ entry, at, updates: updates as [number, number][] }, new UserRates());
    if (users > 0) this.fund(users, outcomeCounts);
  }

  /** Removes the batches before this one, as the upkeep deletes their archive. */
  trim(first: number): void {
    this.batches.splice(0, first - 1);
    this.trimmed = first - 1;
  }

  *bodies(first: number): Generator<Buffer> {
    if (first <= this.trimmed) throw new BrokenLog(`the log lacks batch ${first}`);
    const before = this.batches.length === 0 ? 0 : this.batches[0]!.readDoubleLE(8);
    yield* this.batches.slice(Math.max(0, first - before));
  }

  /** Appends a batch, and projects it. @param writes its writes, with `entries` ledger entries */
  append(records: readonly Int32Array[], writes: readonly Write[] = [], entries = 0): void {
    const { exchange, batch } = loadProjection(this.db);
    const { numbering } = this;
    const lastEntry = numbering.lastEntry;
    if (writes.length > 0) numbering.request(entries, 0);
    const all = new Int32Array(records.length * R.RECORD_WORDS);
    for (const [i, words] of records.entries()) all.set(words, i * R.RECORD_WORDS);
    const doubles = new Float64Array(all.buffer);
    for (let w = 0; w < all.length; w += R.RECORD_WORDS) {
      numbering.event(new EngineEvent().at(all, doubles, w));
      this.records.push(all.slice(w, w + R.RECORD_WORDS));
    }
    const requests =
      writes.length === 0 ? Buffer.alloc(0) : sized(packRequest({ at: 0, writes, audits: [], kept: null }));
    const parts = { records: records.length, texts: 0, writes: requests.length };
    const flags = this.projector === null ? FLAG_STARTED : 0;
    const header: BatchHeader = {
      ...{ batch: batch + 1, at: numbering.at, recordsBefore: this.position, lastEntry, exchange, flags },
      ...parts,
    };
    const body = Buffer.alloc(bodyBytes(parts));
    writeHeader(body, header, this.hash);
    body.set(new Uint8Array(all.buffer), HEADER_BYTES);
    body.set(requests, body.length - requests.length);
    this.hash = hashOf(body);
    this.position += records.length;
    this.batches.push(body);
    this.projector ??= new Projector(this.db, this, { capacity: CAPACITY, largestId: CAPACITY });
    this.projector.apply(body);
    this.projector.commit();
  }

  /** Fills the current block with events that change nothing. */
  endBlock(): void {
    const left = BLOCK_RECORDS - (this.position % BLOCK_RECORDS);
    this.append(new Array<Int32Array>(left).fill(record(R.EventKind.levelChanged, {})));
  }

  /** The exchange restarts: the projector loads the tables. */
  restart(): void {
    this.projector = null;
  }

  private fund(users: number, outcomeCounts: readonly number[]): void {
    const writes: Write[] = [];
    const verified = { passwordHash: null, emailVerifiedAt: 1, phoneVerifiedAt: 1 };
    for (let id = 1; id <= users; id++) {
      writes.push({ kind: "createUser", id, email: `${id}@example.com`, role: "user", kycTier: 2, ...verified, at: 1 });
      writes.push({ kind: "deposit", userId: id, amount: DEPOSIT, reference: `${id}`, at: 1 });
    }
    let firstOutcomeId = 1;
    const nothing = {
      description: null,
      category: null,
      eventId: null,
      opensAt: null,
      closesAt: null,
      proposedBy: null,
    };
    const splits: Int32Array[] = [];
    outcomeCounts.forEach((count, i) => {
      const outcomes = Array.from({ length: count }, (_, position) => `${position}`);
      const names = { slug: `m-${i + 1}`, question: "?", outcomes };
      writes.push({ kind: "createMarket", id: i + 1, firstOutcomeId, ...names, ...nothing, at: 1 });
      writes.push({ kind: "update", table: "markets", id: i + 1, set: { status: 1 } });
      firstOutcomeId += count;
      for (let user = 1; user <= users; user++) {
        splits.push(record(R.EventKind.setsSplit, { slot: i + 1, user, quantity: SHARES, at: 1 }));
      }
    });
    this.append([], writes, users);
    this.append(splits);
  }
}

function sized(payload: Uint8Array): Buffer {
  const request = Buffer.alloc(4 + payload.length);
  request.writeUInt32LE(payload.length, 0);
  request.set(payload, 4);
  return request;
}
