/** The user's deposits. */
import { dateTime } from "../../dates.ts";
import { request } from "../../session.ts";
import type { Deposit, DepositInstructions } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { Copyable } from "../../ui/copyable.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { useFresh } from "../../ui/use-fresh.ts";

export function Deposits() {
  const { items, error, more, reload } = usePages<Deposit>("/wallet/deposits");
  useFresh(reload);
  const columns: Column<Deposit>[] = [
    { title: "Time", show: ({ created_at }) => dateTime(created_at) },
    {
      title: "Reference",
      show: ({ reference, reverses }) => (
        <>
          <span class="mono long">{reference}</span>
          {reverses !== null && <small class="below faint">takes back deposit {reverses}</small>}
        </>
      ),
    },
    { title: "Amount", isNumber: true, show: ({ amount }) => <Money isExact micro={amount} /> },
  ];
  return (
    <>
      <Instructions />
      <section class="panel" aria-labelledby="deposits-title">
        <h2 id="deposits-title">Deposits</h2>
        <ErrorNotice error={error} retry={reload} />
        {items === null && error === null && <Loading />}
        {items !== null && (
          <Table
            caption="Your deposits"
            columns={columns}
            rows={items}
            keyOf={({ id }) => id}
            empty="No deposits yet."
          />
        )}
        <LoadMore more={more} />
      </section>
    </>
  );
}

/** "IBAN: DE02 1203": a name of a few words, and what to copy. */
const NAMED_LINE = /^([^:]{1,40}):\s+(\S.*)$/;

/** How to pay money in, in the operators' words. */
function Instructions() {
  const { data, error, reload } = useFetch<DepositInstructions>(
    (signal) => request("GET", "/wallet/deposit-instructions", { signal }),
    "deposit-instructions",
  );
  if (data === null && error === null) return <Loading />;
  const lines = (data?.instructions ?? "").split("\n").filter((line) => line.trim() !== "");
  const hasReference = data?.instructions?.includes(data.reference) ?? false;
  return (
    <section class="panel" aria-labelledby="pay-in-title">
      <h2 id="pay-in-title">Pay money in</h2>
      <ErrorNotice error={error} retry={reload} />
      {lines.map((line, i) => {
        const [, name = "", value = ""] = NAMED_LINE.exec(line) ?? [];
        return name === "" ? <p key={i}>{line}</p> : <Copyable key={i} label={name} text={value} />;
      })}
      {data !== null && lines.length === 0 && (
        <p>Ask the exchange's operators where to pay, and give this reference with each payment.</p>
      )}
      {data !== null && !hasReference && <Copyable label="Your reference" text={data.reference} />}
      <p class="hint">
        The reference says that a payment is yours. A payment is in your balance as soon as an operator has credited it.
      </p>
    </section>
  );
}
