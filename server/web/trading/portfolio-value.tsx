/** What the user has in all: money, and positions at their last prices. */

import { money } from "../../util/format.ts";
import { balance } from "../account-state.ts";
import { useValuedPositions, worthOf } from "./valuation.ts";

export function PortfolioValue() {
  const { valued } = useValuedPositions();
  const { total } = balance.value ?? { total: 0 };
  return <>{money(total + worthOf(valued))}</>;
}
