/** Markets and events that operators make. */
import { useState } from "preact/hooks";
import { MAX_QUESTION_LENGTH, MIN_QUESTION_LENGTH } from "../../../../engine/limits.ts";
import { dateTime, readLocalTime } from "../../format.ts";
import { href, navigate } from "../../router.ts";
import { request } from "../../session.ts";
import type { Market, MarketEvent, NewEvent } from "../../types.ts";
import { Field } from "../../ui/fields.tsx";
import { emptyDraft, hasProblems, MarketFields, newMarketOf, problemsOf, slugProblem } from "../../ui/market-form.tsx";
import { categoryProblem, focusProblem, futureProblem, given, lineProblem } from "../../ui/validation.ts";
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
    if (hasProblems(problems)) focusProblem(event.currentTarget as HTMLElement);
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

/** Of the title's words, as the exchange makes those of markets. */
function slugOf(title: string): string {
  const ascii = title
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[\p{M}'’]/gu, "");
  return (ascii.match(/[a-z0-9]+/g) ?? []).join("-").slice(0, 80).replace(/-$/, "");
}

export function NewEventForm() {
  const [title, setTitle] = useState("");
  const [typedSlug, setSlug] = useState<string | null>(null);
  const [category, setCategory] = useState("");
  const [closesAt, setClosesAt] = useState("");
  const [isChecked, setChecked] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const slug = typedSlug ?? slugOf(title);
  const problems = {
    title: lineProblem(title.trim(), MIN_QUESTION_LENGTH, MAX_QUESTION_LENGTH),
    slug: slug === "" ? "This is needed." : slugProblem(slug),
    category: categoryProblem(category),
    closesAt: futureProblem(closesAt),
  };
  const shown = isChecked ? problems : { title: null, slug: null, category: null, closesAt: null };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecked(true);
    if (Object.values(problems).some((problem) => problem !== null)) focusProblem(event.currentTarget as HTMLElement);
    else setAsking(true);
  };
  const body: NewEvent = {
    slug,
    title: title.trim(),
    category: given(category),
    closes_at: readLocalTime(closesAt),
  };
  return (
    <>
      <p>
        <a href={href("/desk/markets")}>All markets</a>
      </p>
      <Heading>New event</Heading>
      <form class="panel form" noValidate onSubmit={submit}>
        <p>Groups markets that belong together. Make the event first, then the markets in it.</p>
        <Field label="Title" value={title} onInput={setTitle} problem={shown.title} />
        <Field label="Slug" value={slug} onInput={setSlug} problem={shown.slug} hint="Its name in addresses." />
        <Field label="Category (optional)" value={category} onInput={setCategory} problem={shown.category} />
        <Field
          label="Ends (optional)"
          type="datetime-local"
          value={closesAt}
          onInput={setClosesAt}
          problem={shown.closesAt}
          hint="In your time zone; shown beside the event. Its markets have their own."
        />
        <button type="submit" class="primary">
          Make it…
        </button>
      </form>
      {isAsking && (
        <DecisionDialog
          title="Make the event"
          confirm="Make it"
          noteHint={null}
          act={async () => {
            await request<MarketEvent>("POST", "/admin/events", { body });
            navigate("/desk/markets?new=market");
            return `The event “${body.title}” is there: make markets in it.`;
          }}
          onClose={() => setAsking(false)}
          onDone={() => {}}
        >
          <p>
            <strong>{body.title}</strong>
          </p>
          <p>
            Its title and slug can't be changed afterwards, and it can't be removed. It is shown once it has a market.
          </p>
        </DecisionDialog>
      )}
    </>
  );
}
