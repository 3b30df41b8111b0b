/** Bounds of reads from the database. Imports nothing but other limits: the web page reads them too. */

/**
 * Reads that wait for a thread, of one reader and in total. One reader's bound holds what the default rate limits allow in
 * a minute; each read takes half a kilobyte.
 */
export const MAX_READS_PER_READER = 2_000;
export const MAX_WAITING_READS = 20_000;
/** How long a read waits for the tables to include what was committed before it. */
export const MAX_PROJECTION_WAIT_MS = 10_000;

/** Lookups of old orders by id: how many wait for one user and in total, and how many one read resolves. */
export const MAX_LOOKUPS_PER_USER = 20_000;
export const MAX_WAITING_LOOKUPS = 100_000;
export const MAX_LOOKUPS_PER_READ = 1_000;

/** Linked rows that one read of a filtered list scans; the next page continues behind them. */
export const MAX_ROWS_WALKED = 10_000;
/** Hourly rows of positions that one read of a portfolio's history takes: a longer one begins later than asked. */
export const MAX_HOLDING_ROWS = 200_000;
/** Audit rows that one read of the operators' filtered list scans: milliseconds of a reader thread. */
export const MAX_AUDIT_WALKED = 50_000;
/** Fills of the order updates that one read of a replay returns together; a single update may have more. */
export const MAX_PAGE_FILLS = 4_096;
/** Bytes of the log that such a read scans, unless it has found no update by then. */
export const MAX_SCANNED_BYTES = 64 * 1024 * 1024;
/** Entries of each kind (deposits, terms, identity decisions) that an account's trail shows beside a withdrawal. */
export const MAX_TRAIL = 50;

/** Concurrent exports, of all users and of one; each holds one slice of its rows in memory. */
export const MAX_EXPORTS = 32;
export const MAX_EXPORTS_PER_USER = 2;
export const EXPORT_SLICE_ROWS = 2_000;
/** The server cuts an export short after this time, so that a slow reader doesn't keep others waiting. */
export const MAX_EXPORT_MS = 600_000;

/** Faults of the log that the server remembers, so that each is logged once. */
export const MAX_LOG_FAULTS = 100;
