/**
 * Every bound of the exchange, in one place: limit-relations.ts asserts how they stand to each other. Nothing elsewhere
 * repeats these numbers. Imports nothing: the web page reads them too.
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

/** The fee schedule in BPS of the notional: what a seller pays, what a resting order gets without and with a PAT. */
export const TRADING_FEE_BPS = 150;
export const MAKER_REBATE_BPS = 5;
export const PAT_REBATE_BPS = 10;
/** Of a user's own fee and rebates, and of the factor of its rate limits. */
export const MAX_OWN_RATE_BPS = 1_000;
export const MAX_OWN_REBATE_BPS = 150;
export const MAX_RATE_LIMIT_FACTOR = 1_000;
/** What merging a complete set may cost, in BPS of its 1 USDC. */
export const MAX_MERGE_FEE_BPS = 1_000;
/** Live orders that an operator may grant one account. */
export const MAX_OWN_LIVE_ORDERS = 200_000;
/** References of the deposits that a seed makes begin with this; an operator's don't. */
export const SEED_REFERENCE = "seed:";
/** Withdrawals of one user that wait for an operator. */
export const MAX_PENDING_WITHDRAWALS = 20;
export const MAX_WITHDRAWAL_MAILS_PER_HOUR = 20;
/** Characters of an Idempotency-Key, how long it counts, and how many of one user do. */
export const MAX_IDEMPOTENCY_KEY_LENGTH = 64;
export const IDEMPOTENCY_KEY_MS = 24 * 3_600_000;
export const MAX_IDEMPOTENCY_KEYS_PER_USER = 10_000;
/** Old keys that are taken away with each new one. */
export const MAX_KEYS_PRUNED = 16;
/** Of each kind of what an account came to, beside a withdrawal: deposits, terms, decisions on identity. */
export const MAX_TRAIL = 50;
/** First approvals that wait for a second operator. */
export const MAX_OPEN_APPROVALS = 10_000;
/** Characters of a payment's reference, and of the address that a withdrawal goes to. */
export const MAX_REFERENCE_LENGTH = 128;
export const MAX_ADDRESS_LENGTH = 128;

/** Characters of what a market or an event says of itself, and of what an operator notes beside a decision. */
export const MIN_QUESTION_LENGTH = 5;
export const MAX_QUESTION_LENGTH = 300;
export const MAX_DESCRIPTION_LENGTH = 5_000;
export const MAX_CATEGORY_LENGTH = 64;
export const MAX_OUTCOME_NAME_LENGTH = 100;
export const MAX_SLUG_LENGTH = 100;
export const MAX_NOTE_LENGTH = 1_000;
/** Proposals of one user that wait for a decision, and that were made within 24 hours. */
export const MAX_PENDING_PROPOSALS = 20;
export const MAX_PROPOSALS_PER_DAY = 50;
/**
 * Of all users together; and how many one user may have waiting, by the part of these that is taken: the fewer are left,
 * the smaller is one account's share.
 */
export const MAX_WAITING_PROPOSALS = 10_000;
export const PENDING_PROPOSALS_BY_USE: readonly (readonly [part: number, each: number])[] = [
  [0.9, 1],
  [0.5, 5],
  [0, MAX_PENDING_PROPOSALS],
];
/** A proposal that nobody decided for so long is refused. */
export const PROPOSAL_WAIT_MS = 30 * 24 * 3_600_000;
/** Times at which markets close that were changed since, beside as many as there are markets twice. */
export const MAX_OLD_CLOSINGS = 1_000;

/** One payment from or to the outside: 100 million USDC. A slip of the finger must not use the bound above up. */
export const MAX_PAYMENT_MICRO = 100_000_000_000_000;

