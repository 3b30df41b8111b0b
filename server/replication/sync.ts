/** Brings a log that is behind its stream to the stream's end: after an absence, after a backup was restored, from nothing. */
import type { StreamInfo } from "@nats-io/jetstream";
import { hashOf } from "../../engine/log/batch-format.ts";
import { DivergedLog, type LogCopy } from "../../engine/log/log-copy.ts";
import { BatchAssembler } from "../../engine/replication/batch-assembler.ts";
import { type Message, MessageKind } from "../../engine/replication/message-format.ts";
import { RefusedSetup, RemovedMessage } from "./errors.ts";
import type { LogStream, StreamEnd } from "./stream.ts";

/** Messages that are read at the same time. */
const READS = 16;

/**
 * Appends what the stream has and the log lacks, as of now; resolves with where the stream ends. The log may go on beyond it.
 * Each transaction is whole: interrupted, it goes on where it was.
 * @throws RefusedSetup where the stream begins later than the log ends, or is another exchange's @throws DivergedLog, BrokenLog
 */
export async function syncLog(stream: LogStream, info: StreamInfo, log: LogCopy): Promise<StreamEnd> {
  const end = await stream.end(info);
  const { position } = end;
  if (position !== null && log.end !== null && position.exchange !== log.end.exchange) {
    throw new RefusedSetup("the stream has the log of another exchange");
  }
  // A log that has the stream's end lacks nothing: no message has to be looked for.
  if (position !== null && position.batch > log.batch) {
    try {
      await appendRest(stream, info, log);
    } catch (error) {
      if (!(error instanceof RemovedMessage)) throw error;
      // A full stream drops its oldest messages while this box looks for what follows its log.
      return syncLog(stream, await stream.require(), log);
    }
  }
  requireSame(end, log);
  return end;
}

async function appendRest(stream: LogStream, { state }: Pick<StreamInfo, "state">, log: LogCopy): Promise<void> {
  requireReach(beginOf(await stream.message(state.first_seq)), log.batch);
  const begin = await findMessage(stream, state.first_seq, state.last_seq, log.batch + 1);
  const assembler = new BatchAssembler();
  for (let next = begin; next <= state.last_seq; next += READS) {
    const count = Math.min(READS, state.last_seq - next + 1);
    const messages = await Promise.all(Array.from({ length: count }, (_, i) => stream.message(next + i)));
    log.append(messages.flatMap((message) => assembler.add(message)));
  }
}

/** What the log has where the stream ends is what the stream has. @throws DivergedLog */
function requireSame({ position }: StreamEnd, log: LogCopy): void {
  if (position === null || position.batch === 0) return;
  const own = log.hashOf(position.batch);
  // Where the stream is far behind, its end may be in an archive by now.
  if (own === null)
    throw new RefusedSetup(`the stream ends with batch ${position.batch}, which journal.db has no more`);
  if (!own.equals(position.hash)) throw new DivergedLog(position.batch - 1);
}

/** The first batch that a stream has whole, by its first message. */
export function beginOf({ base, kind, first, part }: Message): number {
  if (base !== null) return first + 1;
  return kind === MessageKind.part && part > 1 ? first + 1 : first;
}

function requireReach(begin: number, last: number): void {
  if (last + 1 >= begin) return;
  throw new RefusedSetup(
    `the stream reaches back to batch ${begin}, this box's log ends with batch ${last}: restore a later backup first`,
  );
}

/** The SHA-256 of a batch's body in the stream; null where the stream doesn't have it. */
export async function hashInStream(stream: LogStream, { state }: StreamInfo, batch: number): Promise<Buffer | null> {
  const assembler = new BatchAssembler();
  const { first_seq: oldest, last_seq: last } = state;
  for (let at = await findMessage(stream, oldest, last, batch); at <= last; at++) {
    const message = await stream.message(at);
    if (message.base?.batch === batch) return message.base.hash;
    if (message.first > batch) return null;
    const bodies = assembler.add(message);
    const body = bodies[batch - message.first];
    if (body !== undefined) return hashOf(body);
  }
  return null;
}

/** The first message that has anything of a batch or of a later one; one past the last if there is none. */
async function findMessage(stream: LogStream, first: number, last: number, batch: number): Promise<number> {
  let [low, high] = [first, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    // A base names the batch before those that follow it.
    if ((await stream.message(middle)).last < batch) low = middle + 1;
    else high = middle;
  }
  return low;
}
