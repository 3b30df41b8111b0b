/** Second factors: authenticator apps, passkeys and recovery codes. */
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api.ts";
import { explainField } from "../error-messages.ts";
import { date, dateTime } from "../format.ts";
import { href } from "../router.ts";
import { isOperator, request } from "../session.ts";
import type { ConfirmedFactor, Enrolment, SecondFactor, SecondFactors } from "../types.ts";
import { AccountFrame, focusHeading } from "../ui/account-layout.tsx";
import { Badge } from "../ui/badge.tsx";
import { Confirm } from "../ui/confirm-dialog.tsx";
import { Copyable } from "../ui/copyable.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Field } from "../ui/fields.tsx";
import { ErrorNotice, Loading, Notice } from "../ui/notices.tsx";
import { makePasskey, PasskeyProblem } from "../ui/passkey.ts";
import { PasswordField } from "../ui/password-field.tsx";
import { toast } from "../ui/toast.tsx";
import { useAction, useLoaded } from "../ui/use-data.ts";
import { useChecked } from "../ui/use-form.ts";
import "./account.css";

const PATH = "/me/second-factors";
const FORBIDDEN = 403;
const KINDS: Readonly<Record<string, string>> = { totp: "Authenticator app", passkey: "Passkey" };

/** What is asked about, or shown. */
type Opened =
  | { readonly kind: "totp" | "passkey" | "renew" }
  | { readonly kind: "remove"; readonly factor: SecondFactor }
  | { readonly kind: "codes"; readonly codes: readonly string[] };

export default function Security() {
  const { data, error, reload } = useLoaded<SecondFactors>((signal) => request("GET", PATH, { signal }), "");
  const [opened, setOpened] = useState<Opened | null>(null);
  /** What goes on once the owner has proven itself. */
  const [waiting, setWaiting] = useState<{ readonly proof: readonly string[]; readonly next: Opened } | null>(null);
  const open = (next: Opened): void => setOpened(next);
  const close = (): void => setOpened(null);
  /** Opens it; where the exchange wants to know first that it is the owner, after that. */
  const openProven = async (next: Opened): Promise<void> => {
    const { proof } = await request<SecondFactors>("GET", PATH);
    if (proof === null) open(next);
    else setWaiting({ proof: proof.map(String), next });
  };
  const added = ({ recovery_codes, factor }: ConfirmedFactor): void => {
    reload();
    toast(`"${factor.name}" is added.`);
    if (recovery_codes === null) {
      close();
      focusHeading("factors");
    } else open({ kind: "codes", codes: recovery_codes });
  };
  const remove = async ({ id, name }: SecondFactor): Promise<void> => {
    await request("DELETE", `${PATH}/${id}`);
    close();
    reload();
    toast(`"${name}" is removed.`);
    focusHeading("factors");
  };
  const renew = async (): Promise<void> => {
    const { recovery_codes } = await request<{ recovery_codes: string[] }>("POST", `${PATH}/recovery-codes`);
    reload();
    open({ kind: "codes", codes: recovery_codes });
  };
  return (
    <AccountFrame path="/account/security">
      <p class="lead">
        A second factor keeps others out who know your password: a sign-in takes a code of an app on your phone, or a
        passkey of your device, as well.
      </p>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && (
        <>
          <OperatorNotice factors={data} />
          <div class="account">
            <FactorsPanel
              factors={data}
              onAdd={(kind) => openProven({ kind })}
              onRemove={(factor) => openProven({ kind: "remove", factor })}
            />
            {data.items.length > 0 && (
              <CodesPanel left={data.recovery_codes_left} onRenew={() => openProven({ kind: "renew" })} />
            )}
          </div>
        </>
      )}
      {waiting !== null && (
        <ProofDialog
          methods={waiting.proof}
          onProven={() => {
            setWaiting(null);
            open(waiting.next);
          }}
          onClose={() => setWaiting(null)}
        />
      )}
      {opened?.kind === "totp" && <AppDialog onAdded={added} onClose={close} />}
      {opened?.kind === "passkey" && <PasskeyDialog onAdded={added} onClose={close} />}
      {opened?.kind === "remove" && (
        <Confirm
          title={`Remove "${opened.factor.name}"?`}
          act="Remove it"
          onAct={() => remove(opened.factor)}
          onClose={close}
        >
          {data?.items.length === 1
            ? "It is your last one: from then on your password alone opens your account, and your recovery codes are void."
            : "It opens your account no more. Your other second factors stay."}
        </Confirm>
      )}
      {opened?.kind === "renew" && (
        <Confirm title="Make new recovery codes?" act="Make new codes" onAct={renew} onClose={close}>
          The codes that you have now are void then.
        </Confirm>
      )}
      {opened?.kind === "codes" && (
        <CodesDialog
          codes={opened.codes}
          onClose={() => {
            close();
            focusHeading("factors");
          }}
        />
      )}
    </AccountFrame>
  );
}

