/** Makes an account: address and password, then the link that is mailed. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../api.ts";
import { fieldErrorMessage } from "../error-messages.ts";
import { href, search } from "../router.ts";
import { sessionState } from "../session.ts";
import { EmailField } from "../ui/email-form.tsx";
import { ErrorNotice, Notice } from "../ui/notices.tsx";
import { NewPasswordField, newPasswordProblem } from "../ui/password-field.tsx";
import { ResendEmail } from "../ui/resend-email.tsx";
import { useAction } from "../ui/use-data.ts";
import { emailProblem, useForm } from "../ui/use-form.ts";
import { returnPath, withReturnPath } from "./return-path.ts";
import "./account.css";

const TAKEN = 40900;

export default function SignUp() {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [isMade, setMade] = useState(false);
  const { form, shown, submit } = useForm({ email: emailProblem(email), password: newPasswordProblem(password) });
  useEffect(() => {
    document.title = "Sign up · Prediction Exchange";
  }, []);
  const { run, isBusy, error, clear } = useAction(async () => {
    await call("POST", "/auth/register", { body: { email: email.trim(), password } });
    setMade(true);
  });
  if (isMade) return <CheckEmail email={email.trim()} />;
  const isTaken = error instanceof ApiError && error.code === TAKEN;
  const told = {
    email: isTaken ? "This address has an account." : null,
    password: fieldErrorMessage(error, "password"),
  };
  const signIn = href(withReturnPath("/sign-in", returnPath(search.value.get("to"))));
  return (
    <section class="narrow">
      <h1>Create an account</h1>
      {sessionState.value === "in" && <Notice>You are signed in already. This makes another account.</Notice>}
      <form ref={form} noValidate onSubmit={submit(() => void run())}>
        <EmailField
          hint="We send a link there to see that it is yours."
          value={email}
          problem={shown.email ?? told.email}
          onInput={(text) => {
            setEmail(text);
            clear();
          }}
        />
        <NewPasswordField
          label="Password"
          value={password}
          problem={shown.password ?? told.password}
          onInput={(text) => {
            setPassword(text);
            clear();
          }}
        />
        {isTaken && (
          <Notice kind="warn">
            Is it yours? <a href={signIn}>Sign in</a>, or <a href={href("/forgot-password")}>set a new password</a>.
          </Notice>
        )}
        {!isTaken && told.password === null && <ErrorNotice error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Making your account…" : "Sign up"}
        </button>
      </form>
      <p>
        You have an account? <a href={signIn}>Sign in</a>.
      </p>
    </section>
  );
}

function CheckEmail({ email }: { email: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current!.focus(), []);
  return (
    <section class="narrow">
      <h1 ref={heading} tabIndex={-1}>
        Look into your mail
      </h1>
      <p>
        We sent a link to <strong>{email}</strong>. Open it within 24 hours to confirm that the address is yours; then
        sign in and verify your phone number, and you can trade.
      </p>
      <p>Nothing there after a few minutes? Look among the unwanted mails too.</p>
      <ResendEmail path="/auth/resend-verification" email={email} label="Send the link again" />
      <p>
        <a href={href(withReturnPath("/sign-in", returnPath(search.value.get("to"))))}>Sign in</a>
      </p>
    </section>
  );
}
