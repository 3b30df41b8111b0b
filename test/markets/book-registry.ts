/** A registry of markets with books, as tests of depth build it, and the changes that it publishes. Keeps no state. */
import { expect } from "vitest";
import { MarketStatus } from "../../engine/constants.ts";
import { UNDECIDED } from "../../engine/projection/load/markets.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { MarketRegistry } from "../../server/markets/registry.ts";

export const FIRST_SEQUENCE = 7;

/** A registry of open markets with these numbers of outcomes: markets and outcomes count from 1. */
export function registryOf(...counts: readonly number[]): MarketRegistry {
  const registry = new MarketRegistry(FIRST_SEQUENCE, 1, systemClock);
  let outcomeId = 0;
  for (const [i, count] of counts.entries()) {
    const id = i + 1;
    const outcomes = Array.from({ length: count }, (_, position) => {
      return {
        id: ++outcomeId,
        marketId: id,
        position,
        name: `No. ${position}`,
        lastPrice: null,
        volume: 0,
        payout: null,
      };
    });
    const texts = { slug: `market-${id}`, question: "?", description: null, category: null };
    const times = { opensAt: 1, closesAt: null, createdAt: 1 };
    const rest = { eventId: null, status: MarketStatus.open, sets: 0, outcomes: count };
    registry.add(
      { id, ...texts, ...times, ...UNDECIDED, proposedBy: null, ...rest, firstOutcomeId: outcomes[0]!.id },
      outcomes,
    );
  }
  return registry;
}

export type Levels = [price: number, quantity: number][];
export interface Sides {
  bids: Levels;
  asks: Levels;
}

/** A published change of a book. */
export interface BookChange extends Sides {
  sequence: number;
}

/** Drains the registry; returns the changes by outcome. */
export function drain(registry: MarketRegistry): Map<number, BookChange> {
  const changes = new Map<number, BookChange>();
  registry.drainChanges(Date.now(), (_market, outcome, sequence, bids, asks) => {
    expect(changes.has(outcome.id)).toBe(false);
    changes.set(outcome.id, { sequence, bids, asks });
  });
  return changes;
}
