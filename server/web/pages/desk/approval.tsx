/** First approvals under the two-person rule: who gave them, and how to revoke one. */
import { request, user } from "../../session.ts";
import type { Approval } from "../../types.ts";
import { Badge } from "../../ui/badge.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";

/** True of one's own: another operator must ask for the same. */
export const isOwnApproval = ({ approved_by }: Approval): boolean => approved_by === `operator ${user.value?.id}`;

/** The second approval is given elsewhere: says who gave the first one, and when. */
export function ApprovalBadge({ approval }: { approval: Approval }) {
  return (
    <Badge
      tone="warn"
      text={isOwnApproval(approval) ? "approved by you, waits for another" : `approved by ${approval.approved_by}`}
    />
  );
}

/** Takes a first approval back, whoever's it is. */
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
      title="Take the approval back"
      confirm="Take it back"
      isDangerous
      noteHint={null}
      act={async () => {
        await request("DELETE", `/admin/approvals/${approval.id}`);
        return "The approval is taken back. Nothing was done.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        {isOwnApproval(approval) ? "Your" : `The`} first approval
        {isOwnApproval(approval) ? "" : ` of ${approval.approved_by}`} ends, and nothing is done. It takes two new ones
        then.
      </p>
    </DecisionDialog>
  );
}
