/** Market proposals by users: review, approve, reject. The note is emailed to the proposer. */

import { useState } from "preact/hooks";
import { exchangeTime } from "../../clock.ts";
import { dateTime } from "../../dates.ts";
import { search, setSearch } from "../../router.ts";
import { request } from "../../session.ts";
import type { Market, MarketRecord } from "../../types.ts";
import { Select } from "../../ui/fields.tsx";
import { Empty, Notice } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { MarketLink, UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";
import { StatusBadge } from "./status-badge.tsx";

const STATUSES = [
  ["proposed", "Pending"],
  ["rejected", "Rejected"],
  ["open", "Approved, open"],
  ["halted", "Approved, halted"],
  ["closed", "Approved, closed"],
  ["resolved", "Approved, resolved"],
  ["voided", "Approved, voided"],
] as const;

interface Decision {
  readonly market: MarketRecord;
  readonly isApproval: boolean;
}

export function Proposals() {
  const status = search.value.get("status") ?? "proposed";
  const pages = usePages<MarketRecord>("/admin/proposals", { status });
  const [decision, setDecision] = useState<Decision | null>(null);
  return (
    <>
      <Heading>Proposals</Heading>
      <div class="filters">
        <Select
          label="Status"
          value={status}
          options={STATUSES}
          onChange={(value) => setSearch({ status: value === "proposed" ? null : value })}
        />
      </div>
      <PagedList pages={pages}>
        {(items) =>
          items.length === 0 ? (
            <Empty>{status === "proposed" ? "No proposals pending." : "No results"}</Empty>
          ) : (
            <ul class="stack">
              {items.map((market) => (
                <li key={market.id}>
                  <Proposal market={market} decide={(isApproval) => setDecision({ market, isApproval })} />
                </li>
              ))}
            </ul>
          )
        }
      </PagedList>
      {decision !== null && (
        <ProposalDialog decision={decision} onClose={() => setDecision(null)} onDone={pages.reload} />
      )}
    </>
  );
}

function Proposal({ market, decide }: { market: MarketRecord; decide: (isApproval: boolean) => void }) {
  const { id, question, description, category, outcomes, closes_at, event_id, proposed_by, created_at } = market;
  const { status, decision } = market;
  return (
    <article class="panel">
      <h2>{question}</h2>
      <p class="row">
        <StatusBadge status={status} />
        <span class="faint">
          proposed {dateTime(created_at)} by {proposed_by !== null && <UserLink id={proposed_by} />}
        </span>
      </p>
      {description !== null && <p class="prose">{description}</p>}
      <Facts
        facts={[
          ["Outcomes", outcomes.map(({ name }) => name).join(" · ")],
          ["Closes at", closes_at === null ? "closed by an operator" : dateTime(closes_at)],
          ["Category", category ?? "none"],
          ["Event", event_id === null ? "none" : `event ${event_id}`],
          ["Market", <MarketLink key="market" id={id} />],
          ...(decision === null ? [] : [["Decided", dateTime(decision.decided_at)] as const]),
          ...(decision?.note == null ? [] : [["Note", <span key="note">{decision.note}</span>] as const]),
        ]}
      />
      {status === "proposed" && (
        <div class="row">
          <button type="button" class="primary" aria-label={`Approve: ${question}`} onClick={() => decide(true)}>
            Approve
          </button>
          <button type="button" class="danger" aria-label={`Reject: ${question}`} onClick={() => decide(false)}>
            Reject
          </button>
        </div>
      )}
    </article>
  );
}

function ProposalDialog({
  decision: { market, isApproval },
  onClose,
  onDone,
}: {
  decision: Decision;
  onClose: () => void;
  onDone: () => void;
}) {
  const isLate = market.closes_at !== null && market.closes_at <= exchangeTime();
  return (
    <DecisionDialog
      title={isApproval ? "Approve proposal" : "Reject proposal"}
      confirm={isApproval ? "Approve and open" : "Reject"}
      isDangerous={!isApproval}
      noteHint="Emailed to the proposer, and shown with the proposal."
      act={async (note) => {
        const path = `/admin/proposals/${market.id}/${isApproval ? "approve" : "refuse"}`;
        await request<Market>("POST", path, { body: { note } });
        return isApproval ? "Approved. Market open for trading." : "Rejected. The proposer is notified by email.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{market.question}</strong>
      </p>
      <p>
        {isApproval
          ? "The market becomes public and opens for trading immediately. The proposer is notified by email."
          : "The market will never open. This can't be undone. The proposer is notified by email."}
      </p>
      {isApproval && isLate && (
        <Notice kind="warn">
          Its closing time, {dateTime(market.closes_at)}, is in the past. Change it first: <MarketLink id={market.id} />
        </Notice>
      )}
    </DecisionDialog>
  );
}