/** Users and outcomes that there can be. Their ids index arrays directly. */
export const MAX_USERS = 2 ** 22;
/** Accounts whose e-mail address isn't verified: deleted after so long, the oldest sooner where there are so many. */
export const UNVERIFIED_ACCOUNT_MS = 7 * 24 * 3_600_000;
export const MAX_UNVERIFIED_USERS = 2 ** 18;
/** Of them, those deleted in one write of the journal. */
export const MAX_DELETED_AT_ONCE = 50;
export const OUTCOME_ID_BITS = 20;
export const MAX_OUTCOME_ID = 2 ** OUTCOME_ID_BITS - 1;
/** Outcome ids that proposals may use up, and market ids: the rest is for markets that operators make. */
export const LAST_PROPOSED_OUTCOME_ID = MAX_OUTCOME_ID >> 1;

/** Orders that rest or are in flight at one time: a slot each in the gateway, an engine thread and the texts. */
export const MAX_LIVE_ORDERS = 2 ** 21;
/** KYC tier to the live orders that one account may have, in flight included; terms may say another number. */
export const LIVE_ORDERS_OF_TIER: readonly number[] = [0, 500, 20_000];
/** The last such part of a shared capacity is reserved for accounts that use little of it. */
export const RESERVED_PART = 1 / 10;
/** Accounts with fewer live orders, or client order ids of the last 24 hours, may use the reserve. */
export const SMALL_LIVE_ORDERS = 100;
export const SMALL_CLIENT_ORDER_IDS = 1_000;
/** Books with at least one order in them, per engine thread. */
export const MAX_ACTIVE_BOOKS = 2 ** 16;

/** Prices of one page of a ladder; pages come on first use. */
export const LEVEL_PAGE_BITS = 5;
export const LEVELS_PER_PAGE = 2 ** LEVEL_PAGE_BITS;

/** Records in the rings of one engine thread. */
export const COMMAND_RING_RECORDS = 2 ** 14;
export const EVENT_RING_RECORDS = 2 ** 16;
/** Commands that one batch takes at most, so that a commit and its answers stay short. */
export const MAX_BATCH_COMMANDS = 8_192;
/** Commands that one chain has at most: what a request changes with nothing in between. */
export const MAX_CHAIN_COMMANDS = 256;
/** Events that one match step can emit at most: a fill or a self-trade cancel per leg, plus the taker's own. */
export const MAX_EVENTS_PER_STEP = 2 * MAX_OUTCOMES + 4;

/** Of one user at one time: sessions (a new one ends the oldest), tokens, own OAuth clients, grants to third parties. */
export const MAX_SESSIONS_PER_USER = 100;
/** Sign-ins of a third party on behalf of one user; a new one ends the oldest. */
export const MAX_SESSIONS_PER_GRANT = 20;
export const MAX_PATS_PER_USER = 100;
export const MAX_CLIENTS_PER_USER = 50;
export const MAX_GRANTS_PER_USER = 200;
/**
 * How long an address from which an account signed in is known, how many of them are for one account, and of how many
 * accounts, those that signed in last: 300 bytes each with one address, 900 with all.
 */
