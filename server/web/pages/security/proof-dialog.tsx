/** Asks the user to prove their identity before second factors change. */
import { useState } from "preact/hooks";
import { ApiError } from "../../api.ts";
import { request } from "../../session.ts";
import { useAction } from "../../ui/action.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { PasswordField } from "../../ui/password-field.tsx";
import { useForm } from "../../ui/use-form.ts";

import { PATH } from "./enrolment.ts";

const FORBIDDEN = 403;

interface ProofProps {
  /** "password", "code"; empty if only a new sign-in is accepted. */
  methods: readonly string[];
  onProven: () => void;
  onClose: () => void;
}

export function ProofDialog({ methods, onProven, onClose }: ProofProps) {
  const [isByCode, setByCode] = useState(!methods.includes("password"));
  const [text, setText] = useState("");
  const what = isByCode ? "code" : "password";
  const { form, shown, submit } = useForm({ text: text === "" ? `Enter your ${what}.` : null });
  const { run, isBusy, error, clear } = useAction(async () => {
    await request("POST", `${PATH}/proof`, { body: { [what]: text.trim() } });
    onProven();
  });
  const isWrong = error instanceof ApiError && error.status === FORBIDDEN && /is wrong/.test(error.message);
  const problem = shown.text ?? (isWrong ? (isByCode ? "Wrong or used code." : "Wrong password.") : null);
  const change = (next: string): void => {
    setText(next);
    clear();
  };
  if (methods.length === 0) {
    return (
      <Dialog title="Confirm it's you" onClose={onClose}>
        <p>Your sign-in is too old. Sign out and in again, then retry within five minutes.</p>
      </Dialog>
    );
  }
  return (
    <Dialog title="Confirm it's you" onClose={onClose}>
      <form ref={form} class="stack" noValidate onSubmit={submit(() => void run())}>
        <p>Only you can change your second factors.</p>
        {isByCode ? (
          <Field
            label="Code"
            autoComplete="one-time-code"
            maxLength={64}
            hint="From your authenticator app, or a recovery code. Each code works once."
            value={text}
            problem={problem}
            onInput={change}
          />
        ) : (
          <PasswordField label="Password" value={text} problem={problem} onInput={change} />
        )}
        {!isWrong && <ErrorNotice error={error} />}
        <div class="row">
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? "One moment…" : "Continue"}
          </button>
          {methods.length > 1 && (
            <button
              type="button"
              onClick={() => {
                setByCode(!isByCode);
                change("");
              }}
            >
              {isByCode ? "Use password" : "Use code"}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
