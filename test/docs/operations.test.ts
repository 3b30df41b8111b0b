/**
 * What docs/operations.md and its files say is so: queries of the dashboard and the alerts find their figures, variables are
 * those that the server reads, scripts back up and verify a live database, the health check tells, the unit is one.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Seed } from "../../server/seed.ts";
import { expectEndsWell, expectSoundDatabase } from "../server/support/checks.ts";
import { type Scrape, scrape } from "../server/support/metrics.ts";
import { TestServer, temporaryFolder } from "../server/support/server.ts";
import { World } from "../server/support/world.ts";
import { codeBlocks, Running, readDocument } from "./code-blocks.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = "docs/operations";
const PAGE = "docs/operations.md";
/** Of other programs. */
const FOREIGN = /^(up|node_filesystem_avail_bytes)$/;

let world: World;
let figures: Scrape;
beforeAll(async () => {
  world = await World.start({ users: 1 });
  figures = await scrape(world.server);
});
afterAll(async () => {
  await expectEndsWell(world);
});

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

function dashboardQueries(): string[] {
  const { panels } = JSON.parse(readDocument(`${FOLDER}/grafana-dashboard.json`)) as { panels: Panel[] };
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}

/** Each alert's name and query. */
function alerts(): [name: string, query: string][] {
  const text = readDocument(`${FOLDER}/alerts.yml`);
  return [...text.matchAll(/- alert: (\w+)\n\s+expr: (?:>-\n)?([\s\S]*?)\n\s+(?:for|labels):/g)].map(
    ([, name, query]) => [name!, query!],
  );
}

/** The series that a query selects: a metric's name and what its labels must be. */
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

test("each query of the dashboard and of the alerts finds its figures on a real server", () => {
  const queries = [...dashboardQueries(), ...alerts().map(([, query]) => query)];
  expect(queries.length).toBeGreaterThan(40);
  let checked = 0;
  for (const query of queries) {
    const wanted = selectors(query).filter(({ name }) => !FOREIGN.test(name));
    for (const { name, labels } of wanted) {
      const series = [...figures.series.keys()].filter((key) => key === name || key.startsWith(`${name}{`));
      const fitting = series.filter((key) => labels.every(([label, value]) => key.includes(`${label}="${value}"`)));
      expect(fitting, `${name} ${JSON.stringify(labels)} of ${query}`).not.toEqual([]);
      checked++;
    }
  }
  expect(checked).toBeGreaterThan(queries.length - 5);
});

test("each figure that the page names is there, and each that is there is named", () => {
  const [, table] = readDocument(PAGE).split("| `exchange_...` | |\n|---|---|\n");
  const named = [...table!.split("\n\n")[0]!.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`([a-z_]+)/g)].map(([, name]) => `exchange_${name}`),
  );
  const there = [...figures.types.keys()].filter((name) => name.startsWith("exchange_"));
  expect(named.toSorted()).toEqual(there.toSorted());
});

test("each alert has its entry in the runbook, and the reverse", () => {
  const names = alerts().map(([name]) => name);
  expect(names.length).toBeGreaterThan(8);
  const entries = [...readDocument(PAGE).matchAll(/\*\*(Exchange\w+)\*\*/g)].map(([, name]) => name!);
  expect([...new Set(entries)].toSorted()).toEqual(names.toSorted());
});

test("the variables are those that the server reads", () => {
  const source = readDocument("server/config.ts");
  const read = [...source.matchAll(/(?:text|integer|choice|file|url)\("([A-Z_]+)"/g)].map(([, name]) => name!);
  const [, section] = readDocument(PAGE).split("## Configuration\n");
  const rows = section!.split("\n## ")[0]!.matchAll(/^\| (`.*?) \|/gm);
  const named = [...rows].flatMap(([, cell]) => [...cell!.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name!));
  expect(named.toSorted()).toEqual([...new Set(read)].toSorted());
});

test("the seed file of the page is one", async () => {
  const seed = JSON.parse(codeBlocks(PAGE).find(({ language }) => language === "json")!.code) as Seed;
  const server = await TestServer.start({ seed });
  const answer = await fetch(`${server.root}/api/v1/markets/who-wins`);
  expect(answer.status).toBe(200);
  await server.stop();
  expectSoundDatabase(server.dataDir);
});

test("the scripts back up a live exchange and check the copy", async () => {
  const env = { EXCHANGE: ROOT, DATA_DIR: world.server.dataDir, BACKUP_DIR: join(temporaryFolder(), "backups") };
  const run = (name: string): Running => new Running(join(ROOT, FOLDER, name), [], ROOT, env);
  const early = run("verify-backup.sh");
  expect(await early.exited).toBe(1);
  await run("backup.sh").finished();
  expect(await run("verify-backup.sh").finished()).toBe("");
  const [copy, ...others] = readdirSync(env.BACKUP_DIR).filter((name) => name.endsWith(".db"));
  expect(others).toEqual([]);
  expect(readdirSync(join(env.BACKUP_DIR, "daily")).map((name) => name.replace(/^\d+/, ""))).toEqual(
    [".db", ".json", ".keys.tar"].toSorted(),
  );
  expect(statSync(join(env.BACKUP_DIR, copy!)).mode & 0o077).toBe(0);
  // A copy that was spoilt is found.
  writeFileSync(join(env.BACKUP_DIR, copy!), "no database");
  const late = run("verify-backup.sh");
  expect(await late.exited).toBe(1);
  expect(late.output).toContain("is WRONG");
});

test("shell code is at least code", () => {
  for (const { code } of codeBlocks(PAGE).filter(({ language }) => language === "sh")) {
    expect(spawnSync("bash", ["-n"], { input: code, encoding: "utf8" }).stderr).toBe("");
  }
});

test("the image is made of files that are there, and its health check tells", async () => {
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
if (!analyzer) console.log("the systemd unit is not verified: no systemd-analyze");
test.skipIf(!analyzer)("the systemd unit is one", () => {
  const folder = temporaryFolder();
  // Where Node lies differs.
  const unit = readDocument(`${FOLDER}/prediction-exchange.service`).replace("/usr/bin/node", process.execPath);
  writeFileSync(join(folder, "prediction-exchange.service"), unit);
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", join(folder, "prediction-exchange.service")], {
    encoding: "utf8",
  });
  expect([status, stderr]).toEqual([0, ""]);
});
