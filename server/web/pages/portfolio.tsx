/** The user's portfolio: value over time, wallet, positions, orders, fills, resolved markets, transactions, complete sets. */
import { useEffect } from "preact/hooks";
import "./market.css";
import "./portfolio.css";
import { shares } from "../../util/format.ts";
import { hasMoreOrders, hasMorePositions, openOrders, positions } from "../account-state.ts";
import { useMarkets } from "../market-cache.ts";
import { search, setSearch } from "../router.ts";
import { CancelAllButton, OpenOrders } from "../trading/open-orders.tsx";
import { CsvButton } from "../ui/csv-button.tsx";
import { Loading } from "../ui/notices.tsx";
import { SegmentedControl } from "../ui/segmented-control.tsx";
import { useTabs } from "../ui/tabs.tsx";
import { CompleteSets } from "./portfolio/complete-sets.tsx";
import { Fills } from "./portfolio/fills.tsx";
import { inFound, MarketFilter, useMarketFilter } from "./portfolio/market-filter.tsx";
import { OrderHistory } from "./portfolio/order-history.tsx";
import { Positions } from "./portfolio/positions.tsx";
import { Resolved } from "./portfolio/resolved.tsx";
import { Summary } from "./portfolio/summary.tsx";
import { Transactions } from "./wallet/transactions.tsx";

const SECTIONS = [
  ["positions", "Positions"],
  ["orders", "Orders"],
  ["fills", "Fills"],
  ["resolved", "Resolved"],
  ["transactions", "Transactions"],
  ["sets", "Split or merge"],
] as const;
type Section = (typeof SECTIONS)[number][0];

/** The lists that the filter and the file are of. */
const LISTS = { positions: "positions", orders: "orders", fills: "fills", resolved: "settlements" } as const;

export default function PortfolioPage() {
  useEffect(() => {
    document.title = "Portfolio · Prediction Exchange";
  }, []);
  const { section, tabs } = useTabs("/portfolio", "Portfolio sections", SECTIONS, useCounts());
  return (
    <>
      <h1 class="hidden">Portfolio</h1>
      <Summary />
      <div class="panel">
        <div class="tab-bar">
          {tabs}
          <Tools section={section} />
        </div>
        <div class="tab-panel">
          {section === "positions" && <Positions />}
          {section === "orders" && (showsAll() ? <OrderHistory /> : <LiveOrders />)}
          {section === "fills" && <Fills />}
          {section === "resolved" && <Resolved />}
          {section === "transactions" && <Transactions isTab />}
          {section === "sets" && <CompleteSets />}
        </div>
      </div>
    </>
  );
}

/** How many positions and live orders there are: none is not worth a number. */
function useCounts(): Partial<Record<Section, string>> {
  const held = [...(positions.value?.values() ?? [])].filter(({ quantity }) => quantity > 0).length;
  const live = openOrders.value?.length ?? 0;
  return {
    ...(held > 0 && { positions: shares(held) + (hasMorePositions.value ? "+" : "") }),
    ...(live > 0 && { orders: shares(live) + (hasMoreOrders.value ? "+" : "") }),
  };
}

const showsAll = (): boolean => search.value.get("orders") === "all";

const ORDER_VIEWS = [
  ["live", "Live"],
  ["all", "All"],
] as const;

function Tools({ section }: { section: Section }) {
  const { found, only, isUnclear } = useMarketFilter();
  const live = inFound(found, openOrders.value ?? []);
  if (section === "transactions" || section === "sets") return null;
  const isOrders = section === "orders";
  return (
    <div class="tools">
      <MarketFilter />
      {isOrders && (
        <SegmentedControl
          label="Orders"
          value={showsAll() ? "all" : "live"}
          options={ORDER_VIEWS}
          onChange={(view) => setSearch({ orders: view === "all" ? view : null })}
        />
      )}
      <CsvButton
        list={LISTS[section]}
        query={{ market_id: only, status: isOrders && showsAll() ? "all" : null }}
        isDisabled={isUnclear}
      />
      {isOrders && live.length > 1 && !isUnclear && <CancelAllButton orders={live} marketId={only} />}
    </div>
  );
}

function LiveOrders() {
  const { found } = useMarketFilter();
  const orders = inFound(found, openOrders.value ?? []);
  const markets = useMarkets(orders.map(({ market_id }) => market_id));
  if (openOrders.value === null) return <Loading />;
  const empty = found === null ? "No open orders." : "No open orders in markets of this name.";
  return <OpenOrders orders={orders} markets={markets} hasOwnCancelAll empty={empty} />;
}
