// Bundles what runs outside the tests, one file a thread or command, and the web page; `npm run build` runs this file.
// Constants of other modules are inlined: the engine's hot path reads some forty, and that is worth half its speed.
//
// A build has a folder of its own, dist/builds/HASH, named after its sources: it appears complete, and never changes. The
// files in dist/ that people run only import from it. So builds at the same time don't meet, a build of unchanged sources is
// there already, and a running server keeps the build that it started from.
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

const ROOT = fileURLToPath(new URL(".", import.meta.url));
const BUILDS = "dist/builds";
/** Builds that stay, besides those that a running server uses. */
const KEPT_BUILDS = 3;
/** A build that takes longer was killed. */
const STALE_MS = 3_600_000;

process.chdir(ROOT);

const entries = {
  main: "server/main.ts",
  admin: "server/cli/admin.ts",
  "engine-thread": "engine/engine-thread.ts",
  "log-thread": "engine/log/log-thread.ts",
  "projector-thread": "engine/projection/projector-thread.ts",
  "replication-thread": "server/replication/replication-thread.ts",
  "copy-thread": "server/replication/copy-thread.ts",
  "order-reader-worker": "server/bootstrap/order-reader-worker.ts",
  "log-upkeep-worker": "server/service/log-upkeep-worker.ts",
  "book-history-worker": "server/service/book-history-worker.ts",
  "history-worker": "server/queries/history-worker.ts",
  "password-worker": "server/sign-in/password-worker.ts",
  "picture-worker": "server/markets/picture-worker.ts",
};
/** Commands that run the server as others do, and share no file with it: what is common to both would leave main.js. */
const commands = {};
for (const folder of ["bench", "test"]) {
  for (const file of fs.readdirSync(folder, { recursive: true })) {
    const name = String(file);
    const wanted = folder === "bench" ? /^((figures|children)\/)?[\w-]+\.ts$/ : /-(worker|run)\.ts$/;
    const target = name.endsWith("-run.ts") ? commands : entries;
    if (wanted.test(name)) target[`${folder}/${name.slice(0, -3)}`] = `${folder}/${name}`;
  }
}

/** It runs the server's parts in a process of its own: its file stands beside those that they start threads from. */
const past = { past: "bench/demo/past/main.ts" };

/**
 * Dependencies that go into the bundle, with what they need in turn: to find and read their hundreds of files took a third
 * of a start. The others have native parts or files of their own that they start threads from.
 */
