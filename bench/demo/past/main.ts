/**
 * Makes the demo's past in a process of its own, with a progress line on stderr: past.js DATA_DIR SEED_FILE SEED END. Ends
 * at once when its parent does, or on a signal: then the folder is good for nothing.
 */

import { readConfig } from "../../../server/bootstrap/config.ts";
import { readSeed } from "../../../server/bootstrap/seed.ts";
import { createLog } from "../../../server/logger.ts";
import { lockDataFolder, restrictToOwner } from "../../../server/util/data-folder.ts";
import { Progress } from "../../support/progress.ts";
import { randomFrom } from "../../support/random.ts";
import { makePast } from "./past.ts";
import { PAST_DAYS } from "./story.ts";

process.on("disconnect", () => process.exit(1));
restrictToOwner();
const [dataDir = "", seedFile = "", seed = "", end = ""] = process.argv.slice(2);
const lock = lockDataFolder(dataDir);
const { MERGE_FEE } = process.env;
// Nobody needs a past that a power failure has damaged: it is made again.
const settings = { DATA_DIR: dataDir, DURABILITY: "off", ...(MERGE_FEE === undefined ? {} : { MERGE_FEE }) };
const bar = new Progress("the demo's past: market day", PAST_DAYS);
await makePast({
  config: readConfig(settings),
  seed: readSeed(seedFile),
  random: randomFrom(Number(seed)),
  end: Number(end),
  logger: createLog("warn").logger,
  progress: (days) => bar.update(Math.floor(days)),
});
bar.end();
lock.close();
process.exit(0);
