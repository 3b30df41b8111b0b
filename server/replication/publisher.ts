/**
 * Publishes the log's messages to the stream, one in flight: then the expected sequence is a fence, because a message that
 * another box put in this one's place refuses it and everything after it. With more in flight those behind would be stored.
 *
 * While the outcome of a publish is unknown, the same bytes go out again with the same expectation. Never sets
 * Nats-Msg-Id: a refused message would enter the nodes' table of duplicates, and its repeat be acknowledged unstored.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createInbox, headers, type Msg, type MsgHdrs } from "@nats-io/transport-node";
import { BadMessage, readMessage } from "../../engine/replication/message-format.ts";
import type { NatsLink } from "./connection.ts";
import { BrokenStream, Fenced } from "./errors.ts";
import { ATTEMPTS_PER_CHECK, PUBLISH_TIMEOUT_MS, RETRY_MS } from "./limits.ts";
import type { LogStream } from "./stream.ts";

const WRONG_LAST_SEQUENCE = 10_071;

/** JetStream's response to a publish; null where there was none in time. */
type Outcome = { readonly sequence: number } | { readonly code: number; readonly text: string } | null;

export interface PublisherOptions {
  readonly link: NatsLink;
  readonly stream: LogStream;
  /** Called whenever the outcome of an attempt stays unknown. */
  readonly onUnknown: () => void;
}

export class Publisher {
  private readonly options: PublisherOptions;
  private readonly inbox = createInbox();
  private lastNumber = 0;
  private waiting: { readonly subject: string; end(outcome: Outcome): void } | null = null;

  constructor(options: PublisherOptions) {
    this.options = options;
    options.link.nc.subscribe(`${this.inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.receive(message);
      },
    });
  }

  /**
   * Resolves with the message's sequence once the stream has it on a majority of its nodes.
   * @param expected the sequence of the message before it @throws Fenced, BrokenStream
   */
  async publish(bytes: Buffer, expected: number): Promise<number> {
    const { link, stream, onUnknown } = this.options;
    const expectation = headers();
    expectation.set("Nats-Expected-Last-Sequence", String(expected));
    const subject = `${this.inbox}.${++this.lastNumber}`;
    for (let attempt = 1; ; attempt++) {
      await link.connected();
      const outcome = await this.send(bytes, expectation, subject);
      if (outcome !== null && "sequence" in outcome) {
        if (outcome.sequence === expected + 1) return outcome.sequence;
        throw new BrokenStream(`the stream stored a message as ${outcome.sequence} that follows ${expected}`);
      }
      if (outcome?.code === WRONG_LAST_SEQUENCE && (await this.isStored(bytes, expected))) return expected + 1;
      onUnknown();
      // Throws where the stream is gone.
      if (attempt % ATTEMPTS_PER_CHECK === 0) await stream.look();
      if (outcome !== null) await delay(RETRY_MS);
    }
  }

  /** Sends once; resolves with null after the timeout, and at once when the connection breaks. */
  private send(bytes: Buffer, expectation: MsgHdrs, subject: string): Promise<Outcome> {
    const { link, stream } = this.options;
    return new Promise((resolve) => {
      const end = (outcome: Outcome): void => {
        this.waiting = null;
        clearTimeout(timer);
        forget();
        resolve(outcome);
      };
      const timer = setTimeout(() => end(null), PUBLISH_TIMEOUT_MS);
      const forget = link.onTurn(() => end(null));
      this.waiting = { subject, end };
      link.nc.publish(stream.names.subject, bytes, { headers: expectation, reply: subject });
    });
  }

  /** A late response to an earlier message has another subject. */
  private receive(message: Msg): void {
    const { waiting } = this;
    if (waiting?.subject === message.subject) waiting.end(outcomeOf(message));
  }

  /**
   * Another message has the place of this one, or the stream ends before it. Returns true if the message there is this one,
   * and false if nothing is known yet.
   */
  private async isStored(bytes: Buffer, expected: number): Promise<boolean> {
    const { stream } = this.options;
    const looked = await stream.look();
    if (looked === null) return false;
    const { last_seq: last } = looked.info.state;
    const { stream: name } = stream.names;
    if (last < expected) {
      throw new BrokenStream(`the stream ${name} ends with message ${last}, although it had acknowledged ${expected}`);
    }
    // The node that responded may not have heard of the message yet.
    if (last === expected) return false;
    const found = await stream.read(expected + 1);
    if (found?.equals(bytes) === true) return true;
    if (found === null) throw new BrokenStream(`message ${expected + 1} was removed from the stream ${name}`);
    throw new Fenced(describe(found, expected + 1, name));
  }
}

function describe(found: Buffer, sequence: number, stream: string): string {
  try {
    const { epoch, first } = readMessage(found);
    return `another box wrote message ${sequence} of the stream ${stream}: batch ${first} of epoch ${epoch}`;
  } catch (error) {
    if (!(error instanceof BadMessage)) throw error;
    return `something else wrote message ${sequence} of the stream ${stream}: ${error.message}`;
  }
}

const NO_RESPONDERS = { code: 503, text: "no node leads the stream" };

function outcomeOf(message: Msg): Outcome {
  if (message.data.length === 0) return NO_RESPONDERS;
  const { seq, error } = message.json<{ seq?: number; error?: { err_code?: number; description?: string } }>();
  if (error !== undefined) return { code: error.err_code ?? 0, text: error.description ?? "" };
  return seq === undefined ? null : { sequence: seq };
}
