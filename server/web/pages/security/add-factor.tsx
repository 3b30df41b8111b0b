/** Dialogs that add an authenticator app or a passkey. */

import { useEffect, useState } from "preact/hooks";
import { isSixDigits, withoutSeparators } from "../../../accounts/code-text.ts";
import { fieldErrorMessage } from "../../error-messages.ts";
import { required } from "../../required.ts";
import type { ConfirmedFactor, Enrolment } from "../../types.ts";
import { useAction } from "../../ui/action.ts";
import { Copyable } from "../../ui/copyable.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { createPasskey, PasskeyProblem } from "../../ui/passkey.ts";
import { useForm } from "../../ui/use-form.ts";

import { begin, confirm } from "./enrolment.ts";

interface AddProps {
  onAdded: (confirmed: ConfirmedFactor) => void;
  onClose: () => void;
}

type QrCodeComponent = typeof import("../../ui/qr-code.tsx").default;

/** Adds an authenticator app in two steps: a name, then the first code. */
export function AppDialog({ onAdded, onClose }: AddProps) {
  const [enrolment, setEnrolment] = useState<Enrolment | null>(null);
  const [name, setName] = useState("");
  const action = useAction(async () => setEnrolment(await begin("totp", name)));
  if (enrolment !== null) return <AppCodeDialog enrolment={enrolment} onAdded={onAdded} onClose={onClose} />;
  return (
    <NameDialog
      title="Add authenticator app"
      placeholder="Phone"
      name={name}
      onName={setName}
      action={action}
      onClose={onClose}
    >
      Use any app that generates six-digit codes, such as your password manager.
    </NameDialog>
  );
}

function AppCodeDialog({ enrolment, onAdded, onClose }: AddProps & { enrolment: Enrolment }) {
  const [QrCode, setQrCode] = useState<QrCodeComponent | null>(null);
  useEffect(() => {
    void import("../../ui/qr-code.tsx").then((module) => setQrCode(() => module.default));
  }, []);
  const [code, setCode] = useState("");
  const { form, shown, submit } = useForm({
    code: isSixDigits(withoutSeparators(code)) ? null : "Enter the six-digit code.",
  });
  const { run, isBusy, error, clear } = useAction(async () => onAdded(await confirm(enrolment, { code })));
  const serverProblem = fieldErrorMessage(error, "code");
  return (
    <Dialog title="Add authenticator app" onClose={onClose}>
      <form ref={form} class="stack" noValidate onSubmit={submit(() => void run())}>
        <p>Scan the QR code with the app, or enter the secret. Then enter the code that the app shows.</p>
        {QrCode !== null && (
          <QrCode text={required(enrolment.uri, "the enrolment's URI")} label="QR code with the secret" />
        )}
        <Copyable label="Secret" text={required(enrolment.secret, "the enrolment's secret")} />
        <Field
          label="Code"
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={32}
          value={code}
          problem={shown.code ?? serverProblem}
          onInput={(text) => {
            setCode(text);
            clear();
          }}
        />
        {serverProblem === null && <ErrorNotice error={error} />}
        <div>
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? "One moment…" : "Add app"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function PasskeyDialog({ onAdded, onClose }: AddProps) {
  const [name, setName] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const action = useAction(async () => {
    setProblem(null);
    try {
      const enrolment = await begin("passkey", name);
      onAdded(
        await confirm(enrolment, { passkey: await createPasskey(required(enrolment.options, "passkey options")) }),
      );
    } catch (thrown) {
      if (!(thrown instanceof PasskeyProblem)) throw thrown;
      setProblem(thrown.message);
    }
  });
  return (
    <NameDialog
      title="Add passkey"
      placeholder="Laptop"
      name={name}
      onName={setName}
      action={action}
      problem={problem}
      onClose={onClose}
    >
      Your device asks for your PIN, fingerprint or face, and stores a key that only this site can use.
    </NameDialog>
  );
}

interface NameProps {
  title: string;
  placeholder: string;
  name: string;
  onName: (name: string) => void;
  action: ReturnType<typeof useAction<[]>>;
  problem?: string | null;
  children: string;
  onClose: () => void;
}

function NameDialog({ title, placeholder, name, onName, action, problem = null, children, onClose }: NameProps) {
  const { run, isBusy, error } = action;
  const serverProblem = fieldErrorMessage(error, "name");
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <p>{children}</p>
        <Field
          label="Name (optional)"
          placeholder={placeholder}
          autoComplete="off"
          maxLength={100}
          hint="Helps you tell your second factors apart."
          value={name}
          problem={serverProblem}
          onInput={onName}
        />
        {problem !== null && (
          <div class="notice bad" role="alert">
            {problem}
          </div>
        )}
        {serverProblem === null && <ErrorNotice error={error} />}
        <div>
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? "One moment…" : "Continue"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
