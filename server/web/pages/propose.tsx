/** Proposes a market to the operators, and lists the user's earlier proposals with their decisions. */
import { useEffect, useState } from "preact/hooks";
import { MAX_PENDING_PROPOSALS } from "../../markets/limits.ts";
import { dateTime } from "../dates.ts";
import { href } from "../router.ts";
import { request, user } from "../session.ts";
import { subscribe } from "../stream.ts";
import type { Market, Proposals } from "../types.ts";
import { useAction } from "../ui/action.ts";
import { Badge } from "../ui/badge.tsx";
import { emptyDraft, hasProblems, newMarketOf, problemsOf } from "../ui/market-draft.ts";
import { MarketFields } from "../ui/market-form.tsx";
import { Empty, ErrorNotice, Loading, Notice } from "../ui/notices.tsx";
import { usePages } from "../ui/paged-list.ts";
import { LoadMore } from "../ui/table.tsx";
import { focusFirstProblem } from "../ui/validation.ts";
import "./propose.css";

type Proposal = Proposals["items"][number];

export default function Page() {
  const proposals = usePages<Proposal>("/markets/proposals");
  useEffect(() => {
    document.title = "Propose a market · Prediction Exchange";
  }, []);
  const { items, reload } = proposals;
  const ids = items?.map(({ market }) => market.id).join() ?? "";
  // An approval is announced on the public channel: refresh the user's own proposals.
  useEffect(
    () =>
      subscribe(
        "markets",
        null,
        null,
        ({ data }) => ids.split(",").includes(String((data as Market).id)) && reload(),
        reload,
      ),
    [ids, reload],
  );
  return (
    <>
      <h1>Propose a market</h1>
      <div class="propose">
        <ProposalForm onSubmitted={(market) => proposals.set((before) => [{ market, decision: null }, ...before])} />
        <section class="panel" aria-labelledby="own-proposals">
          <h2 id="own-proposals">Your proposals</h2>
          <ErrorNotice error={proposals.error} retry={reload} />
          {items === null && proposals.error === null && <Loading />}
          {items?.length === 0 && <Empty>No proposals yet.</Empty>}
          <ul class="proposals">
            {items?.map((each) => (
              <OwnProposal key={each.market.id} proposal={each} />
            ))}
          </ul>
          <LoadMore more={proposals.more} />
        </section>
      </div>
    </>
  );
}

function ProposalForm({ onSubmitted }: { onSubmitted: (market: Market) => void }) {
  const [draft, setDraft] = useState(emptyDraft);
  const [isChecked, setChecked] = useState(false);
  const [submitted, setSubmitted] = useState<Market | null>(null);
  const problems = problemsOf(draft);
  const { run, isBusy, error } = useAction(async () => {
    const market = await request<Market>("POST", "/markets/proposals", { body: newMarketOf(draft) });
    onSubmitted(market);
    setSubmitted(market);
    setChecked(false);
    setDraft(emptyDraft());
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecked(true);
    setSubmitted(null);
    if (hasProblems(problems)) focusFirstProblem(event.currentTarget as HTMLElement);
    else void run();
  };
  const mayPropose = (user.value?.kyc_tier ?? 0) >= 1;
  return (
    <form class="panel" noValidate onSubmit={submit}>
      <p>
        An operator reviews each proposal, and we email you the decision. Approved markets open for trading immediately.
        You can have {MAX_PENDING_PROPOSALS} pending proposals.
      </p>
      {!mayPropose && (
        <Notice kind="warn">
          Verify your email and phone first. <a href={href("/account")}>Go to account</a>
        </Notice>
      )}
      <MarketFields draft={draft} problems={isChecked ? problems : null} onChange={setDraft} />
      <ErrorNotice error={error} />
      {submitted !== null && <Notice kind="good">Submitted: “{submitted.question}” is pending review.</Notice>}
      <button type="submit" class="primary" disabled={isBusy || !mayPropose}>
        {isBusy ? "Submitting…" : "Propose market"}
      </button>
    </form>
  );
}

function OwnProposal({ proposal: { market, decision } }: { proposal: Proposal }) {
  const isPending = market.status === "proposed";
  const isRejected = market.status === "rejected";
  return (
    <li>
      <h3>
        {isPending || isRejected ? market.question : <a href={href(`/markets/${market.slug}`)}>{market.question}</a>}
      </h3>
      <p class="row">
        <Badge
          text={isPending ? "pending review" : isRejected ? "rejected" : `approved, ${market.status}`}
          tone={isPending ? "warn" : isRejected ? "bad" : "good"}
        />
        <span class="faint">proposed {dateTime(market.created_at)}</span>
        {decision !== null && <span class="faint">decided {dateTime(decision.decided_at)}</span>}
      </p>
      <p class="faint">{market.outcomes.map(({ name }) => name).join(" · ")}</p>
      {decision?.note != null && <blockquote>{decision.note}</blockquote>}
    </li>
  );
}