export const KNOWN_ADDRESS_MS = 30 * 24 * 3_600_000;
export const MAX_KNOWN_ADDRESSES_PER_USER = 8;
export const MAX_KNOWN_ADDRESS_USERS = 2 ** 18;
/** Sessions that ended last, whose tokens are known to be revoked even when they have expired. */
export const MAX_ENDED_SESSIONS = 100_000;
/** Access tokens whose signature need not be looked at again. */
export const MAX_KNOWN_TOKENS = 50_000;
/** Signatures of unknown tokens that are looked at at one time; past it such requests are answered 50300. */
export const MAX_VERIFICATIONS = 256;
export const MAX_TOKEN_LENGTH = 4_096;
/** Of the path on the web page to which a sign-in at an identity provider leads. */
export const MAX_RETURN_TO_LENGTH = 500;
/** How long a spent refresh token that comes again in a cookie is a browser's second request, and not a thief's. */
export const REFRESH_LEEWAY_MS = 10_000;
/** Refreshes by cookie that are remembered for that long; past it the oldest have no leeway. */
export const MAX_RECENT_ROTATIONS = 20_000;
/** How often the last use of a token is noted in the database. */
export const LAST_USE_INTERVAL_MS = 60_000;
export const MAX_EMAIL_LENGTH = 254;
export const MIN_PASSWORD_LENGTH = 10;
export const MAX_PASSWORD_LENGTH = 128;
export const VERIFY_EMAIL_MS = 24 * 3_600_000;
export const RESET_PASSWORD_MS = 3_600_000;
/** Mails with a link, and codes to a phone: so many an hour for one user, to one number, from one address. */
export const MAX_MESSAGES_PER_HOUR = 5;
export const MAX_CODES_PER_NUMBER_AND_HOUR = 20;
export const MAX_CODES_PER_ADDRESS_AND_HOUR = 100;
export const PHONE_CODE_MS = 600_000;
export const MAX_WRONG_CODES = 5;
export const AUTHORIZATION_CODE_MS = 60_000;
/** Authorization codes that are remembered, the used ones for what their second use means. */
export const MAX_AUTHORIZATION_CODES = 10_000;
export const MAX_REDIRECT_URIS = 10;
/** Of all redirect URIs of one client together. */
export const MAX_REDIRECT_BYTES = 4_096;
/** How long rows of ended sessions are kept: longer than any access token of theirs could have lived. */
export const KEEP_ENDED_SESSIONS_MS = 2 * 24 * 3_600_000;
/** Rows of each kind that one sweep takes away. */
export const MAX_SWEPT_ROWS = 500;

/** Of one user: TOTP secrets (each makes a guess likelier), passkeys, and recovery codes of one issue. */
export const MAX_TOTPS_PER_USER = 2;
export const MAX_PASSKEYS_PER_USER = 10;
export const RECOVERY_CODES = 10;
/** How long a factor that is being added waits for its confirmation, and how many may wait in all. */
export const PENDING_FACTOR_MS = 600_000;
export const MAX_PENDING_FACTORS = 10_000;
/** How long a sign-in waits for its second step; how many of one user do, and of all. */
export const SIGN_IN_CHALLENGE_MS = 300_000;
export const MAX_CHALLENGES_PER_USER = 5;
export const MAX_CHALLENGES = 50_000;
/** Wrong codes of one user within an hour, at sign-in and, apart from that, of who is signed in. */
export const MAX_WRONG_CODES_PER_HOUR = 10;
/** How long a session may change second factors after a proof; also since its sign-in, where there is no password. */
export const PROOF_MS = 300_000;

export const MAX_BODY_BYTES = 64 * 1024;
/** Of what anybody may send without a token to sign in. */
export const MAX_SIGN_IN_BODY_BYTES = 8 * 1024;
export const MAX_CLIENT_ORDER_ID_LENGTH = 64;
export const MAX_BUILDER_CODE_LENGTH = 32;
/** Client order ids are kept as idempotency keys so long after their order was placed, and so many of them. */
export const CLIENT_ORDER_ID_MS = 24 * 3_600_000;
/** How long order updates can be asked for again. */
export const KEEP_UPDATES_MS = 8 * 24 * 3_600_000;
export const MAX_CLIENT_ORDER_IDS = 2 ** 24;
/** Of one account: at the default rate limits what it can place with ids in half a day, all in batches of 50. */
export const MAX_CLIENT_ORDER_IDS_PER_USER = 2 ** 20;
export const MAX_BATCH_OPERATIONS = 50;
export const MAX_QUOTES = 100;
export const MAX_PAGE_LIMIT = 200;
export const DEFAULT_PAGE_LIMIT = 50;
/**
 * Reads of the database that wait for a thread, of one reader and in all. What one may ask for in a minute under the usual
 * rate limits waits; half a kilobyte each.
 */
export const MAX_READS_PER_READER = 2_000;
export const MAX_WAITING_READS = 20_000;
/**
 * Orders that ended whose owner the gateway knows, so that what comes too late for them is answered from memory: 12 bytes
 * each, 12 MiB once there were so many.
 */
