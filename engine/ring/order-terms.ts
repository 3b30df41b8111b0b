/**
 * An order's terms in one word, at the bits of a placement's first word (records.ts), where the kind is 0. The table names
 * each once: columns of the tables, lines of the log and the API's objects derive from it.
 */
import { ORDER_TYPES, SELF_TRADE_PREVENTIONS, TIMES_IN_FORCE } from "../constants.ts";
import { assert } from "../util/assert.ts";
import * as R from "./records.ts";

interface Term {
  /** In the API and in the log's lines. */
  readonly name: string;
  /** In table orders. */
  readonly column: string;
  /** Its bits, and the lowest one's number. */
  readonly mask: number;
  readonly shift: number;
  /** By code; null: its value is the code, or a flag. */
  readonly words: readonly string[] | null;
  /** The API takes it as a field of a placement and shows it as one of the order. */
  readonly isShown: boolean;
}

const lowestBit = (mask: number): number => 31 - Math.clz32(mask & -mask);

/** @param words by code, below 4 */
const code = (shift: number, words: readonly string[] | null) => ({ mask: 0x3 << shift, shift, words });
const flag = (mask: number) => ({ mask, shift: lowestBit(mask), words: null });

const shown = { isShown: true } as const;
const hidden = { isShown: false } as const;

/** In the order of the API's fields. That an order has texts shows in these, and is no term. */
const TERMS = {
  side: { ...code(R.SIDE_SHIFT, null), ...hidden },
  type: { ...code(R.TYPE_SHIFT, ORDER_TYPES), ...shown },
  time_in_force: { ...code(R.TIME_IN_FORCE_SHIFT, TIMES_IN_FORCE), ...shown },
  post_only: { ...flag(R.FLAG_POST_ONLY), ...shown },
  self_trade_prevention: { ...code(R.SELF_TRADE_SHIFT, SELF_TRADE_PREVENTIONS), ...shown },
  pat: { ...flag(R.FLAG_PAT), ...hidden },
  quote: { ...flag(R.FLAG_QUOTE), ...hidden },
  cancel_on_disconnect: { ...flag(R.FLAG_CANCEL_ON_DISCONNECT), ...hidden, column: "tied" },
};

type Terms = typeof TERMS;
/** The terms that the API takes and shows, by name. */
export type ShownTerm = { [K in keyof Terms]: Terms[K]["isShown"] extends true ? K : never }[keyof Terms];
/** @typeParam Name of all terms, or of some */
export type OrderTerm<Name extends keyof Terms = keyof Terms> = Term & { readonly name: Name };

export const ORDER_TERMS: readonly OrderTerm[] = Object.entries(TERMS).map(([name, term]) => {
  return { column: name, ...term, name: name as keyof Terms };
});
export const SHOWN_TERMS = ORDER_TERMS.filter(({ isShown }) => isShown) as readonly OrderTerm<ShownTerm>[];

/** The bits that ORDER_TERMS names lie from bit 8 up to this one. */
export const TERM_BITS = 31;

/** A row's terms as one integer: an SQL expression over the columns of table orders. */
export const TERMS_SQL = `(${ORDER_TERMS.map(({ column, shift }) => `(${column} << ${shift})`).join(" | ")})`;

/** The value of a term as the API shows it. */
export function termValue({ mask, shift, words }: Term, terms: number): string | number | boolean {
  const value = (terms & mask) >>> shift;
  if (words !== null) return words[value]!;
  return (mask & (mask - 1)) === 0 ? value === 1 : value;
}

/** The bits of a term with a value that the API takes. */
export function termBits({ shift, words }: Term, value: string | boolean): number {
  const code = words === null ? Number(value) : words.indexOf(value as string);
  assert(code >= 0, "the value is one of the term's words");
  return code << shift;
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
