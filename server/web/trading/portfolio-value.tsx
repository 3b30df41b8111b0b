/** What the user has in all: money, and positions at their last prices. */
import { balance } from "../account-state.ts";
import { money } from "../format.ts";
import { sumOf, useValuedPositions } from "./valuation.ts";

export function PortfolioValue() {
  const { valued } = useValuedPositions();
  const { total } = balance.value ?? { total: 0 };
  return <>{money(total + sumOf(valued.map(({ market_value }) => market_value)))}</>;
}
