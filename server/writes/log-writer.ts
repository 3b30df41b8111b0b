/**
 * The gateway's end of the log's mailbox: sends admitted account writes (write-admission.ts) and, once they are committed,
 * applies them to the gateway's memory. Never writes to a database itself. Owned by the gateway thread; the log stage owns
 * the other end of the port.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import type { LogMessage, LogReply, LogRequest } from "../../engine/log/messages.ts";
import type { OwnRates } from "../../engine/log/user-rates.ts";
import type { KeptRequest } from "../../engine/projection/idempotency-keys.ts";
import { type LoggedRequest, packRequest } from "../../engine/projection/logged-request.ts";
import { DEFAULT_TERMS } from "../../engine/projection/user-terms.ts";
import { type AccountWrite, entriesOf, HOUSE, isPaymentEntry } from "../../engine/projection/writes/account-write.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import { assert } from "../../engine/util/assert.ts";
import type { ApiError } from "../errors.ts";
import { KeyedQueue } from "../util/keyed-queue.ts";
import type { Accounts } from "./accounts.ts";
import { resolveAudits } from "./audit.ts";
import type { AdmittedWrite, Facts, RequestedAudit, RequestedWrite, WriteProjection, WriteResult } from "./types.ts";
import { keysOf, type WriteAdmission } from "./write-admission.ts";
import { NO_FACTS } from "./write-facts.ts";

const POSTED = 0;

interface WriteOrder {
  readonly writes: readonly RequestedWrite[];
  readonly audits: readonly RequestedAudit[];
  readonly kept: KeptRequest | null;
}

interface PendingWrite {
  readonly admitted: readonly AdmittedWrite[];
  resolve(results: WriteResult[]): void;
  reject(error: Error): void;
}

/** Messages to the log stage and its replies. */
export interface Mailbox {
  post(message: LogMessage): void;
  /** Passes each reply to `receive` from now on. */
  listen(receive: (reply: LogReply) => void): void;
  /** Removes and returns the replies that have arrived but were not passed to the listener yet. */
  drain(): LogReply[];
}

/** The mailbox of a log stage in another thread. */
export class PortMailbox implements Mailbox {
  private readonly port: MessagePort;
  private readonly posted: Int32Array;
  private readonly logWaker: Waker;

  /** @param posted count of posted messages, shared with the log stage */
  constructor(port: MessagePort, posted: SharedArrayBuffer, logWaker: Waker) {
    this.port = port;
    this.posted = new Int32Array(posted);
    this.logWaker = logWaker;
  }

  post(message: LogMessage): void {
    this.port.postMessage(message);
    Atomics.add(this.posted, POSTED, 1);
    this.logWaker.wake();
  }

  listen(receive: (reply: LogReply) => void): void {
    this.port.on("message", receive);
  }

  drain(): LogReply[] {
    const replies: LogReply[] = [];
    for (let found = receiveMessageOnPort(this.port); found !== undefined; found = receiveMessageOnPort(this.port)) {
      replies.push(found.message as LogReply);
    }
    return replies;
  }
}

export interface AccountWriterOptions {
  readonly mailbox: Mailbox;
  readonly admission: WriteAdmission;
  readonly trading: WriteProjection;
  readonly accounts: Accounts;
  /** The time for what goes on record now, ms. */
  readonly time: () => number;
}

export class AccountWriter {
  private readonly mailbox: Mailbox;
  private readonly admission: WriteAdmission;
  private readonly trading: WriteProjection;
  private readonly accounts: Accounts;
  private readonly now: () => number;
  /** By what may exist once: writes of the same wait for each other. */
  private readonly queue = new KeyedQueue();
  private readonly pending = new Map<number, PendingWrite>();
  private unresolved = 0;
  private lastId = 0;
  private refusal: ApiError | null = null;
  /** What `time()` returned last. */
  private reservedTime = 0;

  constructor(options: AccountWriterOptions) {
    this.mailbox = options.mailbox;
    this.admission = options.admission;
    this.trading = options.trading;
    this.accounts = options.accounts;
    this.now = options.time;
    this.mailbox.listen((reply) => this.receive(reply));
  }

  /**
   * Commits all of `writes` or none, with their audit log entries; resolves once they are durable and applied. Only the
   * first write may be of a kind that can be refused; the promise then rejects with an ApiError. Posts in this turn, so in
   * the order of the calls, unless a write of the same key is in flight or the tables have to be read first. Stamps new
   * rows and entries when it posts: it overwrites their `at` or `createdAt`, unless that came from `time()`.
   * @param kept the record of a request with an Idempotency-Key, durable together with its effect
   */
  write(
    writes: readonly RequestedWrite[],
    audits: readonly RequestedAudit[] = [],
    kept: KeptRequest | null = null,
  ): Promise<WriteResult[]> {
    if (this.refusal !== null) return Promise.reject(this.refusal);
    this.unresolved++;
    const written = this.queue.run(keysOf(writes), () => this.admit({ writes, audits, kept }));
    const resolved = (): void => void this.unresolved--;
    written.then(resolved, resolved);
    return written;
  }

