/** Open positions valued at last prices, and the totals of the portfolio. */
import { balance, positions } from "../../account-state.ts";
import { money, spendable } from "../../format.ts";
import { PositionsTable } from "../../trading/positions.tsx";
import { sumOf, useValuedPositions } from "../../trading/valuation.ts";
import { Profit } from "../../ui/amounts.tsx";
import { Loading } from "../../ui/notices.tsx";

export function Totals() {
  const { valued } = useValuedPositions();
  if (balance.value === null || positions.value === null) return <Loading what="Loading your portfolio" />;
  const { available, held, total } = balance.value;
  const positionsValue = sumOf(valued.map(({ market_value }) => market_value));
  const hasUnknown = valued.some(({ market_value }) => market_value === null);
  return (
    <dl class="totals">
      <div>
        <dt>Portfolio value</dt>
        <dd class="large">
          {money(total + positionsValue)} <small>USDC</small>
        </dd>
      </div>
      <div>
        <dt>Available</dt>
        <dd>{spendable(available)}</dd>
      </div>
      <div>
        <dt>On hold</dt>
        <dd>{money(held)}</dd>
      </div>
      <div>
        <dt>Positions{hasUnknown && " (priced only)"}</dt>
        <dd>{money(positionsValue)}</dd>
      </div>
      <div>
        <dt>Unrealized</dt>
        <dd>
          <Profit micro={sumOf(valued.map(({ unrealized_pnl }) => unrealized_pnl))} />
        </dd>
      </div>
      <div>
        <dt>Realized</dt>
        <dd>
          <Profit micro={sumOf(valued.map(({ realized_pnl }) => realized_pnl))} />
        </dd>
      </div>
    </dl>
  );
}

export function Positions() {
  const { valued, markets } = useValuedPositions();
  if (positions.value === null) return <Loading />;
  const open = valued.filter(({ quantity }) => quantity > 0);
  open.sort((a, b) => (b.market_value ?? 0) - (a.market_value ?? 0) || a.outcome_id - b.outcome_id);
  return (
    <section class="panel" aria-labelledby="positions-title">
      <h2 id="positions-title">Positions</h2>
      <PositionsTable caption="Your positions" positions={open} markets={markets} empty="No open positions." />
      <p class="hint">Positions are valued at last prices. A sale yields what the book pays, less the trading fee.</p>
    </section>
  );
}
