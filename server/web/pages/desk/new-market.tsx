/** Markets and events that operators make. */
import { useState } from "preact/hooks";
import { dateTime } from "../../format.ts";
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

const SLUG_HINT = "Its name in addresses. Empty: made of the question.";

export function NewMarketForm() {
  const [draft, setDraft] = useState(emptyDraft);
  const [isChecked, setChecked] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const problems = problemsOf(draft);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecked(true);
    if (hasProblems(problems)) focusFirstProblem(event.currentTarget as HTMLElement);
    else setAsking(true);
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
          Make it…
        </button>
      </form>
      {isAsking && (
        <DecisionDialog
          title="Make the market"
          confirm="Make and open it"
          noteHint={null}
          act={async () => {
            const made = await request<Market>("POST", "/admin/markets", { body: market });
            navigate(`/desk/markets?market=${made.id}`);
            return "The market is open for trading.";
          }}
          onClose={() => setAsking(false)}
          onDone={() => {}}
        >
          <p>
            <strong>{market.question}</strong>
          </p>
          <Facts
            facts={[
              ["Outcomes", market.outcomes.join(" · ")],
              ["Trading ends", market.closes_at == null ? "when an operator closes it" : dateTime(market.closes_at)],
            ]}
          />
          <p>
            It is open for trading at once. Its question and outcomes can't be changed afterwards, and it can't be
            removed: only closed and voided.
          </p>
        </DecisionDialog>
      )}
    </>
  );
}
