/** A market at the desk: description, status, trading controls, resolution. */
import { useEffect, useState } from "preact/hooks";
import { cents, exactMoney, percent, SHARE_MICRO, shares } from "../../../util/format.ts";
import { dateTime } from "../../dates.ts";
import { href } from "../../router.ts";
import { request } from "../../session.ts";
import { subscribe } from "../../stream.ts";
import type { Approval, Market, MarketRecord } from "../../types.ts";
import { ErrorNotice, Loading, Notice } from "../../ui/notices.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { isOwnApproval, RevokeApprovalDialog } from "./approval.tsx";
import { EditDialog } from "./edit-market.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { UserLink } from "./links.tsx";
import type { Opened } from "./market-dialogs.ts";
import { StepDialog, Steps } from "./market-steps.tsx";
import { type ResolutionRequest, ResolveDialog } from "./resolve-market.tsx";
import { StatusBadge } from "./status-badge.tsx";

export function MarketDesk({ id }: { id: string }) {
  const { data, error, reload } = useFetch(
    (signal) => request<MarketRecord>("GET", `/admin/markets/${encodeURIComponent(id)}`, { signal }),
    id,
  );
  const [opened, setOpened] = useState<Opened | null>(null);
  const marketId = data?.id ?? null;
  useEffect(() => {
    if (marketId === null) return;
    return subscribe("markets", marketId, null, reload, reload);
  }, [marketId, reload]);
  const dialog = { onClose: () => setOpened(null), onDone: reload };
  return (
    <>
      <p>
        <a href={href("/desk/markets")}>All markets</a>
      </p>
      {data === null && <Heading>Market</Heading>}
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && <MarketDetails market={data} open={setOpened} />}
      {data !== null && opened?.kind === "step" && <StepDialog market={data} step={opened.step} {...dialog} />}
      {data !== null && opened?.kind === "edit" && <EditDialog market={data} {...dialog} />}
      {data !== null && opened?.kind === "resolve" && (
        <ResolveDialog market={data} resolution={opened.resolution} {...dialog} />
      )}
      {opened?.kind === "revoke" && <RevokeApprovalDialog approval={opened.approval} {...dialog} />}
    </>
  );
}

function MarketDetails({ market, open }: { market: MarketRecord; open: (opened: Opened) => void }) {
  const { id, slug, question, description, category, status, closes_at, event_id, proposed_by, decision } = market;
  return (
    <>
      <Heading>{question}</Heading>
      <p class="row">
        <StatusBadge status={status} />
        <span class="faint">market {id}</span>
        {status !== "proposed" && status !== "rejected" && <a href={href(`/markets/${slug}`)}>Public page</a>}
      </p>
      {market.approval !== null && <FirstApproval market={market} approval={market.approval} open={open} />}
      <Steps market={market} open={open} />
      <div class="two-panels">
        <section class="panel" aria-labelledby="desk-market-texts">
          <h2 id="desk-market-texts">Details</h2>
          {description === null ? <p class="faint">No description.</p> : <p class="prose">{description}</p>}
          <Facts
            facts={[
              ["Closes at", closes_at === null ? "closed by an operator" : dateTime(closes_at)],
              ["Category", category ?? "none"],
              ["Event", event_id === null ? "none" : <a href={href(`/events/${event_id}`)}>event {event_id}</a>],
              [
                "Slug",
                <span key="slug" class="mono wide">
                  {slug}
                </span>,
              ],
              ["Created", dateTime(market.created_at)],
              ["Proposed by", proposed_by === null ? "created by an operator" : <UserLink id={proposed_by} />],
              ...(decision === null ? [] : [["Decided", dateTime(decision.decided_at)] as const]),
              ...(decision?.note == null ? [] : [["Note", decision.note] as const]),
            ]}
          />
        </section>
        <section class="panel" aria-labelledby="desk-market-outcomes">
          <h2 id="desk-market-outcomes">Outcomes</h2>
          <Table
            caption="Outcomes"
            rows={market.outcomes}
            keyOf={(outcome) => outcome.id}
            empty=""
            columns={[
              { title: "Outcome", show: ({ name }) => name },
              { title: "Bid", isNumber: true, show: ({ best_bid }) => cents(best_bid) },
              { title: "Ask", isNumber: true, show: ({ best_ask }) => cents(best_ask) },
              { title: "Last", isNumber: true, show: ({ last_price }) => cents(last_price) },
              ...(market.resolution === null ? [] : [paidColumn(market.resolution.payouts)]),
            ]}
          />
          <p class="faint">
            Open interest: {shares(market.open_interest)} complete sets,{" "}
            {exactMoney(market.open_interest * SHARE_MICRO)} USDC of collateral. Volume: {shares(market.volume)} shares.
          </p>
          {market.resolution !== null && (
            <p>
              {status === "voided" ? "Voided" : "Resolved"} {dateTime(market.resolution.resolved_at)}.{" "}
              {market.resolution.note !== null && <span class="prose">{market.resolution.note}</span>}
            </p>
          )}
        </section>
      </div>
    </>
  );
}

const paidColumn = (payouts: readonly number[]): Column<Market["outcomes"][number]> => ({
  title: "Paid",
  isNumber: true,
  show: ({ index }) => percent(payouts[index] ?? null),
});

/** Details of an approval of a resolution. */
interface Details {
  readonly status: ResolutionRequest["status"];
  readonly payouts: readonly number[];
  readonly note: string | null;
}

function FirstApproval({
  market,
  approval,
  open,
}: {
  market: MarketRecord;
  approval: Approval;
  open: (opened: Opened) => void;
}) {
  const { status, payouts, note } = approval.details as unknown as Details;
  const payoutText = market.outcomes.map(({ name, index }) => `${name} ${percent(payouts[index] ?? null)}`).join(", ");
  return (
    <Notice kind="warn">
      <p>
        First approval by {isOwnApproval(approval) ? "you" : approval.approved_by}, {dateTime(approval.created_at)}:{" "}
        {status}, {payoutText}, {note === null ? "no note" : `note “${note}”`}. Another operator must repeat the action.
      </p>
      <div class="row">
        {!isOwnApproval(approval) && (
          <button
            type="button"
            onClick={() => open({ kind: "resolve", resolution: { status, payouts, note, first: approval } })}
          >
            Review and approve…
          </button>
        )}
        <button type="button" onClick={() => open({ kind: "revoke", approval })}>
          Revoke
        </button>
      </div>
    </Notice>
  );
}
