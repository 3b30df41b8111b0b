/**
 * The checks before anything is opened: bounds that depend on each other, native packages, this version of Node.
 */
import type * as Uws from "uWebSockets.js";
import assert from "node:assert";
import { assertEngineLimits } from "../../engine/limit-relations.ts";
import { MAX_CHAIN_COMMANDS, MAX_LIVE_ORDERS, TRADING_FEE_BPS } from "../../engine/limits.ts";
import { hashFlaw } from "../../engine/util/node-support.ts";
import { loadSqlite } from "../../engine/util/sqlite.ts";
import { LIVE_ORDERS_OF_TIER, MAX_OWN_LIVE_ORDERS, MAX_OWN_REBATE_BPS } from "../accounts/limits.ts";
import { MAX_IDENTIFIER_RATE_BUCKETS, MAX_PAGE_LIMIT, SIGN_IN_REFUSALS_PER_SECOND } from "../http/limits.ts";
import { loadUws } from "../http/uws.ts";
import type { Logger } from "../logger.ts";
import { MAX_RECENT_TRADES, MAX_TRADES_WALKED } from "../markets/limits.ts";
import { MAX_USERS_WALKED } from "../operators/limits.ts";
import { EXPORT_SLICE_ROWS, MAX_AUDIT_WALKED, MAX_ROWS_WALKED } from "../queries/limits.ts";
import {
  MAX_CLIENT_ORDER_IDS,
  MAX_CLIENT_ORDER_IDS_PER_USER,
  MAX_QUOTES,
  MAX_RECENTLY_ENDED_ORDERS,
  RESERVED_PART,
  SMALL_LIVE_ORDERS,
} from "../trading/limits.ts";
import {
  HEARTBEAT_MS,
  MAX_DEFERRED_UPDATE_BYTES,
  MAX_REPLAY_AHEAD_BYTES,
  MAX_WS_BACKPRESSURE_BYTES,
  MAX_WS_FRAME_BYTES,
  MAX_WS_MESSAGE_BYTES,
  REPLAY_SLICE_BYTES,
  SOCKET_TICK_MS,
} from "../websocket/limits.ts";

/** Returns uWebSockets.js. @throws PlatformError where a native package can't be loaded */
export async function preparePlatform(logger: Logger): Promise<typeof Uws> {
  assertEngineLimits();
  assertServerLimits();
  const uws = await loadUws();
  loadSqlite();
  const flaw = hashFlaw(process.versions.node);
  if (flaw !== null) logger.warn(flaw);
  return uws;
}

/** Asserts that no two bounds of the server contradict each other. Called once at startup. */
function assertServerLimits(): void {
  // Orders.
  assert(2 * MAX_QUOTES <= MAX_CHAIN_COMMANDS, "one chain replaces all quotes of a market");
  assert(MAX_QUOTES <= SMALL_LIVE_ORDERS, "a small account can quote a market from the reserve");
  assert(Math.max(...LIVE_ORDERS_OF_TIER) <= MAX_OWN_LIVE_ORDERS, "terms can raise the bound of every tier");
  assert(8 * MAX_OWN_LIVE_ORDERS < (1 - RESERVED_PART) * MAX_LIVE_ORDERS, "no eight accounts fill the exchange");
  assert(
    12 * MAX_CLIENT_ORDER_IDS_PER_USER < (1 - RESERVED_PART) * MAX_CLIENT_ORDER_IDS,
    "twelve accounts cannot fill it",
  );
  assert(Number.isInteger(Math.log2(MAX_RECENTLY_ENDED_ORDERS)), "places of ended orders are a part of their ids");
  assert(MAX_OWN_REBATE_BPS <= TRADING_FEE_BPS, "no trade with a seller who pays the usual fee costs the house");

  // Lists.
  assert(Number.isInteger(Math.log2(MAX_RECENT_TRADES)), "places of recent trades are masked");
  assert(MAX_TRADES_WALKED > MAX_PAGE_LIMIT, "the first page of recent trades is in reach");
  assert(Math.min(MAX_USERS_WALKED, MAX_AUDIT_WALKED) > MAX_PAGE_LIMIT, "an unfiltered list has full pages");
  assert(MAX_ROWS_WALKED >= Math.max(MAX_PAGE_LIMIT, EXPORT_SLICE_ROWS), "an unfiltered list has full pages");

  // WebSocket.
  assert(HEARTBEAT_MS % SOCKET_TICK_MS === 0, "heartbeats go out in equal parts");
  assert(
    MAX_REPLAY_AHEAD_BYTES + REPLAY_SLICE_BYTES + MAX_DEFERRED_UPDATE_BYTES < MAX_WS_BACKPRESSURE_BYTES,
    "a paced replay never trips the slow-consumer bound",
  );
  assert(MAX_WS_MESSAGE_BYTES < MAX_WS_FRAME_BYTES, "a peer that sends too much gets 1009");
  assert(MAX_WS_FRAME_BYTES <= MAX_WS_BACKPRESSURE_BYTES, "a peer holds no more memory one way than the other");

  // Sign-in.
  assert(MAX_IDENTIFIER_RATE_BUCKETS >= 60 * SIGN_IN_REFUSALS_PER_SECOND, "no bucket is evicted within its minute");
}
