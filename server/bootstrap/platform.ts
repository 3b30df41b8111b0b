/** The checks before anything is opened: bounds that depend on each other, native packages, this version of Node. */
import type * as Uws from "uWebSockets.js";
import { assertEngineLimits } from "../../engine/limit-relations.ts";
import { hashFlaw } from "../../engine/util/node-support.ts";
import { loadSqlite } from "../../engine/util/sqlite.ts";
import { loadUws } from "../http/uws.ts";
import { assertServerLimits } from "../limits.ts";
import type { Logger } from "../logger.ts";

/** Returns uWebSockets.js. @throws PlatformError where a native package can't be loaded */
export async function preparePlatform(logger: Logger): Promise<typeof Uws> {
  assertEngineLimits();
  assertServerLimits();
  const uws = await loadUws();
  loadSqlite();
  const flaw = hashFlaw(process.versions.node);
  if (flaw !== null) logger.warn(flaw);
  return uws;
}
