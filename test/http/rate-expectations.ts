/** What tests of rate limits expect of responses and acknowledgements over real sockets. */
import { expect } from "vitest";
import type { Answer } from "../support/client.ts";
import { expectRate, rateOf } from "../support/rates.ts";
import type { Acknowledgement } from "../support/socket.ts";

/** Status, limit and the rest of it; the reset is within the minute. */
export function expectAnswer(answer: Answer, status: number, limit: number, remaining: number): void {
  expect(answer.status).toBe(status);
  expectRate(rateOf(answer), limit, remaining);
}

/** A rejected operation of the WebSocket. */
export function expectLimitedAck(answer: Acknowledgement, limit: number): void {
  expect([answer.code, answer.data]).toEqual([42900, null]);
  expectRate(answer.rate_limit, limit, 0);
}
