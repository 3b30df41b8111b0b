/** Reads what the nodes have of an exchange's log, and makes a data folder of it. Uses the packages, not the exchange's own code. */
import { mkdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { expect, onTestFinished, TestRunner } from "vitest";
import { findNatsServer, type NatsCluster } from "../../bench/support/nats-cluster.ts";
import { hashOf, previousHash, readHeader } from "../../engine/log/batch-format.ts";
import { openJournal } from "../../engine/log/database.ts";
import { type Message, MessageKind, readMessage } from "../../engine/replication/message-format.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { journalPath } from "../../server/util/data-folder.ts";

/** For `describe.skipIf`. */
export const NO_NATS = findNatsServer() === null;
if (NO_NATS)
  console.log("tests with NATS are skipped: there is no nats-server of 2.10 or newer (NATS_SERVER_PATH names it)");

const TIMEOUT_MS = 5_000;
/** Each look is a request of all nodes. */
const POLL_MS = 200;

/** STANDBY_NAME of a test: another one when it is repeated, since the stream of the first attempt is still there. */
export function nameOf(name: string): string {
  const attempt = TestRunner.getCurrentTest()?.result?.retryCount ?? 0;
  return attempt === 0 ? name : `${name}-${attempt}`;
}

/** A connection of a test's own to the nodes. */
export class Nodes {
  readonly nc: NatsConnection;
  readonly manager: JetStreamManager;
  readonly stream: string;
  private readonly subject: string;

  private constructor(nc: NatsConnection, manager: JetStreamManager, name: string) {
    this.nc = nc;
    this.manager = manager;
    this.stream = `PX_${name}`;
    this.subject = `px.${name}.log`;
  }

  /** @param name STANDBY_NAME */
  static async connect(cluster: NatsCluster, name = "exchange"): Promise<Nodes> {
    const servers = cluster.urls().replaceAll("nats://", "").split(",");
    const nc = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 50, waitOnFirstConnect: true });
    onTestFinished(() => nc.close());
    return new Nodes(nc, await jetstreamManager(nc, { checkAPI: false, timeout: TIMEOUT_MS }), nameOf(name));
  }

  /** The name of the node that leads the stream; undefined during an election. */
  async leader(): Promise<string | undefined> {
    return (await this.manager.streams.info(this.stream)).cluster?.leader;
  }

  /** The leaders that the nodes elect from now on, the latest last. */
  async elected(): Promise<readonly string[]> {
    const leaders: string[] = [];
    this.nc.subscribe(`$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.${this.stream}`, {
      callback: (_error, message) => void leaders.push(message.json<{ leader: string }>().leader),
    });
    await this.nc.flush();
    return leaders;
  }

  /** Has the nodes elect another leader. */
  async stepDown(): Promise<void> {
    await this.nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${this.stream}`, "", { timeout: TIMEOUT_MS });
  }

  /** Resolves once all replicas of the stream are there and current. @param ms how long it waits */
  async whole(ms: number): Promise<void> {
    for (const until = Date.now() + ms; ; await delay(POLL_MS)) {
      const info = await this.manager.streams.info(this.stream).catch(() => null);
      const replicas = info?.cluster?.replicas ?? [];
      const isWhole = replicas.length === 2 && replicas.every(({ current, offline }) => current && offline !== true);
      if (info?.cluster?.leader !== undefined && isWhole) return;
      if (Date.now() > until) throw new Error(`the stream isn't whole: ${JSON.stringify(info?.cluster)}`);
    }
  }

  /** Publishes a message as another program would. @param expected the sequence of the message before it */
  async publish(bytes: Uint8Array, expected: number): Promise<unknown> {
    const expectation = headers();
    expectation.set("Nats-Expected-Last-Sequence", String(expected));
    const reply = await this.nc.request(this.subject, bytes, { headers: expectation, timeout: TIMEOUT_MS });
    return reply.json();
  }

  /** All messages of the stream, oldest first. */
  async messages(): Promise<Message[]> {
    const { state } = await this.manager.streams.info(this.stream);
    const messages: Message[] = [];
    for (let sequence = state.first_seq; sequence <= state.last_seq; sequence++) {
      const stored = await this.manager.streams.getMessage(this.stream, { seq: sequence });
      messages.push(readMessage(Buffer.from(stored!.data)));
    }
    return messages;
  }

  /** The batches of the stream, oldest first. */
  async bodies(): Promise<Buffer[]> {
    return bodiesOf(await this.messages());
  }
}

/** Whole batches of the messages, each once; they must follow each other. */
function bodiesOf(messages: readonly Message[]): Buffer[] {
  const bodies: Buffer[] = [];
  let slices: Buffer[] = [];
  for (const { kind, part, parts, bodies: own } of messages) {
    if (kind === MessageKind.part) {
      slices = part === 1 ? [own[0]!] : [...slices, own[0]!];
      if (part === parts) bodies.push(Buffer.concat(slices));
    } else bodies.push(...own);
  }
  for (const [i, body] of bodies.entries()) {
    const before = bodies[i - 1];
    if (before === undefined) continue;
    expect(readHeader(body).batch).toBe(readHeader(before).batch + 1);
    expect(previousHash(body).equals(hashOf(before))).toBe(true);
  }
  return bodies;
}

/** The batches in journal.db of a data folder. */
export function journalBodies(dataDir: string): Buffer[] {
  const db = openReadOnly(journalPath(dataDir));
  const bodies = db.prepare("SELECT body FROM batches ORDER BY number").pluck().all() as Buffer[];
  db.close();
  return bodies;
}

/** Comparing the bytes themselves takes vitest minutes where a log has a hundred megabytes. */
export const hashesOf = (bodies: readonly Buffer[]): string[] => bodies.map((body) => hashOf(body).toString("hex"));

/** Makes a data folder with nothing but these batches in its log. */
export function folderOf(bodies: readonly Buffer[], dataDir: string): void {
  mkdirSync(dataDir, { recursive: true });
  const db = openJournal(journalPath(dataDir), "off");
  const insert = db.prepare("INSERT INTO batches VALUES (?, ?, ?)");
  db.transaction(() => {
    for (const body of bodies) insert.run(readHeader(body).batch, readHeader(body).at, body);
  })();
  db.close();
}
