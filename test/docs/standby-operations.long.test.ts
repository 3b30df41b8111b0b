/**
 * The files for operators of two boxes: alert rules that fire when they should and have an entry in the runbook, and
 * haproxy's example in front of a pair whose active box is killed.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { request as secureRequest } from "node:https";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { freePort } from "../../bench/support/free-port.ts";
import { ROOT } from "../../bench/support/root.ts";
import { keyed, paired, SYNC_MS, TestNodes } from "../replication/cluster.ts";
import { NO_NATS } from "../replication/streamed-log.ts";
import { eventually } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { scrape } from "../support/metrics.ts";
import { temporaryFolder } from "../support/server.ts";
import { BUY, terms } from "../support/trading.ts";
import { Running, readDocument } from "./code-blocks.ts";

const RULES = "docs/operations/standby-alerts.yml";
const HOST = "127.0.0.1";
const TAKEOVER_MS = 10_000;
/** Nodes that begin on a machine with other work may take a minute to find each other. */
const TRIAL_MS = 180_000;

const has = (program: string, flag: string): boolean => spawnSync(program, [flag]).error === undefined;

function alerts(): [name: string, query: string][] {
  const found = readDocument(RULES).matchAll(/- alert: (\w+)\n\s+expr: (.*)\n/g);
  return [...found].map(([, name, query]) => [name!, query!]);
}

test.runIf(has("promtool", "--version"))("promtool accepts the rules, and each fires when it should", () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "standby-alerts.yml"), readDocument(RULES));
  writeFileSync(join(folder, "standby-alerts.test.yml"), readDocument("test/docs/standby-alerts.test.yml"));
  const run = spawnSync("promtool", ["test", "rules", "standby-alerts.test.yml"], { cwd: folder, encoding: "utf8" });
  expect(run.status, run.stdout + run.stderr).toBe(0);
  for (const [name] of alerts())
    expect(readDocument("test/docs/standby-alerts.test.yml")).toContain(`alertname: ${name}\n`);
});

test("the page has an entry for each alert, and no other", () => {
  const names = alerts().map(([name]) => name);
  expect(names.length).toBe(9);
  const entries = [...readDocument("docs/standby.md").matchAll(/\*\*(Exchange\w+)\*\*/g)].map(([, name]) => name!);
  expect(entries.toSorted()).toEqual(names.toSorted());
});

interface Through {
  readonly status: number;
  readonly code: number;
}

/** A request through haproxy. */
function ask(port: number, path: string, token: string, body: object): Promise<Through> {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  return new Promise((resolve, reject) => {
    const options = { host: HOST, port, path, method: "POST", headers, rejectUnauthorized: false };
    const sent = secureRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const { code } = JSON.parse(Buffer.concat(chunks).toString()) as { code: number };
        resolve({ status: response.statusCode!, code });
      });
    });
    sent.on("error", reject);
    sent.end(JSON.stringify(body));
  });
}

/** haproxy with its example file, in front of two ports of this machine. */
async function startProxy(ports: readonly number[]): Promise<{ readonly port: number; readonly running: Running }> {
  const folder = temporaryFolder();
  const [plain, port] = [await freePort(), await freePort()];
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=exchange.example.com"];
  expect(spawnSync("openssl", ["req", ...made, "-keyout", key, "-out", certificate]).status).toBe(0);
  writeFileSync(join(folder, "exchange.pem"), readFileSync(certificate, "utf8") + readFileSync(key, "utf8"));
  let config = readDocument("docs/operations/haproxy.cfg");
  for (const [from, to] of [
    ["bind :80\n", `bind ${HOST}:${plain}\n`],
    ["bind :443 ", `bind ${HOST}:${port} `],
    ["/etc/haproxy/exchange.pem", join(folder, "exchange.pem")],
    ["10.0.0.1:8080", `${HOST}:${ports[0]}`],
    ["10.0.0.2:8080", `${HOST}:${ports[1]}`],
    ["log /dev/log local0", "log stdout format raw local0"],
  ] as const) {
    expect(config).toContain(from);
    config = config.replace(from, to);
  }
  writeFileSync(join(folder, "haproxy.cfg"), config);
  const program = has("haproxy", "-v") ? "haproxy" : "/usr/sbin/haproxy";
  const running = new Running(program, ["-db", "-f", "haproxy.cfg"], folder);
  onTestFinished(() => void running.child.kill("SIGKILL"));
  return { port, running };
}

