/** Formats and parses money (micro-USDC), prices (BPS), share counts and times (ms since the epoch). */

/** Full payout of a share, micro-USDC. */
export const SHARE_MICRO = 1_000_000;
const MICRO_DIGITS = 6;

const MICRO_PER_CENT = 10_000;

/** "1,234.50": rounded to the nearest cent; "<0.01" for less. For summaries: amounts that are booked are exact. */
export function money(micro: number): string {
  const cents = Math.round(Math.abs(micro) / MICRO_PER_CENT);
  if (cents === 0 && micro !== 0) return micro < 0 ? "−<0.01" : "<0.01";
  return exactMoney(Math.sign(micro) * cents * MICRO_PER_CENT);
}

/** As `money`, rounded down: never more than there is to spend. */
export const spendable = (micro: number): string => exactMoney(Math.floor(micro / MICRO_PER_CENT) * MICRO_PER_CENT);

/** "1,234.50", "0.000150": exact, with at least two decimals. */
export function exactMoney(micro: number): string {
  const digits = String(Math.abs(micro)).padStart(MICRO_DIGITS + 1, "0");
  const whole = digits.slice(0, -MICRO_DIGITS).replaceAll(/\B(?=(\d{3})+$)/g, ",");
  const decimals = digits.slice(-MICRO_DIGITS).replace(/0{1,4}$/, "");
  return `${micro < 0 ? "−" : ""}${whole}.${decimals}`;
}

/** With an explicit plus sign, for profit and loss. */
export const signedMoney = (micro: number): string => (micro > 0 ? `+${money(micro)}` : money(micro));

/** "1,234", "1 234", "1'234", "1.234.567": groups of three behind a leading digit 1 to 9, with one separator. */
const GROUPED = /^[1-9]\d{0,2}(?:([, '’])\d{3}(?:\1\d{3})*|\.\d{3}(?:\.\d{3})+|\.\d{3}(?=,))(?!\d)/;
const MAX_WHOLE_DIGITS = 10;

/**
 * Reads a number as people type it in any country, exactly: the one reader of every number field. A comma is a decimal
 * comma unless it separates groups of three, as in "1,234"; a lone point is a decimal point.
 * @param decimals how many it may have @returns units of 10^-decimals; null if the text is no such number, or too large
 */
function readNumber(text: string, decimals: number): number | null {
  const given = text.trim().replaceAll(/\s/g, " ");
  const whole = GROUPED.exec(given)?.[0] ?? /^\d+/.exec(given)?.[0] ?? "";
  const rest = given.slice(whole.length);
  const digits = whole.replaceAll(/\D/g, "");
  const decimal = /^(?:[.,](\d*))?$/.exec(rest);
  if (digits === "" || digits.length > MAX_WHOLE_DIGITS || decimal === null) return null;
  // The separator of groups can't be the decimal one, too.
  if (rest !== "" && whole.includes(rest.charAt(0))) return null;
  const [, fraction = ""] = decimal;
  if (fraction.length > decimals || (decimals === 0 && rest !== "")) return null;
  const value = Number(digits + fraction.padEnd(decimals, "0"));
  return Number.isSafeInteger(value) ? value : null;
}

/** Parses an amount of USDC to micro-USDC; null if the text is no amount. */
export const parseMoney = (text: string): number | null => readNumber(text, MICRO_DIGITS);

/** Parses a percentage to BPS; null if the text is none. */
export const parsePercent = (text: string): number | null => readNumber(text, 2);

/** Parses a whole number; null if the text is none. */
export const parseCount = (text: string): number | null => readNumber(text, 0);

/** Parses a price in cents to BPS; null unless it is 0.01 to 99.99. */
export function parsePrice(text: string): number | null {
  const bps = parsePercent(text);
  return bps !== null && bps >= 1 && bps <= 9_999 ? bps : null;
}

/** "42%", "1.5%": a fee, a rebate, or a share of something. */
export const percent = (bps: number | null): string => (bps === null ? "–" : `${bps / 100}%`);

/** "51%": how likely, in whole percent; "<1%" and ">99%" near the ends. */
export function chanceText(bps: number | null): string {
  if (bps === null) return "–";
  if (bps > 0 && bps < 100) return "<1%";
  return bps < 10_000 && bps > 9_900 ? ">99%" : `${Math.round(bps / 100)}%`;
}

/** "52.0", "51.25": the price of a share in cents, without its unit. For columns that name it. */
export function priceNumber(bps: number | null): string {
  if (bps === null) return "–";
  return (bps / 100).toFixed(bps % 10 === 0 ? 1 : 2);
}

/** "52.0¢": the price of a share. */
export const cents = (bps: number | null): string => (bps === null ? "–" : `${priceNumber(bps)}¢`);

export const shares = (count: number): string => count.toLocaleString("en-US");

const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const MIN_COMPACT = 10_000;
/** "1,917", "12.3K". */
export const compact = (count: number): string => (count < MIN_COMPACT ? shares(count) : COMPACT.format(count));

const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const DATE_TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const SHORT_DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const SHORT_TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const date = (at: number | null): string => (at === null ? "–" : DATE.format(at));
/** "25 Oct", or "14:30" on an axis of less than two days. @param span ms that the axis covers */
export const axisTime = (at: number, span: number): string =>
  (span < 2 * 86_400_000 ? SHORT_TIME : SHORT_DATE).format(at);
export const dateTime = (at: number | null): string => (at === null ? "–" : DATE_TIME.format(at));
export const clock = (at: number): string => CLOCK.format(at);

const MINUTE_MS = 60_000;

/** Value of a datetime-local field for a time, in the browser's zone: "2026-11-22T08:30"; "" for null. */
export function toLocalTime(at: number | null): string {
  if (at === null) return "";
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * MINUTE_MS);
  return shifted.toISOString().slice(0, "2026-11-22T08:30".length);
}

/** Parses the value of a datetime-local field to ms; null if it is incomplete. */
export function parseLocalTime(text: string): number | null {
  const at = text === "" ? Number.NaN : new Date(text).getTime();
  return Number.isNaN(at) ? null : at;
}

/** "Sports": a category, which operators may have written in small letters. */
export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Turns a machine-readable name such as "max_live_orders" into words. */
export const humanize = (name: string): string => name.replaceAll("_", " ");

/** A status in words. The API calls rejected withdrawals and applications "refused". */
export const statusText = (status: string): string => (status === "refused" ? "rejected" : humanize(status));