const BUNDLED = new Set([
  "@nats-io/jetstream",
  "@nats-io/transport-node",
  "@node-oauth/oauth2-server",
  "hyparquet-writer",
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

const bundle = (build, dir, input, chunks) =>
  build({
    input,
    platform: "node",
    external: (id, importer) =>
      /^[^./]/.test(id) && !importer?.includes("/node_modules/") && !BUNDLED.has(packageOf(id)),
    logLevel: "warn",
    checks,
    optimization: { inlineConst: { mode: "all", pass: 3 } },
    output: {
      dir,
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: `${chunks}/[name].js`,
      sourcemap: true,
      // Names stay, for profiles and stack traces.
      minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    },
  });

/** What every page loads first, in one file: each response's headers cost more than the smallest of these modules. */
const COMMON =
  /server\/web\/((?!accounts-watchlist|countries|idempotency-key|parse|scopes)[\w-]+\.tsx?|shell\/(?!account-links|notifications|signed-in)|ui\/(icon|notices|tile|toast|use-(?!after-paint|form|media)\w+)\.tsx?)|node_modules\/@?preact\//;

/** What a market's page needs, and other pages now and then: small modules for which the same holds. */
const TRADING =
  /server\/web\/(ui\/(action|badge|cover|dialog|fields|page-facts|paged-list|table|use-focus-on-mount|use-form|validation)|trading\/(cancel-orders|kept-draft|order-preview|send-order|slippage-field)|parse)\.tsx?/;

/** The page, with its files compressed beside them as the server sends them. */
async function bundlePage(build, dir) {
  // Whatever runs the build: vitest, or a shell that says development, would get libraries twice as large.
  process.env.NODE_ENV = "production";
  await build({
    root: "server/web",
    base: "./",
    configFile: false,
    logLevel: "warn",
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir: join(ROOT, dir, "web"),
      emptyOutDir: true,
      target: "es2022",
      modulePreload: { polyfill: false },
      rolldownOptions: {
        checks,
        output: {
          codeSplitting: {
            groups: [
              { name: "common", test: COMMON },
              { name: "trading", test: TRADING },
            ],
          },
        },
      },
    },
  });
  for (const name of fs.readdirSync(join(dir, "web"), { recursive: true })) {
    const file = join(dir, "web", String(name));
    if (!/\.(js|css|svg|webmanifest)$/.test(file)) continue;
    const bytes = fs.readFileSync(file);
    fs.writeFileSync(`${file}.br`, brotliCompressSync(bytes));
    fs.writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

/** The hash of everything that a build depends on. */
function hashSources() {
  const hash = createHash("sha256");
  const files = ["package.json", "package-lock.json", "rolldown.config.js", "tsconfig.json"];
  for (const folder of ["engine", "server", "bench", "test"]) {
    for (const name of fs.readdirSync(folder, { recursive: true })) {
      const path = join(folder, String(name));
      if (!path.includes("node_modules") && fs.statSync(path).isFile()) files.push(path);
    }
  }
  for (const file of files.filter((each) => fs.existsSync(each)).sort()) {
    const bytes = fs.readFileSync(file);
    hash.update(`${file}\n${bytes.length}\n`).update(bytes);
  }
  return hash.digest("hex").slice(0, 16);
}

async function makeBuild(name) {
  const made = join(BUILDS, name);
  const partial = join(BUILDS, `${name}.${process.pid}.part`);
  fs.rmSync(partial, { recursive: true, force: true });
  // Loaded here, since most commands find their build.
  const [{ build }, { build: buildPage }] = await Promise.all([import("rolldown"), import("vite")]);
  try {
    await Promise.all([
      ...Object.entries(entries).map(([name, file]) => bundle(build, partial, { [name]: file }, `chunks/${name}`)),
      bundle(build, partial, commands, "chunks/commands"),
      bundle(build, partial, past, "chunks/past"),
      bundlePage(buildPage, partial),
    ]);
    fs.copyFileSync("server/websocket/sbe/sbe.xml", join(partial, "sbe.xml"));
    fs.renameSync(partial, made);
  } catch (error) {
    // Another build of the same sources was faster.
    if (!fs.existsSync(join(made, "main.js"))) throw error;
  } finally {
    fs.rmSync(partial, { recursive: true, force: true });
  }
}

/** Lets the files in dist/ that people and tests run import from the build. Each is replaced as a whole. */
function pointTo(name) {
  for (const entry of Object.keys({ ...entries, ...commands, ...past })) {
    const file = join("dist", `${entry}.js`);
    const target = relative(dirname(file), join(BUILDS, name, `${entry}.js`));
    const text = entry === "main" ? MAIN.replaceAll("NAME", name) : `export * from "./${target}";\n`;
    if (fs.existsSync(file) && fs.readFileSync(file, "utf8") === text) continue;
    fs.mkdirSync(dirname(file), { recursive: true });
    fs.writeFileSync(`${file}.${process.pid}.part`, text);
    fs.renameSync(`${file}.${process.pid}.part`, file);
  }
}

/** Before it starts, a server marks the build that it runs from, so that no later build removes it. */
const MAIN = `import { writeFileSync } from "node:fs";
try {
  writeFileSync(new URL(\`./builds/NAME/\${process.pid}.uses\`, import.meta.url), "");
} catch {
  // An image that nobody can write to has one build.
}
await import("./builds/NAME/main.js");
`;

/** Removes what nobody uses: older builds, what killed ones left, and files of before builds had folders. */
function prune(name) {
  for (const old of ["chunks", "web"]) fs.rmSync(join("dist", old), { recursive: true, force: true });
  const now = Date.now();
  fs.utimesSync(join(BUILDS, name), now / 1_000, now / 1_000);
  const builds = fs
    .readdirSync(BUILDS)
    .map((each) => ({ path: join(BUILDS, each), at: fs.statSync(join(BUILDS, each)).mtimeMs }));
  const [partial, whole] = [true, false].map((is) => builds.filter(({ path }) => path.endsWith(".part") === is));
  const unused = whole.sort((a, b) => b.at - a.at).filter(({ path }, at) => !isUsed(path) && at >= KEPT_BUILDS);
  for (const { path } of [...unused, ...partial.filter(({ at }) => at < now - STALE_MS)]) {
    fs.rmSync(path, { recursive: true, force: true });
  }
}

/** Removes the marks of servers that ended, too. */
function isUsed(path) {
  const marks = fs.readdirSync(path).filter((file) => file.endsWith(".uses"));
  const dead = marks.filter((file) => !isAlive(Number.parseInt(file, 10)));
  for (const file of dead) fs.rmSync(join(path, file), { force: true });
  return dead.length < marks.length;
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** What a program folder says that belongs to another user, or to nobody. */
const isDenied = ({ code }) => ["EACCES", "EPERM", "EROFS"].includes(code);

const name = hashSources();
try {
  if (!fs.existsSync(join(BUILDS, name, "main.js"))) {
    fs.mkdirSync(BUILDS, { recursive: true });
    await makeBuild(name);
  }
  pointTo(name);
} catch (error) {
  if (!isDenied(error)) throw error;
  process.stderr.write(`cannot build: ${error.message}. Run "npm run build" once as the owner of ${ROOT}\n`);
  process.exit(1);
}
try {
  prune(name);
} catch (error) {
  // The build is up to date, and whoever owns the folder tidies it.
  if (!isDenied(error)) throw error;
}
