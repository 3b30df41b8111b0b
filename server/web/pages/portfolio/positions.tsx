/** Open positions valued at last prices. */

import { shares } from "../../../util/format.ts";
import { hasMorePositions, MAX_LOADED, positions } from "../../account-state.ts";
import { PositionsTable } from "../../trading/positions.tsx";
import { useValuedPositions } from "../../trading/valuation.ts";
import { Loading, Notice } from "../../ui/notices.tsx";
import { inFound, useMarketFilter } from "./market-filter.tsx";

export function Positions() {
  const { valued, markets } = useValuedPositions();
  const { found } = useMarketFilter();
  if (positions.value === null) return <Loading />;
  const held = valued.filter(({ quantity }) => quantity > 0);
  const open = [...inFound(found, held)];
  open.sort((a, b) => (b.market_value ?? 0) - (a.market_value ?? 0) || a.outcome_id - b.outcome_id);
  return (
    <section class="bare" aria-labelledby="positions-title">
      <h2 id="positions-title" class="hidden">
        Positions
      </h2>
      {hasMorePositions.value && (
        <Notice>
          These are the positions in the newest {shares(MAX_LOADED)} outcomes. A CSV file has all of them.
        </Notice>
      )}
      <PositionsTable
        caption="Your positions"
        positions={open}
        markets={markets}
        empty={found === null ? "No open positions." : "No open positions in markets of this name."}
      />
      <p class="hint">Positions are valued at last prices. A sale yields what the book pays, less the trading fee.</p>
    </section>
  );
}
