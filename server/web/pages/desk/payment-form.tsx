/** Amount and reference of a payment that an operator books. */
import { useState } from "preact/hooks";
import { SEED_REFERENCE } from "../../../../engine/limits.ts";
import { MAX_PAYMENT_MICRO, MAX_REFERENCE_LENGTH } from "../../../wallet/limits.ts";
import { money, parseMoney } from "../../format.ts";
import { Field } from "../../ui/fields.tsx";
import type { Children } from "../../ui/use-data.ts";
import { useForm } from "../../ui/use-form.ts";

/** @param text that was typed */
function amountProblem(text: string): string | null {
  const micro = parseMoney(text);
  if (micro === null || micro === 0) return "An amount such as 250 or 99.50, with six decimals at most.";
  return micro > MAX_PAYMENT_MICRO ? `At most ${money(MAX_PAYMENT_MICRO)} at a time.` : null;
}

/** @param text without blanks around it */
export function referenceProblem(text: string): string | null {
  if (text.length > MAX_REFERENCE_LENGTH) return `At most ${MAX_REFERENCE_LENGTH} characters.`;
  if (!/^[!-~]+(?: [!-~]+)*$/.test(text)) return "Letters without accents, digits and signs, with single spaces.";
  return text.startsWith(SEED_REFERENCE) ? `It must not begin with ${SEED_REFERENCE}` : null;
}

export interface Payment {
  /** micro-USDC */
  readonly amount: number;
  readonly reference: string;
}

/** Amount and reference of a payment that is to be booked, which is asked about next. */
export function PaymentForm({
  act,
  hint,
  other,
  onAsk,
  children,
}: {
  /** On the button. */
  act: string;
  /** Below the reference. */
  hint: string;
  /** Beside the button. */
  other?: Children;
  onAsk: (payment: Payment) => void;
  /** Before the fields. */
  children: Children;
}) {
  const [amount, setAmount] = useState("");
  const [reference, setReference] = useState("");
  const problems = { amount: amountProblem(amount), reference: referenceProblem(reference.trim()) };
  const { form, shown, submit } = useForm(problems);
  const ask = (): void => onAsk({ amount: parseMoney(amount)!, reference: reference.trim() });
  return (
    <form ref={form} noValidate onSubmit={submit(ask)}>
      {children}
      <Field label="Amount" unit="USDC" inputMode="decimal" value={amount} onInput={setAmount} problem={shown.amount} />
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

/** What is about to be booked, for a dialog. */
export const paymentFacts = ({ amount, reference }: Payment): readonly (readonly [string, Children])[] => [
  ["Amount", `${money(amount)} USDC`],
  [
    "Reference",
    <span key="reference" class="mono wide">
      {reference}
    </span>,
  ],
];

// ---------------------------------------------------------------- approvals
