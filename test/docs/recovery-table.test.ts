/** The table of starts in docs/operations.md is the one that the code goes by. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import {
  type Decision,
  JOURNAL_STATES,
  type JournalState,
  RECOVERY,
  TABLES_STATES,
  type TablesState,
} from "../../engine/projection/recovery-table.ts";

const WORDS: Readonly<Record<Exclude<Decision["does"], "refuse">, string>> = {
  start: "starts",
  begin: "keeps a copy as `log/snapshot.db`, and begins the log",
  project: "projects the rest of the log into the tables",
  adopt: "projects all of the log into the tables",
  rebuild: "builds `exchange.db` from the log and checks it",
};

function words(decision: Decision | null): string {
  if (decision === null) return "–";
  if (decision.does !== "refuse") return WORDS[decision.does];
  const [finding] = decision.why({ projected: 8, last: 5 }).split(": ");
  return `refuses: "${finding}"`;
}

test("docs/operations.md prints the decisions of recovery", () => {
  const tables = Object.keys(TABLES_STATES) as TablesState[];
  const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const lines = [
    row(["`journal.db` \\ `exchange.db`", ...Object.values(TABLES_STATES)]),
    row(["---", ...tables.map(() => "---")]).replaceAll(" ", ""),
    ...(Object.keys(JOURNAL_STATES) as JournalState[]).map((journal) => {
      return row([JOURNAL_STATES[journal], ...tables.map((each) => words(RECOVERY[journal][each]))]);
    }),
  ];
  const document = readFileSync(new URL("../../docs/operations.md", import.meta.url), "utf8");
  expect(document).toContain(`\n${lines.join("\n")}\n`);
});