  private async admit(order: WriteOrder): Promise<WriteResult[]> {
    const found = this.admission.lookUp(order.writes);
    return this.post(order, found === null ? NO_FACTS : await found);
  }

  private post({ writes, audits, kept }: WriteOrder, facts: Facts): Promise<WriteResult[]> {
    // The log may have failed while the request waited.
    if (this.refusal !== null) throw this.refusal;
    const at = this.now();
    for (const write of writes) setTime(write, at, this.reservedTime);
    const admitted = this.admission.admit(writes, facts);
    // From here it must succeed.
    const posted = admitted.map(({ write }) => write).filter((write) => write !== null);
    const lines = resolveAudits(audits, admitted, at);
    if (posted.length === 0 && lines.length === 0 && kept === null) {
      return Promise.resolve(admitted.map(({ result }) => result));
    }
    const subject = kept === null || kept.reference !== null ? null : (admitted[0]?.result.id ?? null);
    return new Promise((resolve, reject) => {
      const id = ++this.lastId;
      this.pending.set(id, { admitted, resolve, reject });
      this.mailbox.post(messageOf(id, { at, writes: posted, audits: lines, kept: kept && { ...kept, at, subject } }));
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
  trimLog(through: number): void {
    this.mailbox.post({ trimThrough: through });
  }

  /** Writes that have not resolved yet. */
  get pendingCount(): number {
    return this.unresolved;
  }

  /** Requests that the log stage has not replied to yet. */
  get postedCount(): number {
    return this.pending.size;
  }

  /** True while a deposit to the user is in flight. */
  isFunding(userId: number): boolean {
    return this.admission.isFunding(userId);
  }

  /**
   * The log has failed: resolves what it committed before, and rejects everything else from now on.
   * @param refusal rejects new writes
   * @param unknown rejects the pending ones, which may be durable
   */
  refuse(refusal: ApiError, unknown: ApiError): void {
    this.refusal = refusal;
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
    for (const { write, result } of pending.admitted) {
      if (write === null) continue;
      if (isPaymentEntry(write)) result.id = entry;
      entry += entriesOf(write);
      this.admission.committed(write);
      const applied = this.apply(write, result);
      if (applied !== undefined) applying.push(applied);
    }
    const results = pending.admitted.map(({ result }) => result);
    if (applying.length === 0) pending.resolve(results);
    else void Promise.all(applying).then(() => pending.resolve(results));
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
        const own = { watchlist: null, notifications: null, priceAlerts: null };
        const rest = { ...own, phone: null, suspendedAt: null, createdAt: at };
        accounts.addUser({ ...row, ...DEFAULT_TERMS, ...rest });
        break;
      }
      case "createToken": {
        const { kind: _, at, scopes, allowedAddresses, ...row } = write;
        const texts = { scopes: scopes.join(" "), allowedAddresses: allowedAddresses?.join(" ") ?? null };
        accounts.addPat({ ...row, ...texts, createdAt: at, lastUsedAt: null });
        break;
      }
      case "deposit":
        if (write.userId !== HOUSE) accounts.keepUser(write.userId);
        break;
    }
    return this.trading.apply(write, result);
  }
}

/** The message that makes a request durable. */
function messageOf(id: number, request: LoggedRequest): LogRequest {
  const { at, writes } = request;
  const entries = writes.reduce((sum, write) => sum + entriesOf(write), 0);
  return { id, at, entries, rates: writes.flatMap(ratesOf), payload: packRequest(request) };
}

/** The own fees that the write sets: an id may belong to another user later. */
function ratesOf(write: AccountWrite): OwnRates[] {
  if (write.kind === "setTerms") return [write];
  return write.kind === "deleteUser" ? [{ userId: write.userId, ...DEFAULT_TERMS }] : [];
}

/** @param reserved what `time()` returned last */
function setTime(write: RequestedWrite, at: number, reserved: number): void {
  // A market that opens as soon as it is created.
  if (write.kind === "createMarket" && write.opensAt === write.at) write.opensAt = at;
  if ("at" in write) write.at = at;
  else if (write.kind === "insert" && "createdAt" in write.row && write.row.createdAt !== reserved)
    write.row.createdAt = at;
}
