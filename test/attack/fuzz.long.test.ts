/** A short fuzz run from a fixed seed, and one from a fresh seed, which is printed so that the run can be repeated. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const FUZZ = fileURLToPath(new URL("../../dist/test/attack/fuzz-run.js", import.meta.url));

test.each([
  ["the same as ever", ["--seed", "20261122"]],
  ["a fresh one", []],
])("%s", async (_, seed) => {
  // The error names the finding.
  const { stdout } = await run(process.execPath, [FUZZ, ...seed, "--seconds", "5"]);
  process.stdout.write(stdout);
  for (const answered of ["http 200", "http 400", "raw 400", "websocket 0", "websocket 40000"]) {
    expect(stdout).toMatch(new RegExp(`${answered}: [1-9]`));
  }
});
