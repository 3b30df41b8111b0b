/**
 * `npm run bench`: each figure in a process of its own, one after the other. Names pick some (`npm run bench -- book`),
 * `--smoke` runs all of them in seconds, so that a test can tell that none has rotted.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** In the order of an order's way. */
const BENCHES = [
  "book",
  "rings",
  "parts",
  "journal",
  "http",
  "memory",
  "entry",
  "live",
  "sockets",
  "lists",
  "settle",
] as const;

const args = process.argv.slice(2);
const options = args.filter((arg) => arg.startsWith("--"));
const names = args.filter((arg) => !arg.startsWith("--"));
const unknown = names.filter((name) => !(BENCHES as readonly string[]).includes(name));
if (unknown.length > 0) {
  console.error(`no bench ${unknown.join(", ")}: there are ${BENCHES.join(", ")}`);
  process.exit(2);
}
let failed = 0;
for (const name of names.length > 0 ? names : BENCHES) {
  const file = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
  const { status } = spawnSync(process.execPath, [file, ...options], { stdio: "inherit" });
  if (status !== 0) {
    console.error(`bench ${name} failed`);
    failed++;
  }
  console.log();
}
process.exit(failed === 0 ? 0 : 1);
