/** Formats and parses money (micro-USDC), prices (BPS), share counts and times (ms since the epoch). */

/** Full payout of a share, micro-USDC. */
export const SHARE_MICRO = 1_000_000;
const MICRO_DIGITS = 6;

/** "1,234.50": exact, with at least two decimals. */
export function money(micro: number): string {
  const digits = String(Math.abs(micro)).padStart(MICRO_DIGITS + 1, "0");
  const whole = digits.slice(0, -MICRO_DIGITS).replaceAll(/\B(?=(\d{3})+$)/g, ",");
  const decimals = digits.slice(-MICRO_DIGITS).replace(/0{1,4}$/, "");
  return `${micro < 0 ? "−" : ""}${whole}.${decimals}`;
}

/** With an explicit plus sign, for profit and loss. */
export const signedMoney = (micro: number): string => (micro > 0 ? `+${money(micro)}` : money(micro));

const GROUPED = /^\d{1,3}(?:[, ]\d{3})+(?=\.|$)/;

/** Turns "1,234.5" and "1 234.5" into "1234.5". Keeps a comma elsewhere, as in "1,5", where it means a decimal point. */
export const withoutGrouping = (text: string): string =>
  text.trim().replace(GROUPED, (whole) => whole.replaceAll(/[, ]/g, ""));

/** Parses an amount of USDC to micro-USDC; null if the text is no amount. */
export function parseMoney(text: string): number | null {
  const match = /^(\d{1,10})(?:\.(\d{0,6}))?$/.exec(withoutGrouping(text));
  if (match === null) return null;
  const micro = Number(match[1]) * SHARE_MICRO + Number((match[2] ?? "").padEnd(MICRO_DIGITS, "0"));
  return Number.isSafeInteger(micro) ? micro : null;
}

/** "42%", "42.5%": a price as a probability. */
export const percent = (bps: number | null): string => (bps === null ? "–" : `${bps / 100}%`);

/** "42.50%", for columns of prices. */
export const fullPercent = (bps: number): string => `${(bps / 100).toFixed(2)}%`;

/** "42.5¢": the price of a share in cents. */
export const cents = (bps: number | null): string => (bps === null ? "–" : `${bps / 100}¢`);

/** Parses a price in percent to BPS; null unless it is 0.01 to 99.99. */
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

/** Turns a machine-readable name such as "max_live_orders" into words. */
export const humanize = (name: string): string => name.replaceAll("_", " ");

/** A status in words. The API calls rejected withdrawals and applications "refused". */
export const statusText = (status: string): string => (status === "refused" ? "rejected" : humanize(status));
