/** Formats times (ms since the epoch), in the zone of the browser. */

const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const DATE_TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const SHORT_DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const DAY_TIME = new Intl.DateTimeFormat("en-GB", {
  ...{ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
});
const DAY_CLOCK = new Intl.DateTimeFormat("en-GB", {
  ...{ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" },
});
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** Months have three letters: browsers differ about September. */
export const dateText = (format: Intl.DateTimeFormat, at: number): string => format.format(at).replace("Sept", "Sep");

export const date = (at: number | null): string => (at === null ? "–" : dateText(DATE, at));
/** "25 Oct": on the axis of a chart. */
export const shortDate = (at: number): string => dateText(SHORT_DATE, at);
export const dateTime = (at: number | null): string => (at === null ? "–" : dateText(DATE_TIME, at));
const isThisYear = (at: number): boolean => new Date(at).getFullYear() === new Date().getFullYear();
/** "24 Nov, 09:41", with the year if it is another one. */
export const rowTime = (at: number): string => dateText(isThisYear(at) ? DAY_TIME : DATE_TIME, at);
/** "24 Nov, 09:41:05", with the year if it is another one. */
export const rowClock = (at: number): string =>
  isThisYear(at) ? dateText(DAY_CLOCK, at) : `${date(at)}, ${clock(at)}`;
export const clock = (at: number): string => CLOCK.format(at);
