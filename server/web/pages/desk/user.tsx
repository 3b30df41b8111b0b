/** A user at the desk: balance, verification, terms, audit trail, and the actions on the account. */
import { useState } from "preact/hooks";
import { exactMoney } from "../../../util/format.ts";
import { dateTime } from "../../dates.ts";
import { href } from "../../router.ts";
import { request, user as self } from "../../session.ts";
import type { OperatorUser } from "../../types.ts";
import { ErrorNotice, Loading, Notice } from "../../ui/notices.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { AccountTrail } from "./account-trail.tsx";
import { isOwnApproval } from "./approval.tsx";
import { termsText } from "./approval-details.ts";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { ResetFactorsDialog, RestoreDialog, SuspendDialog } from "./user-dialogs.tsx";
import { UserState } from "./user-status.tsx";
import { TERMS, TermsDialog } from "./user-terms.tsx";

type Opened = "suspend" | "restore" | "terms" | "factors";

export function UserDesk({ id }: { id: string }) {
  const { data, error, reload } = useFetch(
    (signal) => request<OperatorUser>("GET", `/admin/users/${encodeURIComponent(id)}`, { signal }),
    id,
  );
  const [opened, setOpened] = useState<Opened | null>(null);
  const dialog = { onClose: () => setOpened(null), onDone: reload };
  return (
    <>
      <p>
        <a href={href("/desk/users")}>All users</a>
      </p>
      <Heading>{data === null ? "User" : data.email}</Heading>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && <Details user={data} open={setOpened} />}
      {data !== null && opened === "suspend" && <SuspendDialog user={data} {...dialog} />}
      {data !== null && opened === "restore" && <RestoreDialog user={data} {...dialog} />}
      {data !== null && opened === "factors" && <ResetFactorsDialog user={data} {...dialog} />}
      {data !== null && opened === "terms" && <TermsDialog user={data} {...dialog} />}
    </>
  );
}

function Actions({ user, open }: { user: OperatorUser; open: (opened: Opened) => void }) {
  const isSelf = user.id === self.value?.id;
  return (
    <div class="row">
      {user.suspended_at === null ? (
        <button type="button" class="danger" disabled={isSelf} onClick={() => open("suspend")}>
          Suspend
        </button>
      ) : (
        <button type="button" class="primary" onClick={() => open("restore")}>
          Restore
        </button>
      )}
      <button type="button" disabled={isSelf} onClick={() => open("terms")}>
        Edit terms
      </button>
      {user.second_factors > 0 && (
        <button type="button" disabled={isSelf} onClick={() => open("factors")}>
          Reset second factor
        </button>
      )}
      {isSelf && <span class="faint">This is your account: another operator must make changes.</span>}
    </div>
  );
}

function AccountPanel({ user }: { user: OperatorUser }) {
  const { balance, daily_activity, suspended_at } = user;
  return (
    <section class="panel" aria-labelledby="desk-user-account">
      <h2 id="desk-user-account">Account</h2>
      <Facts
        facts={[
          ["Available", `${exactMoney(balance.available)} USDC`],
          ["On hold", `${exactMoney(balance.held)} USDC`],
          ["Total", `${exactMoney(balance.total)} USDC`],
          ["Daily activity", `${exactMoney(daily_activity.used)} of ${exactMoney(daily_activity.limit)} USDC`],
          ["KYC tier", user.kyc_tier],
          ["Email", user.email_verified ? "verified" : "not verified"],
          ["Phone", user.phone === null ? "none" : `${user.phone}${user.phone_verified ? "" : ", not verified"}`],
          ["Second factors", user.second_factors === 0 ? "none" : user.second_factors],
          ["Suspended", suspended_at === null ? "no" : `since ${dateTime(suspended_at)}`],
        ]}
      />
    </section>
  );
}

function TermsPanel({ user }: { user: OperatorUser }) {
  const { terms, terms_approval: approval } = user;
  return (
    <section class="panel" aria-labelledby="desk-user-terms">
      <h2 id="desk-user-terms">Terms</h2>
      {approval !== null && (
        <Notice kind="warn">
          First approval by {isOwnApproval(approval) ? "you" : approval.approved_by}: {termsText(approval.details)}.
          Another operator must approve it under <a href={href("/desk/approvals")}>Approvals</a>.
        </Notice>
      )}
      <Facts
        facts={TERMS.map(({ name, title, show, defaultText }) => [
          title,
          terms[name] === null ? `${defaultText(user)} (default)` : `${show(terms[name])} (custom)`,
        ])}
      />
    </section>
  );
}

function Details({ user, open }: { user: OperatorUser; open: (opened: Opened) => void }) {
  const { id } = user;
  return (
    <>
      <div class="row">
        <UserState user={user} />
        <span class="faint">
          user {id}, created {dateTime(user.created_at)}
        </span>
      </div>
      <Actions user={user} open={open} />
      <div class="two-panels">
        <AccountPanel user={user} />
        <TermsPanel user={user} />
      </div>
      <section class="panel stack" aria-labelledby="desk-user-trail">
        <h2 id="desk-user-trail">Audit trail</h2>
        <AccountTrail userId={id} />
      </section>
      <nav class="row" aria-label="More about this user">
        <a href={href(`/desk/withdrawals?status=all&user_id=${id}`)}>Withdrawals</a>
        <a href={href(`/desk/deposits?user_id=${id}`)}>Deposits</a>
        <a href={href(`/desk/identity?email=${encodeURIComponent(user.email)}`)}>Identity</a>
        <a href={href(`/desk/audit?user_id=${id}`)}>Audit log</a>
      </nav>
    </>
  );
}
