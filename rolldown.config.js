// Bundles what runs outside the tests, one file a thread or command, and the web page; `npm run build` runs this file.
// Constants of other modules are inlined: the engine's hot path reads some forty, and that is worth half its speed.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "rolldown";
import { build as buildPage } from "vite";

const entries = {
  main: "server/main.ts",
  admin: "server/cli/admin.ts",
  "engine-thread": "engine/engine-thread.ts",
  "log-thread": "engine/log/log-thread.ts",
  "projector-thread": "engine/projection/projector-thread.ts",
  "log-upkeep-worker": "server/operators/log-upkeep-worker.ts",
  "history-worker": "server/queries/history-worker.ts",
  "password-worker": "server/accounts/password-worker.ts",
};
/** Commands that run the server as others do, and share no file with it: what is common to both would leave main.js. */
const commands = {};
for (const folder of ["bench", "test"]) {
  for (const file of readdirSync(new URL(folder, import.meta.url), { recursive: true })) {
    const name = String(file);
    const wanted = folder === "bench" ? /^((figures|children)\/)?[\w-]+\.ts$/ : /-(worker|run)\.ts$/;
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

/** How long it took tells nothing but that the machine is slow, and would stand before a command's result. */
const checks = { bundlerTimings: false };

const bundle = (input, chunks) =>
  build({
    input,
    platform: "node",
    external: (id, importer) =>
      /^[^./]/.test(id) && !importer?.includes("/node_modules/") && !BUNDLED.has(packageOf(id)),
    logLevel: "warn",
    checks,
    optimization: { inlineConst: { mode: "all", pass: 3 } },
    output: {
      dir: "dist",
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: `${chunks}/[name].js`,
      sourcemap: true,
    },
  });

/** The page, with its files compressed beside them as the server sends them. */
async function bundlePage() {
  const { output } = await buildPage({
    root: "server/web",
    base: "./",
    configFile: false,
    logLevel: "warn",
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir: "../../dist/web",
      emptyOutDir: true,
      target: "es2022",
      modulePreload: { polyfill: false },
      rolldownOptions: { checks },
    },
  });
  for (const { fileName } of output) {
    const file = `dist/web/${fileName}`;
    if (!/\.(js|css|svg)$/.test(fileName)) continue;
    const bytes = readFileSync(file);
    writeFileSync(`${file}.br`, brotliCompressSync(bytes));
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

await Promise.all([bundle(entries, "chunks"), bundle(commands, "chunks/commands"), bundlePage()]);
