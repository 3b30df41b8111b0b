/** The fees and rebates of users who have individual ones. The log stage writes them into the fills that they apply to. */
import { makerRebateBps, tradingFeeBps } from "../money.ts";
import { EngineEvent } from "../ring/engine-event.ts";
import { packRates } from "../ring/records.ts";

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
  private readonly fill = new EngineEvent();

  set(rates: OwnRates): void {
    const { userId, tradingFee, makerRebate, patRebate } = rates;
    if (tradingFee === null && makerRebate === null && patRebate === null) this.rates.delete(userId);
    else this.rates.set(userId, rates);
  }

  /** Writes individual rates into all fills of the match that `first` begins: the match's fees depend on all of them. */
  writeInto(first: EngineEvent): void {
    if (this.rates.size === 0) return;
    const fill = this.fill.atRecordOf(first);
    for (; ; fill.next()) {
      const rates = this.packedRates(fill.user, fill.isPat);
      if (rates !== 0) fill.rates = rates;
      if (fill.endsMatch) return;
    }
  }

  /** The user's fee and rebate as records.ts packs them; 0 if the defaults apply. */
  private packedRates(user: number, pat: boolean): number {
    const rates = this.rates.get(user);
    if (rates === undefined) return 0;
    return packRates(tradingFeeBps(rates), makerRebateBps(rates, pat));
  }
}
