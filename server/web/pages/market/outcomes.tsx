/** The outcomes of a market with their chances and best prices. */
import { cents, chanceText, compact, priceNumber, shares } from "../../format.ts";
import { chance } from "../../market-tickers.ts";
import type { Market, Outcome } from "../../types.ts";

export function Outcomes({
  market,
  chosen,
  onChoose,
}: {
  market: Market;
  chosen: number;
  onChoose: (id: number) => void;
}) {
  const { outcomes, resolution } = market;
  return (
    <section class="panel" aria-labelledby="outcomes-title">
      <h2 id="outcomes-title">Outcomes</h2>
      <table class="outcomes">
        <caption class="hidden">Outcomes with chances and best prices; select one to see its book</caption>
        <thead>
          <tr>
            <th scope="col">Outcome</th>
            <th scope="col" class="right">
              {resolution === null ? "Chance" : "Payout"}
            </th>
            {resolution === null && (
              <>
                <th scope="col" class="right">
                  Bid, ¢
                </th>
                <th scope="col" class="right">
                  Ask, ¢
                </th>
              </>
            )}
            <th scope="col" class="right volume">
              Volume
            </th>
          </tr>
        </thead>
        <tbody>
          {outcomes.map((outcome) => (
            <tr key={outcome.id} class={outcome.id === chosen ? "chosen" : ""}>
              <th scope="row">
                <button
                  type="button"
                  class="outcome"
                  translate={false}
                  aria-pressed={outcome.id === chosen}
                  onClick={() => onChoose(outcome.id)}
                >
                  {outcome.name}
                </button>
              </th>
              <td class="right number" translate={false}>
                <ChanceOf outcome={outcome} payout={resolution?.payouts[outcome.index] ?? null} />
              </td>
              {resolution === null && (
                <>
                  <td class="right number up" translate={false}>
                    {priceNumber(outcome.implied_bid)}
                  </td>
                  <td class="right number down" translate={false}>
                    {priceNumber(outcome.implied_ask)}
                  </td>
                </>
              )}
              <td class="right number volume" translate={false} title={`${shares(outcome.volume)} shares`}>
                {compact(outcome.volume)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function ChanceOf({ outcome, payout }: { outcome: Outcome; payout: number | null }) {
  const bps = payout ?? chance(outcome);
  return (
    <span class="chance">
      <meter min={0} max={10_000} value={bps ?? 0} aria-hidden="true" />
      <b>{payout === null ? chanceText(bps) : cents(payout)}</b>
    </span>
  );
}
