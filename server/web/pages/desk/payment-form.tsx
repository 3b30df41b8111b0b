/** Amount and reference of a payment that an operator books, and what its answer means. */
import { useState } from "preact/hooks";
import { SEED_REFERENCE } from "../../../../engine/limits.ts";
import { exactMoney } from "../../../util/format.ts";
import { MAX_PAYMENT_MICRO, MAX_REFERENCE_LENGTH } from "../../../wallet/limits.ts";
import { parseMoney } from "../../parse.ts";
import { required } from "../../required.ts";
import { AMOUNT, Field, NumberField } from "../../ui/fields.tsx";
import type { Children } from "../../ui/use-data.ts";
import { useForm } from "../../ui/use-form.ts";

/** @param text as typed */
export function amountProblem(text: string): string | null {
  const micro = parseMoney(text);
  if (micro === null || micro === 0) return "Enter an amount such as 250 or 99.50, with at most six decimals.";
  return micro > MAX_PAYMENT_MICRO ? `At most ${exactMoney(MAX_PAYMENT_MICRO)} USDC per payment.` : null;
}

/** @param text trimmed */
export function referenceProblem(text: string): string | null {
  if (text.length > MAX_REFERENCE_LENGTH) return `At most ${MAX_REFERENCE_LENGTH} characters.`;
  if (!/^[!-~]+(?: [!-~]+)*$/.test(text)) return "Use ASCII letters, digits and punctuation, with single spaces.";
  return text.toLowerCase().startsWith(SEED_REFERENCE) ? `Must not start with ${SEED_REFERENCE}` : null;
}

/** The answer to a first approval. */
export const WAITS = "Approval recorded: another operator must repeat the action.";

export interface Payment {
  /** micro-USDC */
  readonly amount: number;
  readonly reference: string;
}

/** Collects the amount and reference of a payment, for confirmation in a dialog. */
export function PaymentForm({
  act,
  hint,
  other,
  onSubmit,
  children,
}: {
  /** Label of the button. */
  act: string;
  /** Hint below the reference. */
  hint: string;
  /** Shown beside the button. */
  other?: Children;
  onSubmit: (payment: Payment) => void;
  /** Shown above the fields. */
  children: Children;
}) {
  const [amount, setAmount] = useState("");
  const [reference, setReference] = useState("");
  const problems = { amount: amountProblem(amount), reference: referenceProblem(reference.trim()) };
  const { form, shown, submit } = useForm(problems);
  const ask = (): void =>
    onSubmit({ amount: required(parseMoney(amount), "a valid amount"), reference: reference.trim() });
  return (
    <form ref={form} noValidate onSubmit={submit(ask)}>
      {children}
      <NumberField label="Amount" unit="USDC" kind={AMOUNT} value={amount} onInput={setAmount} problem={shown.amount} />
      <Field label="Reference" value={reference} onInput={setReference} problem={shown.reference} hint={hint} />
      <div class="row">
        <button type="submit" class="primary">
          {act}
        </button>
        {other}
      </div>
    </form>
  );
}

/** The payment as facts for a confirmation dialog. */
export const paymentFacts = ({ amount, reference }: Payment): readonly (readonly [string, Children])[] => [
  ["Amount", `${exactMoney(amount)} USDC`],
  [
    "Reference",
    <span key="reference" class="mono wide">
      {reference}
    </span>,
  ],
];