function OperatorNotice({ factors: { required, session } }: { factors: SecondFactors }) {
  if (!isOperator.value || !required) return null;
  if (session) return <Notice kind="good">You are signed in with a second factor: the desk is open to you.</Notice>;
  return (
    <Notice kind="warn">
      Operators of this exchange need a second factor. Add one here; until then the desk stays shut.
    </Notice>
  );
}

interface FactorsProps {
  factors: SecondFactors;
  onAdd: (kind: "totp" | "passkey") => void;
  onRemove: (factor: SecondFactor) => void;
}

function FactorsPanel({ factors: { items, passkeys, required }, onAdd, onRemove }: FactorsProps) {
  const isLastOfOperator = required && items.length === 1;
  return (
    <section class="panel" aria-labelledby="factors">
      <div class="row between">
        <h2 id="factors" tabIndex={-1}>
          Your second factors
        </h2>
        <Badge text={items.length > 0 ? "On" : "Off"} tone={items.length > 0 ? "good" : "warn"} />
      </div>
      {items.length === 0 && <p class="empty">You have none yet.</p>}
      <ul class="entries">
        {items.map((factor) => (
          <li key={factor.id}>
            <div class="row between">
              <h3 class="break">{factor.name}</h3>
              <button
                type="button"
                class="danger small"
                aria-label={`Remove ${factor.name}`}
                disabled={isLastOfOperator}
                onClick={() => onRemove(factor)}
              >
                Remove
              </button>
            </div>
            <dl class="facts">
              <dt>What it is</dt>
              <dd>{KINDS[String(factor.kind)]}</dd>
              <dt>Last used</dt>
              <dd>{factor.last_used_at === null ? "Never" : dateTime(factor.last_used_at)}</dd>
              <dt>Added</dt>
              <dd>{date(factor.created_at)}</dd>
            </dl>
          </li>
        ))}
      </ul>
      {isLastOfOperator && <p class="faint">Operators must have one: add another before you remove it.</p>}
      <div class="row">
        <button type="button" class="primary" onClick={() => onAdd("totp")}>
          Add an authenticator app
        </button>
        <button type="button" disabled={passkeys !== null} onClick={() => onAdd("passkey")}>
          Add a passkey
        </button>
      </div>
      {passkeys !== null && <p class="faint">No passkeys here: {passkeys}.</p>}
    </section>
  );
}

function CodesPanel({ left, onRenew }: { left: number; onRenew: () => void }) {
  return (
    <section class="panel" aria-labelledby="recovery">
      <div class="row between">
        <h2 id="recovery">Recovery codes</h2>
        <Badge text={`${left} left`} tone={left > 3 ? "good" : "warn"} />
      </div>
      <p>Each stands in for your second factor once, where you have lost it.</p>
      {left === 0 && (
        <Notice kind="warn">You have none left: if you lose your second factor, only operators can help.</Notice>
      )}
      <div>
        <button type="button" onClick={onRenew}>
          Make new codes
        </button>
      </div>
    </section>
  );
}

// ---------------------------------------------------------------- the owner's proof

interface ProofProps {
  /** "password", "code"; none where only another sign-in proves it. */
  methods: readonly string[];
  onProven: () => void;
  onClose: () => void;
}

