/** Every bench runs to its end in smoke mode and prints its figures as a last line of JSON, so that none rots. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const RUN = fileURLToPath(new URL("../../dist/bench/run.js", import.meta.url));
const BENCHES = ["book", "rings", "parts", "journal", "http", "memory", "entry", "live", "sockets", "lists", "settle"];

test.each(BENCHES)("%s", async (name) => {
  const { stdout } = await run(process.execPath, [RUN, "--smoke", name]);
  const last = stdout.trim().split("\n").at(-1) ?? "";
  const figures = Object.values(JSON.parse(last) as Record<string, unknown>);
  expect(figures.flat(2).length).toBeGreaterThan(1);
});

test("an unknown name is refused with the names there are", async () => {
  const failure = await run(process.execPath, [RUN, "nonsense"]).catch(
    (error: { code: number; stderr: string }) => error,
  );
  expect(failure).toMatchObject({ code: 2 });
  expect(failure.stderr).toContain(BENCHES.join(", "));
});
