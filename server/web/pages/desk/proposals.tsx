/** Markets that users would have opened: approved or refused, with a note that the proposer is mailed. */
import { useState } from "preact/hooks";
import { dateTime } from "../../format.ts";
import { search, setSearch } from "../../router.ts";
import { request } from "../../session.ts";
import type { Market, MarketRecord } from "../../types.ts";
import { Select } from "../../ui/fields.tsx";
import { Empty, Notice } from "../../ui/notices.tsx";
import { usePages } from "../../ui/use-data.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { MarketLink, UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";
import { StatusBadge } from "./status-badge.tsx";

const STATUSES = [
  ["proposed", "Waiting"],
  ["rejected", "Refused"],
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
          label="State"
          value={status}
          options={STATUSES}
          onChange={(value) => setSearch({ status: value === "proposed" ? null : value })}
        />
      </div>
      <PagedList pages={pages}>
        {(items) =>
          items.length === 0 ? (
            <Empty>{status === "proposed" ? "No proposal waits." : "There is none in this state."}</Empty>
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
          ["Trading ends", closes_at === null ? "when an operator closes it" : dateTime(closes_at)],
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
          <button type="button" class="danger" aria-label={`Refuse: ${question}`} onClick={() => decide(false)}>
            Refuse
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
  const isLate = market.closes_at !== null && market.closes_at <= Date.now();
  return (
    <DecisionDialog
      title={isApproval ? "Approve the proposal" : "Refuse the proposal"}
      confirm={isApproval ? "Approve and open it" : "Refuse it"}
      isDangerous={!isApproval}
      noteHint="Mailed to the proposer, and shown beside the proposal."
      act={async (note) => {
        const path = `/admin/proposals/${market.id}/${isApproval ? "approve" : "refuse"}`;
        await request<Market>("POST", path, { body: { note } });
        return isApproval ? "Approved: the market is open for trading." : "Refused. The proposer is mailed.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <p>
        <strong>{market.question}</strong>
      </p>
      <p>
        {isApproval
          ? "The market is open for trading at once, everybody can see it, and the proposer is mailed."
          : "It will never be opened: that can't be changed later. The proposer is mailed."}
      </p>
      {isApproval && isLate && (
        <Notice kind="warn">
          Its trading would have ended {dateTime(market.closes_at)}: change that first, on <MarketLink id={market.id} />
          .
        </Notice>
      )}
    </DecisionDialog>
  );
}