function ProofDialog({ methods, onProven, onClose }: ProofProps) {
  const [isByCode, setByCode] = useState(!methods.includes("password"));
  const [text, setText] = useState("");
  const what = isByCode ? "code" : "password";
  const { form, shown, submit } = useChecked({ text: text === "" ? `Enter your ${what}.` : null });
  const { run, isBusy, error, clear } = useAction(async () => {
    await request("POST", `${PATH}/proof`, { body: { [what]: text.trim() } });
    onProven();
  });
  const isWrong = error instanceof ApiError && error.status === FORBIDDEN && /is wrong/.test(error.message);
  const problem =
    shown.text ?? (isWrong ? `That isn't your ${isByCode ? "code, or it was used before" : "password"}.` : null);
  const change = (next: string): void => {
    setText(next);
    clear();
  };
  if (methods.length === 0) {
    return (
      <Dialog title="Is it you?" onClose={onClose}>
        <p>Your sign-in was a while ago. Sign out and in again, and do this within five minutes.</p>
      </Dialog>
    );
  }
  return (
    <Dialog title="Is it you?" onClose={onClose}>
      <form ref={form} class="stack" noValidate onSubmit={submit(() => void run())}>
        <p>Second factors are changed by the owner alone.</p>
        {isByCode ? (
          <Field
            label="Code"
            autoComplete="one-time-code"
            maxLength={64}
            hint="Of your authenticator app, or a recovery code. Each code counts once."
            value={text}
            problem={problem}
            onInput={change}
          />
        ) : (
          <PasswordField label="Password" value={text} problem={problem} onInput={change} />
        )}
        {!isWrong && <ErrorNotice error={error} />}
        <div class="row">
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? "One moment…" : "Continue"}
          </button>
          {methods.length > 1 && (
            <button
              type="button"
              onClick={() => {
                setByCode(!isByCode);
                change("");
              }}
            >
              {isByCode ? "Use the password" : "Use a code"}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

// ---------------------------------------------------------------- adding

interface AddProps {
  onAdded: (confirmed: ConfirmedFactor) => void;
  onClose: () => void;
}

const begin = (kind: string, name: string): Promise<Enrolment> =>
  request("POST", PATH, { body: { kind, ...(name.trim() === "" ? {} : { name: name.trim() }) } });
const confirm = ({ id }: Enrolment, shown: object): Promise<ConfirmedFactor> =>
  request("POST", `${PATH}/${id}/confirm`, { body: shown });

type QrCodeComponent = typeof import("../ui/qr-code.tsx").default;

function AppDialog({ onAdded, onClose }: AddProps) {
  const [enrolment, setEnrolment] = useState<Enrolment | null>(null);
  const [name, setName] = useState("");
  const [QrCode, setQrCode] = useState<QrCodeComponent | null>(null);
  useEffect(() => {
    void import("../ui/qr-code.tsx").then((module) => setQrCode(() => module.default));
  }, []);
  const started = useAction(async () => setEnrolment(await begin("totp", name)));
  const [code, setCode] = useState("");
  const { form, shown, submit } = useChecked({
    code: /^\s*(\d\s*){6}$/.test(code) ? null : "Enter the six digits of the app.",
  });
  const { run, isBusy, error, clear } = useAction(async () => onAdded(await confirm(enrolment!, { code })));
  const told = explainField(error, "code");
  if (enrolment === null) {
    return (
      <NameDialog
        title="Add an authenticator app"
        placeholder="Phone"
        name={name}
        onName={setName}
        action={started}
        onClose={onClose}
      >
        Any app that makes six-digit codes will do, such as the one of your password manager.
      </NameDialog>
    );
  }
  return (
    <Dialog title="Add an authenticator app" onClose={onClose}>
      <form ref={form} class="stack" noValidate onSubmit={submit(() => void run())}>
        <p>Scan this with the app, or type the secret into it; then enter the code that it shows.</p>
        {QrCode !== null && <QrCode text={enrolment.uri!} label="QR code with the secret" />}
        <Copyable label="Secret" text={enrolment.secret!} />
        <Field
          label="Code"
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={12}
          value={code}
          problem={shown.code ?? told}
          onInput={(text) => {
            setCode(text);
            clear();
          }}
        />
        {told === null && <ErrorNotice error={error} />}
        <div>
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? "One moment…" : "Add the app"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function PasskeyDialog({ onAdded, onClose }: AddProps) {
  const [name, setName] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const action = useAction(async () => {
    setProblem(null);
    try {
      const enrolment = await begin("passkey", name);
      onAdded(await confirm(enrolment, { passkey: await makePasskey(enrolment.options!) }));
    } catch (thrown) {
      if (!(thrown instanceof PasskeyProblem)) throw thrown;
      setProblem(thrown.message);
    }
  });
  return (
    <NameDialog
      title="Add a passkey"
      placeholder="Laptop"
      name={name}
      onName={setName}
      action={action}
      problem={problem}
      onClose={onClose}
    >
      Your device asks for your PIN, your finger or your face, and keeps a key that no site but this one can use.
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
  const told = explainField(error, "name");
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
          hint="So that you can tell it from others."
          value={name}
          problem={told}
          onInput={onName}
        />
        {problem !== null && (
          <div class="notice bad" role="alert">
            {problem}
          </div>
        )}
        {told === null && <ErrorNotice error={error} />}
        <div>
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? "One moment…" : "Continue"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

// ---------------------------------------------------------------- recovery codes

function CodesDialog({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) {
  return (
    <Dialog title="Your recovery codes" onClose={onClose}>
      <div class="stack">
        <div class="notice warn">
          <div>
            <strong>Store them now: they are shown this once.</strong> Each signs you in once in place of your second
            factor. Keep them where your phone isn't.
          </div>
        </div>
        <ul class="recovery-codes" aria-label="Recovery codes">
          {codes.map((code) => (
            <li key={code}>
              <code>{code}</code>
            </li>
          ))}
        </ul>
        <Copyable label="All of them" text={codes.join(" ")} />
        <p class="faint">
          The exchange keeps no copy. <a href={href("/account/sessions")}>Your sessions</a> show where you are signed
          in.
        </p>
        <div>
          <button type="button" class="primary" onClick={onClose}>
            I have stored them
          </button>
        </div>
      </div>
    </Dialog>
  );
}
