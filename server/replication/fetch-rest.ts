/**
 * Brings a log that is behind its stream to the stream's end: after a backup was restored, or in an empty folder. Runs on
 * its own, while no exchange uses the folder. Appends only batches that continue the log, each transaction whole.
 */
import type Database from "better-sqlite3";
import { NO_HASH, readLogEnd } from "../../engine/log/append.ts";
import { previousHash, readHeader } from "../../engine/log/batch-format.ts";
import { LogChain } from "../../engine/log/chain.ts";
import { BatchAssembler } from "../../engine/replication/batch-assembler.ts";
import { type Message, MessageKind } from "../../engine/replication/message-format.ts";
import { NatsLink } from "./connection.ts";
import { RefusedSetup } from "./errors.ts";
import type { Say } from "./reminder.ts";
import { LogStream } from "./stream.ts";
import type { ReplicationSettings } from "./types.ts";

/** Messages that are read at the same time. */
const READS = 16;

export interface FetchOptions {
  readonly settings: ReplicationSettings;
  /** journal.db, which nobody else uses. */
  readonly journal: Database.Database;
  readonly say: Say;
  readonly onProgress: (done: number, total: number) => void;
}

export interface Fetched {
  /** The last batch before and after. */
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
}

/** @throws RefusedSetup, BrokenStream, BrokenLog */
export async function fetchRest({ settings, journal, say, onProgress }: FetchOptions): Promise<Fetched> {
  const link = await NatsLink.open(settings, say);
  try {
    const stream = new LogStream(link, settings.name, settings.replicas, say);
    const { state } = await stream.find();
    if (state.messages === 0) throw new RefusedSetup(`the stream ${stream.names.stream} has no message`);
    const local = readLogEnd(journal) ?? { exchange: null, batch: 0, hash: NO_HASH };
    const first = await stream.message(state.first_seq);
    requireReach(beginOf(first), local.batch);
    const exchange = exchangeOf(first);
    if (local.exchange !== null && exchange !== null && exchange !== local.exchange) {
      throw new RefusedSetup("the stream has the log of another exchange");
    }
    const begin = await findMessage(stream, state.first_seq, state.last_seq, local.batch + 1);
    const rest = new Rest(journal, local);
    for (let next = begin; next <= state.last_seq; next += READS) {
      const count = Math.min(READS, state.last_seq - next + 1);
      const messages = await Promise.all(Array.from({ length: count }, (_, i) => stream.message(next + i)));
      rest.append(messages);
      onProgress(next + count - begin, state.last_seq - begin + 1);
    }
    return { from: local.batch, to: rest.last, bytes: rest.bytes };
  } finally {
    await link.nc.close();
  }
}

/** The first batch that a stream has whole, by its first message. */
function beginOf({ kind, first, part }: Message): number {
  if (kind === MessageKind.base) return first + 1;
  return kind === MessageKind.part && part > 1 ? first + 1 : first;
}

/** Null where the message has no whole header of a batch: what doesn't continue the log shows by its hash. */
function exchangeOf({ base, kind, bodies }: Message): number | null {
  if (base !== null) return base.exchange;
  return kind === MessageKind.batches ? readHeader(bodies[0]!).exchange : null;
}

function requireReach(begin: number, last: number): void {
  if (last + 1 >= begin) return;
  throw new RefusedSetup(
    `the stream reaches back to batch ${begin}, this box's log ends with batch ${last}: restore a later backup first`,
  );
}

/** The first message that has anything of a batch or of a later one; one past the last if there is none. */
async function findMessage(stream: LogStream, first: number, last: number, batch: number): Promise<number> {
  let [low, high] = [first, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    // A base names the batch before the stream's first.
    if ((await stream.message(middle)).last < batch) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What the log lacks, as it comes. */
class Rest {
  bytes = 0;
  last: number;
  private readonly assembler = new BatchAssembler();
  private readonly journal: Database.Database;
  private readonly insert: Database.Statement;
  private readonly chain: LogChain;
  private readonly hash: Buffer;
  private readonly begins: number;

  constructor(journal: Database.Database, { batch, hash }: { readonly batch: number; readonly hash: Buffer }) {
    this.journal = journal;
    this.insert = journal.prepare("INSERT INTO batches VALUES (?, ?, ?)");
    this.chain = new LogChain({ batch, hash: "" });
    this.hash = hash;
    this.begins = batch + 1;
    this.last = batch;
  }

  /** Appends the batches that these messages complete, in one transaction. */
  append(messages: readonly Message[]): void {
    this.journal.transaction(() => {
      for (const message of messages) {
        for (const body of this.assembler.add(message)) this.appendBatch(body);
      }
    })();
  }

  private appendBatch(body: Buffer): void {
    const { batch } = readHeader(body);
    // A message may begin with batches that the log has.
    if (batch < this.begins) return;
    if (batch === this.begins && !previousHash(body).equals(this.hash)) {
      throw new RefusedSetup(
        `batch ${batch} of the stream doesn't continue this box's log: they went on separately after batch ${batch - 1}`,
      );
    }
    const { at } = this.chain.next(body);
    this.insert.run(batch, at, body);
    this.bytes += body.length;
    this.last = batch;
  }
}
