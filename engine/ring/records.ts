/**
 * The two records that cross threads, 64 bytes each (one cache line), and the only place that knows their offsets.
 * Words are int32, doubles are float64 holding integers below 2^53. A record starts at word `index * 16`.
 *
 * Command (gateway -> engine)
 *   word  0        1     2     3        4      5         6          7
 *         packed   slot  user  outcome  price  quantity  market     correlation id
 *   double         4         5       6            7
 *                  order id  at, ms  expires at*  valid until*
 *   packed: kind 0..7 | side 8..11 | type 12..15 | time in force 16..19 | self-trade prevention 20..21 | flags 24..31
 *   flags:  post-only 24 | pat 25 | replaces (restoreOrder: last, amendOrder: extends) 26 | more 27
 *           | cancel on disconnect 28
 *           | text 29 | quote 30
 *   (*) amendOrder: double 6 is the order's new time priority, or its new expires at with flag extends. placeOrder with
 *       flag replaces: double 7 is the old order's remaining quantity as the gateway knew it.
 *
 * Engine event (engine -> log -> gateway)
 *   word  0        1     2     3        4      5         6          7
 *         packed   slot  user  outcome  price  quantity  remaining  leg | correlation id
 *   double         4         5       6                     7
 *                  order id  at, ms  fill id* | detail     user sequence* | detail
 *   packed: kind 0..7 | side 8..11 | status 12..15 | reason 16..19 | match type 20..21 | role 22 | flags 24..31
 *   flags:  post-only 24 | pat 25 | match end (orderAmended: extended) 26 | update end 27
 *           | cancel on disconnect (orderPlaced), lost priority (orderAmended) 28 | text 29 | quote 30
 *   (*) the log stage writes them while it owns the record; the engine leaves 0. It also raises `at` to that of the event
 *       before it, since it reads several rings one after the other.
 *
 * Command kinds, and the fields that they read beside `packed`:
 *   placeOrder     slot user outcome price quantity market, order id, at, expires at (gtd), valid until (0 = none).
 *                  With flag replaces, for a resting post-only order: word 7 = the slot of the same user's order that
 *                  an earlier cancelOrder of the chain named, double 7 = its remaining quantity as the gateway last
 *                  knew it; always valid. What that order lost since then reduces the quantity (missingOf in matcher.ts)
 *   restoreOrder   the same with quantity = remaining, word 7 = total: rests without matching. Flag last marks the order
 *                  that entered its market's books last; if it would match, a crash interrupted its matching, and it is
 *                  canceled instead: orderCanceled
 *   cancelOrder    slot, order id, at, correlation id (the caller's, echoed); reason in the bits of the time in force
 *   amendOrder     slot, order id, at, price, quantity (new total; 0 keeps either), valid until, correlation id; double 6 =
 *                  the new time priority, echoed in orderAmended. With flag extends: only slot, order id, at, correlation
 *                  id and double 6 = the new expires at (0 = never); the order keeps its place
 *   openMarket     market, outcome = first outcome id, quantity = number of outcomes
 *   haltMarket, resumeMarket, closeMarket   market, at, correlation id
 *   splitSets, mergeSets                    user, market, quantity, at, correlation id: pass through to the ledger; price =
 *                  the merge fee, BPS of 1 USDC per set
 *
 * A chain is a sequence of commands, all but the last with flag more: published together, executed without another command
 * in between, committed in one transaction. It has at most MAX_CHAIN_COMMANDS, and only cancelOrder, post-only placeOrder
 * and extending amendOrder.
 *
 * Event kinds, and their fields beyond the drawing:
 *   orderPlaced     the command's order; status open (it rests unfilled), final (nothing filled) or queued
 *                   (fills follow); remaining; double 6 = expires at; word 7 = bits 12..23 of the command |
 *                   raised (*) << 12: `at` was raised, the order entered earlier
 *   orderFilled     one order's side of one match; makers first, then the taker with flag matchEnd. Flag updateEnd is on the
 *                   last taker fill of a command: one order.updated reports the taker's fills up to it. Word 7 = leg
 *                   (the number of earlier fills of this match) | the user's individual rates (*) << 5, see packRates;
 *                   remaining after the fill; flag pat = placed with a PAT
 *   orderCanceled   final; status canceled, expired or rejected; remaining
 *   orderReduced    self-trade decrement: quantity = the new total; causes no order.updated for a taker (role)
 *   orderAmended    price, quantity (new total), remaining; status; flag lostPriority, double 6 = new priority; or flag
 *                   extended, double 6 = new expires at
 *   cancelRejected  the order was already final; correlation id
 *   amendRejected   the order is unchanged; correlation id; reason, none if it was already final
 *   levelChanged    outcome, side, price, double 6 = the level's quantity now (0 = gone)
 *   marketChanged   word 1 = market, status = MarketStatus, correlation id
 *   setsSplit, setsMerged         user, word 1 = market, quantity, price, correlation id; word 6 = 1: costs and proceeds of
 *                   the outcomes are parts of 1 USDC, set by set; 0, in logs of earlier versions: parts of the whole amount
 *   batchMatched    precedes all events published with it; double 4 = when they were published, double 6 (*) = when they
 *                   became durable, both in µs since the epoch (micro-clock.ts)
 */

