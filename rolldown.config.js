// Bundles what runs outside the tests, one file a thread or command; `npm run build` runs this file.
// Constants of other modules are inlined: the engine's hot path reads some forty, and that is worth half its speed.
import { readdirSync } from "node:fs";
import { build } from "rolldown";

const entries = {
  main: "server/main.ts",
  admin: "server/admin.ts",
  "engine-thread": "engine/engine-thread.ts",
  "journal-thread": "engine/journal/journal-thread.ts",
  "history-worker": "server/history-worker.ts",
  "password-worker": "server/password-worker.ts",
  "test/simulation/simulate": "test/simulation/simulate.ts",
};
for (const folder of ["bench", "test"]) {
  for (const file of readdirSync(new URL(folder, import.meta.url), { recursive: true })) {
    const name = String(file);
    const wanted = folder === "bench" ? /^[\w-]+\.ts$/ : /-worker\.ts$/;
    if (wanted.test(name)) entries[`${folder}/${name.slice(0, -3)}`] = `${folder}/${name}`;
  }
}

await build({
  input: entries,
  platform: "node",
  external: [/^[^./]/],
  logLevel: "warn",
  optimization: { inlineConst: { mode: "all", pass: 3 } },
  output: {
    dir: "dist",
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name].js",
    sourcemap: true,
  },
});
