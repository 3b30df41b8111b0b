/** Assigns the ids of new rows: counted in memory from the last ids at start. Owned by the gateway thread. */
import type { CountedTable } from "../../engine/projection/load/last-ids.ts";
import { assert } from "../../engine/util/assert.ts";

export class RowIds {
  private readonly last: Map<string, number>;

  /** @param rows the last id of each table */
  constructor(rows: ReadonlyMap<CountedTable, number>) {
    this.last = new Map(rows);
  }

  /** @param chosen the id if the caller has chosen it already, above all ids of the table's stored rows */
  next(table: string, chosen: number | undefined = undefined): number {
    const last = this.last.get(table);
    assert(last !== undefined, "the table's rows have ids of their own");
    const id = chosen ?? last + 1;
    this.last.set(table, Math.max(last, id));
    return id;
  }

  lastOf(table: CountedTable): number {
    return this.last.get(table) ?? 0;
  }
}
