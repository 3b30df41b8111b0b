/** The house account, which earns fees and pays rebates: its balance, deposits and withdrawals by operators. */
import { useState } from "preact/hooks";
import { exactMoney, percent } from "../../../util/format.ts";
import { fetchAll } from "../../account-state.ts";
import { call } from "../../api.ts";
import { dateTime } from "../../dates.ts";
import { request } from "../../session.ts";
import type { Approval, DepositResponse, HouseWithdrawal, Limits, Solvency } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/notices.tsx";
import { SegmentedControl } from "../../ui/segmented-control.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { isOwnApproval, RevokeApprovalDialog } from "./approval.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { type Payment, PaymentForm, paymentFacts, WAITS } from "./payment-form.tsx";

type Direction = "in" | "out";
interface HousePayment extends Payment {
  readonly direction: Direction;
}

export function House() {
  const solvency = useFetch((signal) => call<Solvency>("GET", "/solvency", { signal }), "house");
  const limits = useFetch<Limits>((signal) => request("GET", "/me/limits", { signal }), "limits");
  const approvals = useFetch(() => fetchAll<Approval>("/admin/approvals").then(({ items }) => items), "approvals");
  const [payment, setPayment] = useState<HousePayment | null>(null);
  const [revoking, setRevoking] = useState<Approval | null>(null);
  /** Key of the form: clears it after each payment. */
  const [formKey, setFormKey] = useState(0);
  const reload = (): void => {
    solvency.reload();
    approvals.reload();
  };
  const firstApproval = approvals.data?.find(({ action }) => action === "house.withdraw") ?? null;
  return (
    <>
      <Heading>House</Heading>
      <ErrorNotice error={solvency.error ?? approvals.error} retry={reload} />
      {solvency.data === null && solvency.error === null && <Loading />}
      {solvency.data !== null && (
        <section class="panel">
          <p>
            House balance:{" "}
            <strong>
              <Money isExact micro={solvency.data.house} /> USDC
            </strong>
            <span class="faint">, as of {dateTime(solvency.data.at)}.</span>
          </p>
          {solvency.data.house < 0 && (
            <Notice kind="bad">
              <strong>The house balance is negative:</strong> the exchange isn't solvent until you fund it. Only
              operator withdrawals lower the balance, so this dates from before rebates were bounded, or is an error:
              run the verification.
            </Notice>
          )}
          <p class="faint">
            The house earns trading fees less the rebates of the same match, the surplus that minters pay over 1 USDC,
            and merge fees. Only operator withdrawals lower it.
          </p>
          <p class="faint">{mergeFeeText(limits.data?.fees.merge_fee ?? null)}</p>
        </section>
      )}
      {firstApproval !== null && (
        <FirstApproval approval={firstApproval} repeat={setPayment} revoke={() => setRevoking(firstApproval)} />
      )}
      <HouseForm key={formKey} onSubmit={setPayment} />
      {payment !== null && (
        <PaymentDialog
          payment={payment}
          onClose={() => setPayment(null)}
          onDone={reload}
          onPaid={() => setFormKey((before) => before + 1)}
        />
      )}
      {revoking !== null && (
        <RevokeApprovalDialog approval={revoking} onClose={() => setRevoking(null)} onDone={reload} />
      )}
    </>
  );
}

/** Buying the other outcomes and merging is equivalent to selling. @param bps default merge fee; null: not loaded yet */
function mergeFeeText(bps: number | null): string {
  if (bps === null) return "";
  if (bps === 0) {
    return "There is no merge fee: a trader can buy the other outcomes and merge to exit a position without the trading fee. Set MERGE_FEE to prevent this.";
  }
  return `Merging costs ${percent(bps)} of each set, so that buying the other outcomes and merging doesn't bypass the trading fee.`;
}

function FirstApproval({
  approval,
  repeat,
  revoke,
}: {
  approval: Approval;
  repeat: (payment: HousePayment) => void;
  revoke: () => void;
}) {
  const { amount, reference } = approval.details as { amount: number; reference: string };
  return (
    <Notice kind="warn">
      <p>
        First approval by {isOwnApproval(approval) ? "you" : approval.approved_by}, {dateTime(approval.created_at)}:
        withdraw {exactMoney(amount)} USDC with reference {reference}. Another operator must repeat the action.
      </p>
      <div class="row">
        {!isOwnApproval(approval) && (
          <button type="button" onClick={() => repeat({ direction: "out", amount, reference })}>
            Approve
          </button>
        )}
        <button type="button" onClick={revoke}>
          Revoke
        </button>
      </div>
    </Notice>
  );
}

function HouseForm({ onSubmit }: { onSubmit: (payment: HousePayment) => void }) {
  const [direction, setDirection] = useState<Direction>("in");
  return (
    <section class="panel" aria-labelledby="desk-house">
      <h2 id="desk-house">Fund or withdraw</h2>
      <PaymentForm
        act={direction === "in" ? "Fund…" : "Withdraw…"}
        hint="The payment's reference in your records. Each reference counts only once."
        onSubmit={(payment) => onSubmit({ ...payment, direction })}
      >
        <SegmentedControl
          label="Direction"
          value={direction}
          options={[
            ["in", "Fund the house"],
            ["out", "Withdraw"],
          ]}
          onChange={setDirection}
        />
      </PaymentForm>
    </section>
  );
}

function PaymentDialog({
  payment,
  onClose,
  onDone,
  onPaid,
}: {
  payment: HousePayment;
  onClose: () => void;
  onDone: () => void;
  onPaid: () => void;
}) {
  const { direction, amount, reference } = payment;
  const isOut = direction === "out";
  const act = async (): Promise<string> => {
    const body = { amount, reference };
    if (!isOut) {
      const deposit = await request<DepositResponse>("POST", "/admin/house/deposits", { body });
      onPaid();
      if (deposit.id === null) return WAITS;
      return `House funded with ${exactMoney(deposit.amount)} USDC, reference ${reference}.`;
    }
    const { approval } = await request<HouseWithdrawal>("POST", "/admin/house/withdrawals", { body });
    onPaid();
    if (approval !== null) return WAITS;
    return `Withdrew ${exactMoney(amount)} USDC from the house, reference ${reference}.`;
  };
  return (
    <DecisionDialog
      title={isOut ? "Withdraw from the house" : "Fund the house"}
      confirm={`${isOut ? "Withdraw" : "Deposit"} ${exactMoney(amount)} USDC`}
      isDangerous={isOut}
      noteHint={null}
      act={act}
      onClose={onClose}
      onDone={onDone}
    >
      <Facts facts={paymentFacts(payment)} />
      <p>
        {isOut
          ? "This lowers the house balance. Under the two-person rule, this counts as the first or second approval."
          : "This raises the house balance. You can withdraw it later."}
      </p>
    </DecisionDialog>
  );
}
