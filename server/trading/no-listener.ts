/** Listeners before anybody listens: while the exchange restores its state, and in tools that publish nothing. */
import type { MarketListener, UserListener } from "./types.ts";

const nothing = (): void => {};

export const NO_USER_LISTENER: UserListener = {
  listens: () => false,
  defers: () => false,
  orderUpdated: nothing,
  accountChanged: nothing,
  defer: () => ({ release: nothing }),
  afterMessages: (_userId, callback) => callback(),
  endBatch: nothing,
};

export const NO_MARKET_LISTENER: MarketListener = {
  tradeCreated: nothing,
  bookUpdated: nothing,
  marketChanged: nothing,
};
