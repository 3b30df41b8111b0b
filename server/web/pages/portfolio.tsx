/** The user's portfolio: totals, positions, orders, fills, settlements, complete sets. */
import { useEffect } from "preact/hooks";
import "./market.css";
import "./portfolio.css";
import { openOrders } from "../account-state.ts";
import { useMarkets } from "../market-cache.ts";
import { OpenOrders } from "../trading/open-orders.tsx";
import { Loading } from "../ui/notices.tsx";
import { useTabs } from "../ui/tabs.tsx";
import { CompleteSets } from "./portfolio/complete-sets.tsx";
import { Fills } from "./portfolio/fills.tsx";
import { History } from "./portfolio/order-history.tsx";
import { Positions } from "./portfolio/positions.tsx";
import { Settlements } from "./portfolio/settlements.tsx";
import { Summary } from "./portfolio/summary.tsx";

const SECTIONS = [
  ["positions", "Positions"],
  ["orders", "Open orders"],
  ["history", "Order history"],
  ["fills", "Fills"],
  ["settlements", "Resolved"],
  ["sets", "Split and merge"],
] as const;

export default function PortfolioPage() {
  useEffect(() => {
    document.title = "Portfolio · Prediction Exchange";
  }, []);
  const { section, tabs } = useTabs("/portfolio", "Portfolio sections", SECTIONS);
  return (
    <>
      <h1 class="hidden">Portfolio</h1>
      <Summary />
      <div class="panel">
        {tabs}
        <div class="tab-panel">
          {section === "positions" && <Positions />}
          {section === "orders" && <Orders />}
          {section === "history" && <History />}
          {section === "fills" && <Fills />}
          {section === "settlements" && <Settlements />}
          {section === "sets" && <CompleteSets />}
        </div>
      </div>
    </>
  );
}

function Orders() {
  const orders = openOrders.value;
  const markets = useMarkets((orders ?? []).map(({ market_id }) => market_id));
  if (orders === null) return <Loading />;
  return <OpenOrders orders={orders} markets={markets} />;
}
