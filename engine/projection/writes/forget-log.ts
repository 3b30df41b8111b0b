/**
 * Removes what the tables say about order updates in the oldest part of the log, before its archives are deleted
 * (LOG_DAYS). Deletes no file.
 */
import type Database from "better-sqlite3";
import type { WriteOf } from "../../log/writes.ts";
import type { WriteContext } from "./context.ts";

/** Returns a function after which order updates are read from batch `before` on, and no earlier batch is needed. */
export function prepareForgetLog(
  db: Database.Database,
  context: WriteContext,
): (write: WriteOf<"forgetLog">) => number {
  // Terms from before a change are needed only by updates before it.
  const forgetTerms = db.prepare(
    `DELETE FROM term_changes AS t WHERE sequence <= (
       SELECT coalesce((SELECT min(sequence) FROM update_index u WHERE u.user_id = o.user_id), n.update_sequence + 1)
       FROM orders o JOIN newest_of_user n ON n.user_id = o.user_id WHERE o.id = t.order_id)`,
  );
  const raise = db.prepare("UPDATE projection SET log_begins = max(log_begins, ?)");
  return ({ before }) => {
    context.forgetUpdates(before);
    forgetTerms.run();
    raise.run(before);
    return 0;
  };
}
