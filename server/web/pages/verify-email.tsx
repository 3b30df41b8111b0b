/** Where the mailed link leads: shows the exchange its token, once, and leads on. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, call } from "../api.ts";
import { href, search, setSearch } from "../router.ts";
import { loadUser, sessionState, user } from "../session.ts";
import type { User } from "../types.ts";
import { useAction } from "../ui/data.ts";
import { MailForm } from "../ui/email.tsx";
import { ErrorNotice, Loading, Notice } from "../ui/parts.tsx";
import "./account.css";

export default function VerifyEmail() {
  const [token] = useState(() => search.peek().get("token") ?? "");
  /** Whose address it was. */
  const [verified, setVerified] = useState<User | null>(null);
  const { run, error } = useAction(async () => {
    setVerified(await call<User>("POST", "/auth/verify-email", { body: { token } }));
    // It is used: a reload must not try it again.
    setSearch({ token: null });
    if (sessionState.peek() === "in") await loadUser().catch(() => {});
  });
  useEffect(() => {
    document.title = "Confirm your e-mail · Prediction Exchange";
    if (token !== "") void run();
  }, []);
  const isOver = error instanceof ApiError && error.status === 400;
  if (verified !== null) return <Verified owner={verified} />;
  if (token === "" && user.value?.email_verified === true) return <Verified owner={user.value} />;
  if (token === "" || isOver) return <AnotherLink isOver={isOver} />;
  return (
    <section class="narrow">
      <h1>Confirming your e-mail</h1>
      {error === null ? <Loading what="One moment" /> : <ErrorNotice error={error} retry={() => void run()} />}
    </section>
  );
}

function Verified({ owner }: { owner: User }) {
  const isOther = user.value !== null && user.value.id !== owner.id;
  const isIn = user.value !== null && !isOther;
  const rest = owner.phone_verified ? "You can trade." : "Your phone number is left: then you can trade.";
  return (
    <section class="narrow">
      <h1>Your e-mail address is confirmed</h1>
      <p role="status">
        <strong class="break">{owner.email}</strong> is yours. {isIn ? rest : "Sign in next."}
      </p>
      {isOther && (
        <Notice kind="warn">
          Here you are signed in as {user.value!.email}, another account. Sign out first to use the confirmed one.
        </Notice>
      )}
      {!isOther && (
        <p>
          <a class="button primary" href={href(isIn ? "/welcome" : "/sign-in")}>
            {isIn ? "Go on" : "Sign in"}
          </a>
        </p>
      )}
    </section>
  );
}

function AnotherLink({ isOver }: { isOver: boolean }) {
  const [sentTo, setSentTo] = useState<string | null>(null);
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
      <MailForm path="/auth/resend-verification" given={user.value?.email ?? ""} onSent={setSentTo} />
      {sentTo !== null && (
        <Notice kind="good">If {sentTo} has an account that waits for it, a link is on its way there.</Notice>
      )}
    </section>
  );
}
