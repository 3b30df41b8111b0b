/** Withdrawals: paid with what the payment is known by, or refused; with the first of two approvals where that is the rule. */
import { useState } from "preact/hooks";
import { fetchAll } from "../../account-state.ts";
import { dateTime, money } from "../../format.ts";
import { search, setSearch } from "../../router.ts";
import { request, user } from "../../session.ts";
import type { Approval, OperatorWithdrawal, WithdrawalDecision } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { Field, Select } from "../../ui/fields.tsx";
import { ErrorNotice, Notice } from "../../ui/notices.tsx";
import { Table } from "../../ui/table.tsx";
import { useFetch, usePages } from "../../ui/use-data.ts";
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
  ["pending", "Waiting"],
  ["paid", "Paid"],
  ["refused", "Refused"],
  ["canceled", "Canceled by the user"],
  ["all", "All"],
] as const;

interface Opened {
  readonly kind: "pay" | "refuse" | "take back";
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
  const approvals = useFetch(() => fetchAll<Approval>("/admin/approvals"), "approvals");
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
          label="State"
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
            empty={status === "pending" ? "No withdrawal waits." : "There is none in this state."}
            columns={[
              { title: "No.", show: ({ id }) => id },
              { title: "User", show: ({ user_id, email }) => <UserLink id={user_id} email={email} /> },
              { title: "Amount, USDC", isNumber: true, show: ({ amount }) => <Money micro={amount} /> },
              { title: "To", show: ({ address }) => <span class="mono wide">{address}</span> },
              { title: "Asked for", show: ({ created_at }) => dateTime(created_at) },
              { title: "State", show: (each) => <State withdrawal={each} approval={approvalOf(each)} /> },
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
      {opened?.kind === "refuse" && <RefuseDialog {...opened} {...dialog} />}
      {opened?.kind === "take back" && opened.approval !== null && (
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
  if (user_id === user.value?.id) return <span class="faint">Yours: another operator must decide.</span>;
  return (
    <span class="row">
      {(approval === null || !isOwnApproval(approval)) && (
        <button
          type="button"
          class="small"
          aria-label={`${approval === null ? "Pay" : "Approve too"}: withdrawal ${id}`}
          onClick={() => open("pay")}
        >
          {approval === null ? "Pay" : "Approve too"}
        </button>
      )}
      {approval !== null && (
        <button
          type="button"
          class="small"
          aria-label={`Take back the approval of withdrawal ${id}`}
          onClick={() => open("take back")}
        >
          Take back
        </button>
      )}
      <button type="button" class="small danger" aria-label={`Refuse withdrawal ${id}`} onClick={() => open("refuse")}>
        Refuse
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
        ["Amount", `${money(amount)} USDC`],
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

/** What the first of two has given. */
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
    const answer = await request<WithdrawalDecision>("POST", `/admin/withdrawals/${withdrawal.id}/pay`, {
      body: { reference: body.reference, note: body.note },
    });
    return answer.approval === null
      ? `Withdrawal ${withdrawal.id} is paid. The user is mailed.`
      : "Your approval is kept: another operator must ask for the same.";
  };
  return (
    <DecisionDialog
      title={first === undefined ? "Pay the withdrawal" : "Second approval of the payment"}
      confirm={`Mark ${money(withdrawal.amount)} USDC as paid`}
      noteHint={first === undefined ? "The user can read it beside the withdrawal." : null}
      check={() => {
        setChecked(true);
        return problem === null;
      }}
      act={act}
      onClose={onClose}
      onDone={onDone}
    >
      <WithdrawalFacts withdrawal={withdrawal} />
      <h3>Where the account's money and terms come from</h3>
      <AccountTrail userId={withdrawal.user_id} />
      {first === undefined ? (
        <>
          <p>
            Send the money first: this only says that it was sent. The amount leaves the user's balance for good, and
            the user is mailed. Where two operators must agree, this is the first approval, and nothing is paid yet.
          </p>
          <Field
            label="Reference of the payment (optional)"
            value={reference}
            onInput={setReference}
            problem={isChecked ? problem : null}
            hint="What it is known by elsewhere, such as a transaction's hash. With it a repeated click pays once."
          />
        </>
      ) : (
        <>
          <Notice kind="warn">
            {approval!.approved_by} has approved of this {dateTime(approval!.created_at)}, with the reference{" "}
            {first.reference ?? "none"} and the note {first.note ?? "none"}. Yours is the second approval.
          </Notice>
          <p>The amount leaves the user's balance for good, and the user is mailed.</p>
        </>
      )}
    </DecisionDialog>
  );
}

function RefuseDialog({ withdrawal, onClose, onDone }: DialogProps) {
  return (
    <DecisionDialog
      title="Refuse the withdrawal"
      confirm="Refuse it"
      isDangerous
      noteHint="The user can read it beside the withdrawal."
      act={async (note) => {
        await request("POST", `/admin/withdrawals/${withdrawal.id}/refuse`, { body: { note } });
        return `Withdrawal ${withdrawal.id} is refused. The user is mailed.`;
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <WithdrawalFacts withdrawal={withdrawal} />
      <p>Its amount is available to the user again at once, and the user is mailed. Nothing must have been sent.</p>
    </DecisionDialog>
  );
}
