/** A place in memory with records, which its kinds of records read and write by the names of their fields. */
import { W_PACKED } from "./records.ts";

const NO_WORDS = new Int32Array(0);
const NO_DOUBLES = new Float64Array(0);

export abstract class RecordCursor {
  protected words: Int32Array = NO_WORDS;
  protected doubles: Float64Array = NO_DOUBLES;
  /** The record's first word, and its first double. */
  protected w = 0;
  protected d = 0;

  /** Moves to the record that starts at word `w`. */
  at(words: Int32Array, doubles: Float64Array, w: number): this {
    this.words = words;
    this.doubles = doubles;
    this.w = w;
    this.d = w >> 1;
    return this;
  }

  /** The first word: the kind, small codes and flags. */
  get packed(): number {
    return this.words[this.w + W_PACKED]!;
  }

  set packed(packed: number) {
    this.words[this.w + W_PACKED] = packed;
  }
}
