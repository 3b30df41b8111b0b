/**
 * The gateway's end of the journal's mailbox: sends account writes and, once they are committed, takes their effect
 * into the gateway's memory; has the WAL checkpointed when the journal asks.
 * Owned by the gateway thread; the journal owns the other end of the port.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { MarketStatus } from "../../engine/constants.ts";
import type { JournalMessage, JournalReply } from "../../engine/log/journal.ts";
import type { KeptRequest } from "../../engine/projection/idempotency-keys.ts";
import { UNDECIDED } from "../../engine/projection/load/markets.ts";
import { DEFAULT_TERMS } from "../../engine/projection/user-terms.ts";
import { type AccountWrite, HOUSE, type WriteResult } from "../../engine/projection/writes/account-write.ts";
import type { AuditEntry } from "../../engine/projection/writes/audit-log.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import { assert } from "../../engine/util/assert.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { Exchange } from "../trading/exchange.ts";
import type { Accounts } from "./accounts.ts";

const POSTED = 0;

interface Waiting {
  readonly writes: readonly AccountWrite[];
  resolve(results: WriteResult[]): void;
  reject(error: Error): void;
}

/** The way to the journal and back. */
export interface Mailbox {
  post(message: JournalMessage): void;
  /** Gives each reply to `receive` from now on. */
  listen(receive: (reply: JournalReply) => void): void;
  /** Replies that are there already and weren't given; none of them is given again. */
  take(): JournalReply[];
}

/** To the journal in its thread. */
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

  take(): JournalReply[] {
    const replies: JournalReply[] = [];
    for (let found = receiveMessageOnPort(this.port); found !== undefined; found = receiveMessageOnPort(this.port)) {
      replies.push(found.message as JournalReply);
    }
    return replies;
  }
}

export interface AccountWriterOptions {
  readonly mailbox: Mailbox;
  readonly exchange: Exchange;
  readonly accounts: Accounts;
  /** Checkpoints the WAL through a connection of another thread; the journal asks for it. */
  readonly checkpoint: () => Promise<void>;
}

export class AccountWriter {
  private readonly mailbox: Mailbox;
  private readonly exchange: Exchange;
  private readonly accounts: Accounts;
  private readonly checkpoint: () => Promise<void>;
  private readonly waiting = new Map<number, Waiting>();
  /** Committed, and not wholly in memory yet. */
  private taking = 0;
  private lastId = 0;
  private refusal: ApiError | null = null;

  private givenTime = 0;

  constructor(options: AccountWriterOptions) {
    this.mailbox = options.mailbox;
    this.exchange = options.exchange;
    this.accounts = options.accounts;
    this.checkpoint = options.checkpoint;
    this.mailbox.listen((reply) => this.receive(reply));
  }

  /**
   * Does all of `writes` or none, with their lines of the audit log; resolves when they are durable. Only the first may be
   * one that can be refused. Rejects with an ApiError where it is. Gives new rows and lines their time here, in the order
   * of their ids: what `at` or `createdAt` they came with is overwritten, unless `time()` gave it.
   * @param kept of a request with an Idempotency-Key: durable with its effect
   */
  write(
    writes: readonly AccountWrite[],
    audits: readonly AuditEntry[] = [],
    kept: KeptRequest | null = null,
  ): Promise<WriteResult[]> {
    if (this.refusal !== null) return Promise.reject(this.refusal);
    const at = this.exchange.time();
    for (const write of writes) setTime(write, at, this.givenTime);
    return new Promise((resolve, reject) => {
      const id = ++this.lastId;
      this.waiting.set(id, { writes, resolve, reject });
      const lines = audits.map((line) => ({ ...line, at }));
      this.mailbox.post({ id, at, writes, audits: lines, kept: kept === null ? null : { ...kept, at } });
    });
  }

  /** A time for a row that is written in the same turn of the event loop, ms: `createdAt` of it stays as it is. */
  time(): number {
    this.givenTime = this.exchange.time();
    return this.givenTime;
  }

  /** Makes a row of which there can be no other; answers its id. */
  async insert(write: AccountWrite, audits: readonly AuditEntry[], kept: KeptRequest | null = null): Promise<number> {
    const [result] = await this.write([write], audits, kept);
    assert(result!.created, "the row is new");
    return result!.id;
  }

  /** Writes that aren't answered yet. */
  get pendingCount(): number {
    return this.waiting.size + this.taking;
  }

  /**
   * Nothing more can be made durable: whoever comes is told so, but for what was done before.
   * @param unknown for those who wait: what they asked for may be durable
   */
  refuse(refusal: ApiError, unknown: ApiError): void {
    this.refusal = refusal;
    for (const reply of this.mailbox.take()) this.receive(reply);
    for (const { reject } of this.waiting.values()) reject(unknown);
    this.waiting.clear();
  }

