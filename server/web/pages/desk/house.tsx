/** The house account: what fees leave, what rebates and rounding take; funded and emptied by operators. */
import { useState } from "preact/hooks";
import { fetchAll } from "../../account-state.ts";
import { call } from "../../api.ts";
import { dateTime, money, percent } from "../../format.ts";
import { request } from "../../session.ts";
import type { Approval, HouseWithdrawal, Limits, NewDepositAnswer, Solvency } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { SegmentedControl } from "../../ui/fields.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/notices.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { isOwnApproval, RevokeApprovalDialog } from "./approval.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { type Payment, PaymentForm, paymentFacts } from "./payment-form.tsx";

type Direction = "in" | "out";
interface HousePayment extends Payment {
  readonly direction: Direction;
}

export function House() {
  const solvency = useFetch((signal) => call<Solvency>("GET", "/solvency", { signal }), "house");
  const limits = useFetch<Limits>((signal) => request("GET", "/me/limits", { signal }), "limits");
  const approvals = useFetch(() => fetchAll<Approval>("/admin/approvals"), "approvals");
  const [asked, setAsked] = useState<HousePayment | null>(null);
  const [taken, setTaken] = useState<Approval | null>(null);
  /** Another form after each payment that was made. */
  const [turn, setTurn] = useState(0);
  const reload = (): void => {
    solvency.reload();
    approvals.reload();
  };
  const first = approvals.data?.find(({ action }) => action === "house.withdraw") ?? null;
  return (
    <>
      <Heading>House</Heading>
      <ErrorNotice error={solvency.error ?? approvals.error} retry={reload} />
      {solvency.data === null && solvency.error === null && <Loading />}
      {solvency.data !== null && (
        <section class="panel">
          <p>
            The house has{" "}
            <strong>
              <Money micro={solvency.data.house} /> USDC
            </strong>
            <span class="faint">, as of {dateTime(solvency.data.at)}.</span>
          </p>
          {solvency.data.house < 0 && (
            <Notice kind="bad">
              <strong>The house is below zero:</strong> the books aren't balanced until it is funded. Nothing but an
              operator's withdrawal lowers it, so this came from before rebates were bounded, or is a mistake: run the
              verification.
            </Notice>
          )}
          <p class="faint">
            It earns the trading fees, of which each match pays its own rebates, what minters pay beyond 1 USDC, and the
            merge fee. Only what operators take out lowers it.
          </p>
          <p class="faint">{mergeFeeText(limits.data?.fees.merge_fee ?? null)}</p>
        </section>
      )}
      {first !== null && <FirstApproval approval={first} repeat={setAsked} takeBack={() => setTaken(first)} />}
      <HouseForm key={turn} onAsk={setAsked} />
      {asked !== null && (
        <PaymentDialog
          payment={asked}
          onClose={() => setAsked(null)}
          onDone={reload}
          onPaid={() => setTurn((before) => before + 1)}
        />
      )}
      {taken !== null && <RevokeApprovalDialog approval={taken} onClose={() => setTaken(null)} onDone={reload} />}
    </>
  );
}

/** Buying the other outcomes and merging comes to selling. @param bps what everybody pays; null: not known yet */
function mergeFeeText(bps: number | null): string {
  if (bps === null) return "";
  if (bps === 0) {
    return "There is no merge fee: who buys the other outcomes and merges leaves a position without the trading fee. MERGE_FEE closes that way.";
  }
  return `Merging costs ${percent(bps)} of each set, so that buying the other outcomes and merging doesn't go around the trading fee.`;
}

function FirstApproval({
  approval,
  repeat,
  takeBack,
}: {
  approval: Approval;
  repeat: (payment: HousePayment) => void;
  takeBack: () => void;
}) {
  const { amount, reference } = approval.details as { amount: number; reference: string };
  return (
    <Notice kind="warn">
      <p>
        {isOwnApproval(approval) ? "You have" : `${approval.approved_by} has`} approved {dateTime(approval.created_at)}{" "}
        of taking out {money(amount)} USDC with the reference {reference}. Another operator must ask for the same.
      </p>
      <div class="row">
        {!isOwnApproval(approval) && (
          <button type="button" onClick={() => repeat({ direction: "out", amount, reference })}>
            Approve too
          </button>
        )}
        <button type="button" onClick={takeBack}>
          Take back
        </button>
      </div>
    </Notice>
  );
}

function HouseForm({ onAsk }: { onAsk: (payment: HousePayment) => void }) {
  const [direction, setDirection] = useState<Direction>("in");
  return (
    <section class="panel" aria-labelledby="desk-house">
      <h2 id="desk-house">Fund it, or take out</h2>
      <PaymentForm
        act={direction === "in" ? "Fund…" : "Take out…"}
        hint="What the payment is known by elsewhere. The same reference counts once."
        onAsk={(payment) => onAsk({ ...payment, direction })}
      >
        <SegmentedControl
          label="What to do"
          value={direction}
          options={[
            ["in", "Fund the house"],
            ["out", "Take out"],
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
      const made = await request<NewDepositAnswer>("POST", "/admin/house/deposits", { body });
      onPaid();
      if (made.id === null) return "Your approval is kept: another operator must ask for the same.";
      return `${money(made.amount)} USDC with the reference ${reference} are in the house.`;
    }
    const { approval } = await request<HouseWithdrawal>("POST", "/admin/house/withdrawals", { body });
    onPaid();
    return approval === null
      ? `${money(amount)} USDC with the reference ${reference} are taken out of the house.`
      : "Your approval is kept: another operator must ask for the same.";
  };
  return (
    <DecisionDialog
      title={isOut ? "Take money out of the house" : "Fund the house"}
      confirm={`${isOut ? "Take out" : "Put in"} ${money(amount)} USDC`}
      isDangerous={isOut}
      noteHint={null}
      act={act}
      onClose={onClose}
      onDone={onDone}
    >
      <Facts facts={paymentFacts(payment)} />
      <p>
        {isOut
          ? "The house has so much less from then on. Where two operators must agree, this is the first approval or the second."
          : "The house has so much more from then on, for rebates; it can be taken out again."}
      </p>
    </DecisionDialog>
  );
}
