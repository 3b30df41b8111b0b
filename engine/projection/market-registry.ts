/** What the projector knows of markets and outcomes: their ids, and each outcome's last trade. */
import type { LedgerState } from "./load/ledger.ts";

export class MarketRegistry {
  /** By outcome: price in BPS (0: no trade yet) and shares traded. */
  readonly lastPrices: Int32Array;
  readonly volumes: Float64Array;
  private readonly markets: Int32Array;
  private readonly firstOutcomes: Int32Array;
  private readonly outcomeCounts: Uint8Array;

  /** @param largestId the largest id of a market or outcome */
  constructor(largestId: number, state: LedgerState) {
    this.lastPrices = new Int32Array(largestId + 1);
    this.volumes = new Float64Array(largestId + 1);
    this.markets = new Int32Array(largestId + 1);
    this.firstOutcomes = new Int32Array(largestId + 1);
    this.outcomeCounts = new Uint8Array(largestId + 1);
    for (const { id, firstOutcomeId, outcomes } of state.markets) this.add(id, firstOutcomeId, outcomes);
    for (const { id, lastPrice, volume } of state.outcomes) {
      this.lastPrices[id] = lastPrice ?? 0;
      this.volumes[id] = volume;
    }
  }

  add(market: number, first: number, outcomes: number): void {
    for (let outcome = first; outcome < first + outcomes; outcome++) {
      this.markets[outcome] = market;
      this.lastPrices[outcome] = 0;
      this.volumes[outcome] = 0;
    }
    this.firstOutcomes[market] = first;
    this.outcomeCounts[market] = outcomes;
  }

  /** Drops a market that will never trade. */
  forget(market: number): void {
    this.add(market, 0, 0);
  }

  marketOf(outcome: number): number {
    return this.markets[outcome] ?? 0;
  }

  firstOutcome(market: number): number {
    return this.firstOutcomes[market] ?? 0;
  }

  outcomeCount(market: number): number {
    return this.outcomeCounts[market] ?? 0;
  }

  recordTrade(outcome: number, price: number, quantity: number): void {
    this.lastPrices[outcome] = price;
    this.volumes[outcome]! += quantity;
  }
}
