/** First approvals under the two-person rule: who gave them, and how to revoke one. */
import { request, user } from "../../session.ts";
import type { Approval } from "../../types.ts";
import { Badge } from "../../ui/badge.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";

/** True if this operator gave the first approval: the second must come from another. */
export const isOwnApproval = ({ approved_by }: Approval): boolean => approved_by === `operator ${user.value?.id}`;

/** Shows who gave the first approval. */
export function ApprovalBadge({ approval }: { approval: Approval }) {
  return (
    <Badge
      tone="warn"
      text={
        isOwnApproval(approval) ? "approved by you, second approval pending" : `approved by ${approval.approved_by}`
      }
    />
  );
}

/** Revokes a first approval; any operator can. */
export function RevokeApprovalDialog({
  approval,
  onClose,
  onDone,
}: {
  approval: Approval;
  onClose: () => void;
  onDone: () => void;
}) {
  return (
    <DecisionDialog
      title="Revoke approval"
      confirm="Revoke"
      isDangerous
      noteHint={null}
      act={async () => {
        await request("DELETE", `/admin/approvals/${approval.id}`);
        return "Approval revoked. Nothing was executed.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        This revokes {isOwnApproval(approval) ? "your first approval" : `the first approval by ${approval.approved_by}`}
        . Nothing is executed; the action then needs two new approvals.
      </p>
    </DecisionDialog>
  );
}
