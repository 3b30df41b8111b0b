/** Creates an event. */
import { useState } from "preact/hooks";
import { MAX_QUESTION_LENGTH, MIN_QUESTION_LENGTH } from "../../../markets/limits.ts";
import { parseLocalTime } from "../../format.ts";
import { href, navigate } from "../../router.ts";
import { request } from "../../session.ts";
import type { MarketEvent, NewEvent } from "../../types.ts";
import { Field } from "../../ui/fields.tsx";
import { slugProblem } from "../../ui/market-draft.ts";
import { categoryProblem, focusFirstProblem, futureProblem, lineProblem, trimmedOrNull } from "../../ui/validation.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Heading } from "./heading.tsx";

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
    if (Object.values(problems).some((problem) => problem !== null))
      focusFirstProblem(event.currentTarget as HTMLElement);
    else setAsking(true);
  };
  const body: NewEvent = {
    slug,
    title: title.trim(),
    category: trimmedOrNull(category),
    closes_at: parseLocalTime(closesAt),
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
