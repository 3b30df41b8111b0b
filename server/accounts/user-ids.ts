/**
 * Assigns the ids of users: fresh ones first, and those of deleted accounts once these run out, the lowest first. Owned by
 * the gateway thread.
 */
import { MAX_USERS } from "../../engine/limits.ts";
import type { LastIds } from "../../engine/projection/load/last-ids.ts";
import { MinHeap } from "../../engine/util/min-heap.ts";

export class UserIds {
  private last: number;
  private readonly freed = new MinHeap<{ readonly at: number }>();

  constructor({ user, freeUsers }: Pick<LastIds, "user" | "freeUsers">) {
    this.last = user;
    for (const id of freeUsers) this.free(id);
  }

  /** Null if all ids are in use. */
  next(): number | null {
    if (this.last < MAX_USERS) return ++this.last;
    return this.freed.size === 0 ? null : this.freed.pop().at;
  }

  /** The account's deletion is committed: another account may get its id. */
  free(id: number): void {
    this.freed.add({ at: id });
  }
}
