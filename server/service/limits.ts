/** Bounds of the service's own reports. Imports nothing but other limits. */

/** The server collects all metrics no more often than this, however many scrapers ask. */
export const METRICS_INTERVAL_MS = 100;

/** Book history leaves this much of the disk to the log: trading must not end for its sake. */
export const MIN_FREE_BYTES = 512 * 1024 * 1024;
