/**
 * The gateway's end of the road into the log: each write is admitted by the room that owns its kind, posted, and, once it
 * is committed, applied by that room to the gateway's memory. Knows no kind itself, and never writes to a database. Owned by
 * the gateway thread.
 */
import type { LogReply, LogRequest } from "../../engine/log/messages.ts";
import type { KeptRequest } from "../../engine/log/request.ts";
import { type LoggedRequest, packRequest } from "../../engine/log/request.ts";
import { entriesOf, isPaymentEntry } from "../../engine/log/writes.ts";
import { assert } from "../../engine/util/assert.ts";
import type { ApiError } from "../errors.ts";
import { KeyedQueue } from "../util/keyed-queue.ts";
import { resolveAudits } from "./audit-lines.ts";
import type { Mailbox } from "./mailbox.ts";
import type { TradingGate } from "./trading-gate.ts";
import type { AdmittedWrite, RequestedAudit, RequestedWrite, WriteKind, WriteResult, WriteRoom } from "./types.ts";

interface WriteOrder {
  readonly writes: readonly RequestedWrite[];
  readonly audits: readonly RequestedAudit[];
  readonly kept: KeptRequest | null;
}

interface PendingWrite {
  readonly admitted: readonly AdmittedWrite[];
  /** What was looked up for the first write. */
  readonly facts: unknown;
  resolve(results: WriteResult[]): void;
  reject(error: Error): void;
}

export interface LogWriterOptions {
  readonly mailbox: Mailbox;
  /** Rejects writes once the log has failed. */
  readonly gate: TradingGate;
  /** Each kind of write belongs to one of them. */
  readonly rooms: readonly WriteRoom[];
  /** The time for what goes on record now, ms. */
  readonly time: () => number;
}

export class LogWriter {
  private readonly mailbox: Mailbox;
  private readonly rooms = new Map<WriteKind, WriteRoom>();
  private readonly now: () => number;
  /** By what may exist once: writes of the same wait for each other. */
  private readonly queue = new KeyedQueue();
  private readonly pending = new Map<number, PendingWrite>();
  private unresolved = 0;
  private lastId = 0;
  private readonly gate: TradingGate;
  /** What `time()` returned last. */
  private reservedTime = 0;

  constructor({ mailbox, gate, rooms, time }: LogWriterOptions) {
    this.mailbox = mailbox;
    this.gate = gate;
    this.now = time;
    for (const room of rooms) {
      for (const kind of room.kinds) {
        assert(!this.rooms.has(kind), "each kind of write belongs to one room");
        this.rooms.set(kind, room);
      }
    }
    this.mailbox.listen((reply) => this.receive(reply));
  }

  /**
   * Commits all of `writes` or none, with their audit log entries; resolves once they are durable and applied. Only the
   * first write may be of a kind that can be rejected; the promise then rejects with an ApiError. Posts in this turn, so in
   * the order of the calls, unless a write of the same key is in flight or the tables have to be read first. Stamps new
   * rows and entries when it posts: it overwrites their `at` or `createdAt`, unless that came from `time()`.
   * @param kept the record of a request with an Idempotency-Key, durable together with its effect
   */
  write(
    writes: readonly RequestedWrite[],
    audits: readonly RequestedAudit[] = [],
    kept: KeptRequest | null = null,
  ): Promise<WriteResult[]> {
    try {
      this.gate.checkRunning();
    } catch (error) {
      return Promise.reject(error);
    }
    this.unresolved++;
    const keys = writes.flatMap((write) => this.roomOf(write).keys?.(write) ?? []);
    const written = this.queue.run(keys, () => this.prepare({ writes, audits, kept }));
    const resolved = (): void => void this.unresolved--;
    written.then(resolved, resolved);
    return written;
  }

  private roomOf({ kind }: { readonly kind: WriteKind }): WriteRoom {
    const room = this.rooms.get(kind);
    assert(room !== undefined, "a room owns each kind of write");
    return room;
  }

  private async prepare(order: WriteOrder): Promise<WriteResult[]> {
    const found = order.writes.map((write) => this.roomOf(write).lookUp?.(write) ?? null);
    assert(
      found.slice(1).every((each) => each === null),
      "only the first of several writes needs a lookup",
    );
    const [facts = null] = found;
    return this.post(order, facts === null ? null : await facts);
  }

