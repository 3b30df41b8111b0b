/**
 * Loads a server with orders for some seconds and reports the responses: with wrk if it is installed, otherwise with a
 * client in a thread of this program, which uses much more of the machine than wrk and so hides differences.
 */
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { builtScript } from "../../support/root.ts";
import type { OrderRequest } from "./workload.ts";

const PATH = "/api/v1/orders";

interface Load {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
}

export interface Loaded {
  readonly requests: number;
  /** Responses other than success, and requests without a response. */
  readonly failed: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface LoadClient {
  readonly name: "wrk" | "node";
  run(load: Load): Promise<Loaded>;
}

/** The client thread's setup. */
export interface LoadSetup extends Load {
  readonly requests: readonly OrderRequest[];
  readonly path: string;
}

export function createLoadClient(requests: readonly OrderRequest[], folder: string): LoadClient {
  if (spawnSync("wrk", ["-v"]).error !== undefined) {
    return { name: "node", run: (load) => runThread({ ...load, requests, path: PATH }) };
  }
  const file = join(folder, "requests.txt");
  const script = join(folder, "orders.lua");
  writeFileSync(file, requests.map(({ token, body }) => `${token} ${body}`).join("\n"), { mode: 0o600 });
  writeFileSync(script, wrkScript(file));
  return { name: "wrk", run: (load) => runWrk(script, load) };
}

/** Requests are built once, before the first is sent; wrk itself counts responses other than 2xx and 3xx. */
function wrkScript(file: string): string {
  return `local requests = {}
function init()
  for line in io.lines(${JSON.stringify(file)}) do
    local token, body = line:match("^(%S+) (.*)$")
    local headers = { ["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json" }
    requests[#requests + 1] = wrk.format("POST", ${JSON.stringify(PATH)}, headers, body)
  end
end
local last = 0
function request()
  last = last % #requests + 1
  return requests[last]
end
function done(summary, latency)
  local e = summary.errors
  print(string.format('{"requests":%d,"failed":%d,"us":%d,"p50":%d,"p99":%d}', summary.requests,
    e.status + e.connect + e.read + e.write + e.timeout, summary.duration, latency:percentile(50),
    latency:percentile(99)))
end
`;
}

function runWrk(script: string, { url, connections, seconds }: Load): Promise<Loaded> {
  return new Promise((resolve, reject) => {
    const args = ["-t1", `-c${connections}`, `-d${seconds}s`, "-s", script, url];
    const child = spawn("wrk", args, { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.on("close", () => {
      const line = output.split("\n").find((text) => text.startsWith("{"));
      if (line === undefined) {
        reject(new Error(`wrk: ${output}`));
        return;
      }
      const { requests, failed, us, p50, p99 } = JSON.parse(line) as Record<string, number>;
      const perSecond = requests! / (us! / 1e6);
      resolve({ requests: requests!, failed: failed!, perSecond, p50Ms: p50! / 1_000, p99Ms: p99! / 1_000 });
    });
  });
}

function runThread(setup: LoadSetup): Promise<Loaded> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(builtScript("bench/children/load-client.js"), { workerData: setup });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}
