/**
 * Checks docs/operations.md and its files against a real server: dashboard and alert queries find their metrics, the variables
 * are those the server reads, the scripts back up and verify a live database, the health check and the systemd unit work.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../bench/support/free-port.ts";
import { Environment } from "../../server/bootstrap/environment.ts";
import type { Seed } from "../../server/bootstrap/seed.ts";
import { expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import { type Scrape, scrape } from "../support/metrics.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { World } from "../support/world.ts";
import { codeBlocks, Running, readDocument } from "./code-blocks.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = "docs/operations";
const PAGE = "docs/operations.md";
/** Metrics of other programs. */
const FOREIGN = /^(up|node_filesystem_avail_bytes)$/;

/** Parts of log lines that operators search for. */
const LOG_LINES = [
  ...["cannot start: ", " is damaged (", "deposits - withdrawals = balances + collateral + house"],
  ...["trading has stopped", "the thread ended", "no progress for ", " s with work pending", "was moved or deleted"],
  ...["the machine's clock is behind the last timestamp", "a thread died and is replaced"],
  ...["message not sent", "message abandoned", "unreadable", "run a newer one"],
];

const isInstalled = (program: string): boolean => spawnSync(program, ["--version"]).error === undefined;
const hasPrometheus = isInstalled("prometheus") && isInstalled("promtool");
if (!hasPrometheus) console.log("skipping the alert tests: prometheus and promtool are not installed");

let world: World;
let metrics: Scrape;
beforeAll(async () => {
  world = await World.start({ users: 1 });
  metrics = await scrape(world.server);
});
afterAll(async () => {
  await expectEndsWell(world);
});

interface PrometheusRule {
  readonly name: string;
  readonly health: string;
  readonly state: string;
}
interface PrometheusAnswer {
  readonly status: string;
  readonly error?: string;
  readonly data: {
    readonly result: readonly { readonly value: readonly [number, string] }[];
    readonly groups: readonly { readonly rules: readonly PrometheusRule[] }[];
  };
}

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

function dashboardQueries(): string[] {
  const { panels } = JSON.parse(readDocument(`${FOLDER}/grafana-dashboard.json`)) as { panels: Panel[] };
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}

/** Returns each alert's name and query. */
function alerts(): [name: string, query: string][] {
  const text = readDocument(`${FOLDER}/alerts.yml`);
  return [...text.matchAll(/- alert: (\w+)\n\s+expr: (?:>-\n)?([\s\S]*?)\n\s+(?:for|labels):/g)].map(
    ([, name, query]) => [name!, query!],
  );
}

/** Returns the series that a query selects: metric name and required labels. */
function selectors(query: string): { name: string; labels: [string, string][] }[] {
  const words = /([a-z_]+[a-z0-9_]*)(\{[^}]*\})?/g;
  const found = [...query.replaceAll(/(?:by|ignoring) ?\([^)]*\)/g, "").matchAll(words)];
  return found
    .filter(([, name]) => /_/.test(name!) || name === "up")
    .filter(([, name]) => !/^(histogram_quantile|predict_linear)$/.test(name!))
    .map(([, name, labels = ""]) => ({
      name: name!,
      labels: [...labels.matchAll(/(\w+)="([^"]*)"/g)]
        .map(([, label, value]): [string, string] => [label!, value!])
        .filter(([label]) => label !== "job"),
    }));
}

test("each query of the dashboard and the alerts finds its metrics on a real server", () => {
  const queries = [...dashboardQueries(), ...alerts().map(([, query]) => query)];
  expect(queries.length).toBeGreaterThan(40);
  let checked = 0;
  for (const query of queries) {
    const wanted = selectors(query).filter(({ name }) => !FOREIGN.test(name));
    for (const { name, labels } of wanted) {
      const series = [...metrics.series.keys()].filter((key) => key === name || key.startsWith(`${name}{`));
      const fitting = series.filter((key) => labels.every(([label, value]) => key.includes(`${label}="${value}"`)));
      expect(fitting, `${name} ${JSON.stringify(labels)} of ${query}`).not.toEqual([]);
      checked++;
    }
  }
  expect(checked).toBeGreaterThan(queries.length - 5);
});