export const MAX_RECENTLY_ENDED_ORDERS = 2 ** 20;
/** Older ones are looked up in the database: so many wait of one user and in all, and are looked up in one read. */
export const MAX_LOOKUPS_PER_USER = 20_000;
export const MAX_WAITING_LOOKUPS = 100_000;
export const MAX_LOOKUPS_PER_READ = 1_000;
/** Rows of a chain that one read of a filtered list looks at; the next page goes on behind them. */
export const MAX_ROWS_WALKED = 10_000;
/** The same of live orders in memory: a millisecond. */
export const MAX_LIVE_WALKED = 20_000;
/** Rows that one read of a filtered list of operators looks at: milliseconds of the gateway, and of a reading thread. */
export const MAX_USERS_WALKED = 20_000;
export const MAX_AUDIT_WALKED = 50_000;
export const MAX_FEED_SIZE = 100;
export const DEFAULT_FEED_SIZE = 20;
/** Characters that a search may have, and searches whose finds are remembered until there is something new to find. */
export const MAX_SEARCH_LENGTH = 200;
export const MAX_CACHED_SEARCHES = 64;
/** Markets that an event is shown with, by itself and in lists; the others are in the list of markets. */
export const MAX_EVENT_MARKETS = 100;
export const MAX_LISTED_EVENT_MARKETS = 20;
/** Markets that a list is asked for by their ids. */
export const MAX_LISTED_IDS = 200;
/** Characters of a list that are written in one turn of the gateway's event loop: about a millisecond. */
export const MAX_CHARACTERS_PER_TURN = 256 * 1024;
/** Markets or events that are put in their new place in a list before it is read: about a millisecond. */
export const MAX_MOVED_PER_READ = 500;
/** Answers with order books that are kept until they change or newer ones need the room, in characters. */
export const MAX_BOOK_TEXT_LENGTH = 32 * 1024 * 1024;
/** The latest trades of all markets, 38 bytes each, and how many of them one page looks at at most. */
export const MAX_RECENT_TRADES = 2 ** 16;
export const MAX_TRADES_WALKED = 2_000;
/** Exports under way, all and of one user; each holds a slice of so many transactions. */
export const MAX_EXPORTS = 32;
/** A reader that is slower loses the rest of it, so that others get their turn. */
export const MAX_EXPORT_MS = 600_000;
export const MAX_EXPORTS_PER_USER = 2;
export const EXPORT_SLICE_ROWS = 2_000;
/** Of one answer, and where the request doesn't say since when. */
export const MAX_CANDLES = 1_500;
export const DEFAULT_CANDLES = 500;
export const MAX_WS_BACKPRESSURE_BYTES = 1024 * 1024;
/**
 * Of a client's message on the WebSocket, and of what is read at all, so that a longer one can be answered with 1009: as
 * much memory as a peer that doesn't read may hold in the other direction.
 */
export const MAX_WS_MESSAGE_BYTES = 64 * 1024;
export const MAX_WS_FRAME_BYTES = 1024 * 1024;
export const MAX_WS_SUBSCRIPTIONS = 1_000;
/** Of the gateway's time, what implied books that are followed may take, and milliseconds of it that may come at once. */
export const IMPLIED_TIME_SHARE = 0.1;
export const IMPLIED_BURST_MS = 10;
/** Order updates that a replay reads at a time, and fills that they tell of together (one alone may tell of more). */
export const REPLAY_PAGE = 1_000;
export const MAX_PAGE_FILLS = 4_096;
/** A replay sends so much at a time, waits while so much is unread, and holds so much of what happens meanwhile. */
export const REPLAY_SLICE_BYTES = 64 * 1024;
export const MAX_REPLAY_AHEAD_BYTES = 256 * 1024;
export const MAX_HELD_UPDATE_BYTES = 512 * 1024;
/** A ticket for the WebSocket may be used so long, and so many may be open. */
export const SOCKET_TICKET_MS = 60_000;
export const MAX_SOCKET_TICKETS = 50_000;
/**
 * A turn of the gateway's event loop that reads requests for longer than this is long: who then asks again before its
 * answer is cut off, and so is a socket that sent more messages in it than makers have under way.
 */
