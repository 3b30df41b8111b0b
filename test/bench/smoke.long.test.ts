/** Every bench completes in smoke mode and prints its figures as a last line of JSON, so that none breaks unnoticed. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const RUN = fileURLToPath(new URL("../../dist/bench/run.js", import.meta.url));
const PLOTS = fileURLToPath(new URL("../../bench/plots", import.meta.url));
const BENCHES = [
  ...["book", "rings", "parts", "log", "http", "latency", "matrix"],
  ...["profile", "memory", "entry", "live", "sockets", "lists", "settle"],
];

test.each(BENCHES)("%s", async (name) => {
  const { stdout } = await run(process.execPath, [RUN, "--smoke", name]);
  const last = stdout.trim().split("\n").at(-1) ?? "";
  const { goals, ...figures } = JSON.parse(last) as Record<string, unknown>;
  expect(Object.values(figures).flat(2).length).toBeGreaterThan(1);
  for (const goal of (goals ?? []) as Record<string, unknown>[]) {
    expect(goal).toMatchObject({
      figure: expect.any(String),
      needed: expect.any(Number),
      reached: expect.any(Boolean),
    });
    expect(goal["measured"]).toBeGreaterThan(0);
  }
});

test.skipIf(!existsSync(join(PLOTS, "node_modules")))(
  "plots (skipped where their packages aren't installed)",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "plots-test-"));
    const point = { offered_per_s: 100, achieved_per_s: 99, p50_ms: 1, p90_ms: 2, p99_ms: 3, p999_ms: 4, max_ms: 5 };
    const points = [
      { ...point, left_out: null },
      { ...point, offered_per_s: 200, left_out: null },
      { ...point, offered_per_s: 7_000, left_out: "the client came late" },
    ];
    const results = { latency: { machine: "a machine; commit 1234567", open_loop: { connections: 1, points } } };
    writeFileSync(join(folder, "results.json"), JSON.stringify(results));
    await run(process.execPath, [join(PLOTS, "draw.js"), join(folder, "results.json"), folder]);
    for (const [name, axis] of [
      ["throughput", "answered, orders/s"],
      ["latency", "latency, ms (log)"],
    ] as const) {
      const svg = readFileSync(join(folder, `${name}.svg`), "utf8");
      for (const text of [axis, "offered, orders/s", "commit 1234567", "prefers-color-scheme:dark"])
        expect(svg).toContain(text);
      // No label of thousands: omitted points are not drawn.
      expect(svg).not.toMatch(/\dk</);
    }
    expect(existsSync(join(folder, "cost.svg"))).toBe(false);
    rmSync(folder, { recursive: true });
  },
);

test("an unknown name is refused with the known names", async () => {
  const failure = await run(process.execPath, [RUN, "nonsense"]).catch(
    (error: { code: number; stderr: string }) => error,
  );
  expect(failure).toMatchObject({ code: 2 });
  expect(failure.stderr).toContain(BENCHES.join(", "));
});
