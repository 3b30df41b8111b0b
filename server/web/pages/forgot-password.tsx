/** Asks for a link to set a password; what is answered doesn't tell whether the address has an account. */
import { useEffect, useRef, useState } from "preact/hooks";
import { href, search } from "../router.ts";
import { EmailLinkForm } from "../ui/email-form.tsx";
import { ResendEmail } from "../ui/resend-email.tsx";
import "./account.css";

const PATH = "/auth/forgot-password";

export default function ForgotPassword() {
  const [email, setEmail] = useState(search.value.get("email") ?? "");
  const [isSent, setSent] = useState(false);
  useEffect(() => {
    document.title = "Forgot password · Prediction Exchange";
  }, []);
  const sent = (to: string): void => {
    setEmail(to);
    setSent(true);
  };
  if (isSent) return <Sent email={email} onOther={() => setSent(false)} />;
  return (
    <section class="narrow">
      <h1>Set a new password</h1>
      <p>Tell us the address of your account: we mail you a link that is good for an hour.</p>
      <EmailLinkForm path={PATH} given={email} onSent={sent} />
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
      <ResendEmail path={PATH} email={email} label="Send it again" />
      <div class="row">
        <button type="button" onClick={onOther}>
          Another address
        </button>
        <a href={href("/sign-in")}>Back to sign-in</a>
      </div>
    </section>
  );
}
