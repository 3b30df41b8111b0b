/** What a market pays on, when it closes, and how it was resolved. */
import { useState } from "preact/hooks";
import { cents } from "../../../util/format.ts";
import { dateTime } from "../../dates.ts";
import type { Market } from "../../types.ts";
import { ErrorNotice } from "../../ui/notices.tsx";
import { PageFacts } from "../../ui/page-facts.tsx";
import { usePart } from "../../ui/use-part.ts";

const loadHistory = () => import("../../dialogs/book-history.tsx").then(({ BookHistory }) => BookHistory);

export function Rules({ market }: { market: Market }) {
  const { id, description, closes_at, created_at, resolution, outcomes } = market;
  return (
    <section class="panel" aria-labelledby="rules-title">
      <h2 id="rules-title">Rules</h2>
      <p class="description">{description ?? "The operator gave no description."}</p>
      {resolution !== null && (
        <>
          <p translate={false}>
            <b>Resolved {dateTime(resolution.resolved_at)}.</b>{" "}
            {outcomes.map(({ name }, i) => `${name} pays ${cents(resolution.payouts[i] ?? 0)}`).join(", ")} a share.
          </p>
          {resolution.note !== null && <p class="description">{resolution.note}</p>}
        </>
      )}
      <PageFacts
        facts={[
          ["Closes", closes_at === null ? null : dateTime(closes_at)],
          ["Pays out", "1 USDC a share of the winning outcome, no fee"],
          ["Created", dateTime(created_at)],
          ["Market ID", String(id)],
        ]}
      />
      <History market={market} />
    </section>
  );
}

/** The files of the market's book history, for those who test strategies. */
function History({ market }: { market: Market }) {
  const [isOpen, setOpen] = useState(false);
  const { part: BookHistory, error } = usePart(isOpen ? loadHistory : null);
  return (
    <>
      <div>
        <button type="button" class="small" onClick={() => setOpen(true)}>
          Download history
        </button>
      </div>
      <ErrorNotice error={error} />
      {BookHistory !== null && <BookHistory market={market} onClose={() => setOpen(false)} />}
    </>
  );
}
