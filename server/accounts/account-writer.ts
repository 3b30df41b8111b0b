/**
 * The gateway's end of the journal's mailbox: sends account writes and, once they are committed, applies them to the
 * gateway's memory; runs a WAL checkpoint when the journal requests one. Never writes to the database itself.
 * Owned by the gateway thread; the journal owns the other end of the port.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import type { JournalMessage, JournalReply } from "../../engine/log/journal-messages.ts";
import type { KeptRequest } from "../../engine/projection/idempotency-keys.ts";
import { DEFAULT_TERMS } from "../../engine/projection/user-terms.ts";
import { type AccountWrite, HOUSE, type WriteResult } from "../../engine/projection/writes/account-write.ts";
import type { AuditEntry } from "../../engine/projection/writes/audit-log.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import { assert } from "../../engine/util/assert.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { Accounts } from "./accounts.ts";
import type { WriteProjection } from "./types.ts";

const POSTED = 0;

interface PendingWrite {
  readonly writes: readonly AccountWrite[];
  resolve(results: WriteResult[]): void;
  reject(error: Error): void;
}

/** Messages to the journal and its replies. */
export interface Mailbox {
  post(message: JournalMessage): void;
  /** Passes each reply to `receive` from now on. */
  listen(receive: (reply: JournalReply) => void): void;
  /** Removes and returns the replies that have arrived but were not passed to the listener yet. */
  drain(): JournalReply[];
}

/** The mailbox of a journal in its own thread. */
export class PortMailbox implements Mailbox {
  private readonly port: MessagePort;
  private readonly posted: Int32Array;
  private readonly journalWaker: Waker;

  /** @param posted count of posted messages, shared with the journal */
  constructor(port: MessagePort, posted: SharedArrayBuffer, journalWaker: Waker) {
    this.port = port;
    this.posted = new Int32Array(posted);
    this.journalWaker = journalWaker;
  }

  post(message: JournalMessage): void {
    this.port.postMessage(message);
    Atomics.add(this.posted, POSTED, 1);
    this.journalWaker.wake();
  }

  listen(receive: (reply: JournalReply) => void): void {
    this.port.on("message", receive);
  }

  drain(): JournalReply[] {
    const replies: JournalReply[] = [];
    for (let found = receiveMessageOnPort(this.port); found !== undefined; found = receiveMessageOnPort(this.port)) {
      replies.push(found.message as JournalReply);
    }
    return replies;
  }
}

export interface AccountWriterOptions {
  readonly mailbox: Mailbox;
  readonly trading: WriteProjection;
  readonly accounts: Accounts;
  /** The time for what goes on record now, ms. */
  readonly time: () => number;
  /** Checkpoints the WAL through a connection of another thread, when the journal requests it. */
  readonly checkpoint: () => Promise<void>;
}

export class AccountWriter {
  private readonly mailbox: Mailbox;
  private readonly trading: WriteProjection;
  private readonly accounts: Accounts;
  private readonly now: () => number;
  private readonly checkpoint: () => Promise<void>;
  private readonly pending = new Map<number, PendingWrite>();
  /** Writes that are committed and not yet fully applied to memory. */
  private applying = 0;
  private lastId = 0;
  private refusal: ApiError | null = null;
  /** What `time()` returned last. */
  private reservedTime = 0;

  constructor(options: AccountWriterOptions) {
    this.mailbox = options.mailbox;
    this.trading = options.trading;
    this.accounts = options.accounts;
    this.now = options.time;
    this.checkpoint = options.checkpoint;
    this.mailbox.listen((reply) => this.receive(reply));
  }

  /**
   * Commits all of `writes` or none, with their audit log entries; resolves once they are durable and applied. Only the
   * first write may be of a kind that the journal can refuse; the promise then rejects with an ApiError. Stamps new rows
   * and entries here, in the order of their ids: it overwrites their `at` or `createdAt`, unless that came from `time()`.
   * @param kept the record of a request with an Idempotency-Key, durable together with its effect
   */
  write(
    writes: readonly AccountWrite[],
    audits: readonly AuditEntry[] = [],
    kept: KeptRequest | null = null,
  ): Promise<WriteResult[]> {
    if (this.refusal !== null) return Promise.reject(this.refusal);
    const at = this.now();
    for (const write of writes) setTime(write, at, this.reservedTime);
    return new Promise((resolve, reject) => {
      const id = ++this.lastId;
      this.pending.set(id, { writes, resolve, reject });
      const lines = audits.map((line) => ({ ...line, at }));
      this.mailbox.post({ id, at, writes, audits: lines, kept: kept === null ? null : { ...kept, at } });
    });
  }

