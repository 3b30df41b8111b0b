/**
 * Checks what the log stage wrote into the events: numbers of fills and entries and each user's update sequences have no
 * gap, and times never fall. What is numbered stands in engine/ring/event-traits.ts; the counting is the proof's own.
 */
import type { BatchHeader } from "../../../engine/log/batch-format.ts";
import { mergeFeeMicro } from "../../../engine/money.ts";
import type { EngineEvent } from "../../../engine/ring/engine-event.ts";
import { EventKind } from "../../../engine/ring/records.ts";
import { withIndex } from "../../../engine/util/typed-arrays.ts";

export class LogNumbers {
  /** The last fill's or entry's number. Not exact while a request may have numbered more. */
  private entry = 0;
  private isEntryExact = false;
  /** Each user's last sequence; 0 before the first. */
  private sequences = new Float64Array(1024);
  private isFirstKnown = false;
  /** The time of the last event that was numbered, ms. Not exact where a request or a start may have raised it. */
  at = 0;
  isAtExact = false;

  /** Before a batch's events. Returns what is wrong, or null. */
  begin({ batch, lastEntry, writes, flags }: BatchHeader): string | null {
    if (batch === 1) this.isFirstKnown = true;
    const isWrong = this.isEntryExact ? lastEntry !== this.entry : lastEntry < this.entry;
    if (isWrong) return `the batch begins behind entry ${lastEntry}, the one before ends at ${this.entry}`;
    this.entry = lastEntry;
    this.isEntryExact = writes === 0;
    if (writes > 0 || flags !== 0) this.isAtExact = false;
    return null;
  }

  /** Checks an event; returns what is wrong, or null. */
  event(event: EngineEvent): string | null {
    const { entries, isTimed } = event.traits;
    const isMerge = event.kind === EventKind.setsMerged;
    const fault =
      (entries > 0 ? this.number(event.fillId) : null) ??
      this.update(event) ??
      (isTimed ? this.time(event.time) : null);
    if (isMerge && mergeFeeMicro(event.quantity, event.mergeFeeBps) > 0) this.entry++;
    return fault;
  }

  private number(id: number): string | null {
    const isNext = this.isEntryExact ? id === this.entry + 1 : Number.isSafeInteger(id) && id > this.entry;
    if (!isNext) return `the fill or entry has number ${id}, the one before ${this.entry}`;
    this.entry = id;
    this.isEntryExact = true;
    return null;
  }

  private update({ isUpdate, user, userSequence: sequence }: EngineEvent): string | null {
    if (!isUpdate) return sequence === 0 ? null : `the event is no order update, but has the sequence ${sequence}`;
    if (user >= this.sequences.length) this.sequences = withIndex(this.sequences, user);
    const last = this.sequences[user]!;
    this.sequences[user] = sequence;
    if (sequence === last + 1 || (last === 0 && sequence > 0 && !this.isFirstKnown)) return null;
    return `the user's order update has sequence ${sequence}, the one before ${last}`;
  }

  private time(at: number): string | null {
    if (at < this.at) return `the event is of ${at}, one before it of ${this.at}`;
    this.at = at;
    this.isAtExact = true;
    return null;
  }
}
