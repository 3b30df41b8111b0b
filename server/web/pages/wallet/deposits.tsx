/** The user's deposits. */
import { dateTime } from "../../format.ts";
import { user } from "../../session.ts";
import type { Deposit } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
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
    <section class="panel" aria-labelledby="deposits-title">
      <h2 id="deposits-title">Deposits</h2>
      <p class="hint">
        Operators credit your payments. A deposit is available immediately and appears here with the payment's
        reference. Include your user ID with each payment: <b>{user.value?.id}</b>.
      </p>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table caption="Your deposits" columns={columns} rows={items} keyOf={({ id }) => id} empty="No deposits yet." />
      )}
      <LoadMore more={more} />
    </section>
  );
}
