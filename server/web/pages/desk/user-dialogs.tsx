/** Dialogs that suspend and restore a user and reset lost second factors. */
import { useState } from "preact/hooks";
import { request } from "../../session.ts";
import type { FactorReset, OperatorUser } from "../../types.ts";
import { Checkbox } from "../../ui/fields.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";

export interface DialogProps {
  readonly user: OperatorUser;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function SuspendDialog({ user: { id, email }, onClose, onDone }: DialogProps) {
  return (
    <DecisionDialog
      title="Suspend account"
      confirm="Suspend"
      isDangerous
      noteHint="Reason, recorded in the audit log."
      act={async (note) => {
        await request("POST", `/admin/users/${id}/suspend`, { body: { note } });
        return `${email} suspended.`;
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{email}</strong>
      </p>
      <p>
        This cancels all orders of the account, closes its connections, ends its sessions, and rejects its tokens and
        sign-ins until you restore it. Balance and positions stay; withdrawals aren't paid in the meantime.
      </p>
    </DecisionDialog>
  );
}

export function RestoreDialog({ user: { id, email }, onClose, onDone }: DialogProps) {
  const [keepsTokens, setKeepsTokens] = useState(false);
  return (
    <DecisionDialog
      title="Restore account"
      confirm="Restore"
      noteHint="Reason, recorded in the audit log."
      act={async (note) => {
        await request("POST", `/admin/users/${id}/restore`, {
          body: { note, tokens: keepsTokens ? "restore" : "revoke" },
        });
        return `${email} can sign in and trade again.`;
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{email}</strong>
      </p>
      <p>The user can sign in and trade again. Canceled orders stay canceled, and old sessions stay ended.</p>
      <Checkbox
        label="Restore API tokens and connected apps"
        hint="Otherwise they are revoked: a thief's would work again, too."
        checked={keepsTokens}
        onChange={setKeepsTokens}
      />
    </DecisionDialog>
  );
}

export function ResetFactorsDialog({ user: { id, email }, onClose, onDone }: DialogProps) {
  return (
    <DecisionDialog
      title="Reset second factor"
      confirm="Reset"
      isDangerous
      noteHint="How you verified the owner's identity, recorded in the audit log."
      act={async (note) => {
        const path = `/admin/users/${id}/second-factors/reset`;
        const { done } = await request<FactorReset>("POST", path, { body: { note } });
        return done
          ? `${email} now signs in with the password alone.`
          : "Approval recorded: another operator must repeat the action.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{email}</strong>
      </p>
      <p>
        A reset always takes two operators. It removes all second factors and recovery codes of the account and ends its
        sessions; the owner is notified by email. Verify who asks: a thief with the password would ask for this.
      </p>
    </DecisionDialog>
  );
}