test("the page names exactly the metrics that the server exports", () => {
  const [, table] = readDocument(PAGE).split("| `exchange_...` | |\n|---|---|\n");
  const named = [...table!.split("\n\n")[0]!.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`([a-z_]+)/g)].map(([, name]) => `exchange_${name}`),
  );
  const exported = [...metrics.types.keys()].filter((name) => name.startsWith("exchange_"));
  expect(named.toSorted()).toEqual(exported.toSorted());
});

test.runIf(hasPrometheus)("promtool accepts the rules, and each fires when it should", () => {
  const folder = temporaryFolder();
  for (const name of ["alerts.yml", "prometheus.yml"])
    writeFileSync(join(folder, name), readDocument(`${FOLDER}/${name}`));
  writeFileSync(join(folder, "alerts.test.yml"), readDocument("test/docs/alerts.test.yml"));
  for (const args of ["check config prometheus.yml", "test rules alerts.test.yml"]) {
    const { status, stdout, stderr } = spawnSync("promtool", args.split(" "), { cwd: folder, encoding: "utf8" });
    expect(status, stdout + stderr).toBe(0);
  }
});

test.runIf(hasPrometheus)("Prometheus reads the exchange and evaluates every rule and every panel", async () => {
  const folder = temporaryFolder();
  const port = await freePort();
  const config = readDocument(`${FOLDER}/prometheus.yml`)
    .replace("127.0.0.1:8080", `127.0.0.1:${world.server.port}`)
    .replaceAll("_interval: 10s", "_interval: 1s");
  writeFileSync(join(folder, "prometheus.yml"), config);
  writeFileSync(join(folder, "alerts.yml"), readDocument(`${FOLDER}/alerts.yml`));
  const args = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", `--web.listen-address=127.0.0.1:${port}`];
  const prometheus = new Running("prometheus", args, folder);
  const query = async (path: string): Promise<PrometheusAnswer> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    return (await response.json()) as PrometheusAnswer;
  };
  const value = async (expression: string): Promise<number | undefined> => {
    const { status, error, data } = await query(`query?query=${encodeURIComponent(expression)}`);
    expect([status, error], expression).toEqual(["success", undefined]);
    return data.result[0] === undefined ? undefined : Number(data.result[0].value[1]);
  };
  await expect.poll(() => value("exchange_ready").catch(() => undefined), { timeout: 30_000 }).toBe(1);
  for (const expression of dashboardQueries()) await value(expression);
  const rules = async (): Promise<PrometheusRule[]> =>
    (await query("rules")).data.groups.flatMap((group) => group.rules);
  const health = async (): Promise<Set<string>> => new Set((await rules()).map((rule) => rule.health));
  await expect.poll(health, { timeout: 30_000 }).toEqual(new Set(["ok"]));
  expect((await rules()).length).toBe(alerts().length);
  // No node_exporter runs here, and no backup has been taken yet.
  const pending = async (): Promise<string[]> =>
    (await rules()).filter((rule) => rule.state !== "inactive").map((rule) => rule.name);
  await expect.poll(pending, { timeout: 30_000 }).toContain("ExchangeNodeExporterMissing");
  expect(await pending()).not.toContain("ExchangeNotReady");
  prometheus.child.kill("SIGTERM");
  expect(await prometheus.exited).toBe(0);
});

test("the runbook has an entry for each alert, and no other", () => {
  const names = alerts().map(([name]) => name);
  expect(names.length).toBeGreaterThan(8);
  const entries = [...readDocument(PAGE).matchAll(/\*\*(Exchange\w+)\*\*/g)].map(([, name]) => name!);
  expect([...new Set(entries)].toSorted()).toEqual(names.toSorted());
});

/** Each variable of the page, with the cell of its row that gives the default. */
function documentedVariables(): [name: string, fallback: string][] {
  const [, section] = readDocument(PAGE).split("## Configuration\n");
  const rows = section!.split("\n## ")[0]!.matchAll(/^\| (`.*?) \| (.*?) \|/gm);
  return [...rows].flatMap(([, names, fallback]) =>
    [...names!.matchAll(/`([A-Z_]+)`/g)].map(([, name]): [string, string] => [name!, fallback!]),
  );
}

