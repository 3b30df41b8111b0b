/**
 * Ids sorted by a key, largest first, for paged lists. Sorting or scanning everything on each request would block the
 * gateway, so writers mark ids whose key changed, and a read moves the marked ones. Knows ids and numbers only.
 */
import { IdSet } from "../../engine/util/id-set.ts";
import { withIndex } from "../../engine/util/typed-arrays.ts";
import { MAX_MOVED_PER_READ } from "./limits.ts";

export interface SortedIdsOptions {
  /** The id's current key; NaN if it is not in the order. */
  readonly keyOf: (id: number) => number;
  /** Order of equal keys, as for sort(); by default the largest id first. */
  readonly tie?: (a: number, b: number) => number;
}

/** An id to insert before index `place`. */
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
  /** The first `size` entries are valid, until the next call. */
  ids = new Int32Array(64);
  keys = new Float64Array(64);
  size = 0;
  private spare: Columns = { ids: new Int32Array(64), keys: new Float64Array(64) };
  /** By id: its key in the order; NaN if it is not in the order. */
  private keyById = new Float64Array(64).fill(Number.NaN);
  private readonly marked = new IdSet();
  /** Ids that may have entered or left the order: no read may show the ones that left. */
  private readonly changed = new IdSet();
  private readonly keyOf: (id: number) => number;
  private readonly tie: (a: number, b: number) => number;

  constructor({ keyOf, tie = (a, b) => b - a }: SortedIdsOptions) {
    this.keyOf = keyOf;
    this.tie = tie;
  }

  /** Marks an id whose key may have changed. */
  mark(id: number): void {
    this.marked.add(id);
  }

  /** Marks an id that may have entered or left the order. */
  markPresence(id: number): void {
    this.changed.add(id);
  }

  /** Marks every id in the order. */
  markAll(): void {
    for (let i = 0; i < this.size; i++) this.marked.add(this.ids[i]!);
  }

  /**
   * Moves marked ids to their places, and lets ids enter and leave.
   * @param most maximum number to move; later calls move the rest
   */
  refresh(most = MAX_MOVED_PER_READ): void {
    const { marked, changed } = this;
    if (marked.size + changed.size === 0) return;
    const ids = [...changed.list()];
    changed.clear();
    const moved = marked.list().slice();
    marked.clear();
    for (let i = most; i < moved.length; i++) marked.add(moved[i]!);
    const removals: number[] = [];
    const insertions: Insertion[] = [];
    for (const id of moved.subarray(0, most)) ids.push(id);
    for (const id of ids) {
      const key = this.keyOf(id);
      this.keyById = withIndex(this.keyById, id, Number.NaN);
      const before = this.keyById[id]!;
      if (Object.is(key, before)) continue;
      if (!Number.isNaN(before)) removals.push(this.placeOf(before, id));
      if (!Number.isNaN(key)) insertions.push({ id, key, place: this.placeOf(key, id) });
      this.keyById[id] = key;
    }
    if (removals.length + insertions.length === 0) return;
    removals.sort((a, b) => a - b);
    insertions.sort((a, b) => b.key - a.key || this.tie(a.id, b.id));
    this.move(removals, insertions);
  }

  /** The index of this key and id, or where they would be inserted. */
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

  /** Copies the order into the spare columns, with removals and insertions applied, in whole runs. */
  private move(removals: readonly number[], insertions: readonly Insertion[]): void {
    const { ids, keys, spare } = this;
    const size = this.size - removals.length + insertions.length;
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
    let nextRemoval = 0;
    let nextInsertion = 0;
    while (nextRemoval < removals.length || nextInsertion < insertions.length) {
      const removal = removals[nextRemoval] ?? this.size;
      const insertion = insertions[nextInsertion];
      if (insertion !== undefined && insertion.place <= removal) {
        copyUntil(insertion.place);
        spare.ids[to] = insertion.id;
        spare.keys[to++] = insertion.key;
        nextInsertion++;
      } else {
        copyUntil(removal);
        from++;
        nextRemoval++;
      }
    }
    copyUntil(this.size);
    this.spare = { ids, keys };
    this.ids = spare.ids;
    this.keys = spare.keys;
    this.size = size;
  }
}

/** A filterable property as one number per id: scanning 100,000 objects would take too long. */
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

  /** A filter for the ids with this value; valid until the next call of `set`. */
  having(value: string | number | null): IdFilter {
    return new ColumnFilter(this.ofId, this.codes.get(value) ?? NO_CODE);
  }

  /** A filter for the ids with one of these values. */
  havingOneOf(values: readonly (string | number | null)[]): IdFilter {
    const filters = [...new Set(values)].map((value) => this.having(value));
    const [first, second] = filters;
    if (first !== undefined && second === undefined) return first;
    return { has: (id) => filters.some((filter) => filter.has(id)) };
  }
}

const NO_CODE = -1;

/** A set of ids that a list may contain. */
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

/** True if the id passes all filters. */
export function matches(id: number, filters: readonly IdFilter[]): boolean {
  for (const filter of filters) if (!filter.has(id)) return false;
  return true;
}
