/**
 * Bounds of order entry: requests, live orders, client order ids, deadlines. Imports nothing but other limits: the web page
 * reads them too.
 */

export const MAX_BATCH_OPERATIONS = 50;
export const MAX_QUOTES = 100;

/** The last part of a shared capacity is reserved for accounts that use little of it. */
export const RESERVED_PART = 1 / 10;
/** Accounts with fewer live orders, or fewer client order ids of the last 24 hours, may use the reserve. */
export const SMALL_LIVE_ORDERS = 100;
export const SMALL_CLIENT_ORDER_IDS = 1_000;

/** How long after its order a client order id stays an idempotency key, and how many the exchange keeps. */
export const CLIENT_ORDER_ID_MS = 24 * 3_600_000;
export const MAX_CLIENT_ORDER_IDS = 2 ** 24;
/** What one account can place with ids in half a day at the default rate limits, all in batches of 50. */
export const MAX_CLIENT_ORDER_IDS_PER_USER = 2 ** 20;

/**
 * Ended orders whose owner the gateway remembers, so that it can respond to a late request for them from memory: 12 bytes
 * each, 12 MiB when full.
 */
export const MAX_RECENTLY_ENDED_ORDERS = 2 ** 20;
/** Live orders in memory that one read of a filtered list scans: a millisecond. */
export const MAX_LIVE_WALKED = 20_000;

/** Cancel-after: the least and the greatest time until all of a user's orders are canceled, unless the user repeats it. */
export const MIN_CANCEL_AFTER_MS = 1_000;
export const MAX_CANCEL_AFTER_MS = 300_000;
/** How often the gateway looks for timers that are due. */
export const CANCEL_TIMER_TICK_MS = 50;

/** A command that waits longer for its commit gets 50000, with the advice to check before a retry. */
export const REPLY_DEADLINE_MS = 10_000;
/** How long a read of the caller's own state waits at most for the updates that belong before it. */
export const READ_WAIT_MS = 5_000;
