/**
 * NATS nodes on loopback that sync every write: for tests and benchmarks of the copy of the log. Needs nats-server 2.10 or
 * newer, installed or named by NATS_SERVER_PATH. Ends only nodes that it started, by their id.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "./free-port.ts";

/** Older ones can't sync every write. */
const OLDEST = [2, 10] as const;
const PLACES = ["nats-server", "/usr/sbin/nats-server", "/usr/local/bin/nats-server"];
const START_MS = 8_000;
const ATTEMPTS = 5;

/** The path of a nats-server that can sync every write; null where there is none. */
export function findNatsServer(): string | null {
  const given = process.env["NATS_SERVER_PATH"];
  return (given === undefined ? PLACES : [given]).find(isRecent) ?? null;
}

function isRecent(path: string): boolean {
  if (path.includes("/") && !existsSync(path)) return false;
  try {
    const [, major, minor] = /v(\d+)\.(\d+)\./.exec(execFileSync(path, ["--version"], { encoding: "utf8" })) ?? [];
    return Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1]);
  } catch {
    return false;
  }
}

export interface ClusterOptions {
  /** 3 by default. */
  readonly nodes?: number;
  /** The nodes' sync_interval; null for NATS's own. "always" by default. */
  readonly sync?: "always" | null;
  /** Lines of each node's configuration file. */
  readonly config?: readonly string[];
  /** Resolves with the port of a line to a port: through these the first two nodes reach each other, and not in any other way. */
  readonly between?: (port: number) => Promise<number>;
}

interface Node {
  readonly name: string;
  readonly port: number;
  readonly monitorPort: number;
  readonly configFile: string;
  child: ChildProcess;
}

/** What a node's /jsz says about the cluster's metadata. */
interface View {
  readonly meta_cluster?: {
    readonly leader?: string;
    readonly cluster_size?: number;
    readonly replicas?: readonly { readonly offline?: boolean; readonly current?: boolean }[];
  };
  readonly server_name?: string;
}

export class NatsCluster {
  private readonly folder: string;
  private readonly binary: string;
  private readonly nodes: Node[] = [];

  private constructor(binary: string) {
    this.binary = binary;
    this.folder = mkdtempSync(join(tmpdir(), "exchange-nats-"));
  }

  /** Starts the nodes, and waits until they know each other. Tries other ports where another program took one meanwhile. */
  static async start(options: ClusterOptions = {}): Promise<NatsCluster> {
    const binary = findNatsServer();
    if (binary === null) throw new Error("there is no nats-server of 2.10 or newer (NATS_SERVER_PATH names it)");
    for (let attempt = 1; ; attempt++) {
      const cluster = new NatsCluster(binary);
      await cluster.begin(options);
      if (await cluster.isComplete(START_MS)) return cluster;
      await cluster.end();
      if (attempt === ATTEMPTS) throw new Error("the NATS nodes don't find each other");
    }
  }

  /** The nodes' addresses for STANDBY_NATS. @param first the node that comes first */
  urls(first = 0): string {
    const { nodes } = this;
    return nodes.map((_, i) => `nats://127.0.0.1:${nodes[(first + i) % nodes.length]!.port}`).join(",");
  }

  /** The nodes' monitoring addresses for STANDBY_MONITOR. */
  get monitors(): string {
    return this.nodes.map(({ monitorPort }) => `http://127.0.0.1:${monitorPort}`).join(",");
  }

  get size(): number {
    return this.nodes.length;
  }

  /** HOST:PORT of a node. */
  address(i: number): string {
    return `127.0.0.1:${this.nodes[i]!.port}`;
  }

  /** The number of the node with that name. */
  indexOf(name: string): number {
    return this.nodes.findIndex((node) => node.name === name);
  }

  pids(): readonly number[] {
    return this.nodes.map(({ child }) => child.pid!);
  }

  /** Ends a node at once; it keeps its files. */
  async kill(i: number): Promise<void> {
    const { child } = this.nodes[i]!;
    const isRunning = child.exitCode === null && child.signalCode === null;
    child.kill("SIGKILL");
    if (isRunning) await once(child, "exit");
  }

