/** When markets are due to close, soonest first. Reads no clock and closes nothing. */

import { MinHeap } from "../../engine/util/min-heap.ts";
import { MAX_OLD_CLOSINGS } from "./limits.ts";
import { canTrade, isProposed, type MarketRegistry, type RegistryListener } from "./registry.ts";
import type { Market } from "./types.ts";

interface ScheduledClose {
  readonly at: number;
  readonly market: Market;
}

export class CloseSchedule implements RegistryListener {
  private readonly registry: MarketRegistry;
  /** Contains outdated entries, of markets closed early or rescheduled, until their time or the next sweep. */
  private readonly heap = new MinHeap<ScheduledClose>();

  constructor(registry: MarketRegistry) {
    this.registry = registry;
    registry.listen(this);
  }

  /** The market that is due first; undefined if none is due. */
  due(now: number): Market | undefined {
    for (let next = this.heap.peek(); next !== undefined && next.at <= now; next = this.heap.peek()) {
      if (isPending(next)) return next.market;
      this.heap.pop();
    }
    return undefined;
  }

  /** Removes the market that `due` returned. */
  pop(): void {
    this.heap.pop();
  }

  marketAdded(market: Market): void {
    if (market.closesAt !== null) this.heap.add({ at: market.closesAt, market });
  }

  marketDescribed(market: Market): void {
    if (this.heap.size > 2 * this.registry.all().length + MAX_OLD_CLOSINGS) this.heap.keep(isPending);
    this.marketAdded(market);
  }

  eventAdded(): void {}
  statusChanged(): void {}
  volumeChanged(): void {}
}

function isPending({ at, market }: ScheduledClose): boolean {
  return market.closesAt === at && (canTrade(market) || isProposed(market));
}
