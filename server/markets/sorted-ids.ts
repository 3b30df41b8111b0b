/**
 * Ids in the order of a key, largest first, as lists are paged through. Sorting or even looking at everything for each
 * request would block the gateway: whoever changes a key marks the id, and a read moves what was marked. Knows ids and
 * numbers, not what they stand for.
 */

import { IdSet } from "../../engine/util/id-set.ts";
import { withIndex } from "../../engine/util/typed-arrays.ts";
import { MAX_MOVED_PER_READ } from "./limits.ts";

export interface SortedIdsOptions {
  /** The key that an id has now; NaN where it isn't in the order. */
  readonly keyOf: (id: number) => number;
  /** The order among equal keys, as for sort(); by default the largest id comes first. */
  readonly tie?: (a: number, b: number) => number;
}

/** What comes into an order: before the `place`th of those in it. */
interface Insertion {
  readonly id: number;
  readonly key: number;
  readonly place: number;
}

interface Columns {
  ids: Int32Array<ArrayBuffer>;
  keys: Float64Array<ArrayBuffer>;
}

export class SortedIds {
  /** The first `size` are in order; hold until the next call. */
  ids = new Int32Array(64);
  keys = new Float64Array(64);
  size = 0;
  private spare: Columns = { ids: new Int32Array(64), keys: new Float64Array(64) };
  /** By id: the key that it is in the order under; NaN where it isn't in it. */
  private keyById = new Float64Array(64).fill(Number.NaN);
  private marked = new IdSet();
  private readonly keyOf: (id: number) => number;
  private readonly tie: (a: number, b: number) => number;

  constructor({ keyOf, tie = (a, b) => b - a }: SortedIdsOptions) {
    this.keyOf = keyOf;
    this.tie = tie;
  }

  /** Its key may have changed, or whether it is in the order at all. */
  mark(id: number): void {
    this.marked.add(id);
  }

  /** Marks all that are in it. */
  markAll(): void {
    for (let i = 0; i < this.size; i++) this.marked.add(this.ids[i]!);
  }

  /**
   * Puts what was marked in its place.
   * @param most a bound that keeps it short: what is left is for the next calls
   */
  refresh(most = MAX_MOVED_PER_READ): void {
    const { marked } = this;
    if (marked.size === 0) return;
    const ids = marked.list().slice();
    marked.clear();
    for (let i = most; i < ids.length; i++) marked.add(ids[i]!);
    const gone: number[] = [];
    const coming: Insertion[] = [];
    for (const id of ids.subarray(0, most)) {
      const key = this.keyOf(id);
      this.keyById = withIndex(this.keyById, id, Number.NaN);
      const before = this.keyById[id]!;
      if (Object.is(key, before)) continue;
      if (!Number.isNaN(before)) gone.push(this.placeOf(before, id));
      if (!Number.isNaN(key)) coming.push({ id, key, place: this.placeOf(key, id) });
      this.keyById[id] = key;
    }
    if (gone.length + coming.length === 0) return;
    gone.sort((a, b) => a - b);
    coming.sort((a, b) => b.key - a.key || this.tie(a.id, b.id));
    this.move(gone, coming);
  }

  /** The place of what has this key and id, or would come next after it. */
  placeOf(key: number, id: number): number {
    const { ids, keys } = this;
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = keys[middle]!;
      if (other > key || (other === key && this.tie(ids[middle]!, id) < 0)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Copies the order into the spare columns, without what is gone and with what is coming; whole runs at a time. */
  private move(gone: readonly number[], coming: readonly Insertion[]): void {
    const { ids, keys, spare } = this;
    const size = this.size - gone.length + coming.length;
    spare.ids = withIndex(spare.ids, size);
    spare.keys = withIndex(spare.keys, size);
    let from = 0;
    let to = 0;
    const copyUntil = (place: number): void => {
      spare.ids.set(ids.subarray(from, place), to);
      spare.keys.set(keys.subarray(from, place), to);
      to += place - from;
      from = place;
    };
    let nextGone = 0;
    let nextComing = 0;
    while (nextGone < gone.length || nextComing < coming.length) {
      const leaves = gone[nextGone] ?? this.size;
      const comes = coming[nextComing];
      if (comes !== undefined && comes.place <= leaves) {
        copyUntil(comes.place);
        spare.ids[to] = comes.id;
        spare.keys[to++] = comes.key;
        nextComing++;
      } else {
        copyUntil(leaves);
        from++;
        nextGone++;
      }
    }
    copyUntil(this.size);
    this.spare = { ids, keys };
    this.ids = spare.ids;
    this.keys = spare.keys;
    this.size = size;
  }
}

/** A property that lists are filtered by, as a number for each id: looking into 100,000 objects takes long. */
export class Column {
  private readonly codes = new Map<string | number | null, number>();
  private ofId = new Int32Array(64);

  set(id: number, value: string | number | null): void {
    let code = this.codes.get(value);
    if (code === undefined) {
      code = this.codes.size + 1;
      this.codes.set(value, code);
    }
    this.ofId = withIndex(this.ofId, id);
    this.ofId[id] = code;
  }

  /** Those ids that have the value; holds until the next call of `set`. */
  having(value: string | number | null): IdFilter {
    return new ColumnFilter(this.ofId, this.codes.get(value) ?? NO_CODE);
  }

  /** The same of several values. */
  havingOneOf(values: readonly (string | number | null)[]): IdFilter {
    const filters = [...new Set(values)].map((value) => this.having(value));
    return filters.length === 1 ? filters[0]! : { has: (id) => filters.some((filter) => filter.has(id)) };
  }
}

const NO_CODE = -1;

/** Says which ids are wanted. */
export interface IdFilter {
  has(id: number): boolean;
}

class ColumnFilter implements IdFilter {
  private readonly codes: Int32Array;
  private readonly code: number;

  constructor(codes: Int32Array, code: number) {
    this.codes = codes;
    this.code = code;
  }

  has(id: number): boolean {
    return this.codes[id] === this.code;
  }
}

/** Whether all filters want an id. */
export function matches(id: number, filters: readonly IdFilter[]): boolean {
  for (let i = 0; i < filters.length; i++) if (!filters[i]!.has(id)) return false;
  return true;
}
