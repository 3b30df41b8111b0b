/**
 * Warms up an engine thread's books before the first order: V8 compiles code only after many runs, which would slow the
 * first few thousand orders. Uses a market whose ids no database assigns, and leaves nothing behind.
 */
import { Reason, Side, TimeInForce } from "../constants.ts";
import { MAX_OUTCOME_ID } from "../limits.ts";
import { CommandRecord } from "../ring/command-record.ts";
import * as R from "../ring/records.ts";
import type { Matcher } from "./matcher.ts";

const MARKET = MAX_OUTCOME_ID;
const FIRST_OUTCOME = MAX_OUTCOME_ID - 1;
/** After some fifty, a round takes no less time than later ones. */
const ROUNDS = 60;
/** Orders resting at a time: half as many takers match them, the rest are canceled, and every fourth is replaced. */
const RESTING = 256;
const REPLACED = 4;
const MIDDLE_BPS = 5_000;
const SPREAD_BPS = 50;

/** Publishes nothing. The matcher must not have opened a market yet. */
export function warmUp(matcher: Matcher): void {
  const words = new Int32Array(R.RECORD_WORDS);
  const doubles = new Float64Array(words.buffer);
  const command = new CommandRecord().at(words, doubles, 0);
  command.market = MARKET;
  const run = (packed: number): void => {
    command.packed = packed;
    matcher.execute(words, doubles, 0);
  };
  const place = (slot: number, user: number, side: number, price: number, tif: number, flags = 0): void => {
    command.slot = slot;
    command.user = user;
    command.outcome = FIRST_OUTCOME + (slot & 1);
    command.price = price;
    command.quantity = 1 + (slot % 7);
    command.orderId = slot;
    run(R.packCommand(R.CommandKind.placeOrder, R.packTerms(side, 0, tif, 0, flags)));
  };
  const cancel = (slot: number): void => {
    command.slot = slot;
    command.orderId = slot;
    run(R.packCancel(Reason.user));
  };
  /** Replaces an order as a quote does; some replacements would cross and are rejected. */
  const replace = (slot: number, replaced: number): void => {
    command.replacedSlot = replaced;
    command.expectedRemaining = 1 + (replaced % 7);
    const price = MIDDLE_BPS - SPREAD_BPS + (slot % (2 * SPREAD_BPS));
    place(slot, replaced, Side.buy, price, TimeInForce.gtc, R.FLAG_POST_ONLY | R.FLAG_REPLACES);
    command.expectedRemaining = 0;
  };

  command.outcome = FIRST_OUTCOME;
  command.quantity = 2;
  run(R.packCommand(R.CommandKind.openMarket));
  for (let round = 0; round < ROUNDS; round++) {
    for (let slot = 1; slot <= RESTING; slot++) {
      const side = slot % 3 === 0 ? Side.sell : Side.buy;
      const away = 1 + ((slot * 31 + round) % SPREAD_BPS);
      place(slot, slot, side, side === Side.buy ? MIDDLE_BPS - away : MIDDLE_BPS + away, TimeInForce.gtc);
    }
    for (let slot = RESTING + 1; slot <= RESTING + RESTING / 2; slot++) {
      const side = slot % 3 === 0 ? Side.buy : Side.sell;
      place(slot, slot, side, side === Side.buy ? MIDDLE_BPS + 5 : MIDDLE_BPS - 5, TimeInForce.ioc);
    }
    for (let slot = 1; slot <= RESTING; slot++) {
      cancel(slot);
      if (slot % REPLACED === 0) replace(RESTING + slot / REPLACED, slot);
    }
    for (let slot = 1; slot <= RESTING / REPLACED; slot++) cancel(RESTING + slot);
    matcher.dropBatch();
  }
  run(R.packCommand(R.CommandKind.closeMarket));
  matcher.dropBatch();
}
