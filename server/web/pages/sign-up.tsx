/** Creates an account: email and password, then a verification link by email. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, call } from "../api.ts";
import { fieldErrorMessage } from "../error-messages.ts";
import { href, search } from "../router.ts";
import { sessionState } from "../session.ts";
import { useAction } from "../ui/action.ts";
import { EmailField } from "../ui/email-form.tsx";
import { ErrorNotice, Notice } from "../ui/notices.tsx";
import { NewPasswordField, newPasswordProblem } from "../ui/password-field.tsx";
import { ResendEmail } from "../ui/resend-email.tsx";
import { useFocusOnMount } from "../ui/use-focus-on-mount.ts";
import { emailProblem, useForm } from "../ui/use-form.ts";
import { Entrance } from "./entrance.tsx";
import { returnPath, storeSignUpPath, withReturnPath } from "./return-path.ts";
import { WaitingOrder } from "./waiting-order.tsx";

const TAKEN = 40900;

export default function SignUp() {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [isCreated, setCreated] = useState(false);
  const to = returnPath(search.value.get("to"));
  const { form, shown, submit } = useForm({ email: emailProblem(email), password: newPasswordProblem(password) });
  useEffect(() => {
    document.title = "Sign up · Prediction Exchange";
  }, []);
  const { run, isBusy, error, clear } = useAction(async () => {
    await call("POST", "/auth/register", { body: { email: email.trim(), password } });
    storeSignUpPath(to);
    setCreated(true);
  });
  if (isCreated) return <CheckEmail email={email.trim()} />;
  const isTaken = error instanceof ApiError && error.code === TAKEN;
  const serverProblems = {
    email: isTaken ? "This email already has an account." : null,
    password: fieldErrorMessage(error, "password"),
  };
  const signIn = href(withReturnPath("/sign-in", to));
  return (
    <Entrance>
      <h1>Create an account</h1>
      <WaitingOrder to={to} lead="Two minutes." />
      {sessionState.value === "in" && <Notice>You're already signed in. This creates another account.</Notice>}
      <form ref={form} noValidate onSubmit={submit(() => void run())}>
        <EmailField
          hint="We'll send you a verification link."
          value={email}
          problem={shown.email ?? serverProblems.email}
          onInput={(text) => {
            setEmail(text);
            clear();
          }}
        />
        <NewPasswordField
          label="Password"
          value={password}
          problem={shown.password ?? serverProblems.password}
          onInput={(text) => {
            setPassword(text);
            clear();
          }}
        />
        {isTaken && (
          <Notice kind="warn">
            Your account? <a href={signIn}>Sign in</a> or <a href={href("/forgot-password")}>reset your password</a>
          </Notice>
        )}
        {!isTaken && serverProblems.password === null && <ErrorNotice error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Creating account…" : "Create account"}
        </button>
      </form>
      <p>
        Already have an account? <a href={signIn}>Sign in</a>
      </p>
    </Entrance>
  );
}

function CheckEmail({ email }: { email: string }) {
  const heading = useFocusOnMount<HTMLHeadingElement>();
  return (
    <section class="narrow">
      <h1 ref={heading} tabIndex={-1}>
        Check your email
      </h1>
      <p>
        We sent a link to <strong>{email}</strong>. Open it within 24 hours to verify your email. Then sign in and
        verify your phone number to start trading.
      </p>
      <p>No email after a few minutes? Check your spam folder.</p>
      <ResendEmail path="/auth/resend-verification" email={email} label="Resend link" />
      <p>
        <a href={href(withReturnPath("/sign-in", returnPath(search.value.get("to"))))}>Sign in</a>
      </p>
    </section>
  );
}