test("the page lists exactly the variables that the server reads, with their defaults", () => {
  const documented = documentedVariables();
  const read = Environment.properties as Record<string, { default?: unknown }>;
  expect(documented.map(([name]) => name).toSorted()).toEqual(Object.keys(read).toSorted());
  for (const [name, cell] of documented) {
    const fallback = String(read[name]?.default ?? "");
    // The number of engine threads depends on the machine: the page says how.
    if (name !== "ENGINE_THREADS") expect(cell, name).toContain(fallback);
  }
});

test("the log lines that the page quotes are those that the server writes", () => {
  const files = ["engine", "server"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
  );
  const sources = files.filter((name) => name.endsWith(".ts")).map(readDocument);
  for (const line of LOG_LINES) {
    const isWritten = sources.some((source) => source.includes(line));
    expect([line, readDocument(PAGE).includes(line), isWritten]).toEqual([line, true, true]);
  }
});

test("the server accepts the seed file of the page", async () => {
  const seed = JSON.parse(codeBlocks(PAGE).find(({ language }) => language === "json")!.code) as Seed;
  const server = await TestServer.start({ seed });
  const response = await fetch(`${server.root}/api/v1/markets/who-wins`);
  expect(response.status).toBe(200);
  await server.stop();
  expectSoundDatabase(server.dataDir);
});

/** Returns the file names in a folder without their leading timestamps. */
const kindsIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name !== "daily" && name !== "log")
    .map((name) => name.replace(/^[\dTZ]+/, ""))
    .toSorted();

test("a failed backup leaves nothing behind", async () => {
  const dataDir = temporaryFolder();
  const backups = join(temporaryFolder(), "backups");
  const env = { EXCHANGE: ROOT, DATA_DIR: dataDir, BACKUP_DIR: backups };
  const run = (): Promise<number | string> => new Running(join(ROOT, FOLDER, "backup.sh"), [], ROOT, env).exited;
  // First the keys are missing, then the database.
  for (const makeNext of [() => mkdirSync(join(dataDir, "keys")), () => {}]) {
    expect(await run()).not.toBe(0);
    expect([kindsIn(backups), kindsIn(join(backups, "daily"))]).toEqual([[], []]);
    makeNext();
  }
  // The next run deletes what a killed one left.
  const old = new Date(Date.now() - 2 * 3_600_000);
  const left = [
    "20260101T000000Z.keys.tar",
    "20260101T000000Z.json",
    "20260101T000000Z.journal.db",
    "20260101T000000Z.db.77.part",
  ];
  for (const name of left) {
    writeFileSync(join(backups, name), "");
    utimesSync(join(backups, name), old, old);
  }
  expect(await run()).not.toBe(0);
  expect(kindsIn(backups)).toEqual([]);
});