  private receive(reply: JournalReply): void {
    if (reply === "checkpoint") {
      // Where it fails (reads queue up, the disk is full) the journal's own does the work, or meets the error.
      const done = (): void => this.mailbox.post("checkpointed");
      void this.checkpoint().then(done, done);
      return;
    }
    const waiting = this.waiting.get(reply.id);
    if (waiting === undefined) return;
    this.waiting.delete(reply.id);
    if ("refused" in reply) {
      waiting.reject(new ApiError(ErrorKind.conflict, reply.refused));
      return;
    }
    const { results } = reply;
    const taking = waiting.writes.flatMap((write, i) => {
      return results[i]!.created ? (this.takeIn(write, results[i]!) ?? []) : [];
    });
    if (taking.length === 0) return waiting.resolve(results);
    this.taking++;
    void Promise.all(taking).then(() => {
      this.taking--;
      waiting.resolve(results);
    });
  }

  /** Takes what was written into memory: at once, or where it is much in several turns. */
  private takeIn(write: AccountWrite, result: WriteResult): Promise<void> | undefined {
    const { id, firstOutcomeId, settled } = result;
    const { accounts, exchange } = this;
    const { registry } = exchange;
    switch (write.kind) {
      case "settleMarket": {
        const market = registry.get(write.marketId)!;
        const { payouts, note, at, status } = write;
        return exchange.settlement.apply(market, status, { payouts, note, at }, settled!);
      }
      case "update":
        if (write.table === "users" && write.set.emailVerifiedAt != null) accounts.keepUser(write.id);
        return;
      case "insert":
      case "setTerms":
      case "deleteUser":
      case "sweep":
        // Whoever asked for it has taken it in, or will.
        return;
      case "createUser": {
        const { kind: _, at, ...rest } = write;
        accounts.addUser({ ...rest, ...DEFAULT_TERMS, id, phone: null, suspendedAt: null, createdAt: at });
        exchange.ledger.restoreAccount(id, 0, 0, 0);
        return;
      }
      case "createToken": {
        const { kind: _, at, scopes, allowedAddresses, ...rest } = write;
        const texts = { scopes: scopes.join(" "), allowedAddresses: allowedAddresses?.join(" ") ?? null };
        accounts.addPat({ ...rest, ...texts, id, createdAt: at, lastUsedAt: null });
        return;
      }
      case "deposit":
        if (write.userId === HOUSE) return;
        accounts.keepUser(write.userId);
        exchange.cash.deposit(write.userId, write.amount);
        return;
      case "withdrawFromHouse":
        return;
      case "payWithdrawal":
        exchange.cash.withdraw(write.userId, write.amount);
        return;
      case "openMarket": {
        const market = registry.get(write.marketId)!;
        return exchange.markets.whenRoom(market.id, () => {
          market.opensAt = write.at;
          market.decision = { note: write.note, at: write.at };
          registry.setStatus(market, MarketStatus.open);
          exchange.markets.created(market);
        });
      }
      case "refuseMarket":
        registry.refuse(registry.get(write.marketId)!, { note: write.note, at: write.at });
        return;
      case "describeMarket": {
        const { kind: _, marketId, ...changes } = write;
        exchange.markets.describe(registry.get(marketId)!, changes);
        return;
      }
      case "createEvent":
        registry.addEvent({ ...write, id, createdAt: write.at });
        return;
      case "createMarket": {
        const status = write.proposedBy === null ? MarketStatus.open : MarketStatus.proposed;
        const row = { ...write, ...UNDECIDED, id, status, sets: 0, createdAt: write.at };
        const outcomes = write.outcomes.map((name, position) => ({
          id: firstOutcomeId! + position,
          marketId: id,
          position,
          name,
          lastPrice: null,
          volume: 0,
          payout: null,
        }));
        return exchange.markets.whenRoom(id, () => {
          exchange.markets.created(
            registry.add({ ...row, firstOutcomeId: firstOutcomeId!, outcomes: outcomes.length }, outcomes),
          );
        });
      }
    }
  }
}

/** @param given what `time()` gave last */
function setTime(write: AccountWrite, at: number, given: number): void {
  // One that opens when it is made.
  if (write.kind === "createMarket" && write.opensAt === write.at) write.opensAt = at;
  if ("at" in write) write.at = at;
  else if (write.kind === "insert" && "createdAt" in write.row && write.row.createdAt !== given)
    write.row.createdAt = at;
}
