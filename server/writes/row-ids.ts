/**
 * Assigns the ids of new rows: counted in memory from the last ids at start. Users get fresh ids first, and the ids of
 * deleted accounts once those run out, the lowest first. Owned by the gateway thread.
 */
import { MAX_USERS } from "../../engine/limits.ts";
import type { CountedTable, LastIds } from "../../engine/projection/load/last-ids.ts";
import { assert } from "../../engine/util/assert.ts";
import { MinHeap } from "../../engine/util/min-heap.ts";

export class RowIds {
  private readonly last: Map<string, number>;
  private lastUser: number;
  private readonly freeUsers = new MinHeap<{ readonly at: number }>();

  constructor({ rows, user, freeUsers }: LastIds) {
    this.last = new Map(rows);
    this.lastUser = user;
    for (const id of freeUsers) this.freeUser(id);
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

  /** A new user's id; null if all ids are in use. */
  nextUser(): number | null {
    if (this.lastUser < MAX_USERS) return ++this.lastUser;
    return this.freeUsers.size === 0 ? null : this.freeUsers.pop().at;
  }

  /** The account's deletion is committed: another account may get its id. */
  freeUser(id: number): void {
    this.freeUsers.add({ at: id });
  }
}
