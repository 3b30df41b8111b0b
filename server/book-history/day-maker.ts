/**
 * Makes the files of history, day by day, from the log's batches. Where it stands is stored after every few hundred thousand
 * rows, so that a run that was killed goes on from there; the same batches give the same files, whoever makes them and
 * however often a run was interrupted.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { dayOf, daysBefore, daysBetween, endOfDay, startOfDay } from "../../engine/log/archive-format.ts";
import { readHeader } from "../../engine/log/batch-format.ts";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import { LogChain } from "../../engine/log/chain.ts";
import type { Opening } from "../../engine/log/opening.ts";
import { pack, unpack } from "../../engine/log/packed.ts";
import { assert } from "../../engine/util/assert.ts";
import { writeDurably } from "../../engine/util/durable-file.ts";
import { BookFollower, type FollowerState, type KnownMarkets } from "./book-follower.ts";
import { marketFolder, readDay, readMarketDay, removeUnnamed, writeDay, writeMarketDay } from "./history-folder.ts";
import { MIN_FREE_BYTES } from "./limits.ts";
import { BLOCK_ROWS, writeRowFiles } from "./row-files.ts";
import { EMPTY_SPOOL, LostRows, RowSpool, type SpoolState } from "./row-spool.ts";

const FORMAT = 1;
/** Rows in memory, 48 bytes each. */
const FLUSH_ROWS = 2 ** 18;

/** Where a maker stands. */
interface MakerState {
  readonly format: number;
  readonly exchange: number;
  /** The last batch that it followed, and the SHA-256 of its body in hex. */
  readonly batch: number;
  readonly hash: string;
  readonly date: string;
  readonly follower: FollowerState;
  readonly spool: SpoolState;
}

export interface DayMakerOptions {
  /** The folder of history. */
  readonly folder: string;
  /** Its own files, which nobody else uses meanwhile. */
  readonly making: string;
  /** What must stay free on the disk, bytes; less in tests. */
  readonly minFree?: number;
}

/** What a maker begins with, if it has no state. */
export interface Beginning {
  /** The first batch to follow: the first of its day that the log has. */
  readonly batch: number;
  readonly opening: Opening;
  readonly known: KnownMarkets;
}

export class DayMaker {
  private readonly folder: string;
  private readonly making: string;
  private readonly minFree: number;
  private follower: BookFollower;
  private spool: RowSpool | null = null;
  private chain = new LogChain();
  private exchange = 0;
  private date = "";
  private batch = 0;

  constructor({ folder, making, minFree = MIN_FREE_BYTES }: DayMakerOptions) {
    this.minFree = minFree;
    this.folder = folder;
    this.making = making;
    this.follower = this.newFollower();
    mkdirSync(making, { recursive: true });
  }

  /** The next batch to follow. */
  get next(): number {
    return this.batch + 1;
  }

  /** The day that is being made; "" before the first batch. */
  get day(): string {
    return this.date;
  }

  /** Goes on where an earlier run stored its state. Returns false if there is none, or its rows are damaged. */
  resume(): boolean {
    const path = join(this.making, "state");
    if (!existsSync(path)) return false;
    const state = unpack(readFileSync(path)) as MakerState;
    if (state.format !== FORMAT) return false;
    try {
      this.spool = new RowSpool(this.spoolPath(state.date), state.spool);
    } catch (error) {
      if (error instanceof LostRows) return false;
      throw error;
    }
    this.follower.restore(state.follower);
    this.exchange = state.exchange;
    this.date = state.date;
    this.batch = state.batch;
    this.chain = new LogChain({ batch: state.batch, hash: state.hash });
    return true;
  }

  /** Begins anew. */
  begin({ batch, opening, known }: Beginning): void {
    this.close();
    rmSync(this.making, { recursive: true, force: true });
    mkdirSync(this.making, { recursive: true });
    this.follower = this.newFollower();
    this.follower.open(opening, known);
    this.date = "";
    this.batch = batch - 1;
    this.chain = new LogChain();
  }

  /**
   * Follows batches, and publishes each day that ends.
   * @throws BrokenLog that names a batch, Error where the disk fails or is nearly full
   */
  follow(bodies: Iterable<Buffer>): void {
    for (const body of bodies) {
      const header = readHeader(body);
      if (this.exchange !== 0 && header.exchange !== this.exchange) {
        throw new BrokenLog(`batch ${header.batch} is another exchange's: move ${this.folder} away`);
      }
      this.exchange = header.exchange;
      const date = dayOf(header.at);
      if (date !== this.date) this.beginDay(date);
      this.chain.next(body);
      this.follower.follow(body, header);
      this.batch = header.batch;
      if (this.rows.buffered >= FLUSH_ROWS) this.store();
    }
  }

