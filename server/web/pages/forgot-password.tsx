/** Asks for a link to set a password; what is answered doesn't tell whether the address has an account. */
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../api.ts";
import { href, search } from "../router.ts";
import { useAction } from "../ui/data.ts";
import { emailProblem, useChecked } from "../ui/form.ts";
import { MailAgain } from "../ui/mail-again.tsx";
import { ErrorNotice, Field } from "../ui/parts.tsx";
import "./account.css";

const PATH = "/auth/forgot-password";

export default function ForgotPassword() {
  const [email, setEmail] = useState(search.value.get("email") ?? "");
  const [isSent, setSent] = useState(false);
  const { form, shown, submit } = useChecked({ email: emailProblem(email) });
  useEffect(() => {
    document.title = "Forgot password · Prediction Exchange";
  }, []);
  const { run, isBusy, error } = useAction(async () => {
    await call("POST", PATH, { body: { email: email.trim() } });
    setSent(true);
  });
  if (isSent) return <Sent email={email.trim()} onOther={() => setSent(false)} />;
  return (
    <section class="narrow">
      <h1>Set a new password</h1>
      <p>Tell us the address of your account: we mail you a link that is good for an hour.</p>
      <form ref={form} noValidate onSubmit={submit(() => void run())}>
        <Field
          label="E-mail"
          type="email"
          inputMode="email"
          autoComplete="username"
          maxLength={254}
          value={email}
          problem={shown.email}
          onInput={setEmail}
        />
        <ErrorNotice error={error} />
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Sending…" : "Mail me a link"}
        </button>
      </form>
      <p>
        <a href={href("/sign-in")}>Back to sign-in</a>
      </p>
    </section>
  );
}

function Sent({ email, onOther }: { email: string; onOther: () => void }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current!.focus(), []);
  return (
    <section class="narrow">
      <h1 ref={heading} tabIndex={-1}>
        Look into your mail
      </h1>
      <p>
        If <strong>{email}</strong> has an account, a link to set a new password is on its way there. It is good for an
        hour and works once.
      </p>
      <p>Nothing there after a few minutes? Look among the unwanted mails too; five mails an hour are the most.</p>
      <MailAgain path={PATH} email={email} label="Send it again" />
      <div class="row">
        <button type="button" onClick={onOther}>
          Another address
        </button>
        <a href={href("/sign-in")}>Back to sign-in</a>
      </div>
    </section>
  );
}
