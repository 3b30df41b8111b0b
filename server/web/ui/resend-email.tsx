/** A button that resends an email, with a pause between two. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../api.ts";
import { useAction } from "./action.ts";
import { ErrorNotice } from "./notices.tsx";

const WAIT_S = 30;

interface ResendEmailProps {
  /** API path that sends the email. */
  path: "/auth/resend-verification" | "/auth/forgot-password";
  email: string;
  label: string;
}

export function ResendEmail({ path, email, label }: ResendEmailProps) {
  const [waitS, setWaitS] = useState(0);
  const [isSent, setSent] = useState(false);
  useEffect(() => {
    if (waitS === 0) return;
    const timer = setTimeout(() => setWaitS(waitS - 1), 1_000);
    return () => clearTimeout(timer);
  }, [waitS]);
  const { run, isBusy, error } = useAction(async () => {
    await call("POST", path, { body: { email } });
    setSent(true);
    setWaitS(WAIT_S);
  });
  return (
    <div class="stack small-gap">
      <div class="row">
        <button type="button" disabled={isBusy || waitS > 0} onClick={() => void run()}>
          {waitS > 0 ? `Resend in ${waitS} s` : label}
        </button>
        <span role="status">{isSent && waitS > 0 ? "Sent." : ""}</span>
      </div>
      <ErrorNotice error={error} />
    </div>
  );
}
