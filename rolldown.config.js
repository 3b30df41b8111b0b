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
};
/** Commands that run the server as others do, and share no file with it: what is common to both would leave main.js. */
const commands = {};
for (const folder of ["bench", "test"]) {
  for (const file of readdirSync(new URL(folder, import.meta.url), { recursive: true })) {
    const name = String(file);
    const wanted = folder === "bench" ? /^[\w-]+\.ts$/ : /-(worker|run)\.ts$/;
    const target = name.endsWith("-run.ts") ? commands : entries;
    if (wanted.test(name)) target[`${folder}/${name.slice(0, -3)}`] = `${folder}/${name}`;
  }
}

/**
 * Dependencies that go into the bundle, with what they need in turn: to find and read their hundreds of files took a third
 * of a start. The others have native parts or files of their own that they start threads from.
 */
const BUNDLED = new Set([
  "@node-oauth/oauth2-server",
  "jose",
  "libphonenumber-js",
  "msgpackr",
  "nodemailer",
  "openid-client",
  "pino",
  "prom-client",
  "typebox",
]);
const packageOf = (id) => /^(@[^/]+\/)?[^/]+/.exec(id)[0];

const bundle = (input, chunks) =>
  build({
    input,
    platform: "node",
    external: (id, importer) =>
      /^[^./]/.test(id) && !importer?.includes("/node_modules/") && !BUNDLED.has(packageOf(id)),
    logLevel: "warn",
    optimization: { inlineConst: { mode: "all", pass: 3 } },
    output: {
      dir: "dist",
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: `${chunks}/[name].js`,
      sourcemap: true,
    },
  });
await Promise.all([bundle(entries, "chunks"), bundle(commands, "chunks/commands")]);
