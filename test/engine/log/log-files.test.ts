/** The log is read without a seam while the exchange appends to it. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { openJournal } from "../../../engine/log/database.ts";
import { archivesBeside, LogFiles } from "../../../engine/log/log-files.ts";
import { temporaryFolder } from "../../support/server.ts";

/** A reader that the exchange appends batch 3 under, just before it looks for the journal's end. */
class LateReader extends LogFiles {
  append: (() => void) | null = null;

  override journalRange(): { readonly first: number; readonly last: number } | null {
    this.append?.();
    this.append = null;
    return super.journalRange();
  }
}

test("a batch that is appended while a reader reaches the end is read, and isn't taken for a missing one", () => {
  const path = join(temporaryFolder(), "journal.db");
  const journal = openJournal(path, "off");
  const insert = journal.prepare("INSERT INTO batches VALUES (?, 0, ?)");
  for (const number of [1, 2]) insert.run(number, Buffer.from(String(number)));
  const reader = new LateReader({ journal: path, archives: archivesBeside(path) });
  reader.append = () => void insert.run(3, Buffer.from("3"));
  expect([...reader.bodies(1)].map(String)).toEqual(["1", "2", "3"]);
  insert.run(5, Buffer.from("5"));
  expect(() => [...reader.bodies(1)]).toThrow("the log lacks batch 4");
  reader.close();
  journal.close();
});
