/** Turns errors into messages for the user: what happened, and what to do. Decides by error code wherever one exists. */

import { humanize } from "../util/format.ts";
import { ApiError, NO_ANSWER_TO_READ } from "./api.ts";

const MESSAGES: Readonly<Record<number, string>> = {
  2002: "Your session has expired. Sign in again.",
  42201: "Insufficient available balance.",
  42202: "Not enough available shares. Open sell orders keep shares on hold.",
  42203: "This market isn't open for trading.",
  42204: "You've reached your limit of open orders. Cancel one first.",
  42901:
    "This exceeds your daily limit for buys; you can still sell. The limit resets at 00:00 UTC. Verify your identity to raise it.",
};
const FORBIDDEN = 40300;
const TOO_MANY_REQUESTS = 42900;
const OVERLOADED = 50300;

export function errorMessage(error: unknown): string {
  if (!(error instanceof ApiError)) return "Something went wrong. Reload the page and try again.";
  const { status, code, message, retryAfter, traceId } = error;
  const soon = retryAfter === null ? "in a moment" : retryText(retryAfter);
  const fixed = MESSAGES[code];
  if (fixed !== undefined) return fixed;
  if (message === NO_ANSWER_TO_READ) return "Can't reach the exchange. The page tries again by itself.";
  if (status === 0)
    return "Can't reach the exchange. Check your connection. Before you retry, check whether the request took effect.";
  if (code === TOO_MANY_REQUESTS) return `Too many requests. Try again ${soon}.`;
  if (code === OVERLOADED) return `The exchange is busy or starting up. Your request had no effect. Try again ${soon}.`;
  if (status >= 500)
    return `Internal error.${traceId === null ? "" : ` Quote trace ID ${traceId} when you report it.`}`;
  if (code === FORBIDDEN) return forbiddenMessage(message);
  // Other messages say themselves which field or state is wrong.
  return toSentence(message);
}

/** The code doesn't say what is missing; the message does. */
function forbiddenMessage(message: string): string {
  if (/KYC tier 2/.test(message)) return "Verify your identity first, on your account page.";
  if (/KYC tier/.test(message)) return "Verify your email and phone number first, on your account page.";
  if (/suspended/.test(message)) return "This account is suspended. Contact support.";
  return toSentence(message);
}

/** @param seconds until a retry makes sense */
const retryText = (seconds: number): string =>
  seconds < 120 ? `in ${seconds} s` : `in ${Math.ceil(seconds / 60)} minutes`;

/** The server's validation message for a field of a form; null if the error is about something else. */
export function fieldErrorMessage(error: unknown, field: string): string | null {
  if (!(error instanceof ApiError) || !error.message.startsWith(`${field}:`)) return null;
  return toSentence(error.message.slice(field.length + 1).trim());
}

/** Turns a message such as "quantity: must be >= 1" into a sentence. */
function toSentence(message: string): string {
  const text = message.replace(/^([a-z_.]+):/, (_, field: string) => `${humanize(field)}:`);
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

const REASONS: Readonly<Record<string, string>> = {
  user: "canceled by you",
  post_only_would_cross: "a post-only order would have crossed the book",
  fok_unfillable: "it couldn't be filled completely",
  ioc_remainder: "the remainder couldn't be filled immediately",
  self_trade: "it would have traded with your own order",
  market_closed: "the market closed",
  market_halted: "the market is halted",
  cancel_on_disconnect: "its connection closed",
  cancel_after: "its cancel timer ran out",
  operator: "canceled by an operator",
  too_late: "it arrived too late",
  expired: "it expired",
};

/** Why an order was canceled or rejected, in words. */
export const reasonText = (name: string | null): string => (name === null ? "" : (REASONS[name] ?? humanize(name)));
