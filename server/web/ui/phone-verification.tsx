/** Verifies a phone number in two steps: the number, then the code of the text message that is sent to it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { MAX_WRONG_CODES, PHONE_CODE_MS } from "../../accounts/limits.ts";
import { fieldErrorMessage } from "../error-messages.ts";
import { request, user } from "../session.ts";
import type { User } from "../types.ts";
import { Field } from "./fields.tsx";
import { ErrorNotice } from "./notices.tsx";
import { toast } from "./toast.tsx";
import { useAction } from "./use-data.ts";
import { useForm } from "./use-form.ts";

const RESEND_WAIT_S = 30;

/** In E.164, or null where it is no number that could be: spaces and signs between the digits don't count. */
function readNumber(text: string): string | null {
  const bare = text.replaceAll(/[\s().\-/]/g, "").replace(/^00/, "+");
  return /^\+[1-9]\d{4,14}$/.test(bare) ? bare : null;
}

function numberProblem(text: string): string | null {
  if (text.trim() === "") return "Enter your phone number.";
  if (readNumber(text) !== null) return null;
  return /^\s*(\+|00)/.test(text)
    ? "This is no phone number: a plus, the country code, and digits."
    : "Begin with + and the country code, such as +1 for the United States or +49 for Germany.";
}

/** Asks for nothing before the e-mail address is verified. @param onVerified called once the account has the number */
export function PhoneVerification({ onVerified }: { onVerified: () => void }) {
  if (!user.value!.email_verified) return <p class="faint">Confirm your e-mail address first.</p>;
  return <NumberStep onVerified={onVerified} />;
}

function NumberStep({ onVerified }: { onVerified: () => void }) {
  const known = user.value?.phone_verified === false ? user.value.phone : null;
  const [number, setNumber] = useState(known ?? "");
  /** To which a code was sent; null: the number is being asked for. */
  const [sentTo, setSentTo] = useState<string | null>(null);
  const { form, shown, submit } = useForm({ number: numberProblem(number) });
  const start = useAction(async () => {
    const phone = readNumber(number)!;
    await request("POST", "/me/phone", { body: { phone } });
    setSentTo(phone);
  });
  if (sentTo !== null) {
    return <CodeStep phone={sentTo} onVerified={onVerified} onOther={() => setSentTo(null)} again={start} />;
  }
  const told = fieldErrorMessage(start.error, "phone");
  return (
    <form ref={form} noValidate onSubmit={submit(() => void start.run())}>
      <Field
        label="Phone number"
        type="tel"
        inputMode="tel"
        autoComplete="tel"
        maxLength={32}
        placeholder="+1 415 555 2671"
        hint="With + and the country code. It must be able to get text messages."
        value={number}
        problem={shown.number ?? told}
        onInput={(text) => {
          setNumber(text);
          start.clear();
        }}
      />
      {told === null && <ErrorNotice error={start.error} />}
      <div class="row">
        <button type="submit" class="primary" disabled={start.isBusy}>
          {start.isBusy ? "Sending…" : "Send me a code"}
        </button>
        {known !== null && readNumber(number) === known && (
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
  onOther: () => void;
  again: { run: () => Promise<void>; isBusy: boolean; error: unknown };
}

function CodeStep({ phone, onVerified, onOther, again }: CodeProps) {
  const [code, setCode] = useState("");
  const [waitS, setWaitS] = useState(RESEND_WAIT_S);
  const place = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    // The step before went away with its button.
    place.current?.parentElement?.querySelector("input")?.focus();
  }, []);
  useEffect(() => {
    if (waitS === 0) return;
    const timer = setTimeout(() => setWaitS(waitS - 1), 1_000);
    return () => clearTimeout(timer);
  }, [waitS]);
  const digits = code.replaceAll(/[\s-]/g, "");
  const problem = /^\d{6}$/.test(digits) ? null : "The code has six digits.";
  const { form, shown, submit } = useForm({ code: problem });
  const verify = useAction(async () => {
    user.value = await request<User>("POST", "/me/phone/verify", { body: { code: digits } });
    toast("Your phone number is verified.");
    onVerified();
  });
  const told = fieldErrorMessage(verify.error, "code");
  return (
    <form ref={form} noValidate onSubmit={submit(() => void verify.run())}>
      <p ref={place}>
        We sent a text message with a code to <strong class="number">{phone}</strong>. It is good for{" "}
        {PHONE_CODE_MS / 60_000} minutes and {MAX_WRONG_CODES} tries.
      </p>
      <Field
        label="Code"
        inputMode="numeric"
        autoComplete="one-time-code"
        maxLength={8}
        value={code}
        problem={shown.code ?? told}
        onInput={(text) => {
          setCode(text);
          verify.clear();
        }}
      />
      {told === null && <ErrorNotice error={verify.error} />}
      <ErrorNotice error={again.error} />
      <div class="row">
        <button type="submit" class="primary" disabled={verify.isBusy}>
          {verify.isBusy ? "Checking…" : "Verify"}
        </button>
        <button
          type="button"
          disabled={waitS > 0 || again.isBusy}
          onClick={() => {
            setWaitS(RESEND_WAIT_S);
            void again.run();
          }}
        >
          {waitS > 0 ? `Send another code in ${waitS} s` : "Send another code"}
        </button>
        <button type="button" onClick={onOther}>
          Use another number
        </button>
      </div>
    </form>
  );
}
