/**
 * Checks what the log stage wrote into the events: numbers of fills and entries and each user's update sequences have no
 * gap, and times never fall. The rules are those of engine/log/numbering.ts, written again: this is the proof's own view.
 */
import { OrderStatus, Role } from "../../../engine/constants.ts";
import type { BatchHeader } from "../../../engine/log/batch-format.ts";
import { mergeFeeMicro } from "../../../engine/money.ts";
import * as R from "../../../engine/ring/records.ts";
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
  begin({ number, lastEntry, writes, flags }: BatchHeader): string | null {
    if (number === 1) this.isFirstKnown = true;
    const isWrong = this.isEntryExact ? lastEntry !== this.entry : lastEntry < this.entry;
    if (isWrong) return `the batch begins behind entry ${lastEntry}, the one before ends at ${this.entry}`;
    this.entry = lastEntry;
    this.isEntryExact = writes === 0;
    if (writes > 0 || flags !== 0) this.isAtExact = false;
    return null;
  }

  /** Checks the event at word `w`; returns what is wrong, or null. */
  event(words: Int32Array, doubles: Float64Array, w: number): string | null {
    const packed = words[w]!;
    const d = w >> 1;
    const sequence = doubles[d + R.D_USER_SEQUENCE]!;
    switch (R.kindOf(packed)) {
      case R.EventKind.orderPlaced:
        return this.time(doubles[d + R.D_AT]!) ?? this.update(words, w, sequence, !isQueued(packed));
      case R.EventKind.orderFilled: {
        const reports = R.roleOf(packed) === Role.maker || (packed & R.FLAG_UPDATE_END) !== 0;
        const fault = this.number(doubles[d + R.D_FILL_ID]!) ?? this.update(words, w, sequence, reports);
        return fault ?? this.time(doubles[d + R.D_AT]!);
      }
      case R.EventKind.orderReduced:
        return this.time(doubles[d + R.D_AT]!) ?? this.update(words, w, sequence, R.roleOf(packed) === Role.maker);
      case R.EventKind.orderAmended:
      case R.EventKind.orderCanceled:
        return this.time(doubles[d + R.D_AT]!) ?? this.update(words, w, sequence, true);
      case R.EventKind.setsSplit:
      case R.EventKind.setsMerged:
        return this.sets(words, doubles, w) ?? this.update(words, w, sequence, false);
      default:
        return this.update(words, w, sequence, false);
    }
  }

  private sets(words: Int32Array, doubles: Float64Array, w: number): string | null {
    const fault = this.number(doubles[(w >> 1) + R.D_FILL_ID]!) ?? this.time(doubles[(w >> 1) + R.D_AT]!);
    const isMerge = R.kindOf(words[w]!) === R.EventKind.setsMerged;
    if (isMerge && mergeFeeMicro(words[w + R.W_QUANTITY]!, words[w + R.W_PRICE]!) > 0) this.entry++;
    return fault;
  }

  private number(id: number): string | null {
    const isNext = this.isEntryExact ? id === this.entry + 1 : Number.isSafeInteger(id) && id > this.entry;
    if (!isNext) return `the fill or entry has number ${id}, the one before ${this.entry}`;
    this.entry = id;
    this.isEntryExact = true;
    return null;
  }

  private update(words: Int32Array, w: number, sequence: number, isUpdate: boolean): string | null {
    if (!isUpdate) return sequence === 0 ? null : `the event is no order update, but has the sequence ${sequence}`;
    const user = words[w + R.W_USER]!;
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

const isQueued = (packed: number): boolean => R.statusOf(packed) === OrderStatus.queued;

/** True for the kinds of event whose time the log stage raises to that of the event before. */
export const isRaisedKind = (kind: number): boolean =>
  (kind >= R.EventKind.orderPlaced && kind <= R.EventKind.orderAmended) ||
  kind === R.EventKind.setsSplit ||
  kind === R.EventKind.setsMerged;
