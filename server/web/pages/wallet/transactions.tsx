/** Every change of the user's balance, with filters and a CSV download. */
import { useEffect, useState } from "preact/hooks";
import { balance } from "../../account-state.ts";
import type { Query } from "../../api.ts";
import { dateTime, humanize, signedMoney } from "../../format.ts";
import { marketName, outcomeName, useMarkets } from "../../market-cache.ts";
import { href, search, setSearch } from "../../router.ts";
import { requestRaw } from "../../session.ts";
import type { Transaction } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { Field, Select } from "../../ui/fields.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/notices.tsx";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
import { useAction, usePages } from "../../ui/use-data.ts";

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

/** Where a day of the person's own zone begins, ms; null where the text is no day. */
function dayStart(text: string, later = 0): number | null {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  return match === null ? null : new Date(Number(match[1]), Number(match[2]) - 1, Number(match[3]) + later).getTime();
}

export function Transactions() {
  const params = search.value;
  const type = TYPES.find(([name]) => name === params.get("type"))?.[0] ?? "";
  const [from, to] = [params.get("from") ?? "", params.get("to") ?? ""];
  const [fromMs, endMs] = [dayStart(from), dayStart(to, 1)];
  const isBackward = fromMs !== null && endMs !== null && fromMs >= endMs;
  const query: Query = { type, from: fromMs, to: endMs === null ? null : endMs - 1 };
  const { items, error, more, reload } = usePages<Transaction>(isBackward ? null : "/wallet/transactions", query);
  const total = balance.value?.total;
  const [shownTotal, setShownTotal] = useState(total);
  useEffect(() => setShownTotal(total), [items]);
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id).filter((id) => id !== null));
  const columns: Column<Transaction>[] = [
    { title: "Time", show: ({ created_at }) => dateTime(created_at) },
    { title: "Type", show: (row) => humanize(row.type as string) },
    {
      title: "For",
      show: ({ market_id, outcome_id, order_id }) => {
        if (market_id === null) return "–";
        const market = markets.get(market_id);
        return (
          <span class="order-name">
            <a href={href(`/markets/${market?.slug ?? market_id}`)}>{marketName(market, market_id)}</a>
            <small class="faint">
              {outcome_id !== null && outcomeName(market, outcome_id)}
              {order_id !== null && ` order ${order_id}`}
            </small>
          </span>
        );
      },
    },
    {
      title: "Amount",
      isNumber: true,
      show: ({ amount }) => <span class={amount > 0 ? "up" : ""}>{signedMoney(amount)}</span>,
    },
    { title: "Balance after", isNumber: true, show: ({ balance_after }) => <Money micro={balance_after} /> },
  ];
  return (
    <section class="panel" aria-labelledby="transactions-title">
      <div class="section-head">
        <h2 id="transactions-title">Transactions</h2>
        <Download query={query} isOff={isBackward} />
      </div>
      <div class="transaction-filters">
        <Select label="Type" value={type} options={TYPES} onChange={(name) => setSearch({ type: name })} />
        <Field label="From" type="date" value={from} onInput={(text) => setSearch({ from: text })} />
        <Field
          label="To"
          type="date"
          value={to}
          onInput={(text) => setSearch({ to: text })}
          problem={isBackward ? "This is before the beginning." : null}
        />
      </div>
      {items !== null && shownTotal !== total && (
        <Notice>
          There are newer transactions.{" "}
          <button type="button" class="small" onClick={reload}>
            Show them
          </button>
        </Notice>
      )}
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && !isBackward && <Loading />}
      {items !== null && (
        <Table
          caption="Changes of your balance"
          columns={columns}
          rows={items}
          keyOf={({ id }) => id}
          empty={
            type === "" && from === "" && to === "" ? "Nothing happened yet." : "Nothing of that kind in that time."
          }
        />
      )}
      <LoadMore more={more} />
    </section>
  );
}

/** The whole of what the filters say, as a file. */
function Download({ query, isOff }: { query: Query; isOff: boolean }) {
  const [isCut, setCut] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    setCut(false);
    const response = await requestRaw("GET", "/wallet/transactions", { query, accept: "text/csv" });
    let file: Blob;
    try {
      file = await response.blob();
    } catch {
      // It ends without its last part where the exchange couldn't finish it.
      setCut(true);
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
      <button type="button" class="small" disabled={isBusy || isOff} onClick={() => void run()}>
        {isBusy ? "Downloading…" : "Download CSV"}
      </button>
      {isCut && (
        <p class="notice bad" role="alert">
          The file was cut short and isn't kept. Try again, or choose a shorter time.
        </p>
      )}
      <ErrorNotice error={error} />
    </>
  );
}

// ---------------------------------------------------------------- deposits
