/**
 * Publishes the log's messages to the stream, one in flight: then the expected sequence is a fence, because a message that
 * another box put in this one's place refuses it and everything after it. With more in flight those behind would be stored.
 *
 * While the outcome of a publish is unknown, the same bytes go out again with the same expectation. Never sets
 * Nats-Msg-Id: a refused message would enter the nodes' table of duplicates, and its repeat be acknowledged unstored.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createInbox, headers, type Msg, type MsgHdrs } from "@nats-io/transport-node";
import { systemClock } from "../../engine/util/clock.ts";
import type { NatsLink } from "./connection.ts";
import { BrokenStream, OtherMessage } from "./errors.ts";
import { ATTEMPTS_PER_CHECK, PUBLISH_TIMEOUT_MS, RETRY_MS, SURE_MS } from "./limits.ts";
import { Reminder, type Say } from "./reminder.ts";
import type { LogStream } from "./stream.ts";

const WRONG_LAST_SEQUENCE = 10_071;

/** JetStream's response to a publish; null where there was none in time. */
type Outcome = { readonly sequence: number } | { readonly code: number; readonly text: string } | null;

export interface PublisherOptions {
  readonly link: NatsLink;
  readonly stream: LogStream;
  /** Called whenever the outcome of an attempt stays unknown. */
  readonly onUnknown: () => void;
  readonly say: Say;
}

export class Publisher {
  private readonly options: PublisherOptions;
  private readonly inbox = createInbox();
  private lastNumber = 0;
  /** Since when the nodes say that the stream ends before what it had acknowledged, ms. */
  private shorterSince: number | null = null;
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
   * @param expected the sequence of the message before it @throws OtherMessage, BrokenStream
   */
  async publish(bytes: Buffer, expected: number): Promise<number> {
    const { link, stream, onUnknown, say } = this.options;
    const expectation = headers();
    expectation.set("Nats-Expected-Last-Sequence", String(expected));
    const subject = `${this.inbox}.${++this.lastNumber}`;
    const reminder = new Reminder(say, true);
    this.shorterSince = null;
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
      if (outcome === null) continue;
      reminder.remind(`waiting for the stream ${stream.names.stream}: ${outcome.text}`);
      await delay(RETRY_MS);
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
      const now = systemClock.elapsed();
      this.shorterSince ??= now;
      if (now - this.shorterSince < SURE_MS) return false;
      throw new BrokenStream(`the stream ${name} ends with message ${last}, although it had acknowledged ${expected}`);
    }
    // The node that responded may not have heard of the message yet.
    if (last === expected) return false;
    const found = await stream.read(expected + 1);
    if (found?.equals(bytes) === true) return true;
    if (found === null) throw new BrokenStream(`message ${expected + 1} was removed from the stream ${name}`);
    throw new OtherMessage(found);
  }
}

const NO_RESPONDERS = { code: 503, text: "no node leads the stream" };

function outcomeOf(message: Msg): Outcome {
  if (message.data.length === 0) return NO_RESPONDERS;
  const { seq, error } = message.json<{ seq?: number; error?: { err_code?: number; description?: string } }>();
  if (error !== undefined) return { code: error.err_code ?? 0, text: error.description ?? "" };
  return seq === undefined ? null : { sequence: seq };
}
