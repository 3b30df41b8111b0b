/** The colours of a market's outcomes, in charts and beside their names. */
import type { Market, Outcome } from "./types.ts";

const SERIES = 8;
/** Of two outcomes, the second is the opposite of the first, and grey. */
const OPPOSITE = 6;

interface Series {
  /** Name of a colour token. */
  readonly color: string;
  /** The colours repeat from the ninth outcome on. */
  readonly isDashed: boolean;
}

export function seriesOf({ outcomes }: Pick<Market, "outcomes">, { index }: Pick<Outcome, "index">): Series {
  if (outcomes.length === 2 && index === 1) return { color: `series-${OPPOSITE}`, isDashed: false };
  return { color: `series-${(index % SERIES) + 1}`, isDashed: index >= SERIES };
}

export function Dot({ market, outcome }: { market: Pick<Market, "outcomes">; outcome: Pick<Outcome, "index"> }) {
  return <i class="dot" style={{ "--color": `var(--${seriesOf(market, outcome).color})` }} aria-hidden="true" />;
}
