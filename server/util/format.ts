/** Formats money (micro-USDC), prices (BPS), share counts and names: for the page and for mails. */

/** Full payout of a share, micro-USDC. */
export const SHARE_MICRO = 1_000_000;
export const MICRO_DIGITS = 6;

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

/** "45.5¢ or more": the price of an alert. */
export const alertPrice = (bps: number | null, direction: string | null): string =>
  `${cents(bps)} or ${direction === "above" ? "more" : "less"}`;

export const shares = (count: number): string => count.toLocaleString("en-US");

const COMPACT = new Intl.NumberFormat("en-US", {
  ...{ notation: "compact", minimumSignificantDigits: 3, maximumSignificantDigits: 3 },
});
const MIN_COMPACT = 10_000;
/** "1,917", "12.3K". */
export const compact = (count: number): string => (count < MIN_COMPACT ? shares(count) : COMPACT.format(count));

/** "Sports": a category, which operators may have written in small letters. */
export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Turns a machine-readable name such as "max_live_orders" into words. */
export const humanize = (name: string): string => name.replaceAll("_", " ");

/** A status in words. The API calls rejected withdrawals and applications "refused". */
export const statusText = (status: string): string => (status === "refused" ? "rejected" : humanize(status));
