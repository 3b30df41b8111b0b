/** Second factors: authenticator apps, passkeys and recovery codes. */
import { useState } from "preact/hooks";
import { isOperator, request } from "../session.ts";
import type { ConfirmedFactor, SecondFactor, SecondFactors } from "../types.ts";
import { AccountLayout, focusHeading } from "../ui/account-layout.tsx";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { ErrorNotice, Loading, Notice } from "../ui/notices.tsx";
import { toast } from "../ui/toast.tsx";
import { useFetch } from "../ui/use-data.ts";
import "./account.css";
import { AppDialog, PasskeyDialog } from "./security/add-factor.tsx";
import { PATH } from "./security/enrolment.ts";
import { FactorsPanel } from "./security/factor-list.tsx";
import { ProofDialog } from "./security/proof-dialog.tsx";
import { CodesDialog, CodesPanel } from "./security/recovery-codes.tsx";

/** What is asked about, or shown. */
type Opened =
  | { readonly kind: "totp" | "passkey" | "renew" }
  | { readonly kind: "remove"; readonly factor: SecondFactor }
  | { readonly kind: "codes"; readonly codes: readonly string[] };

export default function Security() {
  const { data, error, reload } = useFetch<SecondFactors>((signal) => request("GET", PATH, { signal }), "");
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
    <AccountLayout path="/account/security">
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
        <ConfirmDialog
          title={`Remove "${opened.factor.name}"?`}
          act="Remove it"
          onAct={() => remove(opened.factor)}
          onClose={close}
        >
          {data?.items.length === 1
            ? "It is your last one: from then on your password alone opens your account, and your recovery codes are void."
            : "It opens your account no more. Your other second factors stay."}
        </ConfirmDialog>
      )}
      {opened?.kind === "renew" && (
        <ConfirmDialog title="Make new recovery codes?" act="Make new codes" onAct={renew} onClose={close}>
          The codes that you have now are void then.
        </ConfirmDialog>
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
    </AccountLayout>
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
