/** The house account: what fees leave, what rebates and rounding take; funded and emptied by operators. */
import { useState } from "preact/hooks";
import { readAll } from "../../account-state.ts";
import { call } from "../../api.ts";
import { dateTime, money, readMoney } from "../../format.ts";
import { request } from "../../session.ts";
import type { Approval, HouseWithdrawal, OperatorDeposit, Solvency } from "../../types.ts";
import { focusProblem } from "../../ui/checks.ts";
import { useLoaded } from "../../ui/data.ts";
import { Choice, ErrorNotice, Field, Loading, Money, Notice } from "../../ui/parts.tsx";
import {
  amountProblem,
  DecisionDialog,
  Facts,
  Heading,
  isOwnApproval,
  referenceProblem,
  TakeBackDialog,
} from "./parts.tsx";

type Direction = "in" | "out";
interface Payment {
  readonly direction: Direction;
  /** micro-USDC */
  readonly amount: number;
  readonly reference: string;
}

export function House() {
  const solvency = useLoaded((signal) => call<Solvency>("GET", "/solvency", { signal }), "house");
  const approvals = useLoaded(() => readAll<Approval>("/admin/approvals"), "approvals");
  const [asked, setAsked] = useState<Payment | null>(null);
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
          <p class="faint">
            It earns the trading fees and pays the rebates; rounding goes to it. Below zero it has paid more rebates
            than it earned.
          </p>
        </section>
      )}
      {first !== null && <First approval={first} repeat={setAsked} takeBack={() => setTaken(first)} />}
      <PaymentForm key={turn} onAsk={setAsked} />
      {asked !== null && (
        <PaymentDialog
          payment={asked}
          onClose={() => setAsked(null)}
          onDone={reload}
          onPaid={() => setTurn((before) => before + 1)}
        />
      )}
      {taken !== null && <TakeBackDialog approval={taken} onClose={() => setTaken(null)} onDone={reload} />}
    </>
  );
}

function First({
  approval,
  repeat,
  takeBack,
}: {
  approval: Approval;
  repeat: (payment: Payment) => void;
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

function PaymentForm({ onAsk }: { onAsk: (payment: Payment) => void }) {
  const [direction, setDirection] = useState<Direction>("in");
  const [amount, setAmount] = useState("");
  const [reference, setReference] = useState("");
  const [isChecked, setChecked] = useState(false);
  const amountWrong = amountProblem(amount);
  const referenceWrong = referenceProblem(reference.trim());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecked(true);
    if (amountWrong !== null || referenceWrong !== null) focusProblem(event.currentTarget as HTMLElement);
    else onAsk({ direction, amount: readMoney(amount)!, reference: reference.trim() });
  };
  return (
    <form class="panel" noValidate onSubmit={submit}>
      <h2>Fund it, or take out</h2>
      <Choice
        label="What to do"
        value={direction}
        options={[
          ["in", "Fund the house"],
          ["out", "Take out"],
        ]}
        onChange={setDirection}
      />
      <Field
        label="Amount"
        unit="USDC"
        inputMode="decimal"
        value={amount}
        onInput={setAmount}
        problem={isChecked ? amountWrong : null}
      />
      <Field
        label="Reference"
        value={reference}
        onInput={setReference}
        problem={isChecked ? referenceWrong : null}
        hint="What the payment is known by elsewhere. The same reference counts once."
      />
      <button type="submit" class="primary">
        {direction === "in" ? "Fund…" : "Take out…"}
      </button>
    </form>
  );
}

function PaymentDialog({
  payment: { direction, amount, reference },
  onClose,
  onDone,
  onPaid,
}: {
  payment: Payment;
  onClose: () => void;
  onDone: () => void;
  onPaid: () => void;
}) {
  const isOut = direction === "out";
  const act = async (): Promise<string> => {
    const body = { amount, reference };
    if (!isOut) {
      const made = await request<OperatorDeposit>("POST", "/admin/house/deposits", { body });
      onPaid();
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
      <Facts
        facts={[
          ["Amount", `${money(amount)} USDC`],
          [
            "Reference",
            <span key="reference" class="mono wide">
              {reference}
            </span>,
          ],
        ]}
      />
      <p>
        {isOut
          ? "The house has so much less from then on. Where two operators must agree, this is the first approval or the second."
          : "The house has so much more from then on, for rebates; it can be taken out again."}
      </p>
    </DecisionDialog>
  );
}
