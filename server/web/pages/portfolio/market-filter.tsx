/** Narrows the lists of the portfolio to markets by name: those that the user holds, has traded or has orders in. */
import { useState } from "preact/hooks";
import { openOrders, positions } from "../../account-state.ts";
import { useMarkets } from "../../market-cache.ts";
import { search, setSearch } from "../../router.ts";
import type { Market } from "../../types.ts";
import { Icon } from "../../ui/icon.tsx";
import { Empty } from "../../ui/notices.tsx";

/** Names that the browser suggests, and that are offered to choose from. */
const MAX_SUGGESTED = 50;
const MAX_OFFERED = 8;

/** What the filter finds. */
interface FoundMarkets {
  /** The markets whose names match; null while there is no filter. */
  readonly found: readonly Market[] | null;
  /** The one that it finds; null for all markets, too. */
  readonly only: number | null;
  /** None or several match: a list that is of one market or of all can't be shown. */
  readonly isUnclear: boolean;
}

export function useMarketFilter(): FoundMarkets {
  const text = filterText();
  const own = useOwnMarkets(text !== "");
  if (text === "") return { found: null, only: null, isUnclear: false };
  const exact = own.filter(({ question }) => question.toLowerCase() === text);
  const found = exact.length > 0 ? exact : own.filter(({ question }) => question.toLowerCase().includes(text));
  const isUnclear = found.length !== 1;
  return { found, only: isUnclear ? null : (found[0]?.id ?? null), isUnclear };
}

/** The rows in the markets that the filter finds. */
export function inFound<T extends { market_id: number }>(
  found: readonly Market[] | null,
  rows: readonly T[],
): readonly T[] {
  if (found === null) return rows;
  const ids = new Set(found.map(({ id }) => id));
  return rows.filter(({ market_id }) => ids.has(market_id));
}

const filterText = (): string => (search.value.get("market") ?? "").trim().toLowerCase();

function useOwnMarkets(isWanted: boolean): readonly Market[] {
  const rows = isWanted ? [...(positions.value?.values() ?? []), ...(openOrders.value ?? [])] : [];
  const ids = new Set(rows.map(({ market_id }) => market_id));
  const markets = useMarkets(ids);
  return [...ids].map((id) => markets.get(id)).filter((market) => market !== undefined);
}

export function MarketFilter() {
  const [isUsed, setUsed] = useState(false);
  const text = search.value.get("market") ?? "";
  const own = useOwnMarkets(isUsed || text !== "");
  return (
    <label class="filter-field">
      <Icon name="search" />
      <input
        type="search"
        aria-label="Filter by market"
        placeholder="Filter by market"
        list="own-markets"
        autocomplete="off"
        value={text}
        onFocus={() => setUsed(true)}
        onInput={({ currentTarget }) => setSearch({ market: currentTarget.value })}
      />
      <datalist id="own-markets">
        {own.slice(0, MAX_SUGGESTED).map(({ id, question }) => (
          <option key={id} value={question} />
        ))}
      </datalist>
    </label>
  );
}

/** In place of a list that is of one market or of all: says what the filter found, and lets the user choose. */
export function ChooseMarket({ found }: { found: readonly Market[] | null }) {
  if (found === null || found.length === 0) return <Empty>None of your markets has this in its name.</Empty>;
  return (
    <div class="empty">
      <p>{found.length} of your markets have this in their names. Choose one:</p>
      <ul class="choose-market">
        {found.slice(0, MAX_OFFERED).map(({ id, question }) => (
          <li key={id}>
            <button type="button" class="link" translate={false} onClick={() => setSearch({ market: question })}>
              {question}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
