/**
 * Ids in the order of a key, largest first, as lists are paged through. Sorting everything for each request would block
 * the gateway: an order is renewed by moving what has another key than before, and is split by what is filtered for
 * when somebody asks. Knows ids and numbers, not what they stand for.
 */

/** Names a property that a list is filtered by, and reads it. */
export interface Filter {
  readonly name: string;
  readonly read: (id: number) => unknown;
}

/** A part of an order: ids, and beside each its key as of the last renewal. */
export class Slice {
  readonly ids: number[];
  readonly keys: number[];
  private splits: Map<string, Map<unknown, Slice>> | null = null;

  constructor(ids: number[] = [], keys: number[] = []) {
    this.ids = ids;
    this.keys = keys;
  }

  /** Those of it whose property has the value. The first call of a filter splits the whole slice by it. */
  where({ name, read }: Filter, value: unknown): Slice {
    this.splits ??= new Map();
    let split = this.splits.get(name);
    if (split === undefined) {
      split = new Map();
      for (let i = 0; i < this.ids.length; i++) {
        const id = this.ids[i]!;
        const found = read(id);
        let part = split.get(found);
        if (part === undefined) {
          part = new Slice();
          split.set(found, part);
        }
        part.ids.push(id);
        part.keys.push(this.keys[i]!);
      }
      this.splits.set(name, split);
    }
    return split.get(value) ?? NONE;
  }

  /** The place of what comes after a key and an id, which need not be in it; ids must break its ties. */
  after(key: number, id: number): number {
    let low = 0;
    let high = this.ids.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const isAfter = this.keys[middle]! < key || (this.keys[middle] === key && this.ids[middle]! < id);
      if (isAfter) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const NONE = new Slice();

interface Moved {
  readonly id: number;
  readonly key: number;
}

/** What an order is made of. */
export interface OrderOptions {
  /** The ids of all that is in it; what is new comes at the ends of the lists. */
  readonly sources: readonly Source[];
  readonly keyOf: (id: number, now: number) => number;
  /** Keys change by themselves: the order is renewed when it is older than this, in ms. Without it they never change. */
  readonly holdsMs?: () => number;
  /** The order among equal keys, as for sort(); by default the largest id comes first. */
  readonly tie?: (a: number, b: number) => number;
  /** Rises whenever a property changes that slices are filtered by. */
  readonly version: () => number;
}

interface Source {
  readonly items: () => readonly { readonly id: number }[];
  readonly idOf: (id: number) => number;
}

export class Order {
  private readonly options: OrderOptions;
  private readonly tie: (a: number, b: number) => number;
  /** Of each source, how many are in it. */
  private readonly taken: number[];
  private all = new Slice();
  private version = 0;
  private renewedAt = 0;

  constructor(options: OrderOptions) {
    this.options = options;
    this.tie = options.tie ?? ((a, b) => b - a);
    this.taken = options.sources.map(() => 0);
  }

  /** All of it, new enough, with whatever is new in it. */
  upToDate(now: number): Slice {
    const { holdsMs, version } = this.options;
    const added = this.added();
    // A clock that was set back must not keep an old order.
    const isOld = holdsMs !== undefined && Math.abs(now - this.renewedAt) >= holdsMs();
    if (version() !== this.version) this.all = new Slice(this.all.ids, this.all.keys);
    if (added.length > 0 || isOld) this.renew(added, now);
    this.version = version();
    return this.all;
  }

  private added(): number[] {
    const added: number[] = [];
    this.options.sources.forEach(({ items, idOf }, i) => {
      const found = items();
      for (let at = this.taken[i]!; at < found.length; at++) added.push(idOf(found[at]!.id));
      this.taken[i] = found.length;
    });
    return added;
  }

  /** Takes in `added`, and puts what has another key than before in its place. */
  private renew(added: readonly number[], now: number): void {
    const { keyOf } = this.options;
    const moved: Moved[] = added.map((id) => ({ id, key: keyOf(id, now) }));
    const ids: number[] = [];
    const keys: number[] = [];
    const { all } = this;
    for (let i = 0; i < all.ids.length; i++) {
      const id = all.ids[i]!;
      const key = keyOf(id, now);
      if (key === all.keys[i]) {
        ids.push(id);
        keys.push(key);
      } else moved.push({ id, key });
    }
    this.renewedAt = now;
    if (moved.length === 0) return;
    moved.sort((a, b) => b.key - a.key || this.tie(a.id, b.id));
    this.all = this.merged(ids, keys, moved);
  }

  private merged(ids: readonly number[], keys: readonly number[], moved: readonly Moved[]): Slice {
    const slice = new Slice();
    let next = 0;
    const take = ({ id, key }: Moved): void => {
      slice.ids.push(id);
      slice.keys.push(key);
      next++;
    };
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!;
      const key = keys[i]!;
      while (next < moved.length) {
        const other = moved[next]!;
        if (other.key < key || (other.key === key && this.tie(other.id, id) > 0)) break;
        take(other);
      }
      slice.ids.push(id);
      slice.keys.push(key);
    }
    while (next < moved.length) take(moved[next]!);
    return slice;
  }
}
