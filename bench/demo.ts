/**
 * `npm run demo`: the real exchange with sample markets, 90 days of history and a dozen trading bots, so that the page is
 * alive. Keeps its own database for the next run, prints the address and the sign-in, and ends with Ctrl-C. With --standby the
 * bots go on at another box where this one ends. Exit codes: 0 after Ctrl-C, 1 if the exchange doesn't start or ends by
 * itself without another box, 2 for wrong arguments.
 */
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { restrictToOwner } from "../server/util/data-folder.ts";
import { Boxes } from "./demo/api.ts";
import { BOTS, Crowd } from "./demo/crowd.ts";
import { DemoExchange, expectFreePort } from "./demo/exchange.ts";
import { nameOf, notePast, OPERATOR, openFolder, PERSON } from "./demo/folder.ts";
import { makePast } from "./demo/past-process.ts";
import { randomFrom } from "./support/random.ts";
import { orUsage, wholeNumber } from "./support/usage.ts";

const USAGE = "demo [--fresh] [--seed N] [--standby URL]";
const MAX_SEED = 2 ** 31;

function readArguments(): { fresh: boolean; seed: number; standby: string | null } {
  const { values } = parseArgs({
    options: { fresh: { type: "boolean", default: false }, seed: { type: "string" }, standby: { type: "string" } },
  });
  const { fresh, standby = null } = values;
  if (standby !== null && !/^https?:\/\/[^/]+$/.test(standby))
    throw new Error("--standby must be a URL without a path");
  const seed = values.seed ?? String(randomInt(MAX_SEED));
  return { fresh, seed: wholeNumber("seed", seed, 0, MAX_SEED), standby };
}

function fail(error: unknown): never {
  process.stderr.write(`demo: ${(error as Error).message.replaceAll("\n", " ")}\n`);
  process.exit(1);
}

const { fresh, seed, standby } = orUsage(USAGE, readArguments);
let isAsked = false;
const asked = new Promise<void>((resolve) => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => resolve());
}).then(() => {
  isAsked = true;
});

async function run(): Promise<void> {
  restrictToOwner();
  await expectFreePort();
  const end = Date.now();
  const folder = openFolder(process.env["DATA_DIR"] || "data/demo", fresh, BOTS, end);
  if (folder.isEmpty) {
    notePast(folder, true);
    await makePast(folder, { seed, end, stop: asked }).catch((error) => {
      if (!isAsked) throw error;
    });
    if (isAsked) return;
    notePast(folder, false);
  }
  const exchange = await DemoExchange.start(folder.path, folder.seedFile);
  const crowd = new Crowd({
    boxes: new Boxes(standby === null ? [exchange.url] : [exchange.url, standby]),
    tokens: folder.tokens,
    operator: { email: OPERATOR, password: folder.operatorPassword },
    random: randomFrom(seed),
    warn: (line) => process.stderr.write(`demo: ${line}\n`),
  });
  const lost = exchange.ended.then((how) => {
    if (isAsked) return;
    if (standby === null) throw new Error(how);
    process.stdout.write(`${how}: the bots go on at ${standby}\n`);
    return asked;
  });
  const trading = async (): Promise<void> => {
    await crowd.prepare();
    const token = folder.tokens[nameOf(PERSON)];
    process.stdout.write(
      `The exchange is at ${exchange.url}/ — token ${token} — sign in as ${PERSON} / ${folder.password}\n` +
        `The operator's desk: ${exchange.url}/desk — sign in as ${OPERATOR} / ${folder.operatorPassword}\n` +
        `${BOTS.length} bots trade, seed ${seed}, data in ${folder.path} — Ctrl-C ends all\n${
          standby === null ? "" : `With kill -9 ${exchange.pid} the bots go on at ${standby}\n`
        }`,
    );
    crowd.start();
    await new Promise<never>(() => {});
  };
  await Promise.race([asked, lost, trading()]);
  await crowd.stop();
  if (!(await exchange.stop()) && standby === null) throw new Error(await exchange.ended);
}

await run().catch(fail);
process.exit(0);
