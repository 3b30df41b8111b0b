/** Bounds of book history. Imports nothing but other limits. */

/** It leaves this much of the disk to the log: trading must not end for its sake. */
export const MIN_FREE_BYTES = 512 * 1024 * 1024;
