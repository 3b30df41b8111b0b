/** Where the mailed link leads: sets a password. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../api.ts";
import { fieldErrorMessage } from "../error-messages.ts";
import { href, search, setSearch } from "../router.ts";
import { ErrorNotice } from "../ui/notices.tsx";
import { NewPasswordField, newPasswordProblem } from "../ui/password-field.tsx";
import { useAction } from "../ui/use-data.ts";
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
    // It is used: nothing to find in the browser's history.
    setSearch({ token: null });
  });
  if (isDone) return <Done />;
  const isOver = error instanceof ApiError && error.message.startsWith("token:");
  if (token === "" || isOver) return <NoLink />;
  const told = fieldErrorMessage(error, "password");
  return (
    <section class="narrow">
      <h1>Set a new password</h1>
      <p>It ends every session, access token and connected app of your account: bots need new tokens.</p>
      <form ref={form} noValidate onSubmit={submit(() => void run())}>
        <NewPasswordField
          label="New password"
          value={password}
          problem={shown.password ?? told}
          onInput={(text) => {
            setPassword(text);
            clear();
          }}
        />
        {told === null && <ErrorNotice error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Setting it…" : "Set the password"}
        </button>
      </form>
    </section>
  );
}

function NoLink() {
  return (
    <section class="narrow">
      <h1>This link doesn't work</h1>
      <p>It was used already, is older than an hour, or isn't whole. A newer link ends the ones before it once used.</p>
      <p>
        <a class="button primary" href={href("/forgot-password")}>
          Ask for a new link
        </a>
      </p>
    </section>
  );
}

function Done() {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current!.focus(), []);
  return (
    <section class="narrow">
      <h1 ref={heading} tabIndex={-1}>
        Your password is set
      </h1>
      <p>Sign in with it. All earlier sessions, access tokens and connected apps have ended.</p>
      <p>
        <a class="button primary" href={href("/sign-in")}>
          Sign in
        </a>
      </p>
    </section>
  );
}
