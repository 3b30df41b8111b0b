/**
 * One outcome's order book as a client builds it from its WebSocket only: a snapshot, then changes, numbered without a
 * gap. It compares any REST book with its own state at the same sequence. It can undo the last changes, and a REST book
 * that is ahead waits until the changes catch up.
 */

export type Levels = readonly (readonly number[])[];

/** As `book.snapshot` and REST have it. */
export interface BookState {
  readonly sequence: number;
  readonly bids: Levels;
  readonly asks: Levels;
}

/** The number of changes it can undo: REST responses are at most that old. */
const KEPT_CHANGES = 4_096;

type Ladder = Map<number, number>;

/** The levels before a change, by price. */
interface Undo {
  readonly bids: Levels;
  readonly asks: Levels;
}

export class FollowedBook {
  readonly name: string;
  sequence: number;
  /** Changes since the snapshot. */
  changes = 0;
  /** The compared REST books, and their sequences. */
  compared = 0;
  readonly comparedAt = new Set<number>();
  /** REST books from before the snapshot, or too old to compare. */
  missed = 0;
  private readonly report: (difference: string) => void;
  private readonly bids: Ladder = new Map();
  private readonly asks: Ladder = new Map();
  /** Of the last changes, the latest last. */
  private readonly undos: Undo[] = [];
  /** REST books of future sequences. */
  private readonly awaited = new Map<number, BookState[]>();

  /** @param report receives each difference */
  constructor(name: string, snapshot: BookState, report: (difference: string) => void) {
    this.name = name;
    this.report = report;
    this.sequence = snapshot.sequence;
    apply(this.bids, snapshot.bids);
    apply(this.asks, snapshot.asks);
  }

  /** A `book.updated`, which is the next or a fault. */
  update(sequence: number, bids: Levels, asks: Levels): void {
    if (sequence !== this.sequence + 1) this.report(`${this.name}: ${sequence} came after ${this.sequence}`);
    this.sequence = sequence;
    this.changes++;
    this.undos.push({ bids: apply(this.bids, bids), asks: apply(this.asks, asks) });
    if (this.undos.length > 2 * KEPT_CHANGES) this.undos.splice(0, KEPT_CHANGES);
    const awaited = this.awaited.get(sequence);
    if (awaited === undefined) return;
    this.awaited.delete(sequence);
    for (const book of awaited) this.compareNow(book);
  }

  /** Compares with a REST book, now or once the changes have caught up with it. */
  compare(book: BookState): void {
    const ahead = book.sequence - this.sequence;
    if (ahead <= 0) this.compareNow(book);
    else if (this.awaited.has(book.sequence)) this.awaited.get(book.sequence)!.push(book);
    else this.awaited.set(book.sequence, [book]);
  }

  /** No more changes will arrive, and `book` is the current REST book. */
  finish(book: BookState): void {
    if (book.sequence !== this.sequence)
      this.report(`${this.name}: ends at ${this.sequence}, REST at ${book.sequence}`);
    this.compare(book);
    for (const sequence of this.awaited.keys()) this.report(`${this.name}: REST had ${sequence}, which never came`);
  }

  private compareNow(book: BookState): void {
    const back = this.sequence - book.sequence;
    if (back > this.undos.length) {
      this.missed++;
      return;
    }
    let { bids, asks } = this;
    if (back > 0) {
      [bids, asks] = [new Map(bids), new Map(asks)];
      for (const undo of this.undos.slice(-back).reverse()) {
        apply(bids, undo.bids);
        apply(asks, undo.asks);
      }
    }
    this.compared++;
    this.comparedAt.add(book.sequence);
    const [own, theirs] = [text(sorted(bids, -1), sorted(asks, 1)), text(book.bids, book.asks)];
    if (own !== theirs) this.report(`${this.name} at ${book.sequence}: followed ${own}, REST ${theirs}`);
  }
}

/** Sets the levels; returns the previous levels, the last first. */
function apply(ladder: Ladder, levels: Levels): Levels {
  const before: number[][] = [];
  for (const [price, quantity] of levels) {
    before.unshift([price!, ladder.get(price!) ?? 0]);
    if (quantity === 0) ladder.delete(price!);
    else ladder.set(price!, quantity!);
  }
  return before;
}

const sorted = (ladder: Ladder, direction: 1 | -1): Levels => [...ladder].sort(([a], [b]) => (a - b) * direction);
const text = (bids: Levels, asks: Levels): string => JSON.stringify({ bids, asks });