export const MAX_TURN_MS = 20;
export const MAX_MESSAGES_PER_LONG_TURN = 1_000;
/** The same of the sockets of users: a maker who cancels each of thousands of orders at once is no flood on a slow machine either. */
export const MAX_TURN_OF_USER_MS = 200;
export const MAX_MESSAGES_OF_USER_PER_LONG_TURN = 20_000;
/** Connections at one time; what each costs is in docs/performance.md. */
export const MAX_WS_CONNECTIONS = 100_000;
/** Of one IP address, unless MAX_SOCKETS_PER_ADDRESS says another number. */
export const SOCKETS_PER_ADDRESS = 500;
export const HEARTBEAT_MS = 5_000;
/** How often tickers are told, heartbeats go out in parts, and slow consumers are looked for. */
export const SOCKET_TICK_MS = 100;
/**
 * Beginnings of subscriptions (snapshots, first states) that a connection gets at one time, and a second after that; and
 * the bytes that its peer may have before it when the next ones are made.
 */
export const MAX_BEGINNINGS = 2 * MAX_WS_SUBSCRIPTIONS;
export const BEGINNINGS_PER_SECOND = 100;
export const MAX_BEGINNING_AHEAD_BYTES = 256 * 1024;
/** A peer that says nothing is pinged after 12 s and taken for dead 8 s later: this bounds cancel on disconnect. */
export const WS_IDLE_TIMEOUT_S = 20;
/** Containers within containers in a MessagePack message; what clients send is four deep. */
export const MAX_MESSAGE_DEPTH = 32;
/** Answers of sign-in that say no, a second; what they cost is taken from trading. */
export const SIGN_IN_REFUSALS_PER_SECOND = 2_000;
/**
 * Rate limit buckets that are remembered, each of one key on one route; past it the least recently used goes. 30 to 67 MB
 * of each kind: 6,500 users on 20 routes, addresses as many, and all identifiers that the pace above lets try in a minute.
 */
export const MAX_USER_RATE_BUCKETS = 2 ** 17;
export const MAX_ADDRESS_RATE_BUCKETS = 2 ** 17;
export const MAX_IDENTIFIER_RATE_BUCKETS = 2 ** 17;
/** The same of accounts at addresses known to them; few sign in in a minute, since each sign-in costs a hash. */
export const MAX_KNOWN_RATE_BUCKETS = 2 ** 14;
/** Client addresses whose normal form is remembered. */
export const MAX_CACHED_ADDRESSES = 4_096;
/** How soon all of a user's orders are canceled, at the least and at the most, unless the user asks again. */
export const MIN_CANCEL_AFTER_MS = 1_000;
export const MAX_CANCEL_AFTER_MS = 300_000;
/** How often it is looked whose time has come. */
export const CANCEL_TIMER_TICK_MS = 50;
/** A request that waits for the journal longer than this is answered 50000 and told to check before it retries. */
export const ANSWER_DEADLINE_MS = 10_000;
/** A read of the caller's own state waits at most so long for the messages about what it shows. */
export const READ_WAIT_MS = 5_000;
export const SHUTDOWN_DEADLINE_MS = 9_000;
/** From the announcement that a route will go until it may. */
export const MIN_DEPRECATION_MS = 30 * 24 * 3_600_000;
/** All metrics are read no more often than this, however many ask. */
export const METRICS_INTERVAL_MS = 100;

/** KYC tier to micro-USDC of activity a UTC day; tier 0 cannot trade. */
export const DAILY_ACTIVITY_LIMIT_MICRO: readonly number[] = [0, 100_000_000, 10_000_000_000];
