/** How the bounds of the engine relate: asserted when the process starts. */
import assert from "node:assert";
import {
  MarketStatus,
  MatchType,
  OrderStatus,
  OrderType,
  Reason,
  Role,
  SelfTradePrevention,
  Side,
  TimeInForce,
} from "./constants.ts";
import {
  COMMAND_RING_RECORDS,
  EVENT_RING_RECORDS,
  FULL_PRICE_BPS,
  MAX_BATCH_COMMANDS,
  MAX_CHAIN_COMMANDS,
  MAX_EVENTS_PER_STEP,
  MAX_KEYS_PRUNED,
  MAX_LIVE_ORDERS,
  MAX_MONEY_MICRO,
  MAX_PRICE_BPS,
  MAX_QUANTITY,
  MAX_USERS,
  MICRO_PER_BPS,
  OUTCOME_ID_BITS,
} from "./limits.ts";
import { assertBatchLayout } from "./log/batch-format.ts";
import { assertProgressLayout } from "./log/progress.ts";
import { assertOrderTerms } from "./ring/order-terms.ts";
import { assertRecordLayout } from "./ring/records.ts";
import { assertRingLayout } from "./ring/ring.ts";

/** Asserts that no two bounds and no two layouts of the engine contradict each other. Called once at startup. */
export function assertEngineLimits(): void {
  assertRecordLayout();
  assertOrderTerms();
  assertRingLayout();
  assertBatchLayout();
  assertProgressLayout();
  assertStateCodes();

  assert(MAX_PRICE_BPS === FULL_PRICE_BPS - 1);
  assert(MAX_PRICE_BPS * MICRO_PER_BPS * MAX_QUANTITY <= MAX_MONEY_MICRO, "one order's hold is an exact integer");
  assert(MAX_PRICE_BPS * MAX_QUANTITY * 3 < Number.MAX_SAFE_INTEGER, "the fee's product is an exact integer");
  assert(MAX_QUANTITY <= 2 ** 31 - 1, "quantities fit an int32");
  assert(MAX_USERS * 2 ** OUTCOME_ID_BITS < Number.MAX_SAFE_INTEGER, "a position's key is an exact integer");
  assert(MAX_LIVE_ORDERS < 2 ** 31, "order slots fit an int32");

  assert(COMMAND_RING_RECORDS >= MAX_BATCH_COMMANDS);
  assert(EVENT_RING_RECORDS >= 4 * MAX_BATCH_COMMANDS, "a batch's events fit the ring many times over");
  assert(MAX_CHAIN_COMMANDS <= MAX_BATCH_COMMANDS, "a chain fits a batch, and so the command ring");
  assert(4 * MAX_EVENTS_PER_STEP + 2 * MAX_CHAIN_COMMANDS <= EVENT_RING_RECORDS, "a chain finds room in an empty ring");

  assert(MAX_KEYS_PRUNED > 1, "expired Idempotency-Keys leave faster than new ones arrive");
}

/** The codes that records pack into four bits, or fewer. */
function assertStateCodes(): void {
  const largest = (codes: Readonly<Record<string, number>>): number => Math.max(...Object.values(codes));
  for (const codes of [OrderStatus, MarketStatus, Reason, OrderType, TimeInForce, SelfTradePrevention, Side]) {
    assert(largest(codes) < 2 ** 4, "a code fits four bits of a record");
  }
  assert(largest(MatchType) < 2 ** 2, "a match type fits two bits");
  assert(largest(Role) < 2, "a role fits one bit");
}
