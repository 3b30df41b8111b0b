/**
 * The layout of a book in the matcher's typed arrays, in 32-bit words. The size of each record is a power of two words, and
 * each record starts at a multiple of its size. So `base | offset` addresses a word: V8 checks additions for overflow, but
 * not this. The build inlines constants of a separate file.
 *
 * A resting order (slot, 8 words; the gateway chooses the slot, 0 is none):
 *   word   0      1      2         3        4           5      6..7
 *          next   prev   outcome   packed   remaining   user   order id (double 3), 0 = free
 *   remaining stays after the order's end: an order that replaces it reads the quantity that was left
 *   packed: price 0..13 | side 14..15 | self-trade prevention 20..23 | post-only 24 | pat 25, the latter as in commands
 *
 * A price level (4 words), in pages of 32 that exist from their first order to their last:
 *   word   0      1      2..3
 *          head   tail   quantity (double 1)
 *
 * A page's header (4 words); a book consists of the consecutive headers of prices 0..9999:
 *   word   0               1                      2            3
 *          occupied bits   first word of levels   dirty bits   outcome << 9 | page
 *                          (0: no page)
 *
 * An outcome (16 words, a cache line):
 *   word   0     1     2        3                    4        5                       6..15
 *          bid   ask   market   first word of its    status   first word of headers   a bit per page that exists
 *                               market's only other           (0: no book)
 *                               outcome (0: several)
 *
 * A page's occupied bits and the outcome's page bits find the best price and the next one. They serve both sides: every
 * level at or below the best bid is a bid.
 */
import { FULL_PRICE_BPS, LEVEL_PAGE_BITS, LEVELS_PER_PAGE } from "../limits.ts";
import { FLAG_PAT, FLAG_POST_ONLY } from "../ring/records.ts";

export const SLOT_SHIFT = 3;
export const S_NEXT = 0;
export const S_PREV = 1;
export const S_OUTCOME = 2;
export const S_PACKED = 3;
export const S_REMAINING = 4;
export const S_USER = 5;
export const SLOT_DOUBLES_SHIFT = SLOT_SHIFT - 1;
export const S_ID = 3;

export const P_PRICE_MASK = 0x3fff;
export const P_SIDE_SHIFT = 14;
/** Self-trade prevention and the flags keep the command's bits. */
export const P_COMMAND_BITS = (0xf << 20) | FLAG_POST_ONLY | FLAG_PAT;

export const LEVEL_SHIFT = 2;
export const L_HEAD = 0;
export const L_TAIL = 1;
/** In doubles. */
export const L_QUANTITY = 1;
/** The bits of a price that select the level within its page. */
export const IN_PAGE_MASK = LEVELS_PER_PAGE - 1;
export const PAGE_SHIFT = LEVEL_PAGE_BITS + LEVEL_SHIFT;

export const HEADER_SHIFT = 2;
export const H_OCCUPIED = 0;
export const H_LEVELS = 1;
export const H_DIRTY = 2;
export const H_PLACE = 3;
export const PLACE_SHIFT = 9;
export const PLACE_PAGE_MASK = (1 << PLACE_SHIFT) - 1;
export const BOOK_PAGES = Math.ceil(FULL_PRICE_BPS / LEVELS_PER_PAGE);
/** An odd number of cache lines, so that the same price of many books doesn't map to the same cache sets. */
export const BOOK_WORDS = 79 * 16;

export const OUTCOME_SHIFT = 4;
export const O_BID = 0;
export const O_ASK = 1;
export const O_MARKET = 2;
export const O_OTHER = 3;
export const O_STATUS = 4;
export const O_BOOK = 5;
export const O_PAGES = 6;
export const PAGE_GROUP_BITS = 5;
export const PAGE_GROUPS = 10;
export const NO_BID = 0;
export const NO_ASK = FULL_PRICE_BPS;
