/** Bounds of the OAuth server. Imports nothing but other limits: the web page reads them too. */

/** Clients that one user registers, and grants to third parties that one user gives. */
export const MAX_CLIENTS_PER_USER = 50;
export const MAX_GRANTS_PER_USER = 200;

export const AUTHORIZATION_CODE_MS = 60_000;
/** Authorization codes in memory; used ones stay, because a second use reveals a theft. */
export const MAX_AUTHORIZATION_CODES = 10_000;
/** Outstanding codes of one user; a new one replaces the oldest. */
export const MAX_AUTHORIZATION_CODES_PER_USER = 20;

export const MAX_REDIRECT_URIS = 10;
/** Bytes of all redirect URIs of one client together. */
export const MAX_REDIRECT_BYTES = 4_096;