test("the scripts back up a live exchange and check the copy", async () => {
  const env = { EXCHANGE: ROOT, DATA_DIR: world.server.dataDir, BACKUP_DIR: join(temporaryFolder(), "backups") };
  const run = (name: string): Running => new Running(join(ROOT, FOLDER, name), [], ROOT, env);
  const noBackup = run("verify-backup.sh");
  expect(await noBackup.exited).toBe(1);
  const lastBackup = async (): Promise<number> =>
    (await scrape(world.server)).series.get("exchange_last_backup_timestamp_seconds")!;
  expect(await lastBackup()).toBe(0);
  const began = Date.now();
  await run("backup.sh").finished();
  expect(await lastBackup()).toBeGreaterThanOrEqual(began / 1_000);
  expect(await lastBackup()).toBeLessThanOrEqual(Date.now() / 1_000);
  expect(await run("verify-backup.sh").finished()).toBe("");
  const [copy, ...others] = readdirSync(env.BACKUP_DIR).filter((name) => /Z\.db$/.test(name));
  expect(others).toEqual([]);
  expect(kindsIn(join(env.BACKUP_DIR, "daily"))).toEqual([".db", ".journal.db", ".json", ".keys.tar"]);
  expect(statSync(join(env.BACKUP_DIR, copy!)).mode & 0o077).toBe(0);
  // A copy that is too old fails, even if it is sound.
  const old = new Date(Date.now() - 4 * 3_600_000).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const rename = (from: string, to: string): void => {
    for (const ending of [".db", ".journal.db"])
      renameSync(join(env.BACKUP_DIR, from + ending), join(env.BACKUP_DIR, to + ending));
  };
  const stamp = copy!.replace(/\.db$/, "");
  rename(stamp, old);
  const stale = run("verify-backup.sh");
  expect(await stale.exited).toBe(1);
  expect(stale.output).toContain("is TOO OLD");
  const patient = new Running(join(ROOT, FOLDER, "verify-backup.sh"), [], ROOT, { ...env, MAX_AGE_MINUTES: "300" });
  expect(await patient.finished()).toBe("");
  rename(old, stamp);
  // A copy of the tables without the log can't be restored.
  renameSync(join(env.BACKUP_DIR, `${stamp}.journal.db`), join(env.BACKUP_DIR, "elsewhere"));
  const half = run("verify-backup.sh");
  expect(await half.exited).toBe(1);
  expect(half.output).toContain("is WRONG");
  renameSync(join(env.BACKUP_DIR, "elsewhere"), join(env.BACKUP_DIR, `${stamp}.journal.db`));
  // A corrupted copy fails.
  writeFileSync(join(env.BACKUP_DIR, copy!), "no database");
  const corrupted = run("verify-backup.sh");
  expect(await corrupted.exited).toBe(1);
  expect(corrupted.output).toContain("is WRONG");
});

test("shell code blocks have valid syntax", () => {
  for (const { code } of codeBlocks(PAGE).filter(({ language }) => language === "sh")) {
    expect(spawnSync("bash", ["-n"], { input: code, encoding: "utf8" }).stderr).toBe("");
  }
});

test("the image copies existing files, and its health check works", async () => {
  const dockerfile = readDocument(`${FOLDER}/Dockerfile`);
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, sources]) => sources!.split(" "));
  expect(copied).toContain("package-lock.json");
  const built = [...dockerfile.matchAll(/^COPY --from=build \/srv\/exchange\/(\S+)/gm)].map(([, source]) => source!);
  expect(built).toContain("dist");
  for (const name of [...copied, ...built]) expect(existsSync(join(ROOT, name)), name).toBe(true);
  const [, check] = /HEALTHCHECK[^[]*CMD (\[.*\])/.exec(dockerfile)!;
  const [, ...args] = JSON.parse(check!) as string[];
  const health = (port: number): Promise<number | string> =>
    new Running(process.execPath, args, ROOT, { PORT: String(port) }).exited;
  expect(await health(world.server.port)).toBe(0);
  expect(await health(1)).toBe(1);
});

const analyzer = spawnSync("systemd-analyze", ["--version"]).error === undefined;
if (!analyzer) console.log("skipping the systemd unit: systemd-analyze is not installed");
test.skipIf(!analyzer)("the systemd unit is valid", () => {
  const folder = temporaryFolder();
  // Node's path differs between machines.
  const unit = readDocument(`${FOLDER}/prediction-exchange.service`).replace("/usr/bin/node", process.execPath);
  writeFileSync(join(folder, "prediction-exchange.service"), unit);
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", join(folder, "prediction-exchange.service")], {
    encoding: "utf8",
  });
  expect([status, stderr]).toEqual([0, ""]);
});
