/**
 * Admits and applies writes of markets and events: their slugs, their ids and their outcomes' ids, the room for books of
 * markets that can trade, and the positions that a settlement pays. Owned by the gateway thread.
 */
import { MarketStatus } from "../../engine/constants.ts";
import { LAST_PROPOSED_OUTCOME_ID, MAX_ACTIVE_BOOKS, MAX_OUTCOME_ID } from "../../engine/limits.ts";
import { UNDECIDED } from "../../engine/projection/load/markets.ts";
import { assert } from "../../engine/util/assert.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { RowIds } from "../writes/row-ids.ts";
import type { AdmittedWrite, CommittedOf, RequestedOf, WriteRoom } from "../writes/types.ts";
import { OutcomeIds } from "./outcome-ids.ts";
import { canTrade, isProposed, type MarketRegistry } from "./registry.ts";
import type { Holders, Market } from "./types.ts";

/** The engine threads use the last two ids for their warm-up. */
const LAST_OUTCOME_ID = MAX_OUTCOME_ID - 2;

const KINDS = ["createEvent", "createMarket", "openMarket", "refuseMarket", "describeMarket", "settleMarket"] as const;
type Kind = (typeof KINDS)[number];

/** Reads what only the tables know. Each read shows everything that was committed before it. */
export interface MarketLookups {
  /** The positions with shares of `count` outcomes from `first` on. */
  holders(first: number, count: number): Promise<Holders>;
}

/** What committed writes of markets change in trading. */
export interface MarketEffects {
  readonly markets: {
    /** Runs `run` once the market's engine has room for a command that can't be rejected. */
    whenRoom(marketId: number, run: () => void): Promise<void> | undefined;
    created(market: Market): void;
    describe(market: Market, changes: Parameters<MarketRegistry["describe"]>[1]): void;
  };
  readonly settlement: {
    apply(
      market: Market,
      status: number,
      resolution: NonNullable<Market["resolution"]>,
      holders: Holders,
    ): Promise<void>;
  };
}

export interface MarketWritesOptions {
  readonly registry: MarketRegistry;
  readonly trading: MarketEffects;
  readonly ids: RowIds;
  readonly lookups: MarketLookups;
  /** The largest id that an outcome can have. */
  readonly largestId?: number | undefined;
}

export class MarketWrites implements WriteRoom<Kind, Holders> {
  readonly kinds = KINDS;
  private readonly registry: MarketRegistry;
  private readonly trading: MarketEffects;
  private readonly ids: RowIds;
  private readonly lookups: MarketLookups;
  private readonly outcomeIds: OutcomeIds;
  /** The markets that can have live orders, those on their way to the database included. */
  private readonly open = new Set<number>();
  private openOutcomes = 0;

  constructor({ registry, trading, ids, lookups, largestId = MAX_OUTCOME_ID }: MarketWritesOptions) {
    this.registry = registry;
    this.trading = trading;
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

  keys(write: RequestedOf<Kind>): readonly string[] {
    if (write.kind === "createEvent") return [`event ${write.slug}`];
    return write.kind === "createMarket" ? [`market ${write.slug}`] : [];
  }

  lookUp(write: RequestedOf<Kind>): Promise<Holders> | null {
    if (write.kind !== "settleMarket") return null;
    const { firstOutcomeId, outcomes } = this.registry.market(write.marketId);
    return this.lookups.holders(firstOutcomeId, outcomes.length);
  }

  /** A market that opens as soon as it is created. */
  stamp(write: RequestedOf<Kind>, at: number): void {
    if (write.kind === "createMarket" && write.opensAt === write.at) write.opensAt = at;
  }

  /** @throws ApiError 40900 at the maximum number of markets */
  admit(write: RequestedOf<Kind>, holders: Holders | null): AdmittedWrite {
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
        const paid = { ...write, holders: holders.users.length };
        return { write: paid, result: { id: write.marketId, created: true } };
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

  // ---------------------------------------------------------------- committed

  apply(write: CommittedOf<Kind>, holders: Holders | null): Promise<void> | undefined {
    const { registry, trading } = this;
    switch (write.kind) {
      case "createEvent":
        registry.addEvent({ ...write, createdAt: write.at });
        return;
      case "createMarket":
        return this.created(write);
      case "openMarket":
        return this.opened(write);
      case "refuseMarket":
        registry.refuse(registry.market(write.marketId), { note: write.note, at: write.at });
        return;
      case "describeMarket": {
        const { kind: _, marketId, picture, ...changes } = write;
        const market = registry.market(marketId);
        const hash = picture === undefined ? market.picture : (picture?.hash ?? null);
        trading.markets.describe(market, { ...changes, picture: hash });
        return;
      }
      case "settleMarket": {
        assert(holders !== null, "a settlement knows the positions that it pays");
        const { payouts, note, at, status } = write;
        return trading.settlement.apply(registry.market(write.marketId), status, { payouts, note, at }, holders);
      }
    }
  }

  private created(write: CommittedOf<"createMarket">): Promise<void> | undefined {
    const { registry, trading } = this;
    const { id, firstOutcomeId } = write;
    const status = write.proposedBy === null ? MarketStatus.open : MarketStatus.proposed;
    const outcomes = write.outcomes.map((name, position) => {
      return { id: firstOutcomeId + position, marketId: id, position, name, lastPrice: null, volume: 0, payout: null };
    });
    const made = { status, sets: 0, createdAt: write.at, outcomes: outcomes.length };
    return trading.markets.whenRoom(id, () => {
      trading.markets.created(registry.add({ ...write, ...UNDECIDED, ...made }, outcomes));
    });
  }

  private opened(write: CommittedOf<"openMarket">): Promise<void> | undefined {
    const { registry, trading } = this;
    const market = registry.market(write.marketId);
    return trading.markets.whenRoom(market.id, () => {
      market.opensAt = write.at;
      market.decision = { note: write.note, at: write.at };
      registry.setStatus(market, MarketStatus.open);
      trading.markets.created(market);
    });
  }
}

function conflict(message: string): ApiError {
  return new ApiError(ErrorKind.conflict, message);
}
