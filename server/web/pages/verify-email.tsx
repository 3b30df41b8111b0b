/**
 * The target of a verification link: redeems its token once. The link proves ownership of the address; the password, or an
 * existing session, proves ownership of the account.
 */
import { useEffect, useState } from "preact/hooks";
import { ApiError, call } from "../api.ts";
import { href, search, setSearch } from "../router.ts";
import { loadUser, request, sessionState, signedInUser, signIn, user } from "../session.ts";
import type { User } from "../types.ts";
import { useAction } from "../ui/action.ts";
import { EmailLinkForm } from "../ui/email-form.tsx";
import { ErrorNotice, Loading, Notice } from "../ui/notices.tsx";
import { PasswordField } from "../ui/password-field.tsx";
import { useForm } from "../ui/use-form.ts";
import { storedSignUpPath } from "./return-path.ts";
import "./account.css";

const PATH = "/auth/verify-email";

export default function VerifyEmail() {
  const [token] = useState(() => search.peek().get("token") ?? "");
  /** The user whose email was verified. */
  const [verified, setVerified] = useState<User | null>(null);
  const [isInvalid, setInvalid] = useState(false);
  /** How to prove ownership of the account: by password if nobody or another user is signed in. Null until known. */
  const [proof, setProof] = useState<"session" | "password" | null>(null);
  const done = (owner: User): void => {
    setVerified(owner);
    // The token is spent: a reload must not send it again.
    setSearch({ token: null });
  };
  useEffect(() => {
    document.title = "Verify your email · Prediction Exchange";
  }, []);
  const state = sessionState.value;
  useEffect(() => {
    if (proof === null && state !== "unknown") setProof(state === "in" ? "session" : "password");
  }, [state]);
  if (verified !== null) return <Verified owner={verified} />;
  if (token === "" && user.value?.email_verified === true) return <Verified owner={user.value} />;
  if (token === "" || isInvalid) return <RequestLink isInvalid={isInvalid} />;
  const rest = { token, onDone: done, onInvalid: () => setInvalid(true) };
  return (
    <section class="narrow">
      <h1>{proof === "password" ? "Verify your email" : "Verifying your email"}</h1>
      {proof === null && <Loading what="One moment" />}
      {proof === "session" && <BySession {...rest} onOther={() => setProof("password")} />}
      {proof === "password" && <ByPassword {...rest} />}
    </section>
  );
}

interface StepProps {
  token: string;
  onDone: (owner: User) => void;
  onInvalid: () => void;
}

const isOfToken = (error: unknown): boolean => error instanceof ApiError && error.message.startsWith("token:");
const isOfPassword = (error: unknown): boolean => error instanceof ApiError && error.message.startsWith("password:");

/** A signed-in user doesn't need to enter the password again. */
function BySession({ token, onDone, onInvalid, onOther }: StepProps & { onOther: () => void }) {
  const { run, error } = useAction(async () => {
    try {
      onDone(await request<User>("POST", PATH, { body: { token } }));
      await loadUser().catch(() => {});
    } catch (rejection) {
      if (isOfToken(rejection)) onInvalid();
      else if (isOfPassword(rejection)) onOther();
      else throw rejection;
    }
  });
  useEffect(() => void run(), []);
  return error === null ? <Loading what="One moment" /> : <ErrorNotice error={error} retry={() => void run()} />;
}

function ByPassword({ token, onDone, onInvalid }: StepProps) {
  const [password, setPassword] = useState("");
  const { form, shown, submit } = useForm({ password: password === "" ? "Enter your password." : null });
  const { run, isBusy, error, clear } = useAction(async () => {
    try {
      const owner = await call<User>("POST", PATH, { body: { token, password } });
      // If the sign-in fails, the next page links to it.
      if (sessionState.peek() === "out") await signIn(owner.email, password).catch(() => {});
      onDone(owner);
    } catch (rejection) {
      if (isOfToken(rejection)) onInvalid();
      else throw rejection;
    }
  });
  const serverProblem = isOfPassword(error) ? "Wrong password. Passwords are case-sensitive." : null;
  return (
    <>
      <p>Enter the password you chose when you signed up.</p>
      <form ref={form} noValidate onSubmit={submit(() => void run())}>
        <PasswordField
          label="Password"
          value={password}
          problem={shown.password ?? serverProblem}
          onInput={(text) => {
            setPassword(text);
            clear();
          }}
        />
        {serverProblem === null && <ErrorNotice error={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Verifying…" : "Verify"}
        </button>
      </form>
      <Notice>
        Forgot it, or didn't sign up? <a href={href("/forgot-password")}>Reset the password</a>. This removes anything
        that someone else has set up with your email.
      </Notice>
    </>
  );
}

function Verified({ owner }: { owner: User }) {
  const isOther = user.value !== null && user.value.id !== owner.id;
  const isSignedIn = user.value !== null && !isOther;
  const page = isSignedIn ? "/welcome" : "/sign-in";
  const to = storedSignUpPath();
  const rest = owner.phone_verified ? "You can trade now." : "Verify your phone number next to start trading.";
  return (
    <section class="narrow">
      <h1>Email verified</h1>
      <p role="status">
        <strong class="break">{owner.email}</strong> is verified. {isSignedIn ? rest : "Sign in to continue."}
      </p>
      {isOther && (
        <Notice kind="warn">
          You're signed in as {signedInUser().email}, another account. Sign out first to use the verified one.
        </Notice>
      )}
      {!isOther && (
        <p>
          <a class="button primary" href={href(to === "/" ? page : `${page}?to=${encodeURIComponent(to)}`)}>
            {isSignedIn ? "Continue" : "Sign in"}
          </a>
        </p>
      )}
    </section>
  );
}

function RequestLink({ isInvalid }: { isInvalid: boolean }) {
  const [sentTo, setSentTo] = useState<string | null>(null);
  return (
    <section class="narrow">
      <h1>{isInvalid ? "Invalid link" : "Verify your email"}</h1>
      {isInvalid && (
        <p>
          The link was already used or has expired after 24 hours. If it was used, your email is verified:{" "}
          <a href={href("/sign-in")}>sign in</a>
        </p>
      )}
      <p>We can send you a new link.</p>
      <EmailLinkForm path="/auth/resend-verification" given={user.value?.email ?? ""} onSent={setSentTo} />
      {sentTo !== null && <Notice kind="good">If {sentTo} has an unverified account, we've sent a link.</Notice>}
    </section>
  );
}
