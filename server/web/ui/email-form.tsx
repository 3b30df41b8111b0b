/** The email field, and the form that requests an emailed link. */
import { useState } from "preact/hooks";
import { call } from "../api.ts";
import { useAction } from "./action.ts";
import { Field } from "./fields.tsx";
import { ErrorNotice } from "./notices.tsx";
import type { Children } from "./use-data.ts";
import { emailProblem, useForm } from "./use-form.ts";

interface EmailFieldProps {
  hint?: Children;
  value: string;
  problem: string | null;
  onInput: (value: string) => void;
}

export function EmailField(props: EmailFieldProps) {
  return <Field label="Email" type="email" inputMode="email" autoComplete="username" maxLength={254} {...props} />;
}

interface EmailLinkFormProps {
  /** API path that sends the link. */
  path: "/auth/resend-verification" | "/auth/forgot-password";
  /** Initial value of the field. */
  given: string;
  onSent: (email: string) => void;
}

export function EmailLinkForm({ path, given, onSent }: EmailLinkFormProps) {
  const [email, setEmail] = useState(given);
  const { form, shown, submit } = useForm({ email: emailProblem(email) });
  const { run, isBusy, error } = useAction(async () => {
    await call("POST", path, { body: { email: email.trim() } });
    onSent(email.trim());
  });
  return (
    <form ref={form} noValidate onSubmit={submit(() => void run())}>
      <EmailField value={email} problem={shown.email} onInput={setEmail} />
      <ErrorNotice error={error} />
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Sending…" : "Send link"}
      </button>
    </form>
  );
}
