/**
 * Where everything lies in the books' typed arrays, and the only place that knows the offsets. W: int32 words.
 *
 * A resting order (slot, 8 words; the gateway chooses the slot, 0 is none):
 *   word   0      1      2         3         4           5      6..7
 *          next   prev   outcome   packed    remaining   user   order id (double 3)
 *   packed: price 0..13 | side 14..15 | as in the command: self-trade prevention 20..23, post-only 24, pat 25
 *
 * A price level (4 words), in pages of 32 that come with the first order and go with the last:
 *   word   0      1      2..3
 *          head   tail   quantity (double 1)
 *
 * A page's header (4 words); a book is the headers of prices 0..9999 in a row:
 *   word   0               1                      2            3
 *          occupied bits   first word of levels   dirty bits   outcome << 9 | page
 *
 * An outcome (16 words, a cache line):
 *   word   0     1     2        3                    4        5                       6..15
 *          bid   ask   market   first word of its    status   first word of headers   a bit per page that exists
 *                               market's only other           (0: no book)
 *                               outcome (0: several)
 *
 * A page's occupied bits and the outcome's bits of pages find the best price and the next one. They serve both sides:
 * all at or below the best bid is bid.
 */
import { FULL_PRICE_BPS, LEVELS_PER_PAGE } from "./limits.ts";

export const SLOT_SHIFT = 3;
export const S_NEXT = 0;
export const S_PREV = 1;
export const S_OUTCOME = 2;
export const S_PACKED = 3;
export const S_REMAINING = 4;
export const S_USER = 5;
export const S_ID = 3;

export const OUTCOME_SHIFT = 4;
export const O_BID = 0;
export const O_ASK = 1;
export const O_MARKET = 2;
export const O_OTHER = 3;
export const O_STATUS = 4;
export const O_BOOK = 5;
export const O_PAGES = 6;
export const PAGE_GROUPS = 10;

export const HEADER_SHIFT = 2;
export const H_OCCUPIED = 0;
export const H_LEVELS = 1;
export const H_DIRTY = 2;
export const H_PLACE = 3;
export const PLACE_PAGE_BITS = 9;

export const P_PRICE_MASK = 0x3fff;
export const P_SIDE_SHIFT = 14;
/** Self-trade prevention, post-only and pat stand where the command has them. */
export const P_COMMAND_BITS = 0x3f00000;

export const LEVEL_SHIFT = 2;
export const L_HEAD = 0;
export const L_TAIL = 1;
/** In doubles from the level's first. */
export const L_QUANTITY = 1;
export const PAGE_SHIFT = 7;

export const BOOK_PAGES = Math.ceil(FULL_PRICE_BPS / LEVELS_PER_PAGE);
/** Whole cache lines, and an odd number of them, so that the same prices of many books don't fall on the same sets. */
export const BOOK_WORDS = 79 * 16;
export const NO_BID = 0;
export const NO_ASK = FULL_PRICE_BPS;
