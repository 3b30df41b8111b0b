/** Every change of the user's balance, with filters and a CSV download. */
import "./transactions.css";
import { humanize, signedMoney } from "../../../util/format.ts";
import type { Query } from "../../api.ts";
import { dateTime } from "../../dates.ts";
import { marketName, outcomeName, useMarkets } from "../../market-cache.ts";
import { href, search, setSearch } from "../../router.ts";
import type { Market, Transaction } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { CsvButton } from "../../ui/csv-button.tsx";
import { Field, Select } from "../../ui/fields.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
import { useFresh } from "../../ui/use-fresh.ts";

const TYPES = [
  ["", "All"],
  ["trade", "Trades"],
  ["fee", "Fees"],
  ["rebate", "Rebates"],
  ["deposit", "Deposits"],
  ["withdrawal", "Withdrawals"],
  ["split", "Splits"],
  ["merge", "Merges"],
  ["settlement", "Settlements"],
] as const;

/** Start of a day in the browser's time zone, ms; null if the text is no date. @param later days to add */
function dayStart(text: string, later = 0): number | null {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  return match === null ? null : new Date(Number(match[1]), Number(match[2]) - 1, Number(match[3]) + later).getTime();
}

/** @param isTab in a panel of tabs, which names it */
export function Transactions({ isTab = false }: { isTab?: boolean }) {
  const params = search.value;
  const type = TYPES.find(([name]) => name === params.get("type"))?.[0] ?? "";
  const [from, to] = [params.get("from") ?? "", params.get("to") ?? ""];
  const [fromMs, endMs] = [dayStart(from), dayStart(to, 1)];
  const isReversed = fromMs !== null && endMs !== null && fromMs >= endMs;
  const query: Query = { type, from: fromMs, to: endMs === null ? null : endMs - 1 };
  const { items, error, more, reload } = usePages<Transaction>(isReversed ? null : "/wallet/transactions", query);
  useFresh(reload);
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id).filter((id) => id !== null));
  const columns: Column<Transaction>[] = [
    { title: "Time", show: ({ created_at }) => dateTime(created_at) },
    { title: "Type", show: (row) => humanize(row.type as string) },
    { title: "For", show: (row) => <Subject transaction={row} markets={markets} /> },
    {
      title: "Amount",
      isNumber: true,
      show: ({ amount }) => <span class={amount > 0 ? "up" : ""}>{signedMoney(amount)}</span>,
    },
    { title: "Balance after", isNumber: true, show: ({ balance_after }) => <Money isExact micro={balance_after} /> },
  ];
  return (
    <section class={isTab ? "bare" : "panel"} aria-labelledby="transactions-title">
      <h2 id="transactions-title" class={isTab ? "hidden" : ""}>
        Transactions
      </h2>
      <div class="transaction-filters">
        <Select label="Type" value={type} options={TYPES} onChange={(name) => setSearch({ type: name })} />
        <Field label="From" type="date" value={from} onInput={(text) => setSearch({ from: text })} />
        <Field
          label="To"
          type="date"
          value={to}
          onInput={(text) => setSearch({ to: text })}
          problem={isReversed ? "Must not be before the start date." : null}
        />
        <div class="download">
          <CsvButton list="transactions" query={query} isDisabled={isReversed} />
        </div>
      </div>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && !isReversed && <Loading />}
      {items !== null && (
        <Table
          caption="Transactions"
          columns={columns}
          rows={items}
          keyOf={({ id }) => id}
          empty={type === "" && from === "" && to === "" ? "No transactions yet." : "No results."}
        />
      )}
      <LoadMore more={more} />
    </section>
  );
}

/** The market, outcome and order of a transaction, or its deposit. */
function Subject({
  transaction: { amount, market_id, outcome_id, order_id, deposit_id },
  markets,
}: {
  transaction: Transaction;
  markets: ReadonlyMap<number, Market>;
}) {
  if (deposit_id !== null) return <>{`${amount < 0 ? "takes back " : ""}deposit ${deposit_id}`}</>;
  if (market_id === null) return <>–</>;
  const market = markets.get(market_id);
  return (
    <span class="order-name">
      <a href={href(`/markets/${market?.slug ?? market_id}`)}>{marketName(market, market_id)}</a>
      <small class="faint" translate={false}>
        {outcome_id !== null && outcomeName(market, outcome_id)}
        {order_id !== null && ` order ${order_id}`}
      </small>
    </span>
  );
}
