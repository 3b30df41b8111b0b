/** Applications for KYC tier 2: review, approve, reject. */

import { useState } from "preact/hooks";
import { humanize } from "../../../util/format.ts";
import { countryName } from "../../countries.ts";
import { dateTime } from "../../dates.ts";
import { search, setSearch } from "../../router.ts";
import { request, user } from "../../session.ts";
import type { OperatorApplication } from "../../types.ts";
import { Field, Select } from "../../ui/fields.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { Table } from "../../ui/table.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";
import { StatusBadge } from "./status-badge.tsx";

const STATUSES = [
  ["pending", "Pending"],
  ["approved", "Approved"],
  ["refused", "Rejected"],
] as const;

interface Decision {
  readonly application: OperatorApplication;
  readonly isApproval: boolean;
}

const documentOf = ({ document_type }: OperatorApplication): string => humanize(document_type);

export function Identity() {
  const status = search.value.get("status") ?? "pending";
  const email = search.value.get("email") ?? "";
  const pages = usePages<OperatorApplication>("/admin/identity-applications", { status, email });
  const [decision, setDecision] = useState<Decision | null>(null);
  return (
    <>
      <Heading>Identity applications</Heading>
      <div class="filters">
        <Select
          label="Status"
          value={status}
          options={STATUSES}
          onChange={(value) => setSearch({ status: value === "pending" ? null : value })}
        />
        <EmailFilter key={email} email={email} />
      </div>
      <PagedList pages={pages}>
        {(items) => (
          <Table
            caption="Applications"
            rows={items}
            keyOf={({ id }) => id}
            empty={status === "pending" ? "No applications pending." : "No results"}
            columns={[
              { title: "User", show: ({ user_id, email: of }) => <UserLink id={user_id} email={of} /> },
              { title: "Document", show: documentOf },
              { title: "Number", show: ({ document_number }) => <span class="mono">{document_number}</span> },
              { title: "Country", show: ({ country }) => `${countryName(country)} (${country})` },
              { title: "Applied", show: ({ created_at }) => dateTime(created_at) },
              { title: "Status", show: (each) => <State application={each} /> },
              {
                title: "Decision",
                show: (application) => (
                  <Actions
                    application={application}
                    decide={(isApproval) => setDecision({ application, isApproval })}
                  />
                ),
              },
            ]}
          />
        )}
      </PagedList>
      {decision !== null && (
        <ApplicationDialog decision={decision} onClose={() => setDecision(null)} onDone={pages.reload} />
      )}
    </>
  );
}

function EmailFilter({ email }: { email: string }) {
  const [text, setText] = useState(email);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setSearch({ email: text.trim() });
  };
  return (
    <search>
      <form class="user-search" noValidate onSubmit={submit}>
        <Field label="Email" type="search" value={text} onInput={setText} hint="Exact address. Empty: all" />
        <button type="submit">Find</button>
      </form>
    </search>
  );
}

function State({ application: { status, note, decided_at } }: { application: OperatorApplication }) {
  return (
    <span>
      <StatusBadge status={status} />
      {decided_at !== null && <small class="faint"> {dateTime(decided_at)}</small>}
      {note !== null && <small class="note">{note}</small>}
    </span>
  );
}

function Actions({
  application: { status, user_id, email },
  decide,
}: {
  application: OperatorApplication;
  decide: (isApproval: boolean) => void;
}) {
  if (status !== "pending") return <span class="faint">–</span>;
  if (user_id === user.value?.id) return <span class="faint">Your own: another operator must decide</span>;
  return (
    <span class="row">
      <button type="button" class="small" aria-label={`Approve ${email}`} onClick={() => decide(true)}>
        Approve
      </button>
      <button type="button" class="small danger" aria-label={`Reject ${email}`} onClick={() => decide(false)}>
        Reject
      </button>
    </span>
  );
}

function ApplicationDialog({
  decision: { application, isApproval },
  onClose,
  onDone,
}: {
  decision: Decision;
  onClose: () => void;
  onDone: () => void;
}) {
  const { id, email, document_number, country } = application;
  return (
    <DecisionDialog
      title={isApproval ? "Approve application" : "Reject application"}
      confirm={isApproval ? "Grant KYC tier 2" : "Reject"}
      isDangerous={!isApproval}
      noteHint="Visible to the user."
      act={async (note) => {
        await request("POST", `/admin/identity-applications/${id}/${isApproval ? "approve" : "refuse"}`, {
          body: { note },
        });
        return isApproval ? `${email} now has KYC tier 2.` : `Rejected. ${email} is notified by email.`;
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <Facts
        facts={[
          ["User", email],
          ["Document", documentOf(application)],
          [
            "Number",
            <span key="number" class="mono">
              {document_number}
            </span>,
          ],
          ["Country", country],
        ]}
      />
      <p>
        {isApproval
          ? "The user gets KYC tier 2: up to 10,000 USDC of activity a day, and withdrawals. The user is notified by email."
          : "The user keeps KYC tier 1 and can apply again. The user is notified by email."}
      </p>
    </DecisionDialog>
  );
}
