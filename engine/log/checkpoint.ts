/** Copies the WAL's pages into the database file on a connection of its own, while the writer keeps committing. */
import { fsyncSync } from "node:fs";
import { openDatabase } from "../util/wal-database.ts";

/**
 * The connection lives for this call only. SQLite syncs the file only when nothing is left in the WAL; the sync here
 * leaves little for the connection that moves the rest.
 * @param file the descriptor of the database file. Never closed: that would drop the locks that SQLite holds for the process
 */
export function checkpoint(path: string, file: number): void {
  const db = openDatabase(path, "full");
  db.pragma("wal_checkpoint(PASSIVE)");
  db.close();
  fsyncSync(file);
}