describe.skipIf(NO_NATS)("a pair", () => {
  const nodes = TestNodes.use();

  const hasProxy = has("haproxy", "-v") || has("/usr/sbin/haproxy", "-v");
  test.runIf(hasProxy)("behind haproxy trades on at one address when its active box is killed", async () => {
    const ports = [await freePort(), await freePort()];
    const { port: proxy, running } = await startProxy(ports);
    const more = { STANDBY_ACK: "standby", STANDBY_TAKEOVER: "auto", TRUSTED_PROXIES: HOST };
    const portOf = (i: number) => ({ PORT: String(ports[i]) });
    const { world, market, user } = await nodes.begin("haproxy", { ...more, ...portOf(0), STANDBY_BOX: "a" });
    const b = await nodes.standBy("haproxy", { ...more, ...portOf(1) });
    await paired(world.server, SYNC_MS);
    await keyed(b);
    const [first, second] = await Promise.all([scrape(world.server), scrape(b)]);
    const names = new Set([...first.types.keys(), ...second.types.keys()]);
    for (const [, query] of alerts()) {
      for (const [name] of query.matchAll(/exchange_\w+/g)) expect(names.has(name), name).toBe(true);
    }

    const order = (name: string): object => terms(market, 0, BUY, 5, 1, { client_order_id: name });
    const place = (name: string): Promise<Through> => ask(proxy, "/api/v1/orders", user.token!, order(name));
    await eventually(async () => expect(await place("first")).toEqual({ status: 202, code: 0 }));
    const socket = new WebSocket(`wss://${HOST}:${proxy}/api/v1/ws`, {
      rejectUnauthorized: false,
      headers: { Authorization: `Bearer ${user.token}` },
    });
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    const acknowledged = ["first"];
    const kill = performance.now();
    await world.server.kill();
    const codes = new Set<string>();
    for (let i = 0; ; i++) {
      const { status, code } = await place(`order-${i}`);
      codes.add(`${status} ${code}`);
      if (status === 202) acknowledged.push(`order-${i}`);
      if (acknowledged.length > 20) break;
      expect(performance.now() - kill).toBeLessThan(TAKEOVER_MS);
    }
    // Requests that no box had, and one that the dead box may have had.
    for (const each of codes) expect(["202 0", "503 50300", "500 50000"]).toContain(each);
    await closed;
    expect((await ask(proxy, "/api/v1/orders", user.token!, { text: "x".repeat(70_000) })).status).toBe(413);
    const there = new Client(b, user.token);
    onTestFinished(() => there.close());
    const ids = (await there.all<OrderJson>("/orders")).map(({ client_order_id: id }) => id);
    expect(ids).toEqual(expect.arrayContaining(acknowledged));
    expect(new Set(ids).size).toBe(ids.length);
    expect(running.output).toContain(" POST /api/v1/orders 202 ");
    expect(running.output).not.toContain("?");
  });

  test("on one machine comes from one command, and takes over", { timeout: 2 * TRIAL_MS }, async () => {
    const port = 20_000 + 11 * (process.pid % 1_000);
    const path = process.env["NATS_SERVER_PATH"];
    const env = { PORT: String(port), ...(path === undefined ? {} : { NATS_SERVER_PATH: path }) };
    const trial = new Running("docs/operations/standby-trial.sh", [], fileURLToPath(ROOT), env);
    await trial.wrote(/Ctrl-C ends everything/, TRIAL_MS);
    const [, a] = /^Try kill -9 (\d+),/m.exec(trial.output)!;
    process.kill(Number(a), "SIGKILL");
    const ready = async (): Promise<unknown> => (await fetch(`http://${HOST}:${port + 1}/readyz`)).json();
    await eventually(async () => expect(await ready()).toMatchObject({ role: "active", epoch: 2 }), TAKEOVER_MS);
    await trial.wrote(/^box a has ended: started it again/m);
    await eventually(async () => expect(await ready()).toMatchObject({ alone: false }), TRIAL_MS);
    trial.interrupt();
    expect(await trial.exited).toBe(0);
  });
});
