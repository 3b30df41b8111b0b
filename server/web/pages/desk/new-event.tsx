/** Creates an event. */
import { useState } from "preact/hooks";
import { MAX_QUESTION_LENGTH, MIN_QUESTION_LENGTH } from "../../../markets/limits.ts";
import { parseLocalTime } from "../../parse.ts";
import { href, navigate } from "../../router.ts";
import { request } from "../../session.ts";
import type { MarketEvent, NewEvent } from "../../types.ts";
import { Field } from "../../ui/fields.tsx";
import { slugProblem } from "../../ui/market-draft.ts";
import { categoryProblem, focusFirstProblem, futureProblem, lineProblem, trimmedOrNull } from "../../ui/validation.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Heading } from "./heading.tsx";

/** Derives a slug from a title, as the server does for markets. */
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
  const [isConfirming, setConfirming] = useState(false);
  const slug = typedSlug ?? slugOf(title);
  const problems = {
    title: lineProblem(title.trim(), MIN_QUESTION_LENGTH, MAX_QUESTION_LENGTH),
    slug: slug === "" ? "Required." : slugProblem(slug),
    category: categoryProblem(category),
    closesAt: futureProblem(closesAt),
  };
  const shown = isChecked ? problems : { title: null, slug: null, category: null, closesAt: null };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecked(true);
    if (Object.values(problems).some((problem) => problem !== null))
      focusFirstProblem(event.currentTarget as HTMLElement);
    else setConfirming(true);
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
        <p>An event groups related markets. Create the event first, then its markets.</p>
        <Field label="Title" value={title} onInput={setTitle} problem={shown.title} />
        <Field label="Slug" value={slug} onInput={setSlug} problem={shown.slug} hint="Part of the event's URL." />
        <Field label="Category (optional)" value={category} onInput={setCategory} problem={shown.category} />
        <Field
          label="Closes at (optional)"
          type="datetime-local"
          value={closesAt}
          onInput={setClosesAt}
          problem={shown.closesAt}
          hint="In your time zone. For display only: each market has its own closing time."
        />
        <button type="submit" class="primary">
          Create…
        </button>
      </form>
      {isConfirming && <CreateDialog body={body} onClose={() => setConfirming(false)} />}
    </>
  );
}

function CreateDialog({ body, onClose }: { body: NewEvent; onClose: () => void }) {
  return (
    <DecisionDialog
      title="Create event"
      confirm="Create"
      noteHint={null}
      act={async () => {
        await request<MarketEvent>("POST", "/admin/events", { body });
        navigate("/desk/markets?new=market");
        return `Event “${body.title}” created. Add markets to it next.`;
      }}
      onClose={onClose}
      onDone={() => {}}
    >
      <p>
        <strong>{body.title}</strong>
      </p>
      <p>You can't change its title or slug later, and you can't delete it. It becomes public with its first market.</p>
    </DecisionDialog>
  );
}
