/** Open positions valued at last prices. */
import { positions } from "../../account-state.ts";
import { PositionsTable } from "../../trading/positions.tsx";
import { useValuedPositions } from "../../trading/valuation.ts";
import { Loading } from "../../ui/notices.tsx";

export function Positions() {
  const { valued, markets } = useValuedPositions();
  if (positions.value === null) return <Loading />;
  const open = valued.filter(({ quantity }) => quantity > 0);
  open.sort((a, b) => (b.market_value ?? 0) - (a.market_value ?? 0) || a.outcome_id - b.outcome_id);
  return (
    <section class="bare" aria-labelledby="positions-title">
      <h2 id="positions-title" class="hidden">
        Positions
      </h2>
      <PositionsTable caption="Your positions" positions={open} markets={markets} empty="No open positions." />
      <p class="hint">Positions are valued at last prices. A sale yields what the book pays, less the trading fee.</p>
    </section>
  );
}
