/** Writes and events appended to the log of a stopped server, for changes that the API doesn't offer, and projected. */

import { Ledger } from "../../engine/ledger.ts";
import { LogAppender } from "../../engine/log/append.ts";
import { openJournal } from "../../engine/log/database.ts";
import { Numbering } from "../../engine/log/numbering.ts";
import { packRequest } from "../../engine/log/request.ts";
import { UserRates } from "../../engine/log/user-rates.ts";
import type { Write } from "../../engine/log/writes.ts";
import { loadLedger } from "../../engine/projection/load/ledger.ts";
import { loadUpdateSequences } from "../../engine/projection/load/orders.ts";
import { recoverTables } from "../../engine/projection/recover.ts";
import { EngineEvent } from "../../engine/ring/engine-event.ts";
import { openDatabase } from "../../engine/util/wal-database.ts";
import { journalPath, tablesPath } from "../../server/util/data-folder.ts";

/** @param writes with the ids of new rows, as the gateway would post them */
export function writeInto(dataDir: string, ...writes: Write[]): void {
  append(dataDir, (appender, { lastEntry }) => {
    appender.begin();
    appender.addRequest(packRequest({ at: Date.now(), writes, audits: [], kept: null }));
    appender.commit(Date.now(), lastEntry);
  });
}

/** Appends event records to the log, so many to a batch, with the numbers that the log stage would give them. */
export function appendEvents(dataDir: string, records: readonly Int32Array[], perBatch: number): void {
  append(dataDir, (appender, numbering) => {
    for (let i = 0; i < records.length; i += perBatch) {
      appender.begin();
      const { lastEntry } = numbering;
      for (const words of records.slice(i, i + perBatch)) {
        numbering.event(new EngineEvent().at(words, new Float64Array(words.buffer), 0));
        appender.addRecords(new Uint8Array(words.buffer));
      }
      appender.commit(Date.now(), lastEntry);
    }
  });
}

function append(dataDir: string, write: (appender: LogAppender, numbering: Numbering) => void): void {
  const journal = openJournal(journalPath(dataDir), "off");
  const tables = openDatabase(tablesPath(dataDir), "off");
  const end = recoverTables(tables, journal);
  const { lastEntryId: entry, at } = loadLedger(tables, new Ledger());
  const numbering = new Numbering({ entry, at, updates: loadUpdateSequences(tables) }, new UserRates());
  write(new LogAppender(journal, end), numbering);
  recoverTables(tables, journal);
  journal.close();
  tables.close();
}
