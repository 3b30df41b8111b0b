/**
 * Disturbs a pair of boxes, repeatedly and under load: the active box, its standby, their lines, the nodes, the disk. After each
 * round one box trades, has everything that either of them answered, and the other one follows. In the end both have the same
 * log and the same tables. One seed chooses the rounds; the moment at which something happens depends on the machine.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../bench/support/free-port.ts";
import { NatsCluster } from "../../bench/support/nats-cluster.ts";
import { hashTables } from "../../engine/projection/table-hashes.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { verifyFiles } from "../../server/cli/verify.ts";
import { FENCED_EXIT } from "../../server/errors.ts";
import { journalPath, tablesPath } from "../../server/util/data-folder.ts";
import { admin } from "../support/admin.ts";
import { Line } from "../support/line.ts";
import type { Random } from "../support/random.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { PUBLIC_URL } from "../support/world.ts";
import { seededTraffic, TRAFFIC_SEED, type Traffic } from "./traffic.ts";

/**
 * Of the active box: kill -9, SIGSTOP, SIGTERM, a switch, with its own node, with the node that leads the stream, cut off from
 * the nodes, a full disk. Then: the standby killed, or cut off; a node that hangs, that is killed.
 */
export const DISTURBANCES = [
  ...["kill", "hang", "stop", "switch", "machine", "leader", "cut", "full disk"],
  ...["standby killed", "standby cut", "node hangs", "node killed"],
] as const;
type Disturbance = (typeof DISTURBANCES)[number];
/** Those after which the other box is active. */
const TAKEOVERS: ReadonlySet<Disturbance> = new Set([
  "kill",
  "hang",
  "stop",
  "switch",
  "machine",
  "leader",
  "cut",
  "full disk",
]);

export interface PairOptions {
  readonly random: Random;
  readonly rounds: number;
  /** By turns, and then by chance. */
  readonly kinds?: readonly Disturbance[];
  /** Called in the end, when both boxes have stopped. @param dataDir of one of them */
  readonly onEnd?: (cluster: NatsCluster, dataDir: string) => Promise<void>;
  readonly onRound?: (round: number, kind: Disturbance, ms: number | null) => void;
}

export interface PairReport {
  /** Without a box that trades, ms, by what happened. */
  readonly took: ReadonlyMap<Disturbance, readonly number[]>;
  readonly answered: number;
  readonly retried: number;
  readonly skipped: readonly Disturbance[];
}

/** On a machine that does other things as well; elections of the nodes take seconds. */
const MAX_TAKEOVER_MS = 20_000;
const MAX_ELECTION_MS = 60_000;
const PAIRED_MS = 90_000;
const EXIT_MS = 20_000;
const POLL_MS = 5;
const STATUS_POLL_MS = 200;
const SECRET = "a secret of thirty-two characters, for a test";
const DISK_MB = 512;

/** A box: its folder on a disk of its own where that may be mounted, and its lines to the nodes. */
class Box {
  readonly name: string;
  readonly index: number;
  readonly port: number;
  readonly lines: readonly Line[];
  readonly disk: string | null;
  readonly dataDir: string;
  server: TestServer | null = null;

  private constructor(name: string, index: number, port: number, lines: readonly Line[]) {
    const folder = temporaryFolder();
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_MB}m`, "none", folder]).status === 0;
    this.name = name;
    this.index = index;
    this.port = port;
    this.lines = lines;
    this.disk = mounted ? folder : null;
    this.dataDir = join(folder, "data");
    mkdirSync(this.dataDir);
  }

  static async create(name: string, index: number, cluster: NatsCluster): Promise<Box> {
    const order = Array.from({ length: cluster.size }, (_, i) => (index + i) % cluster.size);
    const lines = await Promise.all(order.map((i) => Line.open(Number(cluster.address(i).split(":")[1]))));
    return new Box(name, index, await freePort(), lines);
  }

  start(monitors: string, takeover: "auto" | "manual"): TestServer {
    const env = {
      PUBLIC_URL,
      PORT: String(this.port),
      STANDBY_NATS: this.lines.map(({ port }) => `nats://127.0.0.1:${port}`).join(","),
      STANDBY_MONITOR: monitors,
      STANDBY_SECRET: SECRET,
      STANDBY_BOX: this.name,
      STANDBY_LOST: "alone:3",
      STANDBY_TAKEOVER: takeover,
    };
    this.server = TestServer.spawn({ seed: TRAFFIC_SEED, dataDir: this.dataDir, env });
    this.server.port = this.port;
    return this.server;
  }

  async readiness(): Promise<Readonly<Record<string, unknown>>> {
    try {
      return (await (await fetch(`http://127.0.0.1:${this.port}/readyz`)).json()) as Record<string, unknown>;
    } catch {
      return {};
    }
  }

  /** Takes what is left of the disk; returns what gives it back. */
  fill(): () => void {
    const path = join(this.disk!, "filler");
    const file = openSync(path, "w");
    try {
      for (const bytes of [Buffer.alloc(2 ** 20), Buffer.alloc(1)]) while (writeSync(file, bytes) === bytes.length);
    } catch {
      // Full.
    }
    closeSync(file);
    return () => rmSync(path);
  }

  async end(): Promise<void> {
    await this.server?.kill();
    for (const line of this.lines) line.close();
    if (this.disk !== null) spawnSync("umount", ["-l", this.disk]);
  }
}

