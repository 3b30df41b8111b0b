/** First approvals under the two-person rule that await a second one. */
import { useState } from "preact/hooks";
import { exactMoney, humanize } from "../../../util/format.ts";
import { dateTime } from "../../dates.ts";
import { href } from "../../router.ts";
import { request, user } from "../../session.ts";
import type { Approval, DepositResponse, OperatorUser } from "../../types.ts";
import { Notice } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { Table } from "../../ui/table.tsx";
import type { Children } from "../../ui/use-data.ts";
import { AccountTrail } from "./account-trail.tsx";
import { ApprovalBadge, isOwnApproval, RevokeApprovalDialog } from "./approval.tsx";
import { detailText } from "./approval-details.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Heading } from "./heading.tsx";
import { MarketLink, UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";

const DEPOSIT = "wallet.deposit";
const DEPOSIT_TO_HOUSE = "house.deposit";
const REVERSE_DEPOSIT = "wallet.reverse_deposit";
const REVERSE_DEPOSIT_TO_HOUSE = "house.reverse_deposit";
const SET_TERMS = "user.set_terms";
const TITLES: Readonly<Record<string, string>> = {
  [DEPOSIT]: "Credit a user",
  [DEPOSIT_TO_HOUSE]: "Fund the house",
  [REVERSE_DEPOSIT]: "Reverse a deposit",
  [REVERSE_DEPOSIT_TO_HOUSE]: "Reverse a deposit to the house",
  [SET_TERMS]: "Set a user's terms",
  "withdrawal.pay": "Pay a withdrawal",
  "market.resolve": "Resolve a market",
  "house.withdraw": "Withdraw from the house",
  "second_factor.reset": "Reset second factors",
};

export function Approvals() {
  const pages = usePages<Approval>("/admin/approvals");
  const [opened, setOpened] = useState<{ kind: "approve" | "revoke"; approval: Approval } | null>(null);
  const dialog = { onClose: () => setOpened(null), onDone: pages.reload };
  return (
    <>
      <Heading>Approvals</Heading>
      <p>
        Under the two-person rule, another operator must repeat the same action. Approve deposits, their reversals and
        terms here; for other actions, follow the link and give the second approval there.
      </p>
      <PagedList pages={pages}>
        {(items) => (
          <Table
            caption="Pending approvals"
            rows={items}
            keyOf={({ id }) => id}
            empty="No approvals pending."
            columns={[
              { title: "Action", show: ({ action }) => TITLES[action] ?? action },
              { title: "Subject", show: subjectOf },
              { title: "Details", show: detailsOf },
              { title: "First approval", show: (approval) => <ApprovalBadge approval={approval} /> },
              { title: "Since", show: ({ created_at }) => dateTime(created_at) },
              {
                title: "Decision",
                show: (approval) => (
                  <span class="row">
                    {mayApprove(approval) && (
                      <button
                        type="button"
                        class="small"
                        aria-label={`Approve: approval ${approval.id}`}
                        onClick={() => setOpened({ kind: "approve", approval })}
                      >
                        Approve
                      </button>
                    )}
                    <button
                      type="button"
                      class="small danger"
                      aria-label={`Revoke approval ${approval.id}`}
                      onClick={() => setOpened({ kind: "revoke", approval })}
                    >
                      Revoke
                    </button>
                  </span>
                ),
              },
            ]}
          />
        )}
      </PagedList>
      {opened?.kind === "revoke" && <RevokeApprovalDialog approval={opened.approval} {...dialog} />}
      {opened?.kind === "approve" && <ApproveDialog approval={opened.approval} {...dialog} />}
    </>
  );
}

const isOfHouse = (action: string): boolean => [DEPOSIT_TO_HOUSE, REVERSE_DEPOSIT_TO_HOUSE].includes(action);
const isOfUser = (action: string): boolean => [DEPOSIT, REVERSE_DEPOSIT, SET_TERMS].includes(action);

/** Operators approve deposits, reversals and terms here, except their own approvals and their own account. */
function mayApprove(approval: Approval): boolean {
  const { action, subject } = approval;
  if (isOwnApproval(approval)) return false;
  return isOfHouse(action) || (isOfUser(action) && subject !== user.value?.id);
}

/** The first approval was revoked in the meantime. */
const RECORDED_AS_FIRST = "The first approval was revoked: yours is recorded as the first approval.";

/** Repeats the first operator's action. */
async function approve({ action, subject, details }: Approval): Promise<string> {
  if (action === SET_TERMS) {
    const changed = await request<OperatorUser>("PATCH", `/admin/users/${subject}/terms`, { body: details });
    return changed.terms_approval === null ? "Terms set." : RECORDED_AS_FIRST;
  }
  if (action === REVERSE_DEPOSIT || action === REVERSE_DEPOSIT_TO_HOUSE) {
    const { deposit, ...body } = details as { deposit: number };
    const reversal = await request<DepositResponse>("POST", `/admin/deposits/${deposit}/reverse`, { body });
    return reversal.id === null
      ? RECORDED_AS_FIRST
      : `Took back ${exactMoney(-reversal.amount)} USDC of deposit ${deposit}.`;
  }
  const isHouse = action === DEPOSIT_TO_HOUSE;
  const body = isHouse ? details : { user_id: subject, ...details };
  const deposit = await request<DepositResponse>("POST", isHouse ? "/admin/house/deposits" : "/admin/deposits", {
    body,
  });
  if (deposit.id === null) return RECORDED_AS_FIRST;
  return `Credited ${exactMoney(deposit.amount)} USDC with reference ${deposit.reference}.`;
}

function ApproveDialog({ approval, onClose, onDone }: { approval: Approval; onClose: () => void; onDone: () => void }) {
  const { action, subject, approved_by, created_at } = approval;
  return (
    <DecisionDialog
      title={`Second approval: ${TITLES[action]?.toLowerCase()}`}
      confirm="Approve and execute"
      noteHint={null}
      act={() => approve(approval)}
      onClose={onClose}
      onDone={onDone}
    >
      <p>{subjectOf(approval)}</p>
      {detailsOf(approval)}
      <Notice kind="warn">
        First approval by {approved_by}, {dateTime(created_at)}. Yours is the second approval.
      </Notice>
      {isOfUser(action) && <AccountTrail userId={subject} />}
    </DecisionDialog>
  );
}

function subjectOf({ action, subject }: Approval): Children {
  if (action === "market.resolve") return <MarketLink id={subject} />;
  if (action === "withdrawal.pay") return <a href={href("/desk/withdrawals")}>withdrawal {subject}</a>;
  if (isOfUser(action)) return <UserLink id={subject} />;
  if (action === "house.withdraw" || isOfHouse(action)) return <a href={href("/desk/house")}>the house</a>;
  if (action === "second_factor.reset") return <UserLink id={subject} />;
  return subject;
}

/** The details that the second operator must repeat. */
function detailsOf({ details }: Approval): Children {
  return (
    <ul class="details">
      {Object.entries(details).map(([name, value]) => (
        <li key={name}>
          {humanize(name)}: {detailText(name, value)}
        </li>
      ))}
    </ul>
  );
}
