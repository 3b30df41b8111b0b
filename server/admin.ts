/** The operator's command line. `npm run admin -- help` lists it. Works beside a running server and on a stopped one. */
import { join, resolve } from "node:path";
import { openReadOnly } from "../engine/journal/database.ts";
import { verifyDatabase } from "../engine/journal/verify.ts";
import { readConfig } from "./config.ts";

const HELP = `Usage: npm run admin -- COMMAND

  help                this text
  verify [FILE]       check every invariant of a database file (default: DATA_DIR/exchange.db) and print the figures
  backup FILE         write a consistent copy of the database, also while the server runs
`;

async function main(args: readonly string[]): Promise<number> {
  const [command = "help", file] = args;
  const path = (): string => join(readConfig(process.env).dataDir, "exchange.db");
  switch (command.toLowerCase()) {
    case "help":
      process.stdout.write(HELP);
      return 0;
    case "verify": {
      const db = openReadOnly(file === undefined ? path() : resolve(file));
      const findings = verifyDatabase(db);
      db.close();
      for (const { name, ok, figures } of findings) {
        process.stdout.write(`${ok ? "ok    " : "WRONG "} ${name}: ${figures}\n`);
      }
      return findings.every(({ ok }) => ok) ? 0 : 1;
    }
    case "backup": {
      if (file === undefined) throw new Error("backup: name the file to write");
      const db = openReadOnly(path());
      const { totalPages } = await db.backup(resolve(file));
      db.close();
      process.stdout.write(`wrote ${resolve(file)}, ${totalPages} pages\n`);
      return 0;
    }
    default:
      process.stderr.write(`unknown command "${command}"\n\n${HELP}`);
      return 2;
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
