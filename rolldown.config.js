// Bundles what runs outside the tests: one file a thread or command, with constants of other modules inlined
// (the engine's hot path reads some forty; inlining them is worth half its throughput).
import { readdirSync } from "node:fs";
import { defineConfig } from "rolldown";

const entries = {
  main: "server/main.ts",
  admin: "server/admin.ts",
  "engine-thread": "engine/engine-thread.ts",
  "journal-thread": "engine/journal/journal-thread.ts",
  "history-worker": "server/history-worker.ts",
};
for (const folder of ["bench", "test"]) {
  for (const file of readdirSync(new URL(folder, import.meta.url), { recursive: true })) {
    const name = String(file);
    const wanted = folder === "bench" ? /^[\w-]+\.ts$/ : /-worker\.ts$/;
    if (wanted.test(name)) entries[`${folder}/${name.slice(0, -3)}`] = `${folder}/${name}`;
  }
}

export default defineConfig({
  input: entries,
  platform: "node",
  external: [/^[^./]/],
  optimization: { inlineConst: { mode: "all", pass: 3 } },
  output: {
    dir: "dist",
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name].js",
    sourcemap: true,
  },
});
