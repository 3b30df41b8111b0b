/** The user's withdrawals: requests, statuses, cancellation. */

import { exactMoney, statusText } from "../../../util/format.ts";
import { dateTime } from "../../dates.ts";
import { errorMessage } from "../../error-messages.ts";
import { href } from "../../router.ts";
import { request, user } from "../../session.ts";
import type { Withdrawal } from "../../types.ts";
import { useAction } from "../../ui/action.ts";
import { Money } from "../../ui/amounts.tsx";
import { Badge } from "../../ui/badge.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/notices.tsx";
import { type Pages, usePages } from "../../ui/paged-list.ts";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
import { toast } from "../../ui/toast.tsx";
import { useFresh } from "../../ui/use-fresh.ts";
import { WithdrawForm } from "./withdraw-form.tsx";

const STATUS_TONES: Readonly<Record<string, "" | "good" | "bad" | "warn">> = {
  pending: "warn",
  paid: "good",
  refused: "bad",
};

export function Withdrawals() {
  const list = usePages<Withdrawal>("/wallet/withdrawals");
  // A decision releases or takes what the withdrawal holds.
  useFresh(list.reload);
  return (
    <>
      <section class="panel withdraw" aria-labelledby="withdraw-title">
        <h2 id="withdraw-title">Withdraw</h2>
        {user.value !== null && user.value.kyc_tier < 2 ? (
          <Notice>
            Withdrawals require tier 2, a verified identity. Your account has tier {user.value.kyc_tier}.{" "}
            <a href={href("/account")}>
              {user.value.kyc_tier === 0 ? "Verify your phone first" : "Verify your identity"}
            </a>
          </Notice>
        ) : (
          <WithdrawForm onDone={list.reload} />
        )}
      </section>
      <WithdrawalList list={list} />
    </>
  );
}

function WithdrawalList({ list }: { list: Pages<Withdrawal> }) {
  const { items, error, more, reload, set } = list;
  const columns: Column<Withdrawal>[] = [
    { title: "Requested", show: ({ created_at }) => dateTime(created_at) },
    { title: "Amount", isNumber: true, show: ({ amount }) => <Money isExact micro={amount} /> },
    { title: "Address", show: ({ address }) => <span class="mono long">{address}</span> },
    {
      title: "Status",
      show: ({ status, decided_at, reference, note }) => (
        <span>
          <Badge text={statusText(status as string)} tone={STATUS_TONES[status as string] ?? ""} />
          {decided_at !== null && <small class="below faint">{dateTime(decided_at)}</small>}
          {reference !== null && <small class="below faint long">{reference}</small>}
          {note !== null && <small class="below">{note}</small>}
        </span>
      ),
    },
    {
      title: "Actions",
      isNumber: true,
      show: (withdrawal) =>
        withdrawal.status === "pending" ? (
          <CancelWithdrawal
            withdrawal={withdrawal}
            onDone={(changed) => set((before) => before.map((each) => (each.id === changed.id ? changed : each)))}
            onRejected={reload}
          />
        ) : (
          "–"
        ),
    },
  ];
  return (
    <section class="panel" aria-labelledby="withdrawals-title">
      <h2 id="withdrawals-title" tabIndex={-1}>
        Your withdrawals
      </h2>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table
          caption="Your withdrawals"
          columns={columns}
          rows={items}
          keyOf={({ id }) => id}
          empty="No withdrawals yet."
        />
      )}
      <LoadMore more={more} />
    </section>
  );
}

function CancelWithdrawal({
  withdrawal,
  onDone,
  onRejected,
}: {
  withdrawal: Withdrawal;
  onDone: (changed: Withdrawal) => void;
  onRejected: () => void;
}) {
  const { run, isBusy } = useAction(async () => {
    try {
      onDone(await request<Withdrawal>("DELETE", `/wallet/withdrawals/${withdrawal.id}`));
      toast(`Withdrawal canceled: ${exactMoney(withdrawal.amount)} USDC available again.`);
      document.getElementById("withdrawals-title")?.focus();
    } catch (error) {
      toast(errorMessage(error), true);
      onRejected();
    }
  });
  return (
    <button
      type="button"
      class="small danger"
      disabled={isBusy}
      aria-label={`Cancel withdrawal of ${exactMoney(withdrawal.amount)} USDC`}
      onClick={() => void run()}
    >
      {isBusy ? "Canceling…" : "Cancel"}
    </button>
  );
}