  /**
   * Publishes what there is of the day.
   * @param nextAt of the batch after the last one, ms; null where nobody knows it. One of a later day completes this day and
   *   those between, on which nothing happened.
   */
  publish(nextAt: number | null = null): void {
    const { date } = this;
    if (date === "") return;
    const next = nextAt === null ? date : dayOf(nextAt);
    this.publishDay(next > date);
    this.writeEmptyDays(date, next);
  }

  /** Makes the state durable. */
  store(): void {
    if (this.date === "") return;
    this.checkRoom();
    this.rows.flush();
    const state: MakerState = {
      ...{ format: FORMAT, exchange: this.exchange, batch: this.batch, hash: this.chain.hash, date: this.date },
      ...{ follower: this.follower.state(), spool: this.rows.state() },
    };
    writeDurably(join(this.making, "state"), (append) => append(pack(state)));
  }

  close(): void {
    this.spool?.close();
    this.spool = null;
  }

  private get rows(): RowSpool {
    assert(this.spool !== null, "a day has begun");
    return this.spool;
  }

  private newFollower(): BookFollower {
    return new BookFollower({ add: (market, row) => this.rows.add(market, row) });
  }

  private spoolPath(date: string): string {
    return join(this.making, `${date}.rows`);
  }

  private beginDay(date: string): void {
    const ended = this.date;
    this.publish(startOfDay(date));
    this.close();
    rmSync(this.spoolPath(date), { force: true });
    this.spool = new RowSpool(this.spoolPath(date), EMPTY_SPOOL);
    this.date = date;
    this.follower.beginDay(startOfDay(date));
    // The ended day's rows are needed until the state no longer names them.
    this.store();
    if (ended !== "") rmSync(this.spoolPath(ended), { force: true });
  }

  /** Nothing happened on the days between two. */
  private writeEmptyDays(after: string, before: string): void {
    const { folder, exchange, batch: lastBatch } = this;
    for (const date of daysBetween(dayOf(endOfDay(after)), before)) {
      writeDay(folder, { date, exchange, isComplete: true, lastBatch, markets: [] });
    }
  }

  private publishDay(isComplete: boolean): void {
    const { folder, date, exchange, rows, batch: lastBatch } = this;
    rows.flush();
    const before = readDay(folder, date);
    // It was made before, from the same batches: a complete day never changes, and the other grows.
    if (before !== null && (before.isComplete || (!isComplete && before.lastBatch >= lastBatch))) return;
    const { markets } = rows;
    for (const market of markets) {
      this.checkRoom();
      this.publishMarket(market, isComplete);
    }
    writeDay(folder, { date, exchange, isComplete, lastBatch, markets });
    const previous = isComplete ? null : readDay(folder, daysBefore(date, 1));
    for (const market of previous?.markets ?? []) removeUnnamed(folder, market, daysBefore(date, 1));
  }

  /** Rows and files are small beside what must stay free. */
  private checkRoom(): void {
    const { bavail, bsize } = statfsSync(this.making);
    if (bavail * bsize < this.minFree) throw new Error("the disk is nearly full");
  }

  private publishMarket(market: number, isComplete: boolean): void {
    const { folder, date } = this;
    const rows = this.rows.rowsOf(market);
    const before = readMarketDay(folder, market, date);
    if (before !== null && before.rows === rows && before.isComplete === isComplete) return;
    const stem = isComplete ? date : `${date}.${rows}`;
    const path = marketFolder(folder, market);
    mkdirSync(path, { recursive: true });
    const names = { parquet: `${stem}.parquet`, jsonLines: `${stem}.jsonl.gz` };
    const written = writeRowFiles({ parquet: join(path, names.parquet), jsonLines: join(path, names.jsonLines) }, () =>
      this.rows.blocksOf(market, BLOCK_ROWS),
    );
    writeMarketDay(folder, {
      ...{ date, market, rows, ...this.rows.spanOf(market), isComplete },
      parquet: { name: names.parquet, ...written.parquet },
      jsonLines: { name: names.jsonLines, ...written.jsonLines },
    });
    // Whoever read the description a moment ago asks for the files that it named.
    removeUnnamed(folder, market, date, before === null ? [] : [before.parquet.name, before.jsonLines.name]);
  }
}
