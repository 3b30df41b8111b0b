/**
 * Runs an engine thread's books hot before the first order: V8 compiles what has run often enough, and the first few
 * thousand orders would otherwise pay for it. Works on a market whose ids no database gives out, and leaves nothing.
 */
import { Reason, Side, TimeInForce } from "./constants.ts";
import { MAX_OUTCOME_ID } from "./limits.ts";
import type { Matcher } from "./matcher.ts";
import * as R from "./records.ts";

const MARKET = MAX_OUTCOME_ID;
const FIRST_OUTCOME = MAX_OUTCOME_ID - 1;
const ROUNDS = 200;
/** Orders that rest at a time; half of them are taken, half canceled. */
const RESTING = 256;
const MIDDLE_BPS = 5_000;
const SPREAD_BPS = 50;

/** Nothing of it is published. The matcher must know no market yet. */
export function warmUp(matcher: Matcher): void {
  const words = new Int32Array(R.RECORD_WORDS);
  const doubles = new Float64Array(words.buffer);
  words[R.W_MARKET] = MARKET;
  const run = (packed: number): void => {
    words[R.W_PACKED] = packed;
    matcher.execute(words, doubles, 0);
  };
  const place = (slot: number, side: number, price: number, tif: number): void => {
    words[R.W_SLOT] = slot;
    words[R.W_USER] = slot;
    words[R.W_OUTCOME] = FIRST_OUTCOME + (slot & 1);
    words[R.W_PRICE] = price;
    words[R.W_QUANTITY] = 1 + (slot % 7);
    doubles[R.D_ORDER_ID] = slot;
    run(R.packCommand(R.CommandKind.placeOrder, side, 0, tif, 0, 0));
  };

  words[R.W_OUTCOME] = FIRST_OUTCOME;
  words[R.W_QUANTITY] = 2;
  run(R.packCommand(R.CommandKind.openMarket, 0, 0, 0, 0, 0));
  for (let round = 0; round < ROUNDS; round++) {
    for (let slot = 1; slot <= RESTING; slot++) {
      const side = slot % 3 === 0 ? Side.sell : Side.buy;
      const away = 1 + ((slot * 31 + round) % SPREAD_BPS);
      place(slot, side, side === Side.buy ? MIDDLE_BPS - away : MIDDLE_BPS + away, TimeInForce.gtc);
    }
    for (let slot = RESTING + 1; slot <= RESTING + RESTING / 2; slot++) {
      place(slot, slot % 3 === 0 ? Side.buy : Side.sell, MIDDLE_BPS + (slot % 3 === 0 ? 5 : -5), TimeInForce.ioc);
    }
    for (let slot = 1; slot <= RESTING; slot++) {
      words[R.W_SLOT] = slot;
      doubles[R.D_ORDER_ID] = slot;
      run(R.packCancel(R.CommandKind.cancelOrder, 0, Reason.user));
    }
    matcher.dropBatch();
  }
  run(R.packCommand(R.CommandKind.closeMarket, 0, 0, 0, 0, 0));
  matcher.dropBatch();
}
