/** Reads the positions that a settlement pays. Scans all positions, so it belongs on a thread of the pool. */
import type Database from "better-sqlite3";
import type { Holders } from "../markets/types.ts";

interface HoldersOptions {
  /** The market's first outcome, and the number of its outcomes. */
  readonly first: number;
  readonly count: number;
}

/** Positions with shares, ordered by user and outcome. */
export function prepareHolders(db: Database.Database): (options: HoldersOptions) => Holders {
  const positions = db
    .prepare(
      `SELECT user_id, outcome_id FROM positions WHERE outcome_id >= @first AND outcome_id < @first + @count
         AND quantity > 0 ORDER BY user_id, outcome_id`,
    )
    .raw();
  return ({ first, count }) => {
    const rows = positions.all({ first, count }) as [user: number, outcome: number][];
    return {
      users: Int32Array.from(rows, ([user]) => user),
      outcomes: Int32Array.from(rows, ([, outcome]) => outcome),
    };
  };
}
