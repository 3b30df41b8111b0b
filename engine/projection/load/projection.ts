/** Loads how far the tables follow the log. Never writes. */
import type Database from "better-sqlite3";

export interface Projection {
  /** The exchange's random number, which each batch has. */
  readonly exchange: number;
  /** The last projected batch. */
  readonly batch: number;
  /** Records up to and including it. */
  readonly records: number;
  /** The SHA-256 of its body in hex; "" before the first. */
  readonly hash: string;
  /** The first batch from which order updates can be read. */
  readonly logBegins: number;
  /** When the last batch was committed, ms. */
  readonly at: number;
}

/** The tables lack what every exchange has. The message is one line for an operator. */
export class DamagedTables extends Error {}

/** @throws DamagedTables without its row */
export function loadProjection(db: Database.Database): Projection {
  const row = db
    .prepare(
      "SELECT exchange, batch, position AS records, hash, log_begins AS logBegins, totals.at FROM projection JOIN totals USING (id)",
    )
    .get() as Projection | undefined;
  if (row === undefined) throw new DamagedTables("projection or totals lacks its row");
  return row;
}