  /** Stops a node's process in the middle of whatever it does; resolves once no thread of it runs. */
  async hang(i: number): Promise<void> {
    const { child } = this.nodes[i]!;
    child.kill("SIGSTOP");
    // A thread in the middle of a write to the disk stops after it.
    while (!hasStopped(child.pid!)) await delay(1);
  }

  /** Lets a node that hangs go on. */
  resume(i: number): void {
    this.nodes[i]!.child.kill("SIGCONT");
  }

  /** Starts a node again that was killed. */
  restart(i: number): void {
    const node = this.nodes[i]!;
    node.child = this.spawn(node.configFile);
  }

  /** Ends all nodes and removes their files. */
  async end(): Promise<void> {
    await Promise.all(this.nodes.map((_, i) => this.kill(i)));
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** True once every node knows all others, and they have a leader for their metadata. @param ms how long it waits */
  async isComplete(ms: number): Promise<boolean> {
    for (const until = Date.now() + ms; Date.now() < until; await delay(50)) {
      if (this.nodes.some(({ child }) => child.exitCode !== null)) return false;
      const views = await Promise.all(this.nodes.map((node) => this.view(node)));
      if (views.every((view) => view !== null && (this.size === 1 || isWhole(view, this.size)))) return true;
    }
    return false;
  }

  private async view({ monitorPort }: Node): Promise<View | null> {
    try {
      return (await (await fetch(`http://127.0.0.1:${monitorPort}/jsz`)).json()) as View;
    } catch {
      return null;
    }
  }

  private async begin({ nodes: count = 3, sync = "always", config = [], between }: ClusterOptions): Promise<void> {
    const ports = await Promise.all(Array.from({ length: 3 * count }, () => freePort()));
    const routes = ports.slice(2 * count).map((port) => `nats://127.0.0.1:${port}`);
    const [first, second] = ports.slice(2 * count);
    const reached = between === undefined ? null : [await between(first!), await between(second!)];
    const routesOf = (i: number): readonly string[] => {
      if (reached === null || i > 1) return routes;
      return [`nats://127.0.0.1:${reached[1 - i]}`, routes[2]!];
    };
    // The third node tells the two about each other.
    const advertised = (i: number): string =>
      reached === null || i > 1 ? "" : `, advertise: "127.0.0.1:${reached[i]}"`;
    for (let i = 0; i < count; i++) {
      const [port, monitorPort] = [ports[i]!, ports[count + i]!];
      const [name, store] = [`n${i + 1}`, join(this.folder, `n${i + 1}`)];
      mkdirSync(store);
      const lines = [
        ...["host: 127.0.0.1", `port: ${port}`, `http: 127.0.0.1:${monitorPort}`, `server_name: ${name}`],
        // Larger than the stream may become: a small disk isn't what these tests are about.
        `jetstream { store_dir: "${store}", max_file_store: 1TB${sync === null ? "" : `, sync_interval: ${sync}`} }`,
        ...(count === 1
          ? []
          : [
              `cluster { name: C, listen: "${routes[i]!.slice(7)}", routes: [${routesOf(i).join(", ")}]${advertised(i)} }`,
            ]),
        ...config,
      ];
      const configFile = join(this.folder, `${name}.conf`);
      writeFileSync(configFile, `${lines.join("\n")}\n`);
      this.nodes.push({ name, port, monitorPort, configFile, child: this.spawn(configFile) });
    }
  }

  private spawn(configFile: string): ChildProcess {
    const child = spawn(this.binary, ["-c", configFile], { stdio: "ignore" });
    const end = (): void => void child.kill("SIGKILL");
    process.once("exit", end);
    child.once("exit", () => process.off("exit", end));
    return child;
  }
}

function hasStopped(pid: number): boolean {
  const states = readdirSync(`/proc/${pid}/task`).map((task) => {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2)[0];
  });
  return states.every((state) => state === "T");
}

function isWhole({ meta_cluster: meta, server_name: name }: View, size: number): boolean {
  if (meta?.cluster_size !== size || meta.leader === undefined) return false;
  if (meta.leader !== name) return true;
  // Only the leader knows the others. Now and then one of them isn't taken in, and never will be.
  const replicas = meta.replicas ?? [];
  return replicas.length === size - 1 && replicas.every(({ offline, current }) => offline !== true && current === true);
}
