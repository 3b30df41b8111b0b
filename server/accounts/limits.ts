/**
 * Bounds of accounts: terms, sessions, tokens, passwords, messages, second factors. Imports nothing but other limits: the
 * web page reads them too.
 */

/** An account's own terms: its rebate, the factor of its rate limits, and its live orders. */
export const MAX_OWN_REBATE_BPS = 150;
export const MAX_RATE_LIMIT_FACTOR = 1_000;
export const MAX_OWN_LIVE_ORDERS = 200_000;
/** Live orders of one account by KYC tier, those in flight included; the account's terms can set another number. */
export const LIVE_ORDERS_OF_TIER: readonly number[] = [0, 500, 20_000];

/** First approvals that wait for a second operator. */
export const MAX_OPEN_APPROVALS = 10_000;

/** An account whose email address is unverified is deleted after this time, or sooner if there are too many of them. */
export const UNVERIFIED_ACCOUNT_MS = 7 * 24 * 3_600_000;
export const MAX_UNVERIFIED_USERS = 2 ** 18;
/** Unverified accounts that one write of the log deletes. */
export const MAX_DELETED_AT_ONCE = 50;

/** Sessions of one user; a new one ends the oldest. */
export const MAX_SESSIONS_PER_USER = 100;
/** Sign-ins of one third party on behalf of one user; a new one ends the oldest. */
export const MAX_SESSIONS_PER_GRANT = 20;
export const MAX_PATS_PER_USER = 100;
/** Most recently ended sessions: the gateway rejects their tokens as revoked even after those have expired. */
export const MAX_ENDED_SESSIONS = 100_000;
/** The server keeps the rows of an ended session for this time, which is longer than any of its access tokens lives. */
export const KEEP_ENDED_SESSIONS_MS = 2 * 24 * 3_600_000;

/**
 * How long the exchange knows an address from which an account signed in, how many addresses it knows for one account,
 * and for how many accounts, the most recent first: 300 bytes each with one address, 900 with all.
 */
export const KNOWN_ADDRESS_MS = 30 * 24 * 3_600_000;
export const MAX_KNOWN_ADDRESSES_PER_USER = 8;
export const MAX_KNOWN_ADDRESS_USERS = 2 ** 18;

export const MAX_TOKEN_LENGTH = 4_096;
/** Access tokens whose verified signature is cached. */
export const MAX_KNOWN_TOKENS = 50_000;
/** Concurrent signature checks of unknown tokens; beyond the bound, the server responds with 50300. */
export const MAX_VERIFICATIONS = 256;
/** How often the server records the last use of a token. */
export const LAST_USE_INTERVAL_MS = 60_000;

/**
 * A browser's concurrent second request may present the refresh token that the first has just spent. Within this time,
 * the exchange doesn't treat the reuse as theft.
 */
export const REFRESH_GRACE_MS = 10_000;
/** Rotations by cookie in memory; beyond the bound, the oldest lose their grace period. */
export const MAX_RECENT_ROTATIONS = 20_000;

export const MIN_PASSWORD_LENGTH = 10;
export const MAX_PASSWORD_LENGTH = 128;
export const VERIFY_EMAIL_MS = 24 * 3_600_000;
export const RESET_PASSWORD_MS = 3_600_000;
/** Characters of the path on the web page to which a sign-in at an identity provider returns. */
export const MAX_RETURN_TO_LENGTH = 500;

/** Mails with a link, and codes to a phone: per hour and user, per phone number, and per client address. */
export const MAX_MESSAGES_PER_HOUR = 5;
export const MAX_CODES_PER_NUMBER_AND_HOUR = 20;
export const MAX_CODES_PER_ADDRESS_AND_HOUR = 100;
export const PHONE_CODE_MS = 600_000;
export const MAX_WRONG_CODES = 5;

/** TOTP secrets of one user; each makes a guess likelier to succeed. */
export const MAX_TOTPS_PER_USER = 2;
export const MAX_PASSKEYS_PER_USER = 10;
/** Recovery codes that one issue holds. */
export const RECOVERY_CODES = 10;
/** How long a new factor waits for its confirmation, and how many wait in total. */
export const PENDING_FACTOR_MS = 600_000;
export const MAX_PENDING_FACTORS = 10_000;
/** How long a sign-in waits for its second step; how many wait for one user and in total. */
export const SIGN_IN_CHALLENGE_MS = 300_000;
export const MAX_CHALLENGES_PER_USER = 5;
export const MAX_CHALLENGES = 50_000;
/** Wrong codes of one user per hour; sign-ins and signed-in sessions count separately. */
export const MAX_WRONG_CODES_PER_HOUR = 10;
/** How long a session may change second factors after a proof, or after its sign-in where there is no password. */
export const PROOF_MS = 300_000;