  /** The time, ms, for a row that the caller writes in the same turn of the event loop: `write` keeps its `createdAt`. */
  time(): number {
    this.reservedTime = this.now();
    return this.reservedTime;
  }

  /** Inserts a row that cannot exist yet; returns its id. */
  async insert(write: AccountWrite, audits: readonly AuditEntry[], kept: KeptRequest | null = null): Promise<number> {
    const [result] = await this.write([write], audits, kept);
    assert(result?.created === true, "the inserted row is new");
    return result.id;
  }

  /** Writes that have not resolved yet. */
  get pendingCount(): number {
    return this.pending.size + this.applying;
  }

  /**
   * The journal failed: resolves what it committed before, and rejects everything else from now on.
   * @param refusal rejects new writes
   * @param unknown rejects the pending ones, which may be durable
   */
  refuse(refusal: ApiError, unknown: ApiError): void {
    this.refusal = refusal;
    for (const reply of this.mailbox.drain()) this.receive(reply);
    for (const { reject } of this.pending.values()) reject(unknown);
    this.pending.clear();
  }

  private receive(reply: JournalReply): void {
    if (reply === "checkpoint") {
      // When it fails (the read queue or the disk is full), the journal's own checkpoint does the work or meets the error.
      const done = (): void => this.mailbox.post("checkpointed");
      void this.checkpoint().then(done, done);
      return;
    }
    const pending = this.pending.get(reply.id);
    if (pending === undefined) return;
    this.pending.delete(reply.id);
    if ("refused" in reply) {
      pending.reject(new ApiError(ErrorKind.conflict, reply.refused));
      return;
    }
    const { results } = reply;
    const applying: Promise<void>[] = [];
    for (const [i, result] of results.entries()) {
      const write = pending.writes[i];
      const applied = result.created && write !== undefined ? this.apply(write, result) : undefined;
      if (applied !== undefined) applying.push(applied);
    }
    if (applying.length === 0) return pending.resolve(results);
    this.applying++;
    void Promise.all(applying).then(() => {
      this.applying--;
      pending.resolve(results);
    });
  }

  /** Applies a committed write: to the accounts at once, then to trading, which may need several turns. */
  private apply(write: AccountWrite, result: WriteResult): Promise<void> | undefined {
    const { accounts } = this;
    switch (write.kind) {
      case "update":
        if (write.table === "users" && write.set.emailVerifiedAt != null) accounts.keepUser(write.id);
        break;
      case "createUser": {
        const { kind: _, at, ...row } = write;
        accounts.addUser({ ...row, ...DEFAULT_TERMS, id: result.id, phone: null, suspendedAt: null, createdAt: at });
        break;
      }
      case "createToken": {
        const { kind: _, at, scopes, allowedAddresses, ...row } = write;
        const texts = { scopes: scopes.join(" "), allowedAddresses: allowedAddresses?.join(" ") ?? null };
        accounts.addPat({ ...row, ...texts, id: result.id, createdAt: at, lastUsedAt: null });
        break;
      }
      case "deposit":
        if (write.userId !== HOUSE) accounts.keepUser(write.userId);
        break;
    }
    return this.trading.apply(write, result);
  }
}

/** @param reserved what `time()` returned last */
function setTime(write: AccountWrite, at: number, reserved: number): void {
  // A market that opens as soon as it is created.
  if (write.kind === "createMarket" && write.opensAt === write.at) write.opensAt = at;
  if ("at" in write) write.at = at;
  else if (write.kind === "insert" && "createdAt" in write.row && write.row.createdAt !== reserved)
    write.row.createdAt = at;
}
