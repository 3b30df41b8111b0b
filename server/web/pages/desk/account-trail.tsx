/**
 * An account's audit trail for the second operator: who credited its deposits, set its terms and decided on its identity,
 * and who approved. Loaded when shown.
 */

import { statusText } from "../../../util/format.ts";
import { dateTime } from "../../dates.ts";
import { request } from "../../session.ts";
import type { Trail as TrailData } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/notices.tsx";
import { Table } from "../../ui/table.tsx";
import { type Children, useFetch } from "../../ui/use-data.ts";
import { termsText } from "./approval-details.ts";

interface First {
  readonly approved_by: string | null;
  readonly approved_at: number | null;
}

function by(actor: string | null, at: number, { approved_by, approved_at }: First): Children {
  return (
    <span>
      {actor ?? "unknown"}, {dateTime(at)}
      {approved_by !== null && approved_at !== null && (
        <small class="note">
          first approval by {approved_by}, {dateTime(approved_at)}
        </small>
      )}
    </span>
  );
}

export function AccountTrail({ userId }: { userId: number }) {
  const { data, error, reload } = useFetch(
    (signal) => request<TrailData>("GET", `/admin/users/${userId}/trail`, { signal }),
    String(userId),
  );
  if (data === null)
    return error === null ? <Loading what="Loading the audit trail" /> : <ErrorNotice error={error} retry={reload} />;
  return (
    <>
      <Table
        caption="Deposits"
        rows={data.deposits}
        keyOf={({ id }) => id}
        empty="No deposits."
        columns={[
          { title: "Amount, USDC", isNumber: true, show: ({ amount }) => <Money isExact micro={amount} /> },
          { title: "Reference", show: ({ reference }) => <span class="mono wide">{reference}</span> },
          { title: "Credited or reversed by", show: (row) => by(row.credited_by, row.created_at, row) },
        ]}
      />
      <Table
        caption="Terms"
        rows={data.terms}
        keyOf={({ set_at }) => set_at}
        empty="Default terms."
        columns={[
          { title: "Terms", show: ({ changes }) => termsText(changes) },
          { title: "Set by", show: (row) => by(row.set_by, row.set_at, row) },
        ]}
      />
      <Table
        caption="Identity decisions"
        rows={data.identity}
        keyOf={({ decided_at }) => decided_at}
        empty="No identity decisions."
        columns={[
          {
            title: "Decision",
            show: ({ status, note }) => (note === null ? statusText(status) : `${statusText(status)}: ${note}`),
          },
          { title: "By", show: ({ decided_by, decided_at }) => `${decided_by}, ${dateTime(decided_at)}` },
        ]}
      />
      {data.has_more && <Notice>Older entries are in the audit log.</Notice>}
    </>
  );
}
