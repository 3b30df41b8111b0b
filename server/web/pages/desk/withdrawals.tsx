/** Withdrawals: mark as paid or reject, with two approvals under the two-person rule. */
import { useState } from "preact/hooks";
import { exactMoney } from "../../../util/format.ts";
import { fetchAll } from "../../account-state.ts";
import { dateTime } from "../../dates.ts";
import { search, setSearch } from "../../router.ts";
import { request, user } from "../../session.ts";
import type { Approval, OperatorWithdrawal, WithdrawalDecision } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { Field, Select } from "../../ui/fields.tsx";
import { ErrorNotice, Notice } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { Table } from "../../ui/table.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { trimmedOrNull } from "../../ui/validation.ts";
import { AccountTrail } from "./account-trail.tsx";
import { ApprovalBadge, isOwnApproval, RevokeApprovalDialog } from "./approval.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";
import { referenceProblem } from "./payment-form.tsx";
import { StatusBadge } from "./status-badge.tsx";
import { UserFilter } from "./user-search.tsx";

const PAY = "withdrawal.pay";
const STATUSES = [
  ["pending", "Pending"],
  ["paid", "Paid"],
  ["refused", "Rejected"],
  ["canceled", "Canceled by user"],
  ["all", "All"],
] as const;

interface Opened {
  readonly kind: "pay" | "reject" | "revoke";
  readonly withdrawal: OperatorWithdrawal;
  readonly approval: Approval | null;
}

export function Withdrawals() {
  const status = search.value.get("status") ?? "pending";
  const userId = search.value.get("user_id") ?? "";
  const pages = usePages<OperatorWithdrawal>("/admin/withdrawals", {
    status: status === "all" ? null : status,
    user_id: userId,
  });
  const approvals = useFetch(() => fetchAll<Approval>("/admin/approvals").then(({ items }) => items), "approvals");
  const [opened, setOpened] = useState<Opened | null>(null);
  const approvalOf = ({ id }: OperatorWithdrawal): Approval | null =>
    approvals.data?.find(({ action, subject }) => action === PAY && subject === id) ?? null;
  const dialog = {
    onClose: () => setOpened(null),
    onDone: () => {
      pages.reload();
      approvals.reload();
    },
  };
  return (
    <>
      <Heading>Withdrawals</Heading>
      <div class="filters">
        <Select
          label="Status"
          value={status}
          options={STATUSES}
          onChange={(value) => setSearch({ status: value === "pending" ? null : value })}
        />
        <UserFilter userId={userId} onChange={(value) => setSearch({ user_id: value })} />
      </div>
      <ErrorNotice error={approvals.error} retry={approvals.reload} />
      <PagedList pages={pages}>
        {(items) => (
          <Table
            caption="Withdrawals"
            rows={items}
            keyOf={({ id }) => id}
            empty={status === "pending" ? "No withdrawals pending." : "No results"}
            columns={[
              { title: "ID", show: ({ id }) => id },
              { title: "User", show: ({ user_id, email }) => <UserLink id={user_id} email={email} /> },
              { title: "Amount, USDC", isNumber: true, show: ({ amount }) => <Money isExact micro={amount} /> },
              { title: "To", show: ({ address }) => <span class="mono wide">{address}</span> },
              { title: "Requested", show: ({ created_at }) => dateTime(created_at) },
              { title: "Status", show: (each) => <State withdrawal={each} approval={approvalOf(each)} /> },
              {
                title: "Decision",
                show: (withdrawal) => (
                  <Actions
                    withdrawal={withdrawal}
                    approval={approvalOf(withdrawal)}
                    open={(kind) => setOpened({ kind, withdrawal, approval: approvalOf(withdrawal) })}
                  />
                ),
              },
            ]}
          />
        )}
      </PagedList>
      {opened?.kind === "pay" && <PayDialog {...opened} {...dialog} />}
      {opened?.kind === "reject" && <RejectDialog {...opened} {...dialog} />}
      {opened?.kind === "revoke" && opened.approval !== null && (
        <RevokeApprovalDialog approval={opened.approval} {...dialog} />
      )}
    </>
  );
}

function State({ withdrawal, approval }: { withdrawal: OperatorWithdrawal; approval: Approval | null }) {
  const { status, reference, note, decided_at } = withdrawal;
  return (
    <span>
      {approval === null ? <StatusBadge status={status} /> : <ApprovalBadge approval={approval} />}
      {decided_at !== null && <small class="faint"> {dateTime(decided_at)}</small>}
      {reference !== null && <small class="note">Reference: {reference}</small>}
      {note !== null && <small class="note">{note}</small>}
    </span>
  );
}

