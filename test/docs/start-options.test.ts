/** Whatever starts the exchange gives Node the same options. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { NODE_OPTIONS } from "../../engine/util/node-support.ts";

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

test("npm start, the systemd unit and the container give Node the options that the benchmarks give it", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const words = ["node", ...NODE_OPTIONS, "dist/main.js"];
  expect(scripts["start"]).toBe(words.join(" "));
  expect(read("docs/operations/prediction-exchange.service")).toContain(`\nExecStart=/usr/bin/${words.join(" ")}\n`);
  expect(read("docs/operations/Dockerfile")).toContain(`\nCMD [${words.map((word) => `"${word}"`).join(", ")}]\n`);
});
