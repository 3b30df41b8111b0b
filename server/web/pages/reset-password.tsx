/** The target of a password reset link: sets a new password. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, call } from "../api.ts";
import { fieldErrorMessage } from "../error-messages.ts";
import { href, search, setSearch } from "../router.ts";
import { useAction } from "../ui/action.ts";
import { ErrorNotice } from "../ui/notices.tsx";
import { NewPasswordField, newPasswordProblem } from "../ui/password-field.tsx";
import { useFocusOnMount } from "../ui/use-focus-on-mount.ts";
import { useForm } from "../ui/use-form.ts";
import "./account.css";

export default function ResetPassword() {
  const token = search.value.get("token") ?? "";
  const [password, setPassword] = useState("");
  const [isDone, setDone] = useState(false);
  const { form, shown, submit } = useForm({ password: newPasswordProblem(password) });
  useEffect(() => {
    document.title = "New password · Prediction Exchange";
  }, []);
  const { run, isBusy, error, clear } = useAction(async () => {
    await call("POST", "/auth/reset-password", { body: { token, password } });
    setDone(true);
    // Keep the token out of the browser's history.
    setSearch({ token: null });
  });
  if (isDone) return <Done />;
  const isInvalid = error instanceof ApiError && error.message.startsWith("token:");
  if (token === "" || isInvalid) return <InvalidLink />;
  const serverProblem = fieldErrorMessage(error, "password");
  return (
    <section class="narrow">
      <h1>Set new password</h1>
      <p>This ends all sessions, access tokens and connected apps of your account. Bots will need new tokens.</p>
      <form ref={form} noValidate onSubmit={submit(() => void run())}>
        <NewPasswordField
          label="New password"
          value={password}
          problem={shown.password ?? serverProblem}
          onInput={(text) => {
            setPassword(text);
            clear();
          }}
        />
        {serverProblem === null && <ErrorNotice error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Saving…" : "Set password"}
        </button>
      </form>
    </section>
  );
}

function InvalidLink() {
  return (
    <section class="narrow">
      <h1>Invalid link</h1>
      <p>
        The link was already used, has expired after one hour, or is incomplete. Using a newer link invalidates older
        ones.
      </p>
      <p>
        <a class="button primary" href={href("/forgot-password")}>
          Request a new link
        </a>
      </p>
    </section>
  );
}

function Done() {
  const heading = useFocusOnMount<HTMLHeadingElement>();
  return (
    <section class="narrow">
      <h1 ref={heading} tabIndex={-1}>
        Password set
      </h1>
      <p>Sign in with your new password. All earlier sessions, access tokens and connected apps have ended.</p>
      <p>
        <a class="button primary" href={href("/sign-in")}>
          Sign in
        </a>
      </p>
    </section>
  );
}