function Actions({
  withdrawal: { id, status, user_id },
  approval,
  open,
}: {
  withdrawal: OperatorWithdrawal;
  approval: Approval | null;
  open: (kind: Opened["kind"]) => void;
}) {
  if (status !== "pending") return <span class="faint">–</span>;
  if (user_id === user.value?.id) return <span class="faint">Your own: another operator must decide</span>;
  return (
    <span class="row">
      {(approval === null || !isOwnApproval(approval)) && (
        <button
          type="button"
          class="small"
          aria-label={`${approval === null ? "Pay" : "Approve"}: withdrawal ${id}`}
          onClick={() => open("pay")}
        >
          {approval === null ? "Pay" : "Approve"}
        </button>
      )}
      {approval !== null && (
        <button
          type="button"
          class="small"
          aria-label={`Revoke approval of withdrawal ${id}`}
          onClick={() => open("revoke")}
        >
          Revoke
        </button>
      )}
      <button type="button" class="small danger" aria-label={`Reject withdrawal ${id}`} onClick={() => open("reject")}>
        Reject
      </button>
    </span>
  );
}

interface DialogProps extends Opened {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function WithdrawalFacts({ withdrawal: { id, email, amount, address } }: { withdrawal: OperatorWithdrawal }) {
  return (
    <Facts
      facts={[
        ["Withdrawal", id],
        ["User", email],
        ["Amount", `${exactMoney(amount)} USDC`],
        [
          "To",
          <span key="to" class="mono wide">
            {address}
          </span>,
        ],
      ]}
    />
  );
}

/** Details of the first approval. */
interface Payout {
  readonly reference: string | null;
  readonly note: string | null;
}

function PayDialog({ withdrawal, approval, onClose, onDone }: DialogProps) {
  const first = approval?.details as Payout | undefined;
  const [reference, setReference] = useState("");
  const [isChecked, setChecked] = useState(false);
  const problem = reference.trim() === "" ? null : referenceProblem(reference.trim());
  const act = async (note: string | null): Promise<string> => {
    const body = first === undefined ? { reference: trimmedOrNull(reference), note } : first;
    const response = await request<WithdrawalDecision>("POST", `/admin/withdrawals/${withdrawal.id}/pay`, {
      body: { reference: body.reference, note: body.note },
    });
    return response.approval === null
      ? `Withdrawal ${withdrawal.id} marked as paid. The user is notified by email.`
      : "Approval recorded: another operator must repeat the action.";
  };
  return (
    <DecisionDialog
      title={first === undefined ? "Pay withdrawal" : "Second approval: pay withdrawal"}
      confirm={`Mark ${exactMoney(withdrawal.amount)} USDC as paid`}
      noteHint={first === undefined ? "Visible to the user." : null}
      check={() => {
        setChecked(true);
        return problem === null;
      }}
      act={act}
      onClose={onClose}
      onDone={onDone}
    >
      <WithdrawalFacts withdrawal={withdrawal} />
      <h3>Audit trail of the account</h3>
      <AccountTrail userId={withdrawal.user_id} />
      {first === undefined ? (
        <>
          <p>
            Send the money first: this only records the payment. The amount leaves the user's balance permanently, and
            the user is notified by email. Under the two-person rule, this is the first approval, and nothing is
            recorded as paid yet.
          </p>
          <Field
            label="Payment reference (optional)"
            value={reference}
            onInput={setReference}
            problem={isChecked ? problem : null}
            hint="For example, a transaction hash. Prevents recording the same payment twice."
          />
        </>
      ) : (
        <>
          <Notice kind="warn">
            First approval by {approval?.approved_by}, {dateTime(approval?.created_at ?? null)}, with reference{" "}
            {first.reference ?? "none"} and note {first.note ?? "none"}. Yours is the second approval.
          </Notice>
          <p>The amount leaves the user's balance permanently, and the user is notified by email.</p>
        </>
      )}
    </DecisionDialog>
  );
}

function RejectDialog({ withdrawal, onClose, onDone }: DialogProps) {
  return (
    <DecisionDialog
      title="Reject withdrawal"
      confirm="Reject"
      isDangerous
      noteHint="Visible to the user."
      act={async (note) => {
        await request("POST", `/admin/withdrawals/${withdrawal.id}/refuse`, { body: { note } });
        return `Withdrawal ${withdrawal.id} rejected. The user is notified by email.`;
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <WithdrawalFacts withdrawal={withdrawal} />
      <p>
        The amount becomes available to the user again, and the user is notified by email. Don't reject a withdrawal
        that you have already sent.
      </p>
    </DecisionDialog>
  );
}