import { MAX_OUTCOMES } from "../limits.ts";
import { assert } from "../util/assert.ts";

export const RECORD_BYTES = 64;
export const RECORD_WORDS = RECORD_BYTES / 4;
export const RECORD_DOUBLES = RECORD_BYTES / 8;

export const W_PACKED = 0;
export const W_SLOT = 1;
export const W_USER = 2;
export const W_OUTCOME = 3;
export const W_PRICE = 4;
export const W_QUANTITY = 5;
/** Commands: the market. */
export const W_MARKET = 6;
/** Events: the order's remaining quantity. */
export const W_REMAINING = 6;
/** setsSplit, setsMerged. */
export const W_SET_BY_SET = 6;
export const W_CORRELATION = 7;
export const D_ORDER_ID = 4;
export const D_AT = 5;
export const D_EXPIRES_AT = 6;
/** amendOrder. */
export const D_PRIORITY = 6;
export const D_DETAIL = 6;
export const D_FILL_ID = 6;
export const D_VALID_UNTIL = 7;
/** placeOrder with flag replaces. */
export const D_EXPECTED = 7;
export const D_USER_SEQUENCE = 7;
/** restoreOrder in an opening of the log, where it is never executed: the order's time priority. */
export const D_OPENING_PRIORITY = 7;
/** batchMatched. */
export const D_MATCHED = 4;
export const D_DURABLE = 6;

/** 5 was once a kind and stays unused. */
export const CommandKind = {
  placeOrder: 1,
  restoreOrder: 2,
  cancelOrder: 3,
  amendOrder: 4,
  openMarket: 6,
  haltMarket: 7,
  resumeMarket: 8,
  closeMarket: 9,
  splitSets: 10,
  mergeSets: 11,
  /** Ends the engine thread once everything before it is committed. */
  stop: 12,
} as const;
export type CommandKind = (typeof CommandKind)[keyof typeof CommandKind];

export const EventKind = {
  orderPlaced: 1,
  orderFilled: 2,
  orderCanceled: 3,
  orderReduced: 4,
  orderAmended: 5,
  cancelRejected: 6,
  amendRejected: 7,
  levelChanged: 8,
  marketChanged: 9,
  setsSplit: 10,
  setsMerged: 11,
  stopped: 12,
  batchMatched: 13,
} as const;
export type EventKind = (typeof EventKind)[keyof typeof EventKind];

/** The lowest bits of a placement's fields, of four bits each. */
export const SIDE_SHIFT = 8;
export const TYPE_SHIFT = 12;
export const TIME_IN_FORCE_SHIFT = 16;
export const SELF_TRADE_SHIFT = 20;
export const FLAG_POST_ONLY = 1 << 24;
export const FLAG_PAT = 1 << 25;
/** placeOrder: the order replaces one that its chain canceled. In events the bit is matchEnd. */
export const FLAG_REPLACES = 1 << 26;
export const FLAG_MATCH_END = 1 << 26;
/** restoreOrder: the order that entered its market's books last. */
export const FLAG_LAST = 1 << 26;
/** amendOrder and orderAmended: only the order's expiry changes. */
export const FLAG_EXTENDS = 1 << 26;
/** Any command: the next one in the ring belongs to the same chain. In events the bit is updateEnd. */
export const FLAG_MORE = 1 << 27;
export const FLAG_UPDATE_END = 1 << 27;
/** Placements: the order is canceled when its connection closes. In orderAmended the bit is lostPriority. */
export const FLAG_CANCEL_ON_DISCONNECT = 1 << 28;
export const FLAG_LOST_PRIORITY = 1 << 28;
/** The slot's text area holds a client order id, or a builder code. */
export const FLAG_TEXT = 1 << 29;
/** Placed by PUT /quotes. */
export const FLAG_QUOTE = 1 << 30;
/** The flags that orderPlaced copies from the command. */
export const ORDER_FLAGS = FLAG_POST_ONLY | FLAG_PAT | FLAG_CANCEL_ON_DISCONNECT | FLAG_TEXT | FLAG_QUOTE;

