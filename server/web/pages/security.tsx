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

/** The open dialog. */
type Opened =
  | { readonly kind: "totp" | "passkey" | "renew" }
  | { readonly kind: "remove"; readonly factor: SecondFactor }
  | { readonly kind: "codes"; readonly codes: readonly string[] };

export default function Security() {
  const { data, error, reload } = useFetch<SecondFactors>((signal) => request("GET", PATH, { signal }), "");
  const [opened, setOpened] = useState<Opened | null>(null);
  /** The dialog to open once the user has proven their identity. */
  const [pendingProof, setPendingProof] = useState<{ readonly proof: readonly string[]; readonly next: Opened } | null>(
    null,
  );
  const open = (next: Opened): void => setOpened(next);
  const close = (): void => setOpened(null);
  /** Opens a dialog, after a proof of identity if the server requires one. */
  const openAfterProof = async (next: Opened): Promise<void> => {
    const { proof } = await request<SecondFactors>("GET", PATH);
    if (proof === null) open(next);
    else setPendingProof({ proof: proof.map(String), next });
  };
  const added = ({ recovery_codes, factor }: ConfirmedFactor): void => {
    reload();
    toast(`"${factor.name}" added.`);
    if (recovery_codes === null) {
      close();
      focusHeading("factors");
    } else open({ kind: "codes", codes: recovery_codes });
  };
  const remove = async ({ id, name }: SecondFactor): Promise<void> => {
    await request("DELETE", `${PATH}/${id}`);
    close();
    reload();
    toast(`"${name}" removed.`);
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
        A second factor protects your account even if someone knows your password: signing in also requires a code from
        an app on your phone, or a passkey on your device.
      </p>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && <Panels factors={data} open={openAfterProof} />}
      {pendingProof !== null && (
        <ProofDialog
          methods={pendingProof.proof}
          onProven={() => {
            setPendingProof(null);
            open(pendingProof.next);
          }}
          onClose={() => setPendingProof(null)}
        />
      )}
      {opened !== null && (
        <OpenedDialog
          opened={opened}
          isLast={data?.items.length === 1}
          onAdded={added}
          onRemove={remove}
          onRenew={renew}
          onClose={close}
        />
      )}
    </AccountLayout>
  );
}

function Panels({ factors, open }: { factors: SecondFactors; open: (next: Opened) => Promise<void> }) {
  return (
    <>
      <OperatorNotice factors={factors} />
      <div class="account">
        <FactorsPanel
          factors={factors}
          onAdd={(kind) => open({ kind })}
          onRemove={(factor) => open({ kind: "remove", factor })}
        />
        {factors.items.length > 0 && (
          <CodesPanel left={factors.recovery_codes_left} onRenew={() => open({ kind: "renew" })} />
        )}
      </div>
    </>
  );
}

interface OpenedProps {
  opened: Opened;
  /** The user has a single second factor. */
  isLast: boolean;
  onAdded: (confirmed: ConfirmedFactor) => void;
  onRemove: (factor: SecondFactor) => Promise<void>;
  onRenew: () => Promise<void>;
  onClose: () => void;
}

function OpenedDialog({ opened, isLast, onAdded, onRemove, onRenew, onClose }: OpenedProps) {
  switch (opened.kind) {
    case "totp":
      return <AppDialog onAdded={onAdded} onClose={onClose} />;
    case "passkey":
      return <PasskeyDialog onAdded={onAdded} onClose={onClose} />;
    case "remove":
      return (
        <ConfirmDialog
          title={`Remove "${opened.factor.name}"?`}
          act="Remove"
          onAct={() => onRemove(opened.factor)}
          onClose={onClose}
        >
          {isLast
            ? "This is your last second factor: afterwards, your password alone signs you in, and your recovery codes become invalid."
            : "You can no longer sign in with it. Your other second factors stay active."}
        </ConfirmDialog>
      );
    case "renew":
      return (
        <ConfirmDialog title="Generate new recovery codes?" act="Generate codes" onAct={onRenew} onClose={onClose}>
          Your current codes become invalid.
        </ConfirmDialog>
      );
    case "codes": {
      const close = (): void => {
        onClose();
        focusHeading("factors");
      };
      return <CodesDialog codes={opened.codes} onClose={close} />;
    }
  }
}

function OperatorNotice({ factors: { required, session } }: { factors: SecondFactors }) {
  if (!isOperator.value || !required) return null;
  if (session) return <Notice kind="good">You're signed in with a second factor and can use the operator desk.</Notice>;
  return <Notice kind="warn">Operators need a second factor. Add one to use the operator desk.</Notice>;
}
