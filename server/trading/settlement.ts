/**
 * Applies a committed settlement to the gateway's memory, some holders at a time so that the thread can do other work in
 * between: each holder receives its new balance and positions, then the market's subscribers its result. The journal has
 * paid everybody in one transaction before this starts.
 */
import type { Ledger } from "../../engine/ledger.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import type { Market } from "../markets/types.ts";
import type { TurnLoop } from "./turn-loop.ts";
import type { GatewayLoop } from "./types.ts";
import type { UserUpdates } from "./user-updates.ts";

/** A slice ends after this time or this many accounts, and reads the clock after so many holders. */
const SLICE_MS = 5;
const MAX_ACCOUNTS_PER_SLICE = 128;
const HOLDERS_PER_CLOCK_READ = 64;

export interface SettlementParts {
  readonly loop: GatewayLoop;
  readonly turn: TurnLoop;
  readonly ledger: Ledger;
  readonly registry: MarketRegistry;
  readonly updates: UserUpdates;
  /** Publishes what changed. */
  readonly endBatch: () => void;
  readonly marketChanged: (market: Market) => void;
}

/** Holders' positions as parallel columns. */
export interface Holders {
  readonly users: Int32Array;
  readonly outcomes: Int32Array;
}

export class Settlement {
  private readonly parts: SettlementParts;

  constructor(parts: SettlementParts) {
    this.parts = parts;
  }

  /** @param status of the market from now on */
  async apply(
    market: Market,
    status: number,
    resolution: NonNullable<Market["resolution"]>,
    holders: Holders,
  ): Promise<void> {
    const { turn, ledger, registry, endBatch, marketChanged } = this.parts;
    for (let next = 0; next < holders.users.length; ) {
      next = this.settleSlice(market, resolution.payouts, holders, next);
      endBatch();
      await turn.next();
    }
    ledger.endSets(market.id);
    market.resolution = resolution;
    market.isSettling = false;
    registry.setStatus(market, status);
    marketChanged(market);
  }

  /** Settles holders from `first` on. Returns the first one of the next slice. */
  private settleSlice(market: Market, payouts: readonly number[], { users, outcomes }: Holders, first: number): number {
    const { loop, ledger, updates } = this.parts;
    const until = loop.elapsed() + SLICE_MS;
    let next = first;
    while (next < users.length && updates.changedAccounts < MAX_ACCOUNTS_PER_SLICE) {
      const user = users[next]!;
      const outcome = outcomes[next]!;
      ledger.settle(ledger.findPosition(user, outcome), payouts[outcome - market.firstOutcomeId]!);
      updates.accountChanged(user, outcome);
      next++;
      if (next % HOLDERS_PER_CLOCK_READ === 0 && loop.elapsed() > until) break;
    }
    return next;
  }
}
