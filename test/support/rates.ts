/**
 * What clients see of their rate limits: response headers, rates in acknowledgements, rejections, GET /me/limits.
 * Knows no route's limit.
 */
import { expect } from "vitest";
import type { Answer } from "./client.ts";

export interface RateJson {
  readonly limit: number;
  readonly remaining: number;
  readonly reset: number;
}

export interface LimitsJson {
  readonly kyc_tier: number;
  readonly daily_activity: { readonly used: number; readonly limit: number };
  readonly rate_limits: readonly (RateJson & { readonly route: string; readonly scope: string })[];
}

/** RATE_LIMITS too high to reject anything: responses carry the headers, and public routes check tokens too. */
export const HIGH_LIMITS = JSON.stringify({
  user: 1_000_000,
  address: 1_000_000,
  order_user: 1_000_000,
  order_address: 1_000_000,
  auth_identifier: 1_000_000,
  refresh_address: 1_000_000,
  registration_address: 1_000_000,
});

/** The limit in a response's headers; null without any. */
export function rateOf({ headers }: Answer): RateJson | null {
  const names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
  if (names.every((name) => headers[name] === undefined)) return null;
  const [limit, remaining, reset] = names.map((name) => {
    expect([name, headers[name]]).toEqual([name, expect.stringMatching(/^\d+$/)]);
    return Number(headers[name]);
  });
  return { limit: limit!, remaining: remaining!, reset: reset! };
}

/** Limit and what remains, with a reset within the minute. */
export function expectRate(rate: RateJson | null | undefined, limit: number, remaining: number): void {
  expect([rate?.limit, rate?.remaining]).toEqual([limit, remaining]);
  expect(rate!.reset).toBeGreaterThan(0);
  expect(rate!.reset).toBeLessThanOrEqual(60);
}

/** The wait in a rejection: seconds, at most a minute. */
export function expectRetryAfter({ headers }: Answer): void {
  const after = Number(headers["retry-after"]);
  expect([after >= 1 && after <= 60, after]).toEqual([true, after]);
}

export function expectLimited(answer: Answer, limit: number): void {
  expect([answer.status, answer.code, answer.data]).toEqual([429, 42900, null]);
  expectRetryAfter(answer);
  expectRate(rateOf(answer), limit, 0);
}
