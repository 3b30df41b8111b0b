/** `admin standby fetch`: this box's log gets what its stream has beyond it. */
import { openJournal } from "../../engine/log/database.ts";
import { emptyWal } from "../../engine/util/wal-database.ts";
import type { Config } from "../bootstrap/config.ts";
import { type Fetched, fetchRest } from "../replication/fetch-rest.ts";
import { journalPath, lockDataFolder } from "../util/data-folder.ts";
import { ProgressBar } from "./progress-bar.ts";

/** @throws Error if the folder is in use, STANDBY_NATS isn't set, or the stream doesn't continue the log */
export async function fetchHere({ dataDir, standby }: Config): Promise<Fetched> {
  if (standby === null) throw new Error("STANDBY_NATS isn't set: there is no stream to fetch from");
  const lock = lockDataFolder(dataDir);
  const journal = openJournal(journalPath(dataDir), "full");
  const bar = new ProgressBar("fetch");
  try {
    return await fetchRest({
      settings: standby,
      journal,
      say: (level, text) => {
        if (level !== "info") process.stderr.write(`${text}\n`);
      },
      onProgress: (done, total) => bar.show(done, total),
    });
  } finally {
    bar.end();
    emptyWal(journal);
    journal.close();
    lock.close();
  }
}
