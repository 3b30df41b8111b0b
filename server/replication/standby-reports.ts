/**
 * What standbys say they have: the active box compares the hash with its own before it counts. Runs in the replication thread
 * of the active.
 */
import type { Msg } from "@nats-io/transport-node";
import Type from "typebox";
import type { LogEnd } from "../../engine/log/append.ts";
import { hashOf } from "../../engine/log/batch-format.ts";
import { type Beat, shortHash } from "./beats.ts";
import type { NatsLink } from "./connection.ts";
import { contentOf } from "./core-message.ts";
import { MAX_KEPT_BODY_BYTES, MAX_SENT_ENDS } from "./limits.ts";
import type { Say } from "./reminder.ts";
import { namesOf } from "./settings.ts";

/** Messages that a standby may lack and be current: one in flight, and one on the way to its disk. */
const MAX_SENT_MESSAGES = 2;

const Content = Type.Object({
  /** The last batch in the standby's log, and the beginning of its SHA-256 in hex. */
  batch: Type.Integer({ minimum: 1 }),
  hash: Type.String({ maxLength: 64 }),
});

/** Where a message ended. */
interface SentEnd {
  readonly batch: number;
  /** As in a beat; null until somebody asks. */
  hash: string | null;
  /** Null once the hash is there. */
  body: Buffer | null;
}

/** A standby says that these batches are durable on its disk. */
export function reportBatch(link: NatsLink, name: string, box: string, { batch, hash }: LogEnd): void {
  link.nc.publish(`${namesOf(name).at}.${box}`, JSON.stringify({ batch, hash: shortHash(hash) }));
}

export class StandbyReports {
  /** Oldest first; those before the last report are gone. */
  private sent: SentEnd[] = [];
  /** Boxes whose other log was reported. */
  private readonly diverged = new Set<string>();
  /** The last batch that each box was found to have. */
  private readonly copies = new Map<string, number>();
  private readonly say: Say;
  private readonly onCopy: (batch: number) => void;

  /** @param onCopy called with each batch that a standby has as this box does */
  constructor(link: NatsLink, name: string, say: Say, onCopy: (batch: number) => void) {
    this.say = say;
    this.onCopy = onCopy;
    link.nc.subscribe(`${namesOf(name).at}.*`, {
      callback: (error, message) => {
        if (error === null) this.receive(message);
      },
    });
  }

  /** A message goes out that ends with this batch: reports may come before the stream's acknowledgement. */
  expectBody(batch: number, body: Buffer): void {
    // A small one is hashed once a standby reports it, and stays until then.
    const isSmall = body.length <= MAX_KEPT_BODY_BYTES;
    this.push({ batch, hash: isSmall ? null : shortHash(hashOf(body)), body: isSmall ? body : null });
  }

  /** The log ends with this batch. @param hash as in a beat */
  expect(batch: number, hash: string): void {
    this.push({ batch, hash, body: null });
  }

  private push(end: SentEnd): void {
    if (this.sent.at(-1)?.batch === end.batch) return;
    this.sent.push(end);
    // A standby that is further behind catches up from the stream first.
    if (this.sent.length > MAX_SENT_ENDS) this.sent.shift();
  }

  private receive(message: Msg): void {
    const report = contentOf(Content, message);
    if (report !== null) this.hear(message.subject.split(".").at(-1) ?? "", report);
  }

  /** What a standby says it has, here or in a beat. */
  hear(box: string, report: Pick<Beat, "batch" | "hash">): void {
    const at = this.sent.findIndex(({ batch }) => batch === report.batch);
    const found = this.sent[at];
    // In the middle of a message, or long ago: the standby is catching up.
    if (found === undefined) return;
    if (found.body !== null) {
      found.hash = shortHash(hashOf(found.body));
      found.body = null;
    }
    if (found.hash !== report.hash) {
      if (!this.diverged.has(box))
        this.say("error", `the box ${box} has another batch ${report.batch}: it doesn't count`);
      this.diverged.add(box);
      return;
    }
    this.diverged.delete(box);
    // The last one stays: a standby that comes has it, too.
    this.sent.splice(0, at);
    this.copies.set(box, report.batch);
    this.onCopy(report.batch);
  }

  /** A box is no standby any more; returns true where it was one. */
  forget(box: string): boolean {
    return this.copies.delete(box);
  }

  /** The last batch that a box was found to have; 0 for none. */
  copied(box: string): number {
    return this.copies.get(box) ?? 0;
  }

  /** True where a box lacks no more than what was sent a moment ago. */
  isCurrent(box: string): boolean {
    return this.copies.has(box) && this.copied(box) >= (this.sent.at(-1 - MAX_SENT_MESSAGES)?.batch ?? 0);
  }
}
