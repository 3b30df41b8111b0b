/** Bounds of notifications and price alerts. Imports nothing: the web page reads them too. */

/** Price alerts of one user that wait, and those that fired and are kept for the list. */
export const MAX_PRICE_ALERTS = 50;
export const MAX_FIRED_ALERTS = 20;
/** Price alerts of all users that wait; each takes a tenth of a kilobyte. */
export const MAX_WAITING_ALERTS = 200_000;

/** Notifications that the list shows, and how far back it reaches. */
export const MAX_NOTIFICATIONS = 50;
export const NOTIFICATION_DAYS = 30;
/** A user's latest fills that one read of the list looks at. */
export const MAX_FILLS_SEEN = 500;
