/** Bounds of the service's own reports. Imports nothing but other limits. */

/** The server collects all metrics no more often than this, however many scrapers ask. */
export const METRICS_INTERVAL_MS = 100;
