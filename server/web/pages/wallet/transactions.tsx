/** Every change of the user's balance, with filters and a CSV download. */
import { useEffect, useState } from "preact/hooks";
import { balance } from "../../account-state.ts";
import type { Query } from "../../api.ts";
import { dateTime, humanize, signedMoney } from "../../format.ts";
import { marketName, outcomeName, useMarkets } from "../../market-cache.ts";
import { href, search, setSearch } from "../../router.ts";
import { requestRaw } from "../../session.ts";
import type { Market, Transaction } from "../../types.ts";
import { useAction } from "../../ui/action.ts";
import { Money } from "../../ui/amounts.tsx";
import { Field, Select } from "../../ui/fields.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";

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

export function Transactions() {
  const params = search.value;
  const type = TYPES.find(([name]) => name === params.get("type"))?.[0] ?? "";
  const [from, to] = [params.get("from") ?? "", params.get("to") ?? ""];
  const [fromMs, endMs] = [dayStart(from), dayStart(to, 1)];
  const isReversed = fromMs !== null && endMs !== null && fromMs >= endMs;
  const query: Query = { type, from: fromMs, to: endMs === null ? null : endMs - 1 };
  const { items, error, more, reload } = usePages<Transaction>(isReversed ? null : "/wallet/transactions", query);
  const total = balance.value?.total;
  const [shownTotal, setShownTotal] = useState(total);
  useEffect(() => setShownTotal(total), [items]);
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
    <section class="panel" aria-labelledby="transactions-title">
      <div class="section-head">
        <h2 id="transactions-title">Transactions</h2>
        <Download query={query} isDisabled={isReversed} />
      </div>
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
      </div>
      {items !== null && shownTotal !== total && (
        <Notice>
          Newer transactions are available.{" "}
          <button type="button" class="small" onClick={reload}>
            Refresh
          </button>
        </Notice>
      )}
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

/** Downloads all transactions that match the filters. */
function Download({ query, isDisabled }: { query: Query; isDisabled: boolean }) {
  const [isIncomplete, setIncomplete] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    setIncomplete(false);
    const response = await requestRaw("GET", "/wallet/transactions", { query, accept: "text/csv" });
    let file: Blob;
    try {
      file = await response.blob();
    } catch {
      // The server aborts the response if it can't complete the file.
      setIncomplete(true);
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = "transactions.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
  return (
    <>
      <button type="button" class="small" disabled={isBusy || isDisabled} onClick={() => void run()}>
        {isBusy ? "Downloading…" : "Download CSV"}
      </button>
      {isIncomplete && (
        <p class="notice bad" role="alert">
          Download incomplete. Try again, or choose a shorter period.
        </p>
      )}
      <ErrorNotice error={error} />
    </>
  );
}
