/**
 * The operator's command line: `npm run admin -- help` lists its commands. Prints the result to stdout: for people at a
 * terminal (show.ts), else, and with `--json`, as one JSON document. Errors go to stderr, with exit code 1, or 2 for a wrong
 * command line.
 */
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../engine/util/clock.ts";
import { type Backup, backUp } from "../backup/backup.ts";
import { readConfig } from "../bootstrap/config.ts";
import { ConfigError } from "../errors.ts";
import { recordBackup } from "../service/last-backup.ts";
import { giveToOwner, restrictToOwner } from "../util/data-folder.ts";
import { type Call, withServer } from "./admin-client.ts";
import {
  type AdminCommand,
  findCommand,
  type Given,
  HELP,
  helpOf,
  JSON_OPTION,
  readArguments,
  requestOf,
  UsageError,
} from "./commands.ts";
import { makeHistoryOf } from "./history.ts";
import { printLog } from "./log.ts";
import { rebuild } from "./rebuild.ts";
import { shown, shownFindings } from "./show.ts";
import { verifyFiles } from "./verify.ts";

/** A person reads the result. */
let isForPeople = false;

const PROGRAM = fileURLToPath(new URL("./main.js", import.meta.url));

async function main(argv: readonly string[]): Promise<number> {
  restrictToOwner();
  const { command, rest } = findCommand(argv.length === 0 || argv[0] === "--help" ? ["help"] : argv);
  if (rest.includes("--help")) return help(command.words.split(" "));
  if (command.words === "help") return help(rest);
  const given = readArguments(command, rest);
  isForPeople = process.stdout.isTTY && !rest.includes(JSON_OPTION);
  if (command.words === "verify") return verify(given[0]?.value);
  if (command.words === "rebuild") return rebuildHere(given.some(({ field }) => field.field === "replace"));
  if (command.words === "log") return log(given);
  if (command.words === "history") return history(given);
  if (command.words === "backup") {
    const isOverwriting = given.some(({ field }) => field.field === "overwrite");
    const backup = await backUp(readConfig(process.env).dataDir, String(given[0]?.value), isOverwriting);
    record(backup);
    return print(backup);
  }
  const { dataDir } = readConfig(process.env);
  return print(
    await withServer(dataDir, command.does === "running" ? null : PROGRAM, async (call) =>
      call(requestOf(command, await resolveEmails(given, call))),
    ),
  );
}

/** @param text the value for people, where it isn't as for all */
function print(value: unknown, text = (columns: number): string => shown(value, columns)): number {
  // Some terminals say that they have none.
  const columns = process.stdout.columns || 80;
  process.stdout.write(isForPeople ? text(columns) : `${JSON.stringify(value, null, 2)}\n`);
  return 0;
}

function help(words: readonly string[]): number {
  process.stdout.write(words.length === 0 ? HELP : `${helpOf(findCommand(words).command)}\n`);
  return 0;
}

const databaseFile = (): string => join(readConfig(process.env).dataDir, "exchange.db");

/** The copy is good even where this fails; then the alert on the age of backups fires. */
function record(backup: Backup): void {
  try {
    recordBackup(readConfig(process.env).dataDir, systemClock.now(), backup);
  } catch (error) {
    process.stderr.write(`could not record this backup for the metrics: ${(error as Error).message}\n`);
  }
}

async function log(given: readonly Given[]): Promise<number> {
  const textOf = (name: string): string | null => {
    const found = given.find(({ field }) => field.field === name);
    return found === undefined ? null : String(found.value);
  };
  const order = textOf("order");
  const texts = { user: textOf("user"), market: textOf("market"), kind: textOf("kind"), file: textOf("file") };
  const range = { from: textOf("from"), to: textOf("to") };
  const flags = { json: textOf("json") !== null, secrets: textOf("secrets") !== null };
  const query = { ...texts, ...range, ...flags, order: order === null ? null : Number(order) };
  // The reader of a pipe, such as head, may have enough.
  process.stdout.on("error", () => process.exit(0));
  await printLog(readConfig(process.env).dataDir, query, process.stdout);
  return 0;
}

/** Days that can't be made any more are an error. */
function history(given: readonly Given[]): number {
  const [from, to] = ["from", "to"].map((name) => String(given.find(({ field }) => field.field === name)?.value));
  const made = makeHistoryOf(readConfig(process.env).dataDir, from!, to!);
  print(made);
  return made.missing.length > 0 ? 1 : 0;
}

function rebuildHere(replaces: boolean): number {
  const rebuilt = rebuild(readConfig(process.env).dataDir, replaces);
  print(rebuilt);
  return rebuilt.ok ? 0 : 1;
}

function verify(file: unknown): number {
  const findings = verifyFiles(file === undefined ? databaseFile() : resolve(String(file)));
  const ok = findings.every((finding) => finding.ok);
  print({ ok, findings }, () => shownFindings(findings));
  return ok ? 0 : 1;
}

/** Replaces email addresses with ids. */
function resolveEmails(given: readonly Given[], call: Call): Promise<Given[]> {
  return Promise.all(
    given.map(async (each) => {
      if (!each.isEmail) return each;
      const { kind } = each.field;
      const path = kind === "user" ? "/admin/users" : "/admin/identity-applications";
      const query = new URLSearchParams({ email: String(each.value) }).toString();
      const { items } = (await call({ method: "GET", path, query })) as { items: { id: number }[] };
      const [item] = items;
      const missing = kind === "user" ? "no such user" : "no pending application";
      if (item === undefined) throw new Error(`${missing}: ${each.value}`);
      return { ...each, value: item.id };
    }),
  );
}

/** What this command wrote belongs to whom the folder belongs to. */
function shareFolder(): void {
  try {
    giveToOwner(readConfig(process.env).dataDir);
  } catch (error) {
    // The command itself said what is wrong with the settings.
    if (!(error instanceof ConfigError)) throw error;
  }
}

function explain(error: unknown): number {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  if (!(error instanceof UsageError)) return 1;
  const { command }: { command: AdminCommand | null } = error;
  process.stderr.write(command === null ? `\n${HELP}` : `\nUsage: npm run admin -- COMMAND\n\n${helpOf(command)}\n`);
  return 2;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.exitCode = explain(error);
} finally {
  shareFolder();
}