interface Status {
  readonly stream: { readonly current: number; readonly leader: string | null } | null;
  readonly boxes: readonly { readonly role: string; readonly keys_equal: boolean }[];
}

class Pair {
  private readonly options: PairOptions;
  private readonly cluster: NatsCluster;
  private readonly traffic: Traffic;
  private active: Box;
  private standby: Box;
  private readonly took = new Map<Disturbance, number[]>();

  constructor(options: PairOptions, cluster: NatsCluster, active: Box, standby: Box) {
    this.options = options;
    this.cluster = cluster;
    this.traffic = seededTraffic(options.random);
    this.active = active;
    this.standby = standby;
  }

  async run(): Promise<PairReport> {
    const { random, rounds, onRound } = this.options;
    const [kinds, skipped] = this.kinds();
    await this.active.start(this.cluster.monitors, "auto").ready();
    this.standby.start(this.cluster.monitors, "auto");
    for (let round = 0; round < rounds; round++) {
      const kind = kinds[round] ?? random.pick(kinds);
      const ms = await this.round(kind);
      onRound?.(round + 1, kind, ms);
    }
    await this.expectEqual();
    const { took, traffic } = this;
    return { took, answered: traffic.answered, retried: traffic.retried, skipped };
  }

  private kinds(): readonly [kinds: readonly Disturbance[], skipped: readonly Disturbance[]] {
    const wanted = this.options.kinds ?? DISTURBANCES;
    const skipped: readonly Disturbance[] =
      this.active.disk === null ? wanted.filter((kind) => kind === "full disk") : [];
    return [wanted.filter((kind) => !skipped.includes(kind)), skipped];
  }

  /** Returns for how long no box traded, ms; null where the active one stayed. */
  private async round(kind: Disturbance): Promise<number | null> {
    const { random } = this.options;
    const { traffic, active, standby } = this;
    const leader = await this.whole(kind);
    await traffic.start(active.server!);
    await traffic.more(random.integer(20, 200));
    if (!TAKEOVERS.has(kind)) {
      await this.disturbOthers(kind, leader);
      await traffic.end();
      await this.expectKept(active);
      return null;
    }
    const since = performance.now();
    const mend = await this.disturbActive(kind, leader);
    const limit = kind === "leader" || kind === "machine" ? MAX_ELECTION_MS : MAX_TAKEOVER_MS;
    for (;;) {
      const { role, status } = await standby.readiness();
      if (role === "active" && status === "ok") break;
      assert(
        performance.now() - since < limit,
        `${kind}: no box is active: ${JSON.stringify(standby.server!.log.slice(-8))}`,
      );
      await delay(POLL_MS);
    }
    const ms = Math.round(performance.now() - since);
    this.took.set(kind, [...(this.took.get(kind) ?? []), ms]);
    await mend();
    await traffic.end();
    [this.active, this.standby] = [standby, active];
    await this.expectKept(standby);
    active.start(this.cluster.monitors, "auto");
    return ms;
  }

  /** Waits until the pair and the nodes are whole; returns the node that leads the stream. */
  private async whole(kind: Disturbance): Promise<number> {
    for (const since = performance.now(); ; await delay(STATUS_POLL_MS)) {
      const { alone, role } = await this.active.readiness();
      if (role === "active" && alone === false) {
        const { code, out } = await admin(this.active.dataDir, "standby", "status");
        const { stream, boxes } = code === 0 ? (JSON.parse(out) as Status) : { stream: null, boxes: [] };
        const follows = boxes.some((box) => box.role === "standby" && box.keys_equal);
        const leader = stream === null ? -1 : this.cluster.indexOf(stream.leader ?? "");
        // A box that dies with its node doesn't take the stream's leader with it, unless that is what is tried.
        const isElsewhere = kind !== "machine" || leader !== this.active.index;
        if (follows && stream?.current === this.cluster.size && leader >= 0 && isElsewhere) return leader;
      }
      const said = [this.active, this.standby].map(({ server }) => server!.log.slice(-5));
      assert(performance.now() - since < PAIRED_MS, `the boxes aren't a pair: ${JSON.stringify(said)}`);
    }
  }

