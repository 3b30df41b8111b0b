/** Where the mailed link leads: shows the exchange its token, once, and leads on. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, call } from "../api.ts";
import { href, search, setSearch } from "../router.ts";
import { loadUser, sessionState, user } from "../session.ts";
import { useAction } from "../ui/data.ts";
import { emailProblem, useChecked } from "../ui/form.ts";
import { ErrorNotice, Field, Loading, Notice } from "../ui/parts.tsx";
import "./account.css";

export default function VerifyEmail() {
  const [token] = useState(() => search.peek().get("token") ?? "");
  const [isVerified, setVerified] = useState(false);
  const { run, error } = useAction(async () => {
    await call("POST", "/auth/verify-email", { body: { token } });
    setVerified(true);
    // It is used: a reload must not try it again.
    setSearch({ token: null });
    if (sessionState.peek() === "in") await loadUser().catch(() => {});
  });
  useEffect(() => {
    document.title = "Confirm your e-mail · Prediction Exchange";
    if (token !== "") void run();
  }, []);
  const isOver = error instanceof ApiError && error.status === 400;
  if (isVerified || (token === "" && user.value?.email_verified === true)) return <Verified />;
  if (token === "" || isOver) return <AnotherLink isOver={isOver} />;
  return (
    <section class="narrow">
      <h1>Confirming your e-mail</h1>
      {error === null ? <Loading what="One moment" /> : <ErrorNotice error={error} retry={() => void run()} />}
    </section>
  );
}

function Verified() {
  const isIn = sessionState.value === "in";
  return (
    <section class="narrow">
      <h1>Your e-mail address is confirmed</h1>
      <p role="status">
        {isIn
          ? "What is left is your phone number."
          : "Sign in next, and verify your phone number: then you can trade."}
      </p>
      <p>
        <a class="button primary" href={href(isIn ? "/welcome" : "/sign-in")}>
          {isIn ? "Go on" : "Sign in"}
        </a>
      </p>
    </section>
  );
}

function AnotherLink({ isOver }: { isOver: boolean }) {
  const [email, setEmail] = useState(user.value?.email ?? "");
  const [sentTo, setSentTo] = useState<string | null>(null);
  const { form, shown, submit } = useChecked({ email: emailProblem(email) });
  const { run, isBusy, error } = useAction(async () => {
    await call("POST", "/auth/resend-verification", { body: { email: email.trim() } });
    setSentTo(email.trim());
  });
  return (
    <section class="narrow">
      <h1>{isOver ? "This link doesn't work" : "Confirm your e-mail address"}</h1>
      {isOver && (
        <p>
          It was used already, or is older than 24 hours. If it was used, your address is confirmed:{" "}
          <a href={href("/sign-in")}>sign in</a>.
        </p>
      )}
      <p>We can mail you another link.</p>
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
      {sentTo !== null && (
        <Notice kind="good">If {sentTo} has an account that waits for it, a link is on its way there.</Notice>
      )}
    </section>
  );
}
