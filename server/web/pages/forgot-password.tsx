/** Requests a password reset link. The response doesn't reveal whether the address has an account. */
import { useEffect, useState } from "preact/hooks";
import { href, search } from "../router.ts";
import { EmailLinkForm } from "../ui/email-form.tsx";
import { ResendEmail } from "../ui/resend-email.tsx";
import { useFocusOnMount } from "../ui/use-focus-on-mount.ts";
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
      <h1>Reset password</h1>
      <p>Enter your account's email. We'll send you a link that is valid for one hour.</p>
      <EmailLinkForm path={PATH} given={email} onSent={sent} />
      <p>
        <a href={href("/sign-in")}>Back to sign in</a>
      </p>
    </section>
  );
}

function Sent({ email, onOther }: { email: string; onOther: () => void }) {
  const heading = useFocusOnMount<HTMLHeadingElement>();
  return (
    <section class="narrow">
      <h1 ref={heading} tabIndex={-1}>
        Check your email
      </h1>
      <p>
        If <strong>{email}</strong> has an account, we've sent a link to reset its password. It is valid for one hour
        and works once.
      </p>
      <p>No email after a few minutes? Check your spam folder. We send at most five emails an hour.</p>
      <ResendEmail path={PATH} email={email} label="Resend link" />
      <div class="row">
        <button type="button" onClick={onOther}>
          Use another email
        </button>
        <a href={href("/sign-in")}>Back to sign in</a>
      </div>
    </section>
  );
}
