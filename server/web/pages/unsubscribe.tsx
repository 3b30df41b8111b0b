/** The target of the link in mails that say what happened: ends them, for a person who needn't sign in. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, call } from "../api.ts";
import { href } from "../router.ts";
import { useAction } from "../ui/action.ts";
import { ErrorNotice, Notice } from "../ui/notices.tsx";

export default function Unsubscribe({ param: token }: { param: string }) {
  const [isDone, setDone] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    await call("POST", `/auth/unsubscribe/${encodeURIComponent(token)}`);
    setDone(true);
  });
  useEffect(() => {
    document.title = "End mails · Prediction Exchange";
  }, []);
  const isWrong = error instanceof ApiError && error.status === 404;
  return (
    <section class="narrow">
      <h1>{isDone ? "No more mails" : "End mails about your account?"}</h1>
      {isDone ? (
        <p role="status">
          We mail you nothing more about fills, resolved markets, deposits and price alerts. Mails about withdrawals,
          your password and your sign-ins still come.
        </p>
      ) : (
        <>
          <p>
            We mail you what happens to your account: resolved markets, deposits, price alerts, and fills if you want.
            Mails about withdrawals, your password and your sign-ins come in any case.
          </p>
          {isWrong ? (
            <Notice kind="bad">This link isn't complete. Copy all of it from the mail.</Notice>
          ) : (
            <ErrorNotice error={error} retry={() => void run()} />
          )}
          <button type="button" class="primary" disabled={isBusy} onClick={() => void run()}>
            {isBusy ? "Ending…" : "End these mails"}
          </button>
        </>
      )}
      <p>
        You can choose single topics in <a href={href("/account#notifications")}>your account's settings</a>.
      </p>
    </section>
  );
}
