/** Bounds of the operators' desk. Imports nothing but other limits: the web page reads them too. */

/** Users that one read of the filtered list scans: milliseconds of the gateway. */
export const MAX_USERS_WALKED = 20_000;
