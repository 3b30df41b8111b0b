/** The second step of a sign-in: a code or a passkey. */

import { useState } from "preact/hooks";
import { ApiError } from "../api.ts";
import { fieldErrorMessage } from "../error-messages.ts";
import { required } from "../required.ts";
import { finishSignIn } from "../session.ts";
import type { SignInChallenge } from "../types.ts";
import { useAction } from "./action.ts";
import { Field } from "./fields.tsx";
import { ErrorNotice } from "./notices.tsx";
import { PasskeyProblem, usePasskey } from "./passkey.ts";
import { useFocusOnMount } from "./use-focus-on-mount.ts";
import { useForm } from "./use-form.ts";

interface SecondFactorStepProps {
  challenge: SignInChallenge;
  /** Restarts the sign-in. */
  onRestart: () => void;
}

const UNAUTHENTICATED = 401;

export function SecondFactorStep({ challenge: { challenge, methods, passkey }, onRestart }: SecondFactorStepProps) {
  const heading = useFocusOnMount<HTMLHeadingElement>();
  const [passkeyProblem, setPasskeyProblem] = useState<string | null>(null);
  const { run, isBusy, error } = useAction(async () => {
    setPasskeyProblem(null);
    try {
      await finishSignIn(challenge, { passkey: await usePasskey(required(passkey, "passkey options")) });
    } catch (thrown) {
      if (!(thrown instanceof PasskeyProblem)) throw thrown;
      setPasskeyProblem(thrown.message);
    }
  });
  const acceptsCodes = methods.some((method) => method !== "passkey");
  const isPrimary = !methods.includes("totp");
  return (
    <section class="narrow">
      <h1 ref={heading} tabIndex={-1}>
        Two-factor authentication
      </h1>
      <p>Confirm it's you. {methods.length === 0 && "None of your second factors works here: contact support."}</p>
      {passkey !== null && (
        <>
          {passkeyProblem !== null && (
            <div class="notice bad" role="alert">
              {passkeyProblem}
            </div>
          )}
          <SignInError error={error} />
          <button type="button" class={isPrimary ? "primary" : ""} disabled={isBusy} onClick={() => void run()}>
            {isBusy ? "Waiting for your device…" : "Use a passkey"}
          </button>
        </>
      )}
      {acceptsCodes && <CodeForm challenge={challenge} methods={methods} />}
      <p>
        <button type="button" class="quiet" onClick={onRestart}>
          Start over
        </button>
      </p>
    </section>
  );
}

function CodeForm({ challenge, methods }: Pick<SignInChallenge, "challenge" | "methods">) {
  const [code, setCode] = useState("");
  const { form, shown, submit } = useForm({ code: code.trim() === "" ? "Enter a code." : null });
  const { run, isBusy, error, clear } = useAction(() => finishSignIn(challenge, { code: code.trim() }));
  const serverProblem = fieldErrorMessage(error, "code");
  const hasApp = methods.includes("totp");
  return (
    <form ref={form} noValidate onSubmit={submit(() => void run())}>
      <Field
        label={hasApp ? "Code" : "Recovery code"}
        autoComplete="one-time-code"
        maxLength={64}
        hint={
          hasApp ? "Six digits from your authenticator app, or a recovery code." : "If you don't have your passkey."
        }
        value={code}
        problem={shown.code ?? serverProblem}
        onInput={(text) => {
          setCode(text);
          clear();
        }}
      />
      {serverProblem === null && <SignInError error={error} />}
      <button type="submit" class={hasApp ? "primary" : ""} disabled={isBusy}>
        {isBusy ? "Signing in…" : "Sign in"}
      </button>
    </form>
  );
}

function SignInError({ error }: { error: unknown }) {
  if (!(error instanceof ApiError) || error.status !== UNAUTHENTICATED) return <ErrorNotice error={error} />;
  const isExpired = error.message.startsWith("challenge:");
  return (
    <div class="notice bad" role="alert">
      {isExpired ? "This sign-in has expired or was completed elsewhere. Start over." : "Passkey not accepted."}
    </div>
  );
}