/** How the records' constants relate. Called once at startup. */
export function assertRecordLayout(): void {
  assert(RECORD_BYTES === 4 * RECORD_WORDS && RECORD_BYTES === 8 * RECORD_DOUBLES, "a record is words and doubles");
  assert(W_CORRELATION < 2 * D_ORDER_ID && D_USER_SEQUENCE < RECORD_DOUBLES, "the doubles follow the words");
  for (const kinds of [CommandKind, EventKind]) {
    const codes: readonly number[] = Object.values(kinds);
    assert(new Set(codes).size === codes.length && Math.max(...codes) < 2 ** 8, "each kind has a code of 8 bits");
  }
  const flags = [FLAG_POST_ONLY, FLAG_PAT, FLAG_REPLACES, FLAG_MORE, FLAG_CANCEL_ON_DISCONNECT, FLAG_TEXT, FLAG_QUOTE];
  assert(flags.reduce((sum, flag) => sum | flag, 0) === flags.reduce((sum, flag) => sum + flag, 0), "flags differ");
  assert(Math.min(...flags) === 1 << 24, "flags lie above every other field");
  assert(MAX_OUTCOMES <= 1 << LEG_BITS, "a leg fits its bits");
  assert(LEG_BITS + 1 + 2 * RATE_BITS <= 31, "a leg and two rates fit a word");
  assert(codesOf(-1) < RAISED, "an order's codes lie below the flag RAISED");
}

/** An event's. */
export const kindOf = (packed: number): EventKind => (packed & 0xff) as EventKind;
export const commandKindOf = (packed: number): CommandKind => (packed & 0xff) as CommandKind;
export const sideOf = (packed: number): number => (packed >>> SIDE_SHIFT) & 0xf;

/** Commands, and terms. */
export const typeOf = (packed: number): number => (packed >>> TYPE_SHIFT) & 0xf;
export const timeInForceOf = (packed: number): number => (packed >>> TIME_IN_FORCE_SHIFT) & 0xf;
export const selfTradePreventionOf = (packed: number): number => (packed >>> SELF_TRADE_SHIFT) & 0x3;
/** cancelOrder: the reason is in the bits of a placement's time in force. */
export function cancelReasonOf(packed: number): number {
  return (packed >>> 16) & 0xf;
}

/** An order's terms (order-terms.ts): the first word of its placement, less the kind. */
export function packTerms(side: number, type: number, tif: number, stp: number, flags: number): number {
  return (side << SIDE_SHIFT) | (type << TYPE_SHIFT) | (tif << TIME_IN_FORCE_SHIFT) | (stp << SELF_TRADE_SHIFT) | flags;
}

/** Replaces the time in force in terms. */
export const withTimeInForce = (terms: number, tif: number): number =>
  (terms & ~(0xf << TIME_IN_FORCE_SHIFT)) | (tif << TIME_IN_FORCE_SHIFT);

/** Replaces the type in terms. */
export const withType = (terms: number, type: number): number => (terms & ~(0xf << TYPE_SHIFT)) | (type << TYPE_SHIFT);

/** The first word of a command. */
export const packCommand = (kind: CommandKind, terms = 0): number => kind | terms;

/** The first word of a cancelOrder. */
export const packCancel = (reason: number): number => CommandKind.cancelOrder | (reason << 16);

/** Events. */
export const statusOf = (packed: number): number => (packed >>> 12) & 0xf;
export const reasonOf = (packed: number): number => (packed >>> 16) & 0xf;
export const matchTypeOf = (packed: number): number => (packed >>> 20) & 0x3;
export const roleOf = (packed: number): number => (packed >>> 22) & 0x1;

export function packEvent(kind: EventKind, side: number, status: number, reason: number, flags: number): number {
  return kind | (side << 8) | (status << 12) | (reason << 16) | flags;
}

export function packFill(side: number, status: number, matchType: number, role: number, flags: number): number {
  return EventKind.orderFilled | (side << 8) | (status << 12) | (matchType << 20) | (role << 22) | flags;
}

/** Word 7 of orderPlaced: what else of the order's terms has no place in an event's first word. */
export const codesOf = (packed: number): number => (packed >>> TYPE_SHIFT) & (RAISED - 1);
export const RAISED = 1 << 12;
export const isRaised = (codes: number): boolean => (codes & RAISED) !== 0;
/** The order's terms, from the two words of orderPlaced. */
export const placedTerms = (packed: number, codes: number): number =>
  (packed & ((0xf << SIDE_SHIFT) | ORDER_FLAGS)) | ((codes & (RAISED - 1)) << TYPE_SHIFT);

/** Word 7 of orderFilled: the leg is below MAX_OUTCOMES. */
const LEG_BITS = 5;
const RATE_BITS = 10;
const RATE_MASK = (1 << RATE_BITS) - 1;
export const legOf = (word7: number): number => word7 & ((1 << LEG_BITS) - 1);
/** The rates that `packRates` packed; 0 if the default fee and rebate apply. */
export const ratesOf = (word7: number): number => word7 >>> LEG_BITS;
export const withRates = (leg: number, rates: number): number => leg | (rates << LEG_BITS);
/** Packs a user's individual fee and rebate in BPS, each up to 1023. Never 0. */
export function packRates(feeBps: number, rebateBps: number): number {
  assert(feeBps >= 0 && feeBps <= RATE_MASK && rebateBps >= 0 && rebateBps <= RATE_MASK, "rates fit their bits");
  return 1 | (feeBps << 1) | (rebateBps << (1 + RATE_BITS));
}
export const feeOf = (rates: number): number => (rates >>> 1) & RATE_MASK;
export const rebateOf = (rates: number): number => rates >>> (1 + RATE_BITS);
