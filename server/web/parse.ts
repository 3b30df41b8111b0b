/** Reads what people type: money (micro-USDC), prices (BPS), counts and times (ms since the epoch). */
import { MICRO_DIGITS } from "../util/format.ts";

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
