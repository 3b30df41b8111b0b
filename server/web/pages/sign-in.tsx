/** Signs in with a password or at an identity provider, then returns to the page the user came from. */

import { useEffect, useState } from "preact/hooks";
import { MAX_RETURN_TO_LENGTH } from "../../accounts/limits.ts";
import { API, ApiError, call, withQuery } from "../api.ts";
import { kept } from "../browser.ts";
import { countryName } from "../countries.ts";
import { errorMessage } from "../error-messages.ts";
import { href, navigate, search } from "../router.ts";
import { sessionState, signedInUser, signIn } from "../session.ts";
import type { SignInChallenge, SocialProviders } from "../types.ts";
import { useAction } from "../ui/action.ts";
import { EmailField } from "../ui/email-form.tsx";
import { Select } from "../ui/fields.tsx";
import { ErrorNotice, Loading } from "../ui/notices.tsx";
import { PasswordField } from "../ui/password-field.tsx";
import { SecondFactorStep } from "../ui/second-factor-step.tsx";
import { useFetch } from "../ui/use-data.ts";
import { emailProblem, useForm } from "../ui/use-form.ts";
import { Entrance } from "./entrance.tsx";
import { pathAfterSignIn, returnPath, storedReturnPath, storeReturnPath, withReturnPath } from "./return-path.ts";
import { WaitingOrder } from "./waiting-order.tsx";

export default function SignIn() {
  // After a failed sign-in at a provider, the return path is in the tab's storage.
  const to = returnPath(search.value.get("to") ?? (search.value.has("error") ? storedReturnPath() : null));
  const state = sessionState.value;
  const [challenge, setChallenge] = useState(challengeInAddress);
  useEffect(() => {
    document.title = "Sign in · Prediction Exchange";
  }, []);
  useEffect(() => {
    if (state === "in") navigate(pathAfterSignIn(signedInUser(), to), true);
  }, [state]);
  if (state === "in") return <Loading what="Signed in" />;
  if (challenge !== null) return <SecondFactorStep challenge={challenge} onRestart={() => setChallenge(null)} />;
  return (
    <Entrance>
      <h1>Sign in</h1>
      <WaitingOrder to={to} lead="" />
      <ProviderError />
      <PasswordForm onChallenge={setChallenge} />
      <Providers to={to} />
      <p>
        New here? <a href={href(withReturnPath("/sign-up", to))}>Create an account</a>
      </p>
    </Entrance>
  );
}

/**
 * Reads the second-factor challenge that a sign-in at a provider returns in the fragment, which browsers send to no server.
 * Removes it from the address, and so from the browser's history.
 */
function challengeInAddress(): SignInChallenge | null {
  const { hash, pathname, search: query } = window.location;
  if (hash === "") return null;
  history.replaceState(null, "", pathname + query);
  try {
    const found = JSON.parse(decodeURIComponent(hash.slice(1))) as SignInChallenge;
    return typeof found.challenge === "string" && Array.isArray(found.methods) ? found : null;
  } catch {
    return null;
  }
}

function PasswordForm({ onChallenge }: { onChallenge: (challenge: SignInChallenge | null) => void }) {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const { form, shown, submit } = useForm({
    email: emailProblem(email),
    password: password === "" ? "Enter your password." : null,
  });
  const { run, isBusy, error } = useAction(async () => {
    onChallenge(await signIn(email.trim(), password));
  });
  return (
    <form ref={form} noValidate onSubmit={submit(() => void run())}>
      <EmailField value={email} problem={shown.email} onInput={setEmail} />
      <PasswordField
        label="Password"
        value={password}
        problem={shown.password}
        onInput={setPassword}
        aside={<a href={href(withQuery("/forgot-password", { email: email.trim() }))}>Forgot your password?</a>}
      />
      <SignInError error={error} />
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Signing in…" : "Sign in"}
      </button>
    </form>
  );
}

