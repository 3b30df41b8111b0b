/**
 * The bounds of the engine: limit-relations.ts asserts how they relate. The bounds of each server room are in its own
 * `limits.ts`. No other file repeats these numbers. Imports nothing: the web page reads them too.
 */

/** A share pays 1 USDC = 10 000 basis points = 1 000 000 micro-USDC. */
export const FULL_PRICE_BPS = 10_000;
export const MIN_PRICE_BPS = 1;
export const MAX_PRICE_BPS = 9_999;
export const MICRO_PER_BPS = 100;
export const MICRO_PER_SHARE = FULL_PRICE_BPS * MICRO_PER_BPS;

export const MAX_QUANTITY = 1_000_000_000;
export const MIN_OUTCOMES = 2;
export const MAX_OUTCOMES = 32;

/** Money that the whole exchange may hold, in micro-USDC; keeps every sum an exact integer in a double. */
export const MAX_MONEY_MICRO = 8_000_000_000_000_000;

/** The fee schedule in bps of the notional: the seller's fee, and a resting order's rebate without and with a PAT. */
export const TRADING_FEE_BPS = 150;
export const MAKER_REBATE_BPS = 5;
export const PAT_REBATE_BPS = 10;
/** The highest fee that an account's own terms can set. */
export const MAX_OWN_RATE_BPS = 1_000;
/** The highest fee for merging a complete set, in bps of its 1 USDC. */
export const MAX_MERGE_FEE_BPS = 1_000;
/** KYC tier to micro-USDC of activity per UTC day; tier 0 cannot trade. */
export const DAILY_ACTIVITY_LIMIT_MICRO: readonly number[] = [0, 100_000_000, 10_000_000_000];

/** References of seed deposits begin with this; those of an operator's deposits don't. */
export const SEED_REFERENCE = "seed:";

/** An Idempotency-Key's time to live. */
export const IDEMPOTENCY_KEY_MS = 24 * 3_600_000;
/** Expired keys that each new one prunes. */
export const MAX_KEYS_PRUNED = 16;
/** Rows of each kind that one sweep of expired data deletes. */
export const MAX_SWEPT_ROWS = 500;

/** Users and outcomes in total. Their ids index arrays directly. */
export const MAX_USERS = 2 ** 22;
export const OUTCOME_ID_BITS = 20;
export const MAX_OUTCOME_ID = 2 ** OUTCOME_ID_BITS - 1;
/** Outcome ids, and market ids, that proposals may use up: operators' markets have the rest. */
export const LAST_PROPOSED_OUTCOME_ID = MAX_OUTCOME_ID >> 1;

/** Orders that rest or are in flight: each has a slot in the gateway, in an engine thread and in the texts. */
export const MAX_LIVE_ORDERS = 2 ** 21;
export const MAX_CLIENT_ORDER_ID_LENGTH = 64;
export const MAX_BUILDER_CODE_LENGTH = 32;
/** Books that hold at least one order, per engine thread. */
export const MAX_ACTIVE_BOOKS = 2 ** 16;

/** Prices of one page of a ladder; the book allocates a page on first use. */
export const LEVEL_PAGE_BITS = 5;
export const LEVELS_PER_PAGE = 2 ** LEVEL_PAGE_BITS;

/** Records in the rings of one engine thread. */
export const COMMAND_RING_RECORDS = 2 ** 14;
export const EVENT_RING_RECORDS = 2 ** 16;
/** Commands of one batch, so that a commit and its responses stay short. */
export const MAX_BATCH_COMMANDS = 8_192;
/** Commands of one chain: a request's changes that run with nothing in between. */
export const MAX_CHAIN_COMMANDS = 256;
/** Events that one match step can emit: a fill or a self-trade cancel per leg, plus the taker's own. */
export const MAX_EVENTS_PER_STEP = 2 * MAX_OUTCOMES + 4;
