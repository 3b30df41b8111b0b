/** Whatever starts the exchange gives Node the same options. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { START_OPTIONS } from "../../bench/support/start-options.ts";

const read = (path: string): string => readFileSync(new URL(`../../docs/operations/${path}`, import.meta.url), "utf8");

test("npm start, the systemd unit, the container and the benchmarks give Node the same options", () => {
  expect(START_OPTIONS).toEqual(["--max-semi-space-size=64"]);
  const words = ["node", ...START_OPTIONS, "dist/main.js"];
  expect(read("prediction-exchange.service")).toContain(`\nExecStart=/usr/bin/${words.join(" ")}\n`);
  expect(read("Dockerfile")).toContain(`\nCMD [${words.map((word) => `"${word}"`).join(", ")}]\n`);
});
