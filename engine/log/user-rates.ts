/** The fees and rebates of users who have individual ones. The log stage writes them into the fills that they apply to. */
import { nextRecord } from "../book/match-fees.ts";
import { makerRebateBps, tradingFeeBps } from "../money.ts";
import * as R from "../ring/records.ts";

/** BPS of the notional; null: the default. */
export interface OwnRates {
  readonly userId: number;
  readonly tradingFee: number | null;
  readonly makerRebate: number | null;
  /** For orders placed with a PAT. */
  readonly patRebate: number | null;
}

export class UserRates {
  private readonly rates = new Map<number, OwnRates>();

  set(rates: OwnRates): void {
    const { userId, tradingFee, makerRebate, patRebate } = rates;
    if (tradingFee === null && makerRebate === null && patRebate === null) this.rates.delete(userId);
    else this.rates.set(userId, rates);
  }

  /** Writes individual rates into all fills of the match that begins at word `w`: the match's fees depend on all of them. */
  writeInto(words: Int32Array, w: number): void {
    if (this.rates.size === 0) return;
    for (let fill = w; ; fill = nextRecord(words, fill)) {
      const packed = words[fill]!;
      const rates = this.packedRates(words[fill + R.W_USER]!, (packed & R.FLAG_PAT) !== 0);
      if (rates !== 0) words[fill + R.W_REFERENCE] = R.withRates(words[fill + R.W_REFERENCE]!, rates);
      if ((packed & R.FLAG_MATCH_END) !== 0) return;
    }
  }

  /** The user's fee and rebate as records.ts packs them; 0 if the defaults apply. */
  private packedRates(user: number, pat: boolean): number {
    const rates = this.rates.get(user);
    if (rates === undefined) return 0;
    return R.packRates(tradingFeeBps(rates), makerRebateBps(rates, pat));
  }
}
