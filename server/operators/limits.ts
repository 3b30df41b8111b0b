/** Bounds of the operators' desk and of metrics. Imports nothing but other limits: the web page reads them too. */

/** Users that one read of the filtered list scans: milliseconds of the gateway. */
export const MAX_USERS_WALKED = 20_000;
/** The server collects all metrics no more often than this, however many scrapers ask. */
export const METRICS_INTERVAL_MS = 100;
