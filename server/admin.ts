/** The operator's command line. `npm run admin -- help` lists it. Works beside a running server and on a stopped one. */
import { join, resolve } from "node:path";
import { verifyDatabase } from "../engine/journal/verify.ts";
import { backUp } from "./backup.ts";
import { readConfig } from "./config.ts";
import { ask } from "./control.ts";
import { controlPath, keepToOwner, keyFolder, lockDataFolder, openExisting } from "./data-folder.ts";
import { SigningKeys } from "./signing-keys.ts";

const HELP = `Usage: npm run admin -- COMMAND

  help                this text
  verify [FILE]       check every invariant of a database file (default: DATA_DIR/exchange.db) and print the figures
  backup FILE [--overwrite]
                      write a consistent copy of the database, also while the server runs, and check it
  keys rotate         sign with a new key from now on; tokens of the old one live on, the JWKS lists both

With the server running:
  suspend EMAIL       refuse the user's tokens and sign-ins, and cancel the user's orders
  restore EMAIL       end that
  identity approve EMAIL, identity refuse EMAIL
                      decide the application for KYC tier 2
`;

async function main(args: readonly string[]): Promise<number> {
  keepToOwner();
  const [command = "help", file, ...rest] = args;
  const path = (): string => join(readConfig(process.env).dataDir, "exchange.db");
  switch (command.toLowerCase()) {
    case "help":
      process.stdout.write(HELP);
      return 0;
    case "verify": {
      const db = openExisting(file === undefined ? path() : resolve(file));
      const findings = verifyDatabase(db);
      db.close();
      const ok = findings.every((finding) => finding.ok);
      print({ ok, findings });
      return ok ? 0 : 1;
    }
    case "backup":
      if (file === undefined) throw new Error("backup: name the file to write");
      print(await backUp(path(), file, rest.includes("--overwrite")));
      return 0;
    case "keys":
      if (file !== "rotate") throw new Error("keys: rotate is all that can be done with them");
      process.stdout.write(`${(await askServer(["keys rotate"])) ?? (await rotateKeys())}\n`);
      return 0;
    case "suspend":
    case "restore":
    case "identity": {
      const answer = await askServer([command.toLowerCase(), ...(file === undefined ? [] : [file, ...rest])]);
      if (answer === null) throw new Error("the server isn't running: start it first");
      process.stdout.write(`${answer}\n`);
      return 0;
    }
    default:
      process.stderr.write(`unknown command "${command}"\n\n${HELP}`);
      return 2;
  }
}

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

function askServer(request: readonly string[]): Promise<string | null> {
  return ask(controlPath(readConfig(process.env).dataDir), request);
}

/** On a stopped server. */
async function rotateKeys(): Promise<string> {
  const { dataDir, publicUrl, accessTtlMs } = readConfig(process.env);
  const lock = lockDataFolder(dataDir);
  const now = Date.now();
  const names = { issuer: publicUrl, audience: publicUrl };
  const keys = await SigningKeys.open(keyFolder(dataDir), { ...names, tokenTtlMs: accessTtlMs, now });
  const kid = await keys.rotate(now);
  lock.close();
  return `the signing key is ${kid}`;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
