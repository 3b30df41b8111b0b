/**
 * An order's terms in one word, at the bits of a placement's first word (records.ts), where the kind is 0. The table names
 * each once: columns of the tables, lines of the log and the API's objects derive from it.
 */
import { ORDER_TYPES, SELF_TRADE_PREVENTIONS, TIMES_IN_FORCE } from "../constants.ts";
import { assert } from "../util/assert.ts";
import * as R from "./records.ts";

export interface OrderTerm {
  /** In the API and in the log's lines. */
  readonly name: string;
  /** In table orders. */
  readonly column: string;
  /** Its bits, and the lowest one's number. */
  readonly mask: number;
  readonly shift: number;
  /** By code; null: its value is the code, or a flag. */
  readonly words: readonly string[] | null;
  /** The API shows it as a field of its own. */
  readonly isShown: boolean;
}

const lowestBit = (mask: number): number => 31 - Math.clz32(mask & -mask);

/** @param words by code, below 4 */
const code = (name: string, shift: number, words: readonly string[] | null): OrderTerm => {
  return { name, column: name, mask: 0x3 << shift, shift, words, isShown: words !== null };
};
const flag = (name: string, mask: number, column = name): OrderTerm => {
  return { name, column, mask, shift: lowestBit(mask), words: null, isShown: false };
};

/** In the order of the API's fields. That an order has texts shows in these, and is no term. */
export const ORDER_TERMS: readonly OrderTerm[] = [
  code("side", R.SIDE_SHIFT, null),
  code("type", R.TYPE_SHIFT, ORDER_TYPES),
  code("time_in_force", R.TIME_IN_FORCE_SHIFT, TIMES_IN_FORCE),
  { ...flag("post_only", R.FLAG_POST_ONLY), isShown: true },
  code("self_trade_prevention", R.SELF_TRADE_SHIFT, SELF_TRADE_PREVENTIONS),
  flag("pat", R.FLAG_PAT),
  flag("quote", R.FLAG_QUOTE),
  flag("cancel_on_disconnect", R.FLAG_CANCEL_ON_DISCONNECT, "tied"),
];

/** The bits that ORDER_TERMS names lie from bit 8 up to this one. */
export const TERM_BITS = 31;

/** A row's terms as one integer: an SQL expression over the columns of table orders. */
export const TERMS_SQL = `(${ORDER_TERMS.map(({ column, shift }) => `(${column} << ${shift})`).join(" | ")})`;

/** The value of a term as the API shows it. */
export function termValue({ mask, shift, words }: OrderTerm, terms: number): string | number | boolean {
  const value = (terms & mask) >>> shift;
  if (words !== null) return words[value]!;
  return (mask & (mask - 1)) === 0 ? value === 1 : value;
}

/** Every bit has one meaning, and every code a word. Called once at startup. */
export function assertOrderTerms(): void {
  let all = 0;
  for (const { mask, words } of ORDER_TERMS) {
    assert((all & mask) === 0 && (mask & 0xff) === 0, "terms have bits of their own above the kind");
    assert(words === null || words.length <= 4, "a code fits its bits");
    all |= mask;
  }
  assert(all > 0 && all < 2 ** TERM_BITS, "terms fit their bits");
  assert((all & (R.FLAG_TEXT | R.FLAG_REPLACES | R.FLAG_MORE)) === 0, "terms leave the flags of commands alone");
}
