/** The last step before the server is ready: what fell due while it was down happens before anyone can trade. */
import type { OperatorServices } from "./operator-services.ts";
import type { TradingServices } from "./trading-services.ts";

/**
 * Ends first approvals that can't be fulfilled any more, cancels orders of lapsed cancel timers, closes markets past their
 * end, and builds the lists that are asked for most.
 */
export async function catchUp(trading: TradingServices, { approvals, life }: OperatorServices): Promise<void> {
  const { exchange, cancelTimers, history, lists, feed, startedAt, clock } = trading;
  const isMade = async (reference: string, isWithdrawal: boolean): Promise<boolean> =>
    (await (isWithdrawal ? history.withdrawalPaidWith(reference) : history.payment(reference))) !== null;
  await approvals.endFulfilled(isMade, clock.now());
  cancelTimers.fireDue(clock.now());
  await exchange.turn.cancelsWritten();
  while (!life.closeDue(clock.now())) await exchange.settled();
  await exchange.settled();
  lists.warmUp();
  feed.warmUp(startedAt);
}
