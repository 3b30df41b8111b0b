/** Creates a market. */
import { useState } from "preact/hooks";
import { dateTime } from "../../dates.ts";
import { href, navigate } from "../../router.ts";
import { request } from "../../session.ts";
import type { Market } from "../../types.ts";
import { Field } from "../../ui/fields.tsx";
import { emptyDraft, hasProblems, newMarketOf, problemsOf } from "../../ui/market-draft.ts";
import { MarketFields } from "../../ui/market-form.tsx";
import { focusFirstProblem } from "../../ui/validation.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";

const SLUG_HINT = "Part of the market's URL. Empty: derived from the question.";

export function NewMarketForm() {
  const [draft, setDraft] = useState(emptyDraft);
  const [isChecked, setChecked] = useState(false);
  const [isConfirming, setConfirming] = useState(false);
  const problems = problemsOf(draft);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecked(true);
    if (hasProblems(problems)) focusFirstProblem(event.currentTarget as HTMLElement);
    else setConfirming(true);
  };
  const market = newMarketOf(draft);
  return (
    <>
      <p>
        <a href={href("/desk/markets")}>All markets</a>
      </p>
      <Heading>New market</Heading>
      <form class="panel form" noValidate onSubmit={submit}>
        <MarketFields draft={draft} problems={isChecked ? problems : null} onChange={setDraft}>
          <Field
            label="Slug (optional)"
            value={draft.slug}
            onInput={(slug) => setDraft({ ...draft, slug })}
            problem={isChecked ? problems.slug : null}
            hint={SLUG_HINT}
          />
        </MarketFields>
        <button type="submit" class="primary">
          Create…
        </button>
      </form>
      {isConfirming && (
        <DecisionDialog
          title="Create market"
          confirm="Create and open"
          noteHint={null}
          act={async () => {
            const created = await request<Market>("POST", "/admin/markets", { body: market });
            navigate(`/desk/markets?market=${created.id}`);
            return "Market open for trading.";
          }}
          onClose={() => setConfirming(false)}
          onDone={() => {}}
        >
          <p>
            <strong>{market.question}</strong>
          </p>
          <Facts
            facts={[
              ["Outcomes", market.outcomes.join(" · ")],
              ["Closes at", market.closes_at == null ? "closed by an operator" : dateTime(market.closes_at)],
            ]}
          />
          <p>
            The market opens for trading immediately. You can't change its question or outcomes later, and you can't
            delete it, only close and void it.
          </p>
        </DecisionDialog>
      )}
    </>
  );
}
