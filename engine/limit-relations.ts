/** How the bounds of the exchange stand to each other: asserted when the process starts. */
import assert from "node:assert";
import {
  COMMAND_RING_RECORDS,
  EVENT_RING_RECORDS,
  EXPORT_SLICE_ROWS,
  FULL_PRICE_BPS,
  HEARTBEAT_MS,
  KEEP_UPDATES_MS,
  LIVE_ORDERS_OF_TIER,
  MAX_AUDIT_WALKED,
  MAX_BATCH_COMMANDS,
  MAX_CHAIN_COMMANDS,
  MAX_CLIENT_ORDER_IDS,
  MAX_CLIENT_ORDER_IDS_PER_USER,
  MAX_EVENTS_PER_STEP,
  MAX_HELD_UPDATE_BYTES,
  MAX_IDENTIFIER_RATE_BUCKETS,
  MAX_KEYS_PRUNED,
  MAX_LIVE_ORDERS,
  MAX_MONEY_MICRO,
  MAX_OWN_LIVE_ORDERS,
  MAX_OWN_REBATE_BPS,
  MAX_PAGE_LIMIT,
  MAX_PRICE_BPS,
  MAX_QUANTITY,
  MAX_QUOTES,
  MAX_RECENT_TRADES,
  MAX_RECENTLY_ENDED_ORDERS,
  MAX_REPLAY_AHEAD_BYTES,
  MAX_ROWS_WALKED,
  MAX_TRADES_WALKED,
  MAX_USERS,
  MAX_USERS_WALKED,
  MAX_WS_BACKPRESSURE_BYTES,
  MAX_WS_FRAME_BYTES,
  MAX_WS_MESSAGE_BYTES,
  MICRO_PER_BPS,
  OUTCOME_ID_BITS,
  REPLAY_SLICE_BYTES,
  RESERVED_PART,
  SIGN_IN_REFUSALS_PER_SECOND,
  SMALL_LIVE_ORDERS,
  SOCKET_TICK_MS,
  TRADING_FEE_BPS,
} from "./limits.ts";

/** Throws when two bounds contradict each other. Called once at start. */
export function assertLimits(): void {
  assert(MAX_PRICE_BPS === FULL_PRICE_BPS - 1);
  assert(MAX_OWN_REBATE_BPS <= TRADING_FEE_BPS, "no trade with a seller who pays the usual fee costs the house");
  assert(MAX_PRICE_BPS * MICRO_PER_BPS * MAX_QUANTITY <= MAX_MONEY_MICRO, "one order's hold is an exact integer");
  assert(MAX_PRICE_BPS * MAX_QUANTITY * 3 < Number.MAX_SAFE_INTEGER, "the fee's product is an exact integer");
  assert(MAX_QUANTITY <= 2 ** 31 - 1, "quantities fit an int32");
  assert(MAX_USERS * 2 ** OUTCOME_ID_BITS < Number.MAX_SAFE_INTEGER, "a position's key is an exact integer");
  assert(EVENT_RING_RECORDS >= 4 * MAX_BATCH_COMMANDS, "a batch's events fit the ring many times over");
  assert(COMMAND_RING_RECORDS >= MAX_BATCH_COMMANDS);
  assert(MAX_CHAIN_COMMANDS <= MAX_BATCH_COMMANDS, "a chain fits a batch, and so the command ring");
  assert(2 * MAX_QUOTES <= MAX_CHAIN_COMMANDS, "all quotes of a market are replaced in one chain");
  assert(4 * MAX_EVENTS_PER_STEP + 2 * MAX_CHAIN_COMMANDS <= EVENT_RING_RECORDS, "a chain finds room in an empty ring");
  assert(MAX_LIVE_ORDERS < 2 ** 31);
  assert(Math.max(...LIVE_ORDERS_OF_TIER) <= MAX_OWN_LIVE_ORDERS, "terms can raise what every tier has");
  assert(8 * MAX_OWN_LIVE_ORDERS < (1 - RESERVED_PART) * MAX_LIVE_ORDERS, "no eight accounts fill the exchange");
  assert(MAX_QUOTES <= SMALL_LIVE_ORDERS, "a small account can quote a market out of the reserve");
  assert(12 * MAX_CLIENT_ORDER_IDS_PER_USER < (1 - RESERVED_PART) * MAX_CLIENT_ORDER_IDS, "no twelve accounts fill it");
  assert(Number.isInteger(Math.log2(MAX_RECENT_TRADES)), "places of recent trades are masked");
  assert(MAX_TRADES_WALKED > MAX_PAGE_LIMIT, "the first page of recent trades is in reach");
  assert(Math.min(MAX_USERS_WALKED, MAX_AUDIT_WALKED) > MAX_PAGE_LIMIT, "a list without a filter has full pages");
  assert(MAX_ROWS_WALKED >= Math.max(MAX_PAGE_LIMIT, EXPORT_SLICE_ROWS), "a list without a filter has full pages");
  assert(Number.isInteger(Math.log2(MAX_RECENTLY_ENDED_ORDERS)), "places of ended orders are a part of their ids");
  assert(HEARTBEAT_MS % SOCKET_TICK_MS === 0, "heartbeats go out in equal parts");
  assert(
    MAX_REPLAY_AHEAD_BYTES + REPLAY_SLICE_BYTES + MAX_HELD_UPDATE_BYTES < MAX_WS_BACKPRESSURE_BYTES,
    "who reads a replay at its own pace is not taken for a slow consumer",
  );
  assert(MAX_WS_MESSAGE_BYTES < MAX_WS_FRAME_BYTES, "who sends too much can be told");
  assert(MAX_WS_FRAME_BYTES <= MAX_WS_BACKPRESSURE_BYTES, "a peer holds no more memory one way than the other");
  assert(KEEP_UPDATES_MS > 7 * 24 * 3_600_000, "order updates are kept for seven days at least");
  assert(MAX_KEYS_PRUNED > 1, "old Idempotency-Keys go faster than new ones come");
  assert(MAX_IDENTIFIER_RATE_BUCKETS >= 60 * SIGN_IN_REFUSALS_PER_SECOND, "none is evicted within its minute");
}
