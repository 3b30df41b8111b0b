/**
 * Command: replays a third party's order flow through the matcher and prints the hash of its reports, which must equal
 * the published one. `npm run -s oracle -- FILE.csv.gz [--reports PATH]`; the last line is JSON.
 */
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { type Messages, readMessages } from "./oracle/messages.ts";
import { offsetFor, priceRange } from "./oracle/prices.ts";
import { type Replayed, replay } from "./oracle/replay.ts";
import { fail, grouped, millions, printHead, printResult } from "./support/report.ts";
import { orUsage } from "./support/usage.ts";

const USAGE = "oracle FILE.csv[.gz] [--reports PATH]";

function readArguments(): { path: string; reports: string } {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { reports: { type: "string" } } });
  const [path, ...more] = positionals;
  if (path === undefined || more.length > 0) throw new Error(`${positionals.length} files: one is replayed`);
  return { path, reports: values.reports ?? join(tmpdir(), `${basename(path).split(".", 1)[0]}.reports.csv`) };
}

/** Returns the result of `work`, or ends the process with its error in one line. */
function orFail<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    return fail(`oracle: ${(error as Error).message}`);
  }
}

function print(messages: Messages, reports: string, replayed: Replayed): void {
  const [low, high] = priceRange(messages);
  const offset = offsetFor(low, high);
  const mapping = offset === undefined ? `ranked in ${replayed.windows} windows` : `less ${offset}`;
  const rate = replayed.engineSeconds > 0 ? messages.count / replayed.engineSeconds : 0;
  console.log(`  prices ${low} to ${high}, ${mapping}; reports in ${reports}`);
  console.log(
    `  ${grouped(replayed.trades)} trades, ${millions(rate)} (the matcher over records, ${replayed.engineSeconds.toFixed(3)} s; not reading, parsing and hashing)`,
  );
  printResult({
    messages: messages.count,
    trades: replayed.trades,
    sha256: replayed.sha256,
    seconds: Number(replayed.engineSeconds.toFixed(6)),
    messages_per_s: Math.round(rate),
  });
}

const { path, reports } = orUsage(USAGE, readArguments);
const messages = orFail(() => readMessages(path));
printHead("oracle", `${basename(path)}, ${grouped(messages.count)} messages`);
print(
  messages,
  reports,
  orFail(() => replay(messages, reports)),
);
