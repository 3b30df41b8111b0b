/** Requests a withdrawal, after a confirmation dialog. */
import { useState } from "preact/hooks";
import { exactMoney } from "../../../util/format.ts";
import { evmAddressFault } from "../../../wallet/evm-address.ts";
import { MAX_ADDRESS_LENGTH, MAX_PAYMENT_MICRO } from "../../../wallet/limits.ts";
import { balance } from "../../account-state.ts";
import { ApiError } from "../../api.ts";
import { useIdempotencyKey } from "../../idempotency-key.ts";
import { parseMoney } from "../../parse.ts";
import { request } from "../../session.ts";
import { useAction } from "../../ui/action.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { AMOUNT, Field, NumberField } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { toast } from "../../ui/toast.tsx";

interface Withdrawal {
  /** micro-USDC */
  readonly amount: number;
  readonly address: string;
}

/** The server checks the address again, and knows which networks it pays to. */
function addressProblem(address: string): string | null {
  if (!/^[!-~]+$/.test(address)) return "Use letters, digits and punctuation only, without spaces.";
  const fault = /^0x/i.test(address) ? evmAddressFault(address) : null;
  return fault && `${fault.charAt(0).toUpperCase()}${fault.slice(1)}.`;
}

function amountProblem(amount: number | null, available: number): string | null {
  if (amount === null || amount === 0) return "Enter an amount of USDC with at most six decimals.";
  if (amount > available) return `Your available balance is ${exactMoney(available)} USDC.`;
  return amount > MAX_PAYMENT_MICRO ? `At most ${exactMoney(MAX_PAYMENT_MICRO)} USDC per withdrawal.` : null;
}

export function WithdrawForm({ onDone }: { onDone: () => void }) {
  const [amountText, setAmount] = useState("");
  const [addressText, setAddress] = useState("");
  const [hasTried, setTried] = useState(false);
  const [isConfirming, setConfirming] = useState(false);
  const available = balance.value?.available ?? 0;
  const [amount, address] = [parseMoney(amountText), addressText.trim()];
  const problems = {
    amount: amountText === "" ? (hasTried ? "Enter an amount." : null) : amountProblem(amount, available),
    address: addressText === "" ? (hasTried ? "Enter an address." : null) : addressProblem(address),
  };
  const isValid = problems.amount === null && problems.address === null && addressText !== "";
  const withdrawal = isValid && amount !== null ? { amount, address } : null;
  const idempotencyKey = useIdempotencyKey();
  const action = useAction(async (body: Withdrawal) => {
    try {
      await idempotencyKey.send(body, (key) => request("POST", "/wallet/withdrawals", { body, idempotencyKey: key }));
    } catch (thrown) {
      // The withdrawal may exist: the list will show it.
      if (!(thrown instanceof ApiError) || thrown.status === 0 || thrown.status >= 500) onDone();
      throw thrown;
    }
    toast(`Withdrawal of ${exactMoney(body.amount)} USDC requested.`);
    setAmount("");
    setTried(false);
    setConfirming(false);
    onDone();
  });
  const submit = (event: Event): void => {
    event.preventDefault();
    setTried(true);
    action.clear();
    if (withdrawal !== null) setConfirming(true);
  };
  return (
    <>
      <form noValidate onSubmit={submit}>
        <NumberField
          label="Amount"
          unit="USDC"
          kind={AMOUNT}
          value={amountText}
          onInput={setAmount}
          problem={problems.amount}
          hint={<AvailableHint available={available} onMax={setAmount} />}
        />
        <Field
          label="Address"
          autoComplete="off"
          maxLength={MAX_ADDRESS_LENGTH}
          value={addressText}
          onInput={setAddress}
          problem={problems.address}
          hint="The receiving address. Check it: payments can't be reversed."
        />
        <button type="submit" class="primary">
          Withdraw
        </button>
      </form>
      {isConfirming && withdrawal !== null && (
        <WithdrawDialog withdrawal={withdrawal} action={action} onClose={() => setConfirming(false)} />
      )}
    </>
  );
}

function AvailableHint({ available, onMax }: { available: number; onMax: (text: string) => void }) {
  return (
    <>
      {exactMoney(available)} available.{" "}
      <button type="button" class="link" onClick={() => onMax(exactMoney(available).replaceAll(",", ""))}>
        Max
      </button>
    </>
  );
}

function WithdrawDialog({
  withdrawal,
  action: { run, isBusy, error },
  onClose,
}: {
  withdrawal: Withdrawal;
  action: ReturnType<typeof useAction<[Withdrawal]>>;
  onClose: () => void;
}) {
  const submit = (event: Event): void => {
    event.preventDefault();
    void run(withdrawal);
  };
  return (
    <Dialog title="Confirm withdrawal" onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <b>{exactMoney(withdrawal.amount)} USDC</b> to <span class="mono long">{withdrawal.address}</span>
        </p>
        <p class="hint">The amount goes on hold until an operator pays it. You can cancel until then.</p>
        <ErrorNotice error={error} />
        <div class="row">
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? "Requesting…" : "Withdraw"}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