  /**
   * Admits all of `writes` or none. Only the first may be of a kind that can be rejected.
   * @param facts what was looked up for the first
   */
  private admit(writes: readonly RequestedWrite[], facts: unknown): AdmittedWrite[] {
    const admitted: AdmittedWrite[] = [];
    try {
      for (const write of writes) admitted.push(this.roomOf(write).admit(write, admitted.length === 0 ? facts : null));
    } catch (error) {
      assert(admitted.length === 0, "only the first of several writes can be rejected, so none is half admitted");
      throw error;
    }
    return admitted;
  }

  private post({ writes, audits, kept }: WriteOrder, facts: unknown): Promise<WriteResult[]> {
    // The log may have failed while the request waited.
    this.gate.checkRunning();
    const at = this.now();
    for (const write of writes) {
      this.roomOf(write).stamp?.(write, at);
      setTime(write, at, this.reservedTime);
    }
    const admitted = this.admit(writes, facts);
    // From here it must succeed.
    const posted = admitted.map(({ write }) => write).filter((write) => write !== null);
    const lines = resolveAudits(audits, admitted, at);
    if (posted.length === 0 && lines.length === 0 && kept === null) {
      return Promise.resolve(admitted.map(({ result }) => result));
    }
    const subject = kept === null || kept.reference !== null ? null : (admitted[0]?.result.id ?? null);
    return new Promise((resolve, reject) => {
      const id = ++this.lastId;
      this.pending.set(id, { admitted, facts, resolve, reject });
      const request = { at, writes: posted, audits: lines, kept: kept && { ...kept, at, subject } };
      this.mailbox.post(this.messageOf(id, request));
    });
  }

  /** The time, ms, for a row that the caller writes in the same turn of the event loop: `write` keeps its `createdAt`. */
  time(): number {
    this.reservedTime = this.now();
    return this.reservedTime;
  }

  /** Inserts a row that cannot exist yet; returns its id. */
  async insert(
    write: RequestedWrite,
    audits: readonly RequestedAudit[],
    kept: KeptRequest | null = null,
  ): Promise<number> {
    const [result] = await this.write([write], audits, kept);
    assert(result?.created === true, "the inserted row is new");
    return result.id;
  }

  /** Lets the log delete batches up to this one from journal.db: an archive has them. */
  trimLog(batch: number): void {
    this.mailbox.post({ trimThrough: batch });
  }

  /** Writes that have not resolved yet. */
  get pendingCount(): number {
    return this.unresolved;
  }

  /**
   * The log has failed, and so has the gate: resolves what the log committed before, and rejects what is pending.
   * @param unknown the error of writes that may be durable
   */
  failPending(unknown: ApiError): void {
    for (const reply of this.mailbox.drain()) this.receive(reply);
    for (const { reject } of this.pending.values()) reject(unknown);
    this.pending.clear();
  }

  private receive({ id, firstEntry }: LogReply): void {
    const pending = this.pending.get(id);
    if (pending === undefined) return;
    this.pending.delete(id);
    const applying: Promise<void>[] = [];
    let entry = firstEntry;
    for (const [i, { write, result }] of pending.admitted.entries()) {
      if (write === null) continue;
      if (isPaymentEntry(write)) result.id = entry;
      entry += entriesOf(write);
      const applied = this.roomOf(write).apply?.(write, i === 0 ? pending.facts : null);
      if (applied !== undefined) applying.push(applied);
    }
    const results = pending.admitted.map(({ result }) => result);
    if (applying.length === 0) pending.resolve(results);
    else void Promise.all(applying).then(() => pending.resolve(results));
  }

  /** The message that makes a request durable. */
  private messageOf(id: number, request: LoggedRequest): LogRequest {
    const { at, writes } = request;
    const entries = writes.reduce((sum, write) => sum + entriesOf(write), 0);
    const rates = writes.flatMap((write) => this.roomOf(write).rates?.(write) ?? []);
    return { id, at, entries, rates, payload: packRequest(request) };
  }
}

/** @param reserved what `time()` returned last */
function setTime(write: RequestedWrite, at: number, reserved: number): void {
  if ("at" in write) write.at = at;
  else if (write.kind === "insert" && "createdAt" in write.row && write.row.createdAt !== reserved)
    write.row.createdAt = at;
}
