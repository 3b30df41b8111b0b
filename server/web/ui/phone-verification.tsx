/** Verifies a phone number in two steps: the number, then the code sent to it by text message. */

import { useEffect, useRef, useState } from "preact/hooks";
import { isSixDigits, withoutSeparators } from "../../accounts/code-text.ts";
import { MAX_WRONG_CODES, PHONE_CODE_MS } from "../../accounts/limits.ts";
import { fieldErrorMessage } from "../error-messages.ts";
import { required } from "../required.ts";
import { request, signedInUser, user } from "../session.ts";
import type { User } from "../types.ts";
import { useAction } from "./action.ts";
import { Field } from "./fields.tsx";
import { ErrorNotice } from "./notices.tsx";
import { toast } from "./toast.tsx";
import { useForm } from "./use-form.ts";

const RESEND_WAIT_S = 30;

/** Normalizes a number to E.164, ignoring spaces and punctuation; null if it can't be a phone number. */
function parsePhoneNumber(text: string): string | null {
  const bare = text.replaceAll(/[\s().\-/]/g, "").replace(/^00/, "+");
  return /^\+[1-9]\d{4,14}$/.test(bare) ? bare : null;
}

function numberProblem(text: string): string | null {
  if (text.trim() === "") return "Enter your phone number.";
  if (parsePhoneNumber(text) !== null) return null;
  return /^\s*(\+|00)/.test(text)
    ? "Enter a valid phone number: +, country code, digits."
    : "Start with + and the country code, such as +1 for the United States or +49 for Germany.";
}

/** Requires a verified email. @param onVerified called once the phone number is verified */
export function PhoneVerification({ onVerified }: { onVerified: () => void }) {
  if (!signedInUser().email_verified) return <p class="faint">Verify your email first.</p>;
  return <NumberStep onVerified={onVerified} />;
}

function NumberStep({ onVerified }: { onVerified: () => void }) {
  const known = user.value?.phone_verified === false ? user.value.phone : null;
  const [number, setNumber] = useState(known ?? "");
  /** The number that a code was sent to; null in the first step. */
  const [sentTo, setSentTo] = useState<string | null>(null);
  const { form, shown, submit } = useForm({ number: numberProblem(number) });
  const start = useAction(async () => {
    const phone = required(parsePhoneNumber(number), "a valid phone number");
    await request("POST", "/me/phone", { body: { phone } });
    setSentTo(phone);
  });
  if (sentTo !== null) {
    return <CodeStep phone={sentTo} onVerified={onVerified} onChangeNumber={() => setSentTo(null)} resend={start} />;
  }
  const serverProblem = fieldErrorMessage(start.error, "phone");
  return (
    <form ref={form} noValidate onSubmit={submit(() => void start.run())}>
      <Field
        label="Phone number"
        type="tel"
        inputMode="tel"
        autoComplete="tel"
        maxLength={32}
        placeholder="+1 415 555 2671"
        hint="With + and country code. Must receive text messages."
        value={number}
        problem={shown.number ?? serverProblem}
        onInput={(text) => {
          setNumber(text);
          start.clear();
        }}
      />
      {serverProblem === null && <ErrorNotice error={start.error} />}
      <div class="row">
        <button type="submit" class="primary" disabled={start.isBusy}>
          {start.isBusy ? "Sending…" : "Send code"}
        </button>
        {known !== null && parsePhoneNumber(number) === known && (
          <button type="button" onClick={() => setSentTo(known)}>
            I have a code
          </button>
        )}
      </div>
    </form>
  );
}

interface CodeProps {
  phone: string;
  onVerified: () => void;
  onChangeNumber: () => void;
  resend: { run: () => Promise<void>; isBusy: boolean; error: unknown };
}

function CodeStep({ phone, onVerified, onChangeNumber, resend }: CodeProps) {
  const [code, setCode] = useState("");
  const [waitS, setWaitS] = useState(RESEND_WAIT_S);
  const paragraph = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    // The focused button of the first step has disappeared.
    paragraph.current?.parentElement?.querySelector("input")?.focus();
  }, []);
  useEffect(() => {
    if (waitS === 0) return;
    const timer = setTimeout(() => setWaitS(waitS - 1), 1_000);
    return () => clearTimeout(timer);
  }, [waitS]);
  const digits = withoutSeparators(code);
  const problem = isSixDigits(digits) ? null : "Enter the six-digit code.";
  const { form, shown, submit } = useForm({ code: problem });
  const verify = useAction(async () => {
    user.value = await request<User>("POST", "/me/phone/verify", { body: { code: digits } });
    toast("Phone number verified.");
    onVerified();
  });
  const serverProblem = fieldErrorMessage(verify.error, "code");
  return (
    <form ref={form} noValidate onSubmit={submit(() => void verify.run())}>
      <p ref={paragraph}>
        We sent a code to{" "}
        <strong class="number" translate={false}>
          {phone}
        </strong>
        . It is valid for {PHONE_CODE_MS / 60_000} minutes and {MAX_WRONG_CODES} tries.
      </p>
      <Field
        label="Code"
        inputMode="numeric"
        autoComplete="one-time-code"
        maxLength={32}
        value={code}
        problem={shown.code ?? serverProblem}
        onInput={(text) => {
          setCode(text);
          verify.clear();
        }}
      />
      {serverProblem === null && <ErrorNotice error={verify.error} />}
      <ErrorNotice error={resend.error} />
      <div class="row">
        <button type="submit" class="primary" disabled={verify.isBusy}>
          {verify.isBusy ? "Checking…" : "Verify"}
        </button>
        <button
          type="button"
          disabled={waitS > 0 || resend.isBusy}
          onClick={() => {
            setWaitS(RESEND_WAIT_S);
            void resend.run();
          }}
        >
          {waitS > 0 ? `Resend in ${waitS} s` : "Resend code"}
        </button>
        <button type="button" onClick={onChangeNumber}>
          Use another number
        </button>
      </div>
    </form>
  );
}
