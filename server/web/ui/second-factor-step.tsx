/** The second step of a sign-in: a code, or a passkey. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api.ts";
import { fieldErrorMessage } from "../error-messages.ts";
import { finishSignIn } from "../session.ts";
import type { SignInChallenge } from "../types.ts";
import { Field } from "./fields.tsx";
import { ErrorNotice } from "./notices.tsx";
import { PasskeyProblem, usePasskey } from "./passkey.ts";
import { useAction } from "./use-data.ts";
import { useForm } from "./use-form.ts";

interface SecondFactorStepProps {
  challenge: SignInChallenge;
  /** Begins the sign-in anew. */
  onAgain: () => void;
}

const UNAUTHENTICATED = 401;

export function SecondFactorStep({ challenge: { challenge, methods, passkey }, onAgain }: SecondFactorStepProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current!.focus(), []);
  const [passkeyProblem, setPasskeyProblem] = useState<string | null>(null);
  const { run, isBusy, error } = useAction(async () => {
    setPasskeyProblem(null);
    try {
      await finishSignIn(challenge, { passkey: await usePasskey(passkey!) });
    } catch (thrown) {
      if (!(thrown instanceof PasskeyProblem)) throw thrown;
      setPasskeyProblem(thrown.message);
    }
  });
  const takesCodes = methods.some((method) => method !== "passkey");
  const isUsual = !methods.includes("totp");
  return (
    <section class="narrow">
      <h1 ref={heading} tabIndex={-1}>
        One more step
      </h1>
      <p>Your account has a second factor. {methods.length === 0 && "None of yours works here: ask the operators."}</p>
      {passkey !== null && (
        <>
          {passkeyProblem !== null && (
            <div class="notice bad" role="alert">
              {passkeyProblem}
            </div>
          )}
          <SignInError error={error} />
          <button type="button" class={isUsual ? "primary" : ""} disabled={isBusy} onClick={() => void run()}>
            {isBusy ? "Waiting for your device…" : "Use a passkey"}
          </button>
        </>
      )}
      {takesCodes && <CodeForm challenge={challenge} methods={methods} />}
      <p>
        <button type="button" class="quiet" onClick={onAgain}>
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
  const told = fieldErrorMessage(error, "code");
  const hasApp = methods.includes("totp");
  return (
    <form ref={form} noValidate onSubmit={submit(() => void run())}>
      <Field
        label={hasApp ? "Code" : "Recovery code"}
        autoComplete="one-time-code"
        maxLength={64}
        hint={
          hasApp ? "Six digits of your authenticator app, or a recovery code." : "Where you don't have your passkey."
        }
        value={code}
        problem={shown.code ?? told}
        onInput={(text) => {
          setCode(text);
          clear();
        }}
      />
      {told === null && <SignInError error={error} />}
      <button type="submit" class={hasApp ? "primary" : ""} disabled={isBusy}>
        {isBusy ? "Signing in…" : "Sign in"}
      </button>
    </form>
  );
}

function SignInError({ error }: { error: unknown }) {
  if (!(error instanceof ApiError) || error.status !== UNAUTHENTICATED) return <ErrorNotice error={error} />;
  const isOver = error.message.startsWith("challenge:");
  return (
    <div class="notice bad" role="alert">
      {isOver ? "This sign-in has taken too long, or was done elsewhere. Start over." : "That passkey wasn't accepted."}
    </div>
  );
}
