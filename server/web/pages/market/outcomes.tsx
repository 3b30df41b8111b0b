/** The outcomes of a market with more than two: their chances, and buttons that open the ticket. */
import "../../trading/rows.css";
import { cents, chanceText, compact, shares } from "../../../util/format.ts";
import { dayChanges } from "../../market-facts.ts";
import { chances } from "../../market-tickers.ts";
import { href } from "../../router.ts";
import { Dot, seriesOf } from "../../series.tsx";
import type { Market, Outcome } from "../../types.ts";
import { Change } from "../../ui/chance.tsx";
import { TickingPrice } from "../../ui/ticking-price.tsx";

interface OutcomesProps {
  market: Market;
  chosen: number;
  /** Its head names the market, on a page of several. */
  isNamed?: boolean;
  onChoose: (id: number) => void;
  onTrade: (id: number, side: "buy" | "sell") => void;
}

export function Outcomes({ market, chosen, isNamed = false, onChoose, onTrade }: OutcomesProps) {
  const { outcomes, resolution, status } = market;
  const now = chances(market);
  const payouts = resolution?.payouts;
  const most = Math.max(1, ...(payouts ?? now).map((each) => each ?? 0));
  const isOpen = status === "open";
  const changes = dayChanges(market);
  return (
    <section class="panel" aria-labelledby="outcomes-title">
      <h2 id="outcomes-title" class="hidden">
        Outcomes
      </h2>
      <table class="outcomes">
        <caption class="hidden">Outcomes with chances and best prices; select one to see its book</caption>
        <TradingHead
          name={isNamed ? market.question : "Outcome"}
          chance={payouts === undefined ? "Chance" : "Paid"}
          isOpen={isOpen}
        />
        <tbody>
          {outcomes.map((outcome, i) => (
            <tr key={outcome.id} class={outcome.id === chosen ? "chosen" : ""}>
              <th scope="row">
                <button
                  type="button"
                  class="outcome"
                  translate={false}
                  aria-pressed={outcome.id === chosen}
                  onClick={() => onChoose(outcome.id)}
                >
                  <Dot market={market} outcome={outcome} />
                  {outcome.name}
                </button>
              </th>
              <td class="right number" translate={false}>
                <span class="row-chance">
                  <Track {...seriesOf(market, outcome)} share={(payouts?.[i] ?? now[i] ?? 0) / most} />
                  <b>{payouts === undefined ? chanceText(now[i] ?? null) : cents(payouts[i] ?? 0)}</b>
                </span>
              </td>
              {isOpen && <DayChange bps={changes[i] ?? null} />}
              <Volume count={outcome.volume} />
              {isOpen && (
                <td class="right">
                  <span class="row-prices">
                    <PriceButton outcome={outcome} side="buy" onTrade={onTrade} />
                    <PriceButton outcome={outcome} side="sell" onTrade={onTrade} />
                  </span>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {isOpen && <SetPrice market={market} />}
    </section>
  );
}

/** The columns of what can be traded. @param name of the first one @param isOpen prices and changes have columns */
export function TradingHead({ name, chance, isOpen }: { name: string; chance: string; isOpen: boolean }) {
  return (
    <thead>
      <tr>
        <th scope="col">{name}</th>
        <th scope="col" class="right">
          {chance}
        </th>
        {isOpen && (
          <th scope="col" class="right volume">
            24 h
          </th>
        )}
        <th scope="col" class="right volume">
          Volume
        </th>
        {isOpen && (
          <th scope="col" class="right">
            Price of a share
          </th>
        )}
      </tr>
    </thead>
  );
}

export const DayChange = ({ bps }: { bps: number | null }) => (
  <td class="right number volume">{bps === null ? "–" : <Change bps={bps} />}</td>
);

export const Volume = ({ count }: { count: number }) => (
  <td class="right number volume" translate={false} title={`${shares(count)} shares`}>
    {compact(count)}
  </td>
);

/** A bar from the same start in each row. @param share 0 to 1 */
const Track = ({ color, share }: { color: string; share: number }) => (
  <span class="track" style={{ "--color": `var(--${color})` }} aria-hidden="true">
    <i style={{ width: `${100 * share}%` }} />
  </span>
);

function PriceButton({
  outcome,
  side,
  onTrade,
}: {
  outcome: Outcome;
  side: "buy" | "sell";
  onTrade: OutcomesProps["onTrade"];
}) {
  const price = side === "buy" ? outcome.implied_ask : outcome.implied_bid;
  const verb = side === "buy" ? "Buy" : "Sell";
  return (
    <button
      type="button"
      class={side === "buy" ? "price-button yes" : "price-button"}
      translate={false}
      onClick={() => onTrade(outcome.id, side)}
    >
      <span>
        {verb}
        <span class="hidden"> {outcome.name} at</span>
      </span>
      <TickingPrice bps={price} text={cents(price)} />
    </button>
  );
}

/** What a complete set costs and brings. */
function SetPrice({ market: { outcomes } }: { market: Market }) {
  const sum = (of: (each: Outcome) => number | null): number | null =>
    outcomes.reduce<number | null>((total, each) => {
      const price = of(each);
      return total === null || price === null ? null : total + price;
    }, 0);
  const [offers, bids] = [sum(({ best_ask }) => best_ask), sum(({ best_bid }) => best_bid)];
  return (
    <p class="set-price">
      <span>
        A complete set pays 1 USDC.
        {offers !== null && bids !== null && (
          <span translate={false}>
            {" "}
            Best offers add up to {cents(offers)}, best bids to {cents(bids)}.
          </span>
        )}
      </span>
      <a href={href("/portfolio?show=sets")}>Split or merge</a>
    </p>
  );
}
