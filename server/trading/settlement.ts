/**
 * Applies a committed settlement to the gateway's memory, some holders at a time so that the thread can do other work in
 * between: each holder receives its new balance and positions, then the market's subscribers its result. The log has
 * paid everybody in one transaction before this starts, so the ledger's totals change at once.
 */
import type { Ledger } from "../../engine/ledger.ts";
import { assert } from "../../engine/util/assert.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import type { Holders, Market } from "../markets/types.ts";
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

interface Progress {
  /** The first holder that is not paid yet. */
  next: number;
  /** micro-USDC that the other holders get. */
  unpaid: number;
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
    const progress = { next: 0, unpaid: ledger.beginSettlement(market.id) };
    while (progress.next < holders.users.length) {
      this.settleSlice(market, resolution.payouts, holders, progress);
      endBatch();
      await turn.next();
    }
    assert(progress.unpaid === 0, "the holders get exactly the market's collateral");
    market.resolution = resolution;
    market.isSettling = false;
    registry.setStatus(market, status);
    marketChanged(market);
  }

  /** Pays some holders. */
  private settleSlice(
    market: Market,
    payouts: readonly number[],
    { users, outcomes }: Holders,
    progress: Progress,
  ): void {
    const { loop, ledger, updates } = this.parts;
    const until = loop.elapsed() + SLICE_MS;
    while (progress.next < users.length && updates.changedAccounts < MAX_ACCOUNTS_PER_SLICE) {
      const user = users[progress.next]!;
      const outcome = outcomes[progress.next]!;
      const position = ledger.findPosition(user, outcome);
      progress.unpaid -= ledger.payHolder(position, payouts[outcome - market.firstOutcomeId]!);
      updates.accountChanged(user, outcome);
      progress.next++;
      if (progress.next % HOLDERS_PER_CLOCK_READ === 0 && loop.elapsed() > until) break;
    }
  }
}