function SignInError({ error }: { error: unknown }) {
  if (!(error instanceof ApiError) || error.status !== 401) return <ErrorNotice error={error} />;
  return (
    <div class="notice bad" role="alert">
      Wrong email or password. Passwords are case-sensitive.
    </div>
  );
}

/** Messages for a failed sign-in at a provider. Texts from the address are never shown: anyone can craft a link. */
const PROVIDER_ERRORS: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/suspended/, "This account is suspended. Contact support."],
  [/verified/, "The provider hasn't verified your email. Verify it there, or sign up with a password."],
  [/ten minutes/, "The sign-in was started in another browser, or more than ten minutes ago. Try again."],
  [/not offered|not available|no such sign-in provider/, "This provider isn't available in your country."],
  [/^jurisdiction: required/, "Select your country first: this provider isn't available everywhere."],
  [/can(no|')t be reached|unreachable/, "Can't reach the provider. Try again, or sign in with your password."],
];
const PROVIDER_ERROR_CODES: Readonly<Record<string, string>> = {
  "40100": "The provider rejected or canceled the sign-in. Try again.",
  "42900": "Too many sign-ins from your network. Try again in a minute.",
  "50300": "The exchange is busy or starting up. Try again in a moment.",
};

function ProviderError() {
  const query = search.value;
  const code = query.get("error");
  if (code === null) return null;
  const message = query.get("message") ?? "";
  const found = PROVIDER_ERRORS.find(([pattern]) => pattern.test(message))?.[1];
  return (
    <div class="notice bad" role="alert">
      {found ??
        PROVIDER_ERROR_CODES[code] ??
        "The sign-in at the provider failed. Try again, or sign in with your password."}
    </div>
  );
}

const REMEMBERED = "jurisdiction";
const OTHER = "";

function Providers({ to }: { to: string }) {
  const [chosen, setChosen] = useState(() => kept.get(REMEMBERED) ?? OTHER);
  const { data, error, reload } = useFetch(
    (signal) => call<SocialProviders>("GET", "/auth/social", { query: { jurisdiction: chosen }, signal }),
    chosen,
  );
  const [jurisdictions, setJurisdictions] = useState<readonly string[]>([]);
  useEffect(() => {
    if (data === null) return;
    setJurisdictions(data.jurisdictions);
    // The remembered country may no longer be configured.
    if (chosen !== OTHER && !data.jurisdictions.includes(chosen)) choose(OTHER);
  }, [data]);
  const choose = (code: string): void => {
    setChosen(code);
    kept.set(REMEMBERED, code);
  };
  if (error !== null) {
    return (
      <div class="notice" role="status">
        <span>Couldn't load other sign-in methods. {errorMessage(error)}</span>
        <button type="button" onClick={reload}>
          Retry
        </button>
      </div>
    );
  }
  const offered = data?.providers ?? [];
  if (offered.length === 0 && jurisdictions.length === 0) return null;
  // A return path that is too long for the request stays in the tab's storage only.
  const query = { jurisdiction: chosen, return_to: to.length > MAX_RETURN_TO_LENGTH ? "/" : to };
  const options = jurisdictions.map((code) => [code, countryName(code)] as const);
  return (
    <div class="stack social">
      <h2>Or continue with</h2>
      {options.length > 0 && (
        <Select
          label="Country"
          value={chosen}
          options={[[OTHER, "Other"], ...options.sort(([, a], [, b]) => a.localeCompare(b))]}
          onChange={choose}
        />
      )}
      {offered.map((name) => (
        <a
          key={name}
          class="button"
          href={`${API}${withQuery(`/auth/social/${name}`, query)}`}
          onClick={() => storeReturnPath(to)}
        >
          Continue with {capitalized(name)}
        </a>
      ))}
      {data !== null && offered.length === 0 && <p class="faint">No providers available there.</p>}
    </div>
  );
}

const capitalized = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
