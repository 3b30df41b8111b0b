/**
 * Applies committed account writes to trading's memory: deposits and withdrawals to the ledger, markets and events to the
 * registry. The journal has committed each write before it gets here. Owned by the gateway thread.
 */
import { MarketStatus } from "../../engine/constants.ts";
import { UNDECIDED } from "../../engine/projection/load/markets.ts";
import { type AccountWrite, HOUSE } from "../../engine/projection/writes/account-write.ts";
import { assert } from "../../engine/util/assert.ts";
import type { WriteProjection, WriteResult } from "../accounts/types.ts";
import type { Exchange } from "./exchange.ts";

export class TradingWriteProjection implements WriteProjection {
  private readonly exchange: Exchange;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
  }

  apply(write: AccountWrite, result: WriteResult): Promise<void> | undefined {
    const { exchange } = this;
    const { registry } = exchange;
    switch (write.kind) {
      case "createUser":
        exchange.ledger.restoreAccount(write.id, 0);
        return;
      case "deposit":
        if (write.userId === HOUSE) exchange.ledger.fundHouse(write.amount);
        else exchange.cash.deposit(write.userId, write.amount);
        return;
      case "reverseDeposit":
        if (write.userId === HOUSE) exchange.ledger.unfundHouse(write.amount);
        else exchange.cash.reverseDeposit(write.userId, write.amount);
        return;
      case "withdrawFromHouse":
        exchange.ledger.fundHouse(-write.amount);
        return;
      case "payWithdrawal":
        exchange.cash.withdraw(write.userId, write.amount);
        return;
      case "createEvent":
        registry.addEvent({ ...write, createdAt: write.at });
        return;
      case "createMarket":
        return this.createMarket(write);
      case "openMarket":
        return this.openMarket(write);
      case "refuseMarket":
        registry.refuse(registry.market(write.marketId), { note: write.note, at: write.at });
        return;
      case "describeMarket": {
        const { kind: _, marketId, picture, ...changes } = write;
        const market = registry.market(marketId);
        const hash = picture === undefined ? market.picture : (picture?.hash ?? null);
        exchange.markets.describe(market, { ...changes, picture: hash });
        return;
      }
      case "settleMarket":
        return this.settleMarket(write, result);
      default:
        // The caller applied all others before it wrote them, or does so when the write resolves.
        return;
    }
  }

  private createMarket(write: AccountWrite & { kind: "createMarket" }): Promise<void> | undefined {
    const { exchange } = this;
    const { id, firstOutcomeId } = write;
    const status = write.proposedBy === null ? MarketStatus.open : MarketStatus.proposed;
    const outcomes = write.outcomes.map((name, position) => {
      return { id: firstOutcomeId + position, marketId: id, position, name, lastPrice: null, volume: 0, payout: null };
    });
    const made = { status, sets: 0, createdAt: write.at, outcomes: outcomes.length };
    return exchange.markets.whenRoom(id, () => {
      exchange.markets.created(exchange.registry.add({ ...write, ...UNDECIDED, ...made }, outcomes));
    });
  }

  private openMarket(write: AccountWrite & { kind: "openMarket" }): Promise<void> | undefined {
    const { exchange } = this;
    const market = exchange.registry.market(write.marketId);
    return exchange.markets.whenRoom(market.id, () => {
      market.opensAt = write.at;
      market.decision = { note: write.note, at: write.at };
      exchange.registry.setStatus(market, MarketStatus.open);
      exchange.markets.created(market);
    });
  }

  private settleMarket(write: AccountWrite & { kind: "settleMarket" }, { settled }: WriteResult): Promise<void> {
    assert(settled !== undefined, "a settlement lists the positions that it pays");
    const { payouts, note, at, status } = write;
    const market = this.exchange.registry.market(write.marketId);
    return this.exchange.settlement.apply(market, status, { payouts, note, at }, settled);
  }
}
