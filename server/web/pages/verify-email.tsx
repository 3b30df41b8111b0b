/**
 * Where the mailed link leads: shows the exchange its token, once, and leads on. The link shows that the address is the
 * visitor's; the password, or the session that is there, shows that the account is.
 */
import { useEffect, useState } from "preact/hooks";
import { ApiError, call } from "../api.ts";
import { href, search, setSearch } from "../router.ts";
import { loadUser, request, sessionState, signIn, user } from "../session.ts";
import type { User } from "../types.ts";
import { EmailLinkForm } from "../ui/email-form.tsx";
import { ErrorNotice, Loading, Notice } from "../ui/notices.tsx";
import { PasswordField } from "../ui/password-field.tsx";
import { useAction } from "../ui/use-data.ts";
import { useForm } from "../ui/use-form.ts";
import "./account.css";

const PATH = "/auth/verify-email";

export default function VerifyEmail() {
  const [token] = useState(() => search.peek().get("token") ?? "");
  /** Whose address it was. */
  const [verified, setVerified] = useState<User | null>(null);
  const [isOver, setOver] = useState(false);
  /** By the password where nobody is signed in here, or somebody with another account; null until that is known. */
  const [way, setWay] = useState<"session" | "password" | null>(null);
  const done = (owner: User): void => {
    setVerified(owner);
    // It is used: a reload must not try it again.
    setSearch({ token: null });
  };
  useEffect(() => {
    document.title = "Confirm your e-mail · Prediction Exchange";
  }, []);
  const state = sessionState.value;
  useEffect(() => {
    if (way === null && state !== "unknown") setWay(state === "in" ? "session" : "password");
  }, [state]);
  if (verified !== null) return <Verified owner={verified} />;
  if (token === "" && user.value?.email_verified === true) return <Verified owner={user.value} />;
  if (token === "" || isOver) return <AnotherLink isOver={isOver} />;
  const rest = { token, onDone: done, onOver: () => setOver(true) };
  return (
    <section class="narrow">
      <h1>{way === "password" ? "Confirm your e-mail" : "Confirming your e-mail"}</h1>
      {way === null && <Loading what="One moment" />}
      {way === "session" && <BySession {...rest} onOther={() => setWay("password")} />}
      {way === "password" && <ByPassword {...rest} />}
    </section>
  );
}

interface StepProps {
  token: string;
  onDone: (owner: User) => void;
  onOver: () => void;
}

const isOfToken = (error: unknown): boolean => error instanceof ApiError && error.message.startsWith("token:");
const isOfPassword = (error: unknown): boolean => error instanceof ApiError && error.message.startsWith("password:");

/** Whoever is signed in need not give the password again. */
function BySession({ token, onDone, onOver, onOther }: StepProps & { onOther: () => void }) {
  const { run, error } = useAction(async () => {
    try {
      onDone(await request<User>("POST", PATH, { body: { token } }));
      await loadUser().catch(() => {});
    } catch (refusal) {
      if (isOfToken(refusal)) onOver();
      else if (isOfPassword(refusal)) onOther();
      else throw refusal;
    }
  });
  useEffect(() => void run(), []);
  return error === null ? <Loading what="One moment" /> : <ErrorNotice error={error} retry={() => void run()} />;
}

function ByPassword({ token, onDone, onOver }: StepProps) {
  const [password, setPassword] = useState("");
  const { form, shown, submit } = useForm({ password: password === "" ? "Enter your password." : null });
  const { run, isBusy, error, clear } = useAction(async () => {
    try {
      const owner = await call<User>("POST", PATH, { body: { token, password } });
      // Where that fails there is a link to the sign-in.
      if (sessionState.peek() === "out") await signIn(owner.email, password).catch(() => {});
      onDone(owner);
    } catch (refusal) {
      if (isOfToken(refusal)) onOver();
      else throw refusal;
    }
  });
  const told = isOfPassword(error) ? "Wrong password. Upper and lower case count." : null;
  return (
    <>
      <p>Enter the password that you chose when you signed up.</p>
      <form ref={form} noValidate onSubmit={submit(() => void run())}>
        <PasswordField
          label="Password"
          value={password}
          problem={shown.password ?? told}
          onInput={(text) => {
            setPassword(text);
            clear();
          }}
        />
        {told === null && <ErrorNotice error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Confirming…" : "Confirm"}
        </button>
      </form>
      <Notice>
        Forgot it, or you did not sign up? <a href={href("/forgot-password")}>Set a new password</a>. That ends whatever
        anybody else has set up with your address.
      </Notice>
    </>
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
      <EmailLinkForm path="/auth/resend-verification" given={user.value?.email ?? ""} onSent={setSentTo} />
      {sentTo !== null && (
        <Notice kind="good">If {sentTo} has an account that waits for it, a link is on its way there.</Notice>
      )}
    </section>
  );
}
