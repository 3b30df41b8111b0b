/** Checks that batches continue each other: numbers, positions and times rise, and each names the hash of the one before. */
import { type BatchHeader, hashOf, previousHash, readHeader } from "./batch-format.ts";
import { BrokenLog } from "./broken-log.ts";

/** A batch that the chain continues from. */
export interface ChainLink {
  readonly batch: number;
  /** The SHA-256 of its body in hex; "" if it isn't known. */
  readonly hash: string;
}

export class LogChain {
  private previous: ChainLink | null;
  private body: Buffer | null = null;
  private header: BatchHeader | null = null;

  /** @param previous the batch that the first one must follow; null for any */
  constructor(previous: ChainLink | null = null) {
    this.previous = previous;
  }

  /** The header of the last batch; null before the first. */
  get last(): BatchHeader | null {
    return this.header;
  }

  /** The SHA-256 of the last batch's body in hex; "" if it isn't known. */
  get hash(): string {
    return this.body === null ? (this.previous?.hash ?? "") : hashOf(this.body).toString("hex");
  }

  /** Checks the next batch; returns its header. @throws BrokenLog that names the batch */
  next(body: Buffer): BatchHeader {
    const before = this.header?.batch ?? this.previous?.batch ?? null;
    const header = headerOf(body, before);
    if (before !== null && header.batch !== before + 1) {
      throw new BrokenLog(`batch ${before} of the log is followed by batch ${header.batch}`);
    }
    const { hash } = this;
    if (hash !== "" && previousHash(body).toString("hex") !== hash) {
      throw new BrokenLog(`batch ${header.batch - 1} of the log was changed: batch ${header.batch} names another hash`);
    }
    this.checkHeader(header);
    this.header = header;
    this.body = body;
    return header;
  }

  private checkHeader(header: BatchHeader): void {
    const last = this.header;
    if (last === null) return;
    const continues = header.recordsBefore === last.recordsBefore + last.records && header.exchange === last.exchange;
    if (!continues || header.at < last.at || header.lastEntry < last.lastEntry) {
      throw new BrokenLog(`batch ${header.batch} of the log doesn't continue the one before`);
    }
  }
}

function headerOf(body: Buffer, before: number | null): BatchHeader {
  try {
    return readHeader(body);
  } catch (error) {
    const place = before === null ? "the first batch" : `batch ${before + 1}`;
    throw new BrokenLog(`${place} of the log is damaged: ${(error as Error).message}`);
  }
}
