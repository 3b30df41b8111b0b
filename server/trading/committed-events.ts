/**
 * The gateway's reading end of the event rings: what the engines did and the log committed. Knows no orders, and never
 * writes a command (command-writer.ts).
 */
import { EngineEvent } from "../../engine/ring/engine-event.ts";
import { RECORD_WORDS } from "../../engine/ring/records.ts";
import type { EngineLink } from "./types.ts";

/** Applies one committed event, which the function must not keep. */
export type ApplyEvent = (event: EngineEvent) => void;

interface Link extends EngineLink {
  /** Events that this turn applies. */
  count: number;
}

export class CommittedEvents {
  private readonly links: readonly Link[];
  private readonly event = new EngineEvent();

  constructor(links: readonly EngineLink[]) {
    this.links = links.map((link) => ({ ...link, count: 0 }));
  }

  /** True when a committed event waits in some ring. */
  hasEvents(): boolean {
    for (const { events } of this.links) if (events.available() > 0) return true;
    return false;
  }

  /** True when the engines have executed every command and the gateway has applied every event. */
  areIdle(): boolean {
    // An engine publishes a command's events before it releases the command.
    for (const { commands, events } of this.links) if (commands.depth() > 0 || events.depth() > 0) return false;
    return true;
  }

  /** By link: the cursor up to which its engine has published events. Everything committed lies before it. */
  published(): number[] {
    return this.links.map(({ events }) => events.published());
  }

  /** True when the gateway has applied all events before these positions. */
  haveApplied(positions: readonly number[]): boolean {
    return this.links.every(({ events }, i) => ((events.tail - (positions[i] ?? events.tail)) | 0) >= 0);
  }

  /** Applies each committed event, link by link. Returns true when there was one. */
  drain(apply: ApplyEvent): boolean {
    let any = false;
    this.countCommitted();
    for (const { events, waker, count } of this.links) {
      if (count === 0) continue;
      any = true;
      const event = this.event.at(events.words, events.doubles, (events.tail & events.mask) * RECORD_WORDS);
      for (let n = 0; n < count; n++, event.next()) apply(event);
      events.tail = (events.tail + count) | 0;
      events.release();
      // Wake an engine that waits for room in a full ring. One that waits for commands sleeps on.
      if (count > events.mask >> 3) waker.wake();
    }
    return any;
  }

  /**
   * Counts what each ring holds committed at one moment. The log numbers order updates across all rings, pass by pass,
   * and opens the rings in turn: a ring counted early could lack updates that precede those of a ring counted late. Two
   * equal rounds of counts mean that all of them held at the same time.
   */
  private countCommitted(): void {
    for (const link of this.links) link.count = link.events.available();
    if (this.links.length === 1) return;
    while (this.haveCountsChanged());
  }

  private haveCountsChanged(): boolean {
    for (const link of this.links) {
      const count = link.events.available();
      if (count === link.count) continue;
      link.count = count;
      return true;
    }
    return false;
  }
}
