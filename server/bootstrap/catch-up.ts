/** The last step before the server is ready: what fell due while it was down happens before anyone can trade. */
import type { OperatorServices } from "./operator-services.ts";
import type { TradingServices } from "./trading-services.ts";

/** Cancels orders of lapsed cancel timers, closes markets past their end, and builds the lists that are asked for most. */
export async function catchUp(trading: TradingServices, { life }: OperatorServices): Promise<void> {
  const { exchange, cancelTimers, lists, feed, startedAt } = trading;
  cancelTimers.fireDue(Date.now());
  await exchange.turn.cancelsWritten();
  while (!life.closeDue(Date.now())) await exchange.settled();
  await exchange.settled();
  lists.warmUp();
  feed.warmUp(startedAt);
}
