/** Requests a withdrawal, with a confirmation dialog. */
import { useState } from "preact/hooks";
import { evmAddressFault } from "../../../wallet/evm-address.ts";
import { MAX_ADDRESS_LENGTH, MAX_PAYMENT_MICRO } from "../../../wallet/limits.ts";
import { balance } from "../../account-state.ts";
import { ApiError } from "../../api.ts";
import { money, parseMoney } from "../../format.ts";
import { useIdempotencyKey } from "../../idempotency-key.ts";
import { request } from "../../session.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { toast } from "../../ui/toast.tsx";
import { useAction } from "../../ui/use-data.ts";

/** What can be told here; what else the exchange pays to, it says itself. */
function addressFault(address: string): string | null {
  if (!/^[!-~]+$/.test(address)) return "An address has letters, digits and signs, and no spaces.";
  const fault = /^0x/i.test(address) ? evmAddressFault(address) : null;
  return fault && `${fault[0]!.toUpperCase()}${fault.slice(1)}.`;
}

export function WithdrawForm({ onDone }: { onDone: () => void }) {
  const [amountText, setAmount] = useState("");
  const [address, setAddress] = useState("");
  const [hasTried, setTried] = useState(false);
  const [isAsked, setAsked] = useState(false);
  const available = balance.value?.available ?? 0;
  const amount = parseMoney(amountText);
  const amountProblem =
    amountText === ""
      ? hasTried
        ? "Type an amount."
        : null
      : amount === null || amount === 0
        ? "An amount of USDC, with six decimals at most."
        : amount > available
          ? `Your available balance is ${money(available)} USDC.`
          : amount > MAX_PAYMENT_MICRO
            ? `At most ${money(MAX_PAYMENT_MICRO)} USDC at a time.`
            : null;
  const addressProblem =
    address === "" ? (hasTried ? "Type where it is to be paid to." : null) : addressFault(address.trim());
  const isReady = amount !== null && amountProblem === null && address !== "" && addressProblem === null;
  const retryKey = useIdempotencyKey();
  const { run, isBusy, error, clear } = useAction(async () => {
    const body = { amount, address: address.trim() };
    try {
      await retryKey.send(body, (idempotencyKey) => request("POST", "/wallet/withdrawals", { body, idempotencyKey }));
    } catch (thrown) {
      // It may have been made: the list tells.
      if (!(thrown instanceof ApiError) || thrown.status === 0 || thrown.status >= 500) onDone();
      throw thrown;
    }
    toast(`A withdrawal of ${money(amount!)} USDC was asked for.`);
    setAmount("");
    setTried(false);
    setAsked(false);
    onDone();
  });
  return (
    <>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          clear();
          if (isReady) setAsked(true);
        }}
      >
        <Field
          label="Amount"
          unit="USDC"
          inputMode="decimal"
          autoComplete="off"
          value={amountText}
          onInput={setAmount}
          problem={amountProblem}
          hint={
            <>
              {money(available)} available.{" "}
              <button type="button" class="link" onClick={() => setAmount(money(available).replaceAll(",", ""))}>
                All
              </button>
            </>
          }
        />
        <Field
          label="Address"
          autoComplete="off"
          maxLength={MAX_ADDRESS_LENGTH}
          value={address}
          onInput={setAddress}
          problem={addressProblem}
          hint="Where it is to be paid to. Check it: what was paid can't be called back."
        />
        <button type="submit" class="primary">
          Withdraw
        </button>
      </form>
      {isAsked && isReady && (
        <Dialog title="Ask for this withdrawal?" onClose={() => setAsked(false)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void run();
            }}
          >
            <p>
              <b>{money(amount)} USDC</b> to <span class="mono long">{address.trim()}</span>
            </p>
            <p class="hint">
              The amount is held at once and can't be traded with. An operator pays it; until then you can cancel it.
            </p>
            <ErrorNotice error={error} />
            <div class="row">
              <button type="submit" class="primary" disabled={isBusy}>
                {isBusy ? "Asking…" : "Withdraw"}
              </button>
              <button type="button" onClick={() => setAsked(false)}>
                Back
              </button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}
