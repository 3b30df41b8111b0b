/** The demo's past in a folder of its own: an exchange with 90 days of history. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { BOTS } from "../../bench/demo/crowd.ts";
import { type DemoFolder, openFolder } from "../../bench/demo/folder.ts";
import { temporaryFolder } from "./server.ts";

const PROGRAM = fileURLToPath(new URL("../../dist/past.js", import.meta.url));
/** It takes about 10 s. */
const DEADLINE_MS = 85_000;
/** What it prints on stderr while it is made. */
export const PAST_PROGRESS = /the demo's past: market day \d+\/90 .*\n/g;

/** @param end ms @throws Error unless it is made without a word beside its progress */
export function makePast(seed: number, end: number): DemoFolder {
  const folder = openFolder(temporaryFolder(), false, BOTS, end);
  const args = [folder.path, folder.seedFile, String(seed), String(end)];
  const options = { encoding: "utf8", timeout: DEADLINE_MS } as const;
  const { status, signal, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], options);
  const rest = stderr.replaceAll(PAST_PROGRESS, "");
  if (status !== 0 || rest !== "") throw new Error(`${signal ?? `exit code ${status}`}: ${rest || stderr}`);
  return folder;
}
