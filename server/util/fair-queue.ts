/**
 * A queue per key, popped round robin over the keys: however much waits under one key, another key's oldest item is
 * popped within one round. Bounded per key and in total; every call is constant work. Holds items only: runs nothing and
 * reads no clock.
 */

interface Entry<T> {
  readonly item: T;
  next: Entry<T> | null;
}

/** The items of one key, oldest first; never empty. */
interface Line<T> {
  readonly key: string;
  first: Entry<T>;
  last: Entry<T>;
  size: number;
  /** The line that is next in the round. */
  next: Line<T> | null;
}

export class FairQueue<T> {
  private readonly maxOfKey: number;
  private readonly maxSize: number;
  private readonly lines = new Map<string, Line<T>>();
  private firstLine: Line<T> | null = null;
  private lastLine: Line<T> | null = null;
  private count = 0;

  constructor(maxOfKey: number, maxSize: number) {
    this.maxOfKey = maxOfKey;
    this.maxSize = maxSize;
  }

  /** Items waiting, of all keys. */
  get size(): number {
    return this.count;
  }

  /** Returns false, and changes nothing, where the key's line or the whole queue is full. */
  push(key: string, item: T): boolean {
    const line = this.lines.get(key);
    if (this.count === this.maxSize || line?.size === this.maxOfKey) return false;
    const entry: Entry<T> = { item, next: null };
    if (line === undefined) {
      const added: Line<T> = { key, first: entry, last: entry, size: 1, next: null };
      this.lines.set(key, added);
      this.append(added);
    } else {
      line.last.next = entry;
      line.last = entry;
      line.size++;
    }
    this.count++;
    return true;
  }

  /** Pops the oldest item of the key that is next; the key then goes to the end of the round. */
  pop(): T | undefined {
    return this.popFrom(null, this.firstLine);
  }

  /** The same for the first key of the round that `mayPop` accepts, which is called at most once per key. */
  popWhere(mayPop: (key: string) => boolean): T | undefined {
    let before: Line<T> | null = null;
    let line = this.firstLine;
    while (line !== null && !mayPop(line.key)) {
      before = line;
      line = line.next;
    }
    return this.popFrom(before, line);
  }

  private popFrom(before: Line<T> | null, line: Line<T> | null): T | undefined {
    if (line === null) return undefined;
    if (before === null) this.firstLine = line.next;
    else before.next = line.next;
    if (line.next === null) this.lastLine = before;
    line.next = null;
    this.count--;
    const { item, next } = line.first;
    if (next === null) {
      this.lines.delete(line.key);
    } else {
      line.first = next;
      line.size--;
      this.append(line);
    }
    return item;
  }

  private append(line: Line<T>): void {
    if (this.lastLine === null) this.firstLine = line;
    else this.lastLine.next = line;
    this.lastLine = line;
  }
}
