/**
 * The clients of a simulated exchange: users who trade, and an operator. Chooses who acts next; the actions are in
 * traders.ts and operators.ts, the checks of published messages in received-messages.ts.
 */
import { MarketStatus } from "../../engine/constants.ts";
import { ApiError } from "../../server/errors.ts";
import { ensure } from "../engine/book/harness.ts";
import { Crowd, PendingRequest } from "./crowd.ts";
import type { Life } from "./life.ts";
import { Operators } from "./operators.ts";
import { ReceivedMessages } from "./received-messages.ts";
import { DEALERS_MOOD, DEALING, expectNoProfit } from "./self-dealers.ts";
import { Traders } from "./traders.ts";

export class Clients extends Crowd {
  readonly received = new ReceivedMessages(this);
  readonly operators = new Operators(this);
  private readonly traders = new Traders(this);

  override begin(life: Life): void {
    super.begin(life);
    this.operators.begin();
    this.traders.begin();
    this.received.begin();
  }

  /** One action of a client. */
  act(): void {
    const usual = this.mood;
    this.isDealing = this.haveDealers() && this.random.chance(DEALING);
    if (this.isDealing) this.mood = DEALERS_MOOD;
    this.actAtRandom();
    this.mood = usual;
    this.isDealing = false;
  }

  private actAtRandom(): void {
    const { random } = this;
    // A client that builds up a book places orders.
    const kind = random.next() * (this.mood.focuses && random.chance(0.9) ? 52 : 100);
    try {
      if (kind < 52) this.traders.place();
      else if (kind < 60 + 8 * this.mood.cancels) this.traders.cancel();
      else if (kind < 76) this.traders.amend();
      else if (kind < 83) this.traders.quote();
      else if (kind < 87) this.traders.changeSets();
      else if (kind < 88.5) this.traders.cancelAll();
      else if (kind < 90) this.traders.connect();
      else if (kind < 92) this.traders.repeat();
      else this.operators.act();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.refused("request", error);
    }
  }

  /** Holds while nothing is in flight. */
  expectNoProfit(): void {
    const markets = this.ownMarkets().map(({ id }) => id);
    expectNoProfit(this.record, this.dealers, markets);
  }

  /** The dealers leave their markets: they cancel and merge what they can; the operator voids the rest. */
  async closeOut(becomeQuiet: () => Promise<void>): Promise<void> {
    const { life, clock } = this;
    for (const market of this.ownMarkets()) {
      if (market.status > MarketStatus.closed) continue;
      for (const user of this.dealers) {
        const request = new PendingRequest(this, "cancel-all", () => {});
        this.attempt(request, () => life.entry.cancelAll(user, { marketId: market.id }, clock.now, request));
      }
      await becomeQuiet();
      for (const user of this.dealers) {
        const sets = Math.min(...market.outcomes.map(({ id }) => life.exchange.ledger.availableShares(user, id)));
        const request = new PendingRequest(this, "merge", () => {});
        this.attempt(request, () => {
          life.entry.sets.merge(
            this.trader(user),
            { marketId: market.id, quantity: Math.max(1, sets) },
            clock.now,
            request,
            () => {},
          );
        });
      }
      await becomeQuiet();
      if (market.status !== MarketStatus.closed) this.operators.step(market, "close");
      await becomeQuiet();
      this.operators.void(market);
      await becomeQuiet();
      ensure(market.status === MarketStatus.voided, "the dealers' market is voided");
      this.tally.add("self-dealers", "closed out");
    }
    for (const { id } of this.ownMarkets())
      ensure(this.record.markets.get(id)!.sets === 0, "nothing is left in a market that ended");
    this.expectNoProfit();
  }
}
