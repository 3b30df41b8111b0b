/** How money, prices, shares and times are shown. Money is in micro-USDC, prices in BPS, times in ms since the epoch. */

/** A share pays so much, micro-USDC. */
export const SHARE_MICRO = 1_000_000;
const MICRO_DIGITS = 6;

/** "1,234.50": exact, with two decimals or as many as it takes. */
export function money(micro: number): string {
  const digits = String(Math.abs(micro)).padStart(MICRO_DIGITS + 1, "0");
  const whole = digits.slice(0, -MICRO_DIGITS).replaceAll(/\B(?=(\d{3})+$)/g, ",");
  const decimals = digits.slice(-MICRO_DIGITS).replace(/0{1,4}$/, "");
  return `${micro < 0 ? "−" : ""}${whole}.${decimals}`;
}

/** With its sign, as profit is shown. */
export const signedMoney = (micro: number): string => (micro > 0 ? `+${money(micro)}` : money(micro));

const GROUPED = /^\d{1,3}(?:[, ]\d{3})+(?=\.|$)/;

/** "1,234.5" and "1 234.5" as "1234.5". A comma elsewhere, as in "1,5", stays: who typed it meant something else. */
export const withoutGrouping = (text: string): string =>
  text.trim().replace(GROUPED, (whole) => whole.replaceAll(/[, ]/g, ""));

/** Text that a person typed, in micro-USDC; null where it is no amount. */
export function parseMoney(text: string): number | null {
  const match = /^(\d{1,10})(?:\.(\d{0,6}))?$/.exec(withoutGrouping(text));
  if (match === null) return null;
  const micro = Number(match[1]) * SHARE_MICRO + Number((match[2] ?? "").padEnd(MICRO_DIGITS, "0"));
  return Number.isSafeInteger(micro) ? micro : null;
}

/** "42 %", "42.5 %": a price as a probability. */
export const percent = (bps: number | null): string => (bps === null ? "–" : `${bps / 100} %`);

/** "42.50 %": where prices stand below each other. */
export const fullPercent = (bps: number): string => `${(bps / 100).toFixed(2)} %`;

/** "42.5¢" of a price: what a share costs. */
export const cents = (bps: number | null): string => (bps === null ? "–" : `${bps / 100}¢`);

/** Text that a person typed as a price in percent, in BPS; null where it is none of 0.01 to 99.99. */
export function parsePrice(text: string): number | null {
  const match = /^(\d{1,2})(?:\.(\d{0,2}))?$/.exec(text.trim());
  if (match === null) return null;
  const bps = Number(match[1]) * 100 + Number((match[2] ?? "").padEnd(2, "0"));
  return bps >= 1 && bps <= 9_999 ? bps : null;
}

export const shares = (count: number): string => count.toLocaleString("en-US");

const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
/** "12.3K". */
export const compact = (count: number): string => COMPACT.format(count);

const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const DATE_TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const date = (at: number | null): string => (at === null ? "–" : DATE.format(at));
export const dateTime = (at: number | null): string => (at === null ? "–" : DATE_TIME.format(at));
export const clock = (at: number): string => CLOCK.format(at);

const MINUTE_MS = 60_000;

/** What a field for date and time shows of a time, in the person's own zone: "2026-11-22T08:30"; "" of none. */
export function toLocalTime(at: number | null): string {
  if (at === null) return "";
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * MINUTE_MS);
  return shifted.toISOString().slice(0, "2026-11-22T08:30".length);
}

/** What such a field has, in ms; null where that is no time. */
export function parseLocalTime(text: string): number | null {
  const at = text === "" ? Number.NaN : new Date(text).getTime();
  return Number.isNaN(at) ? null : at;
}

/** "gtc" in words, "post_only_would_cross" too. */
export const humanize = (name: string): string => name.replaceAll("_", " ");
