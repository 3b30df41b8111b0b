/** Bounds of startup and shutdown. Imports nothing but other limits. */

/** How long a shutdown may take before the process exits anyway. */
export const SHUTDOWN_DEADLINE_MS = 9_000;
