/** Dialogs that suspend and restore a user and reset lost second factors. */
import { request } from "../../session.ts";
import type { FactorReset, OperatorUser } from "../../types.ts";
import { DecisionDialog } from "./decision-dialog.tsx";

export interface DialogProps {
  readonly user: OperatorUser;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function SuspendDialog({ user: { id, email }, onClose, onDone }: DialogProps) {
  return (
    <DecisionDialog
      title="Suspend the account"
      confirm="Suspend it"
      isDangerous
      noteHint="The reason, kept in the audit log."
      act={async (note) => {
        await request("POST", `/admin/users/${id}/suspend`, { body: { note } });
        return `${email} is suspended.`;
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{email}</strong>
      </p>
      <p>
        All its orders are canceled, its connections end, and its tokens and sign-ins are refused until the suspension
        is ended. Balance and positions stay; withdrawals aren't paid meanwhile.
      </p>
    </DecisionDialog>
  );
}

export function RestoreDialog({ user: { id, email }, onClose, onDone }: DialogProps) {
  return (
    <DecisionDialog
      title="End the suspension"
      confirm="End it"
      noteHint="The reason, kept in the audit log."
      act={async (note) => {
        await request("POST", `/admin/users/${id}/restore`, { body: { note } });
        return `${email} can sign in and trade again.`;
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{email}</strong>
      </p>
      <p>It can sign in and trade again, its tokens work again. Orders that were canceled stay so.</p>
    </DecisionDialog>
  );
}

// ---------------------------------------------------------------- a lost second factor

export function ResetFactorsDialog({ user: { id, email }, onClose, onDone }: DialogProps) {
  return (
    <DecisionDialog
      title="Reset the second factor"
      confirm="Reset it"
      isDangerous
      noteHint="How you know that it is the owner who asks, kept in the audit log."
      act={async (note) => {
        const path = `/admin/users/${id}/second-factors/reset`;
        const { done } = await request<FactorReset>("POST", path, { body: { note } });
        return done ? `${email} signs in with the password alone now.` : "Another operator must ask for the same.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{email}</strong>
      </p>
      <p>
        It takes two operators, always. Then all second factors and recovery codes of the account are removed and its
        sessions end; the owner is mailed. Be sure who asks: this is what a thief of the password would ask for.
      </p>
    </DecisionDialog>
  );
}

// ---------------------------------------------------------------- terms
