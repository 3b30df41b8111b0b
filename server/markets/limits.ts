/**
 * Bounds of markets and market data: texts, proposals, lists, candles, books. Imports nothing but other limits: the web
 * page reads them too.
 */

/** Characters of the texts that describe a market or an event. */
export const MIN_QUESTION_LENGTH = 5;
export const MAX_QUESTION_LENGTH = 300;
export const MAX_DESCRIPTION_LENGTH = 5_000;
export const MAX_CATEGORY_LENGTH = 64;
export const MAX_OUTCOME_NAME_LENGTH = 100;
export const MAX_SLUG_LENGTH = 100;

/**
 * A market's picture: the file that an operator gives, in bytes (in base64 it fits into a body) and pixels a side; what the
 * exchange makes of it, stores and serves; and the files that wait for the thread that does.
 */
export const MAX_PICTURE_BYTES = 45_000;
export const MAX_PICTURE_SIDE = 2_048;
export const PICTURE_SIDE = 96;
export const MAX_STORED_PICTURE_BYTES = 4_096;
export const MAX_WAITING_PICTURES = 8;

/** Proposals of one user: how many wait for a decision, and how many the user may make within 24 hours. */
export const MAX_PENDING_PROPOSALS = 20;
export const MAX_PROPOSALS_PER_DAY = 50;
/** Pending proposals of all users. */
export const MAX_WAITING_PROPOSALS = 10_000;
/** Pending proposals that one user may have, by the part of MAX_WAITING_PROPOSALS in use: less for each as it fills up. */
export const PENDING_PROPOSALS_BY_USE: readonly (readonly [part: number, each: number])[] = [
  [0.9, 1],
  [0.5, 5],
  [0, MAX_PENDING_PROPOSALS],
];
/** The exchange rejects a proposal that has waited this long without a decision. */
export const PROPOSAL_WAIT_MS = 30 * 24 * 3_600_000;

/** Outdated close times that the schedule keeps, beyond twice the number of markets. */
export const MAX_OLD_CLOSINGS = 1_000;

/** Markets and events that a user can watch. */
export const MAX_WATCHED = 200;

export const MAX_FEED_SIZE = 100;
export const DEFAULT_FEED_SIZE = 20;
/** Characters of a search, and searches whose results stay cached until there is something new to find. */
export const MAX_SEARCH_LENGTH = 200;
export const MAX_CACHED_SEARCHES = 64;
/** Markets that an event shows, by itself and in lists; the list of markets has the rest. */
export const MAX_EVENT_MARKETS = 100;
export const MAX_LISTED_EVENT_MARKETS = 20;
/** Markets that one request can list by id. */
export const MAX_LISTED_IDS = 200;
/** Markets or events that one read of a list moves to their new place first: about a millisecond. */
export const MAX_MOVED_PER_READ = 500;

/** Characters of cached order book responses; a response leaves when its book changes or newer ones need the room. */
export const MAX_BOOK_TEXT_LENGTH = 32 * 1024 * 1024;
/** The latest trades of all markets, 38 bytes each, and how many of them one page scans. */
export const MAX_RECENT_TRADES = 2 ** 16;
export const MAX_TRADES_WALKED = 2_000;

/** Share of the gateway's time that followed implied books may take, and how many milliseconds of it at once. */
export const IMPLIED_TIME_SHARE = 0.1;
export const IMPLIED_BURST_MS = 10;

/** Bytes of a file of history that a thread reads at a time, and that wait for a slow client. */
export const MAX_HISTORY_PIECE_BYTES = 256 * 1024;
