/**
 * Bounds of the HTTP gateway: bodies, pages, keys, rate limit buckets, and the texts that every room validates alike.
 * Imports nothing but other limits: the web page reads them too.
 */

/**
 * How long an idle connection stays open at least. uWebSockets.js fixes its timeout to 10 s and counts in ticks of 4 s: the
 * connection ends after 8 to 12 s.
 */
export const KEEP_ALIVE_S = 7;

/** Open HTTP connections that are no WebSockets. */
export const MAX_HTTP_CONNECTIONS = 20_000;
/** Of the room for them: while more than half is taken, a client that has more than a quarter opens no others. */
export const CONTESTED_ROOM = 1 / 2;
export const CLIENTS_SHARE = 1 / 4;
/** How often it is counted who holds them, ms. */
export const CENSUS_MS = 1_000;
/** Files that stay free for archives, backups and the control socket, whatever clients do. */
export const SPARE_FILES = 64;
/** With less room the exchange doesn't start. */
export const MIN_CONNECTIONS = 16;
/** How often a line says that connections are rejected. */
export const REPORT_REFUSED_MS = 60_000;

/** The request line and all header fields: browsers send the cookies of every program on the same host name. */
export const MAX_HEAD_BYTES = 16 * 1024;
export const MAX_BODY_BYTES = 64 * 1024;
/** Shorter responses fit in one packet: they are not compressed. Characters. */
export const MIN_COMPRESSED_LENGTH = 1_400;
/** Responses that are compressed at a time, 256 KiB of memory each; beyond them, responses leave as they are. */
export const MAX_COMPRESSING = 32;
/** The largest body of a sign-in request, which anybody may send without a token. */
export const MAX_SIGN_IN_BODY_BYTES = 8 * 1024;
/** Nested containers in a MessagePack message; clients need four levels. */
export const MAX_MESSAGE_DEPTH = 32;

export const MAX_PAGE_LIMIT = 200;
export const DEFAULT_PAGE_LIMIT = 50;
/** Intervals, such as candles, of one response, and of one whose request names no start. */
export const MAX_INTERVALS = 1_500;
export const DEFAULT_INTERVALS = 500;

/** The Idempotency-Key header: its characters, and the keys that the exchange remembers for one user. */
export const MAX_IDEMPOTENCY_KEY_LENGTH = 64;
export const MAX_IDEMPOTENCY_KEYS_PER_USER = 10_000;

export const MAX_EMAIL_LENGTH = 254;
/** Characters of the note that an operator leaves with a decision. */
export const MAX_NOTE_LENGTH = 1_000;

/**
 * A turn of the gateway's event loop that reads requests for longer than this counts as long: the response throttle and
 * the bounds on messages per turn apply then.
 */
export const MAX_TURN_MS = 20;

/** Rejected sign-ins that get a response per second; a flood of them costs trading no more than that. */
export const SIGN_IN_REFUSALS_PER_SECOND = 2_000;
/**
 * Rate limit buckets in memory, one per key and route; beyond the bound, the least recently used bucket is evicted. Each
 * kind takes 30 to 67 MB. Enough for 6,500 users on 20 routes, as many addresses, and every identifier that the pace
 * above lets a flood try within a minute.
 */
export const MAX_USER_RATE_BUCKETS = 2 ** 17;
export const MAX_ADDRESS_RATE_BUCKETS = 2 ** 17;
export const MAX_IDENTIFIER_RATE_BUCKETS = 2 ** 17;
/** Buckets of accounts at addresses known to them. Each sign-in costs a password hash, so few happen within a minute. */
export const MAX_KNOWN_RATE_BUCKETS = 2 ** 14;
/** Client addresses whose normal form is cached. */
export const MAX_CACHED_ADDRESSES = 4_096;

/** The least time between the announcement that a route will go and its removal. */
export const MIN_DEPRECATION_MS = 30 * 24 * 3_600_000;

/** A request that changes something and has no response by then gets 50000, ms; the orders' own is as long. */
export const WRITE_DEADLINE_MS = 10_000;
