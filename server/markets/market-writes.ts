/**
 * Admits writes of markets and events: their slugs, their ids and their outcomes' ids, the room for books of markets that
 * can trade, and the positions that a settlement pays. Owned by the gateway thread.
 */
import { LAST_PROPOSED_OUTCOME_ID, MAX_ACTIVE_BOOKS, MAX_OUTCOME_ID } from "../../engine/limits.ts";
import { assert } from "../../engine/util/assert.ts";
import type { RowIds } from "../accounts/row-ids.ts";
import type {
  AdmittedWrite,
  Facts,
  MarketAdmission,
  MarketWrite,
  RequestedOf,
  WriteLookups,
} from "../accounts/types.ts";
import { NO_FACTS } from "../accounts/write-facts.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import { OutcomeIds } from "./outcome-ids.ts";
import { canTrade, isProposed, type MarketRegistry } from "./registry.ts";
import type { Market } from "./types.ts";

/** The engine threads use the last two ids for their warm-up. */
const LAST_OUTCOME_ID = MAX_OUTCOME_ID - 2;

export interface MarketWriteAdmissionOptions {
  readonly registry: MarketRegistry;
  readonly ids: RowIds;
  readonly lookups: WriteLookups;
  /** The largest id that an outcome can have. */
  readonly largestId?: number | undefined;
}

export class MarketWriteAdmission implements MarketAdmission {
  private readonly registry: MarketRegistry;
  private readonly ids: RowIds;
  private readonly lookups: WriteLookups;
  private readonly outcomeIds: OutcomeIds;
  /** The markets that can have live orders, those on their way to the database included. */
  private readonly open = new Set<number>();
  private openOutcomes = 0;

  constructor({ registry, ids, lookups, largestId = MAX_OUTCOME_ID }: MarketWriteAdmissionOptions) {
    this.registry = registry;
    this.ids = ids;
    this.lookups = lookups;
    this.outcomeIds = new OutcomeIds(largestId);
    registry.listen({
      marketAdded: (market) => {
        this.outcomeIds.add(market.firstOutcomeId, market.outcomes.length);
        this.statusChanged(market);
      },
      statusChanged: (market) => this.statusChanged(market),
      eventAdded() {},
      marketDescribed() {},
      volumeChanged() {},
    });
  }

  lookUp(write: MarketWrite): Promise<Facts> | null {
    if (write.kind !== "settleMarket") return null;
    const { firstOutcomeId, outcomes } = this.registry.market(write.marketId);
    return this.lookups.holders(firstOutcomeId, outcomes.length).then((holders) => ({ ...NO_FACTS, holders }));
  }

  admit(write: MarketWrite, { holders }: Facts): AdmittedWrite {
    switch (write.kind) {
      case "createEvent":
        return this.admitEvent(write);
      case "createMarket":
        return this.admitMarket(write);
      case "openMarket": {
        const { id, outcomes } = this.registry.market(write.marketId);
        this.expectRoom(outcomes.length);
        this.countOpen(id, outcomes.length);
        return { write, result: { id, created: true } };
      }
      case "refuseMarket": {
        const market = this.registry.market(write.marketId);
        assert(isProposed(market), "only a proposal can be refused");
        // A market that gets the ids is posted after this write, so it is also applied after it.
        this.outcomeIds.free(market.firstOutcomeId, market.outcomes.length);
        return { write, result: { id: market.id, created: true } };
      }
      case "describeMarket":
        return { write, result: { id: write.marketId, created: true } };
      case "settleMarket": {
        assert(holders !== null, "a settlement knows the positions that it pays");
        const result = { id: write.marketId, created: true, settled: holders };
        return { write: { ...write, holders: holders.users.length }, result };
      }
    }
  }

  private admitEvent(write: RequestedOf<"createEvent">): AdmittedWrite {
    const found = this.registry.findEventBySlug(write.slug);
    if (found !== undefined) return { write: null, result: { id: found.id, created: false } };
    const id = this.ids.next("events");
    return { write: { ...write, id }, result: { id, created: true } };
  }

  private admitMarket(write: RequestedOf<"createMarket">): AdmittedWrite {
    const found = this.registry.findBySlug(write.slug);
    if (found !== undefined) {
      const { id, firstOutcomeId } = found;
      return { write: null, result: { id, created: false, firstOutcomeId } };
    }
    const count = write.outcomes.length;
    const isOpen = write.proposedBy === null;
    const last = isOpen ? LAST_OUTCOME_ID : LAST_PROPOSED_OUTCOME_ID;
    if (isOpen) this.expectRoom(count);
    const firstOutcomeId = this.ids.lastOf("markets") < last ? this.outcomeIds.allocate(count, last) : null;
    if (firstOutcomeId === null) {
      throw conflict(`the exchange is at its maximum number of ${isOpen ? "markets" : "proposals"}`);
    }
    const id = this.ids.next("markets");
    if (isOpen) this.countOpen(id, count);
    return { write: { ...write, id, firstOutcomeId }, result: { id, created: true, firstOutcomeId } };
  }

  /** @throws ApiError 40900 if `outcomes` more books would exceed the bound */
  private expectRoom(outcomes: number): void {
    if (this.openOutcomes + outcomes > MAX_ACTIVE_BOOKS) {
      throw conflict("the exchange is at its maximum number of open markets");
    }
  }

  private countOpen(id: number, outcomes: number): void {
    if (this.open.has(id)) return;
    this.open.add(id);
    this.openOutcomes += outcomes;
  }

  private statusChanged(market: Market): void {
    const { id, outcomes } = market;
    if (canTrade(market)) this.countOpen(id, outcomes.length);
    else if (this.open.delete(id)) this.openOutcomes -= outcomes.length;
  }
}

function conflict(message: string): ApiError {
  return new ApiError(ErrorKind.conflict, message);
}
