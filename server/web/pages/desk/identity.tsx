/** Applications for KYC tier 2, with the documents that they name. */
import { useState } from "preact/hooks";
import { dateTime, humanize } from "../../format.ts";
import { search, setSearch } from "../../router.ts";
import { request, user } from "../../session.ts";
import type { OperatorApplication } from "../../types.ts";
import { Field, Select } from "../../ui/fields.tsx";
import { Table } from "../../ui/table.tsx";
import { usePages } from "../../ui/use-data.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";
import { StatusBadge } from "./status-badge.tsx";

const STATUSES = [
  ["pending", "Waiting"],
  ["approved", "Approved"],
  ["refused", "Refused"],
] as const;

interface Decision {
  readonly application: OperatorApplication;
  readonly isApproval: boolean;
}

const COUNTRIES = new Intl.DisplayNames("en", { type: "region", fallback: "code" });
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
          label="State"
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
            empty={status === "pending" ? "No application waits." : "There is none in this state."}
            columns={[
              { title: "User", show: ({ user_id, email: of }) => <UserLink id={user_id} email={of} /> },
              { title: "Document", show: documentOf },
              { title: "Number", show: ({ document_number }) => <span class="mono">{document_number}</span> },
              { title: "Country", show: ({ country }) => `${COUNTRIES.of(country) ?? country} (${country})` },
              { title: "Applied", show: ({ created_at }) => dateTime(created_at) },
              { title: "State", show: (each) => <State application={each} /> },
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
        <Field
          label="E-mail address"
          type="search"
          value={text}
          onInput={setText}
          hint="The whole address; empty for all"
        />
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
  if (user_id === user.value?.id) return <span class="faint">Your own: another operator decides</span>;
  return (
    <span class="row">
      <button type="button" class="small" aria-label={`Approve ${email}`} onClick={() => decide(true)}>
        Approve
      </button>
      <button type="button" class="small danger" aria-label={`Refuse ${email}`} onClick={() => decide(false)}>
        Refuse
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
      title={isApproval ? "Approve the application" : "Refuse the application"}
      confirm={isApproval ? "Give KYC tier 2" : "Refuse it"}
      isDangerous={!isApproval}
      noteHint="The user can read it beside the application."
      act={async (note) => {
        await request("POST", `/admin/identity-applications/${id}/${isApproval ? "approve" : "refuse"}`, {
          body: { note },
        });
        return isApproval ? `${email} has KYC tier 2 now.` : `Refused. ${email} is mailed.`;
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
          ? "The user gets KYC tier 2: up to 10,000 USDC of activity a day, and withdrawals. A mail says so."
          : "The user keeps KYC tier 1 and may apply again. A mail says so."}
      </p>
    </DecisionDialog>
  );
}
