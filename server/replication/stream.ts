/**
 * The stream that has the log: creates it, checks each of its settings, and reads where it ends.
 */
import { setTimeout as delay } from "node:timers/promises";
import {
  DiscardPolicy,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { hashOf, readHeader } from "../../engine/log/batch-format.ts";
import { BatchAssembler } from "../../engine/replication/batch-assembler.ts";
import {
  BadMessage,
  type LogPosition,
  type Message,
  MessageKind,
  readMessage,
} from "../../engine/replication/message-format.ts";
import { systemClock } from "../../engine/util/clock.ts";
import type { NatsLink } from "./connection.ts";
import { BrokenStream, RefusedSetup, RemovedMessage } from "./errors.ts";
import {
  API_REPEAT_MS,
  API_TIMEOUT_MS,
  MIN_STREAM_BYTES,
  MIN_STREAM_DAYS,
  RETRY_MS,
  STREAM_BYTES,
  STREAM_DAYS,
  SURE_MS,
} from "./limits.ts";
import { Reminder, type Say } from "./reminder.ts";
import { namesOf, type StreamNames } from "./settings.ts";
import type { StreamFacts } from "./types.ts";

const DAY_MS = 86_400_000;
const STREAM_NOT_FOUND = 10_059;
/** A single node can't have replicas, however long we wait. */
const NOT_CLUSTERED = 10_074;

/** Where the stream ends. */
export interface StreamEnd {
  readonly sequence: number;
  readonly epoch: number;
  /** Null where it has no message: none yet, or all of them are too old. */
  readonly position: LogPosition | null;
  /** The box that is to begin the next epoch, where the last message is a resignation. */
  readonly successor: string | null;
}

export class LogStream {
  readonly names: StreamNames;
  private readonly link: NatsLink;
  private readonly replicas: number;
  private readonly say: Say;
  /** Since when the nodes say that there is no such stream, ms; null while they know it. */
  private missingSince: number | null = null;

  constructor(link: NatsLink, name: string, replicas: number, say: Say) {
    this.link = link;
    this.names = namesOf(name);
    this.replicas = replicas;
    this.say = say;
  }

  /**
   * The stream; null where the nodes have none. @throws RefusedSetup where it is weaker than it must be
   * @param sureMs how long they must say so: a node that has just begun may not know of it yet
   */
  async find(sureMs = SURE_MS): Promise<StreamInfo | null> {
    const { stream } = this.names;
    for (const since = systemClock.elapsed(); ; await delay(RETRY_MS)) {
      const info = await this.ask("look for the stream", async () => {
        try {
          return await soonest(() => this.link.manager.streams.info(stream));
        } catch (error) {
          if (codeOf(error) === STREAM_NOT_FOUND) return null;
          throw error;
        }
      });
      if (info !== null) return this.requireStrong(info);
      if (systemClock.elapsed() - since >= sureMs) return null;
    }
  }

  /** The stream, which must be there. @throws RefusedSetup where it isn't, or is weaker than it must be */
  async require(): Promise<StreamInfo> {
    const info = await this.find();
    if (info === null) throw new RefusedSetup(`the nodes have no stream ${this.names.stream}`);
    return info;
  }

  /** Creates the stream where it is missing. @throws RefusedSetup where it can't be, or is weaker than it must be */
  async open(): Promise<StreamInfo> {
    const info = await this.ask("look for the stream", () => this.findOrCreate());
    return this.requireStrong(info);
  }

  private requireStrong(info: StreamInfo): StreamInfo {
    const weakness = weaknessOf(info.config, this.names, this.replicas);
    if (weakness !== null) throw new RefusedSetup(`the stream ${this.names.stream} ${weakness}`);
    return info;
  }

  private async findOrCreate(): Promise<StreamInfo> {
    const { streams } = this.link.manager;
    try {
      return await soonest(() => streams.info(this.names.stream));
    } catch (error) {
      if (codeOf(error) !== STREAM_NOT_FOUND) throw error;
    }
    try {
      const created = await streams.add(configOf(this.names, this.replicas));
      this.say("info", `created the stream ${this.names.stream} with ${this.replicas} replicas`);
      return created;
    } catch (error) {
      const { message } = error as Error;
      if (/insufficient (storage|resources)/.test(message)) throw new RefusedSetup(noRoom(this.names.stream, message));
      if (codeOf(error) !== NOT_CLUSTERED) throw error;
      throw new RefusedSetup(
        `the nodes can't keep ${this.replicas} copies of the stream ${this.names.stream} (${message})`,
      );
    }
  }

  /** The stream as it is now; null while the nodes don't respond. @throws BrokenStream where it is gone */
  async look(): Promise<{ readonly info: StreamInfo; readonly weakness: string | null } | null> {
    try {
      const info = await this.link.manager.streams.info(this.names.stream);
      this.missingSince = null;
      return { info, weakness: weaknessOf(info.config, this.names, this.replicas) };
    } catch (error) {
      if (codeOf(error) === STREAM_NOT_FOUND) this.countMissing();
      return null;
    }
  }

  /** A node that has just begun may not know of the stream yet. @throws BrokenStream where none has known it for a while */
  private countMissing(): void {
    const now = systemClock.elapsed();
    this.missingSince ??= now;
    if (now - this.missingSince >= SURE_MS) throw new BrokenStream(`the stream ${this.names.stream} is gone`);
  }

  /** The node that leads the stream, and the others that have all of it; null during an election, and without a cluster. */
  async place(): Promise<{ readonly leader: string; readonly others: readonly string[] } | null> {
    const { cluster } = await this.link.manager.streams.info(this.names.stream);
    const { leader, replicas = [] } = cluster ?? {};
    const current = replicas.filter((replica) => replica.current && replica.offline !== true);
    return leader === undefined || leader === "" ? null : { leader, others: current.map(({ name }) => name) };
  }

  /** The stream for an operator; null while the nodes don't respond. @throws BrokenStream where it is gone */
  async describe(): Promise<StreamFacts | null> {
    const looked = await this.look();
    if (looked === null) return null;
    const { config, state, cluster } = looked.info;
    const others = cluster?.replicas ?? [];
    return {
      name: config.name,
      replicas: config.num_replicas,
      current: 1 + others.filter(({ current, offline }) => current && offline !== true).length,
      leader: cluster?.leader ?? null,
      connected_to: this.link.node,
      messages: state.messages,
      bytes: state.bytes,
      max_bytes: config.max_bytes,
      oldest_at: Date.parse(state.first_ts),
    };
  }

  /** Where the stream ends, from its last whole batches. @throws RefusedSetup where it has something else */
  async end({ state }: StreamInfo): Promise<StreamEnd> {
    const sequence = state.last_seq;
    if (state.messages === 0) return { sequence, epoch: 0, position: null, successor: null };
    let epoch = 0;
    for (let at = sequence; at >= state.first_seq; ) {
      const message = await this.message(at);
      epoch = Math.max(epoch, message.epoch);
      const position = await this.positionAfter(message, at);
      if (position !== null)
        return { sequence, epoch, position, successor: at === sequence ? message.successor : null };
      at -= 1;
    }
    throw new RefusedSetup(`the stream ${this.names.stream} has no whole batch`);
  }

  /** The bytes of a message; null where the stream has none at that sequence. */
  async read(sequence: number): Promise<Buffer | null> {
    const { streams } = this.link.manager;
    const found = await this.ask(`read message ${sequence}`, () =>
      streams.getMessage(this.names.stream, { seq: sequence }),
    );
    return found === null ? null : Buffer.from(found.data.buffer, found.data.byteOffset, found.data.byteLength);
  }

  /** A message of the log. @throws RefusedSetup where it is something else, RemovedMessage where it is gone */
  async message(sequence: number): Promise<Message> {
    const bytes = await this.read(sequence);
    if (bytes === null) throw new RemovedMessage(`message ${sequence} of the stream ${this.names.stream} is gone`);
    try {
      return readMessage(bytes);
    } catch (error) {
      if (!(error instanceof BadMessage)) throw error;
      throw new RefusedSetup(`message ${sequence} of the stream ${this.names.stream}: ${error.message}`);
    }
  }

  /** The log's position after a message; null where it ends in the middle of a batch. */
  private async positionAfter(message: Message, sequence: number): Promise<LogPosition | null> {
    if (message.base !== null) return message.base;
    if (message.kind === MessageKind.batches) return positionOf(message.bodies.at(-1)!);
    if (message.part < message.parts) return null;
    const assembler = new BatchAssembler();
    let whole: readonly Buffer[] = [];
    for (let at = sequence - message.parts + 1; at <= sequence; at++) whole = assembler.add(await this.message(at));
    const [body] = whole;
    return body === undefined ? null : positionOf(body);
  }

  /** Asks until the nodes respond; says so while they don't. */
  private async ask<T>(what: string, request: () => Promise<T>): Promise<T> {
    const reminder = new Reminder(this.say, true);
    for (;;) {
      await this.link.connected();
      try {
        const result = await request();
        this.missingSince = null;
        return result;
      } catch (error) {
        if (error instanceof RefusedSetup) throw error;
        if (codeOf(error) === STREAM_NOT_FOUND) this.countMissing();
        reminder.remind(`waiting for the nodes to ${what}: ${(error as Error).message}`);
        await delay(RETRY_MS);
      }
    }
  }
}

/** The first response to a request that is repeated while there is none: during an election nobody takes it. */
async function soonest<T>(request: () => Promise<T>): Promise<T> {
  const attempts: Promise<T>[] = [];
  for (const until = systemClock.elapsed() + API_TIMEOUT_MS; systemClock.elapsed() < until; ) {
    const attempt = request();
    attempt.catch(() => {});
    attempts.push(attempt);
    const pause = new AbortController();
    const wait = delay(API_REPEAT_MS, null, { signal: pause.signal }).catch(() => null);
    const first = await Promise.race([wait, ...attempts.map(async (each) => ({ value: await each }))]);
    pause.abort();
    if (first !== null) return first.value;
  }
  return Promise.race(attempts);
}

const noRoom = (stream: string, message: string): string =>
  `the nodes have no room for ${STREAM_BYTES / 2 ** 30} GiB (${message}): raise max_file_store in their jetstream blocks, or create the stream ${stream} yourself with less`;

function positionOf(body: Buffer): LogPosition {
  const { exchange, batch } = readHeader(body);
  return { exchange, batch, hash: hashOf(body) };
}

/** The number of an error of JetStream's API; 0 for any other error. */
const codeOf = (error: unknown): number => (error instanceof JetStreamApiError ? error.code : 0);

function configOf({ stream, subject }: StreamNames, replicas: number): Partial<StreamConfig> & { name: string } {
  return {
    name: stream,
    subjects: [subject],
    description: "the log of an exchange",
    storage: StorageType.File,
    num_replicas: replicas,
    retention: RetentionPolicy.Limits,
    // With the other policy a full stream would stop trading.
    discard: DiscardPolicy.Old,
    max_age: nanos(STREAM_DAYS * DAY_MS),
    max_bytes: STREAM_BYTES,
    deny_delete: true,
    deny_purge: true,
    allow_direct: false,
    allow_rollup_hdrs: false,
  };
}

/** What of a stream's settings is weaker than it must be, as what follows its name; null where nothing is. */
export function weaknessOf(
  config: StreamConfig,
  { subject }: Pick<StreamNames, "subject">,
  replicas: number,
): string | null {
  const age = config.max_age / 1e6;
  const faults: readonly (readonly [boolean, string])[] = [
    [
      config.num_replicas < replicas,
      `is kept by ${config.num_replicas} of the nodes: STANDBY_REPLICAS asks for ${replicas}`,
    ],
    [config.storage !== StorageType.File, "is kept in memory: it must be in files"],
    [config.retention !== RetentionPolicy.Limits, `has the retention ${config.retention}: it must be limits`],
    [config.discard !== DiscardPolicy.Old, `discards ${config.discard} messages when it is full: it must be old ones`],
    [config.subjects?.length !== 1 || config.subjects[0] !== subject, `must have ${subject} as its only subject`],
    [age > 0 && age < MIN_STREAM_DAYS * DAY_MS, `keeps messages for less than ${MIN_STREAM_DAYS} day`],
    [config.max_bytes >= 0 && config.max_bytes < MIN_STREAM_BYTES, `may have only ${config.max_bytes} bytes`],
    [config.max_msgs >= 0 || config.max_msgs_per_subject > 0, "limits its number of messages"],
    [config.max_msg_size >= 0, "limits the size of its messages"],
    [config.no_ack === true, "acknowledges nothing (no_ack)"],
    [config.sealed, "is sealed"],
    [!config.deny_delete || !config.deny_purge, "allows that messages are deleted"],
    [config.allow_rollup_hdrs, "allows rollups, which delete messages"],
    [config.allow_direct, "allows direct reads, which may be old"],
    [config.mirror !== undefined || (config.sources?.length ?? 0) > 0, "gets messages from other streams"],
    [config.subject_transform !== undefined, "renames subjects"],
  ];
  return faults.find(([isFault]) => isFault)?.[1] ?? null;
}
