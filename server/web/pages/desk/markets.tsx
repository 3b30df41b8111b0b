/** Markets by status, with search; a single market or a creation form if the address names it. */
import { useEffect, useState } from "preact/hooks";
import { compact } from "../../../util/format.ts";
import { dateTime } from "../../dates.ts";
import { href, search, setSearch } from "../../router.ts";
import { subscribe } from "../../stream.ts";
import type { Market } from "../../types.ts";
import { Select } from "../../ui/fields.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { Table } from "../../ui/table.tsx";
import { Heading } from "./heading.tsx";
import { MarketLink } from "./links.tsx";
import { MarketDesk } from "./market.tsx";
import { NewEventForm } from "./new-event.tsx";
import { NewMarketForm } from "./new-market.tsx";
import { PagedList } from "./paged-list.tsx";
import { StatusBadge } from "./status-badge.tsx";

const STATUSES = [
  ["open", "Open"],
  ["halted", "Halted"],
  ["closed", "Closed, to resolve"],
  ["resolved", "Resolved"],
  ["voided", "Voided"],
] as const;
const SORTS = [
  ["created_at", "Newest"],
  ["closes_at", "Closing soonest"],
  ["volume", "Highest volume"],
] as const;
const TYPING_MS = 250;

export function Markets() {
  const query = search.value;
  const market = query.get("market");
  const create = query.get("new");
  if (market !== null) return <MarketDesk key={market} id={market} />;
  if (create === "market") return <NewMarketForm />;
  if (create === "event") return <NewEventForm />;
  return <MarketList />;
}

function MarketList() {
  const query = search.value;
  const status = query.get("status") ?? "open";
  const sort = query.get("sort") ?? "created_at";
  const q = query.get("q") ?? "";
  const pages = usePages<Market>("/markets", { status, sort, q });
  const { set, reload } = pages;
  useEffect(
    () =>
      subscribe(
        "markets",
        null,
        null,
        ({ data }) => {
          const changed = data as Market;
          set((items) => items.map((each) => (each.id === changed.id ? changed : each)));
        },
        reload,
      ),
    [status, sort, q],
  );
  return (
    <>
      <div class="row spread">
        <Heading>Markets</Heading>
        <span class="row">
          <a class="button primary" href={href("/desk/markets?new=market")}>
            New market
          </a>
          <a class="button" href={href("/desk/markets?new=event")}>
            New event
          </a>
        </span>
      </div>
      <div class="filters">
        <Select
          label="Status"
          value={status}
          options={STATUSES}
          onChange={(value) => setSearch({ status: value === "open" ? null : value })}
        />
        <Select
          label="Sort by"
          value={sort}
          options={SORTS}
          onChange={(value) => setSearch({ sort: value === "created_at" ? null : value })}
        />
        <SearchField value={q} />
      </div>
      <PagedList pages={pages}>
        {(items) => (
          <Table
            caption="Markets"
            rows={items}
            keyOf={({ id }) => id}
            empty={q === "" ? "No markets" : "No results"}
            columns={[
              { title: "ID", show: ({ id }) => id },
              { title: "Question", show: ({ id, question }) => <MarketLink id={id} text={question} /> },
              { title: "Status", show: (each) => <StatusBadge status={each.status} /> },
              { title: "Closes at", show: ({ closes_at }) => dateTime(closes_at) },
              { title: "Volume", isNumber: true, show: ({ volume }) => compact(volume) },
              { title: "Open interest", isNumber: true, show: ({ open_interest }) => compact(open_interest) },
            ]}
          />
        )}
      </PagedList>
    </>
  );
}

function SearchField({ value }: { value: string }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = setTimeout(() => setSearch({ q: text.trim() }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value]);
  return (
    <search class="field">
      <label for="desk-market-search">Search</label>
      <input
        id="desk-market-search"
        type="search"
        maxLength={200}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </search>
  );
}
