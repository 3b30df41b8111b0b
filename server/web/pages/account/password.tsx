/** Changes the password. */
import { useState } from "preact/hooks";
import { ApiError, withQuery } from "../../api.ts";
import { fieldErrorMessage } from "../../error-messages.ts";
import { href } from "../../router.ts";
import { request, signedInUser } from "../../session.ts";
import { focusHeading } from "../../ui/account-layout.tsx";
import { useAction } from "../../ui/action.ts";
import { ErrorNotice } from "../../ui/notices.tsx";
import { NewPasswordField, newPasswordProblem, PasswordField } from "../../ui/password-field.tsx";
import { toast } from "../../ui/toast.tsx";
import { useForm } from "../../ui/use-form.ts";

import { Panel } from "./panel.tsx";

export function PasswordPanel() {
  const { email } = signedInUser();
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const { form, shown, submit, restart } = useForm({
    current: current === "" ? "Enter your current password." : null,
    next: newPasswordProblem(next) ?? (next === current ? "Must differ from the current password." : null),
  });
  const { run, isBusy, error, clear } = useAction(async () => {
    await request("POST", "/me/password", { body: { current, new: next } });
    setCurrent("");
    setNext("");
    restart();
    toast("Password changed. Your other sessions have ended.");
    focusHeading("password");
  });
  const isWrong = error instanceof ApiError && error.status === 403 && /current password/.test(error.message);
  const serverProblem = fieldErrorMessage(error, "new");
  return (
    <Panel id="password" title="Password">
      <form ref={form} noValidate aria-labelledby="password" onSubmit={submit(() => void run())}>
        <p>A new password ends your other sessions. Access tokens and connected apps stay active.</p>
        <input
          type="text"
          class="hidden"
          autoComplete="username"
          value={email}
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <PasswordField
          label="Current password"
          value={current}
          problem={shown.current ?? (isWrong ? "Wrong password." : null)}
          hint={
            <>
              Forgot it, or never set one? <a href={href(withQuery("/forgot-password", { email }))}>Reset by email</a>
            </>
          }
          onInput={(text) => {
            setCurrent(text);
            clear();
          }}
        />
        <NewPasswordField
          label="New password"
          value={next}
          problem={shown.next ?? serverProblem}
          onInput={(text) => {
            setNext(text);
            clear();
          }}
        />
        {!isWrong && serverProblem === null && <ErrorNotice error={error} />}
        <div>
          <button type="submit" disabled={isBusy}>
            {isBusy ? "Changing…" : "Change password"}
          </button>
        </div>
      </form>
    </Panel>
  );
}
