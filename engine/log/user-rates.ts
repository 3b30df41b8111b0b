/** The fees and rebates of users who have individual ones. The journal writes them into the fills that they apply to. */
import { nextRecord } from "../book/match-fees.ts";
import { makerRebateBps, tradingFeeBps } from "../money.ts";
import type { UserTerms } from "../projection/user-terms.ts";
import * as R from "../ring/records.ts";

export class UserRates {
  private readonly terms = new Map<number, UserTerms>();

  set(user: number, terms: UserTerms): void {
    const { tradingFee, makerRebate, patRebate } = terms;
    if (tradingFee === null && makerRebate === null && patRebate === null) this.terms.delete(user);
    else this.terms.set(user, terms);
  }

  /** Writes individual rates into all fills of the match that begins at word `w`: the match's fees depend on all of them. */
  writeInto(words: Int32Array, w: number): void {
    if (this.terms.size === 0) return;
    for (let fill = w; ; fill = nextRecord(words, fill)) {
      const packed = words[fill]!;
      const rates = this.packedRates(words[fill + R.W_USER]!, (packed & R.FLAG_PAT) !== 0);
      if (rates !== 0) words[fill + R.W_REFERENCE] = R.withRates(words[fill + R.W_REFERENCE]!, rates);
      if ((packed & R.FLAG_MATCH_END) !== 0) return;
    }
  }

  /** The user's fee and rebate as records.ts packs them; 0 if the defaults apply. */
  private packedRates(user: number, pat: boolean): number {
    const terms = this.terms.get(user);
    if (terms === undefined) return 0;
    return R.packRates(tradingFeeBps(terms), makerRebateBps(terms, pat));
  }
}
