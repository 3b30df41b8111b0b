/** What went wrong, in words for a person: what happened, and what to do. */
import { ApiError } from "./api.ts";
import { humanize } from "./format.ts";

export function errorMessage(error: unknown): string {
  if (!(error instanceof ApiError)) return "Something went wrong on this page. Reload it and try again.";
  const { status, code, message, retryAfter, traceId } = error;
  const soon = retryAfter === null ? "in a moment" : retryText(retryAfter);
  if (status === 0)
    return "The exchange can't be reached. Check your connection, and before you send something again, whether it was done.";
  if (code === 42901) {
    return "That would go over your daily limit for buying. You can still sell. It resets at 00:00 UTC; verifying your identity raises it.";
  }
  if (code === 42900) return `That was too often. Try again ${soon}.`;
  if (code === 42201 && /the house has/.test(message)) return "The house doesn't have that much.";
  if (code === 42201) return "Your available balance isn't enough for this.";
  if (code === 42202) return "You don't have that many shares free to sell. Open sell orders hold theirs.";
  if (code === 42203) return "This market isn't open for trading at the moment.";
  if (code === 42204) return "You have as many open orders as your account may have. Cancel one first.";
  if (code === 2002) return "Your session has expired. Sign in again.";
  if (code === 50300) return `The exchange is busy or starting. Nothing was done; try again ${soon}.`;
  if (status >= 500)
    return `The exchange made a mistake.${traceId === null ? "" : ` Quote ${traceId} when you report it.`}`;
  if (code === 40900) return conflictMessage(message);
  if (code === 40300 && /KYC tier 2/.test(message))
    return "Your identity must be verified first, on your account page.";
  if (code === 40300 && /KYC tier/.test(message)) {
    return "Your e-mail address and phone number must be verified first, on your account page.";
  }
  if (code === 40300 && /suspended/.test(message))
    return "This account is suspended. Ask the operator of the exchange.";
  // The rest says itself which field and which bound.
  return toSentence(message);
}

const CHANGED = /^the (withdrawal|market|application|account) is /;

/** Somebody was faster, or something of the same name is there. */
function conflictMessage(message: string): string {
  if (CHANGED.test(message)) return `This isn't any more as it was shown: ${message}.`;
  if (message === "reference: another one has it") return "This reference belongs to another payment.";
  if (message === "slug: taken") return "This slug is taken: choose another one.";
  const [, operator] = /^(.+) asked for something else/.exec(message) ?? [];
  if (operator === undefined) return toSentence(message);
  return `Another operator (${operator}) has asked for something else. Ask for exactly the same, or have that taken back first.`;
}

/** Seconds until it may be tried again. */
const retryText = (seconds: number): string =>
  seconds < 120 ? `in ${seconds} s` : `in ${Math.ceil(seconds / 60)} minutes`;

/** What the exchange says of one field of a form; null where the error is about something else. */
export function fieldErrorMessage(error: unknown, field: string): string | null {
  if (!(error instanceof ApiError) || !error.message.startsWith(`${field}:`)) return null;
  return toSentence(error.message.slice(field.length + 1).trim());
}

/** "quantity: must be >= 1" as a sentence. */
function toSentence(message: string): string {
  const text = message.replace(/^([a-z_.]+):/, (_, field: string) => `${humanize(field)}:`);
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

const REASONS: Readonly<Record<string, string>> = {
  user: "canceled by you",
  post_only_would_cross: "post-only, and it would have traded at once",
  fok_unfillable: "it couldn't be filled whole",
  ioc_remainder: "the rest found no counterpart",
  self_trade: "it would have traded with an order of yours",
  market_closed: "the market closed",
  market_halted: "the market is halted",
  cancel_on_disconnect: "its connection closed",
  cancel_after: "nothing came in time to put its timer off",
  operator: "canceled by an operator",
  too_late: "it came too late",
  expired: "its time was over",
};

/** Why an order ended. */
export const reasonText = (name: string | null): string => (name === null ? "" : (REASONS[name] ?? humanize(name)));