  /** Returns what ends the disturbance, once the other box trades. */
  private async disturbActive(kind: Disturbance, leader: number): Promise<() => Promise<void>> {
    const { cluster, active, standby } = this;
    const { server, lines } = active;
    const exits = async (code: number | null): Promise<void> => assert.equal(await server!.exit(EXIT_MS), code, kind);
    const node = kind === "machine" ? active.index : leader;
    switch (kind) {
      case "hang":
        server!.signal("SIGSTOP");
        return async () => {
          server!.signal("SIGCONT");
          await exits(FENCED_EXIT);
        };
      case "cut":
        for (const line of lines) line.pull();
        return async () => {
          for (const line of lines) line.plugIn();
          await exits(FENCED_EXIT);
        };
      case "stop":
        server!.signal("SIGTERM");
        return () => exits(0);
      case "switch":
        void admin(standby.dataDir, "standby", "promote");
        return () => exits(0);
      case "full disk": {
        const empty = active.fill();
        return async () => {
          assert.notEqual(await server!.exit(EXIT_MS), 0, kind);
          empty();
        };
      }
      default:
        server!.signal("SIGKILL");
        if (kind === "kill") return () => exits(null);
        await cluster.kill(node);
        return async () => {
          await exits(null);
          cluster.restart(node);
        };
    }
  }

  /** The active box goes on meanwhile, and after. */
  private async disturbOthers(kind: Disturbance, leader: number): Promise<void> {
    const { random } = this.options;
    const { cluster, standby, traffic } = this;
    const node = random.integer(0, cluster.size - 1);
    const ms = random.integer(100, 5_000);
    if (kind === "standby killed") {
      await standby.server!.kill();
      await traffic.more(20);
      standby.start(cluster.monitors, "auto");
    } else if (kind === "standby cut") {
      for (const line of standby.lines) line.pull();
      await delay(ms);
      for (const line of standby.lines) line.plugIn();
    } else if (kind === "node hangs") {
      await cluster.hang(leader);
      await delay(ms);
      cluster.resume(leader);
    } else {
      await cluster.kill(node);
      await delay(ms);
      cluster.restart(node);
    }
    await traffic.more(20);
  }

  private async expectKept({ server }: Box): Promise<void> {
    await this.traffic.expectKept(server!);
    await this.traffic.retry(server!);
  }

  /** Nobody takes over any more: what one box has the other one gets, and it is the same. */
  private async expectEqual(): Promise<void> {
    await this.whole("kill");
    const boxes = [this.active, this.standby];
    for (const box of [this.standby, this.active]) {
      await box.server!.kill();
      box.start(this.cluster.monitors, "manual");
    }
    await this.active.server!.ready();
    await this.whole("kill");
    await this.active.server!.stop();
    const [a, b] = boxes.map(({ dataDir }) => dataDir) as [string, string];
    for (const since = performance.now(); ; await delay(STATUS_POLL_MS)) {
      if (hashesOf(a) === hashesOf(b)) break;
      assert(performance.now() - since < PAIRED_MS, "the standby gets all of the log and its tables");
    }
    await this.standby.server!.stop();
    for (const dataDir of [a, b]) {
      const failed = verifyFiles(tablesPath(dataDir)).filter(({ ok }) => !ok);
      assert.deepEqual(failed, []);
    }
    await this.options.onEnd?.(this.cluster, a);
  }
}

/** Of the log's batches and of each table, as text. */
function hashesOf(dataDir: string): string {
  const [journal, tables] = [openReadOnly(journalPath(dataDir)), openReadOnly(tablesPath(dataDir))];
  try {
    const bodies = journal.prepare("SELECT number, body FROM batches ORDER BY number").raw().all() as [
      number,
      Buffer,
    ][];
    const log = bodies.map(([number, body]) => `${number} ${body.toString("base64")}`).join("\n");
    return `${log}\n${JSON.stringify([...hashTables(tables)])}`;
  } finally {
    journal.close();
    tables.close();
  }
}

/** Disturbs a pair the given number of times. @throws AssertionError if it lost or changed anything that it had answered */
export async function runPair(options: PairOptions): Promise<PairReport> {
  const cluster = await NatsCluster.start();
  const boxes: Box[] = [];
  try {
    for (const [i, name] of ["a", "b"].entries()) boxes.push(await Box.create(name, i, cluster));
    return await new Pair(options, cluster, boxes[0]!, boxes[1]!).run();
  } finally {
    for (const box of boxes) await box.end();
    await cluster.end();
  }
}

export function describePair({ took, answered, retried, skipped }: PairReport): string {
  const lines = [...took].map(([kind, times]) => {
    const sorted = [...times].sort((a, b) => a - b);
    const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
    return `${kind}: ${times.length} times, nobody active for ${at(0.5)} ms at p50, ${at(1)} ms at most`;
  });
  const left = skipped.length === 0 ? [] : [`not tried, as no disk may be mounted: ${skipped.join(", ")}`];
  return [...lines, ...left, `${answered} requests answered, ${retried} sent again`].join("\n");
}
