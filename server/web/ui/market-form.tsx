/** The fields of a new market, as users propose one and operators make one: what was typed, checked, and sent. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import {
  MAX_OUTCOME_NAME_LENGTH,
  MAX_OUTCOMES,
  MAX_QUESTION_LENGTH,
  MAX_SLUG_LENGTH,
  MIN_OUTCOMES,
  MIN_QUESTION_LENGTH,
} from "../../../engine/limits.ts";
import { call } from "../api.ts";
import { readLocalTime } from "../format.ts";
import type { MarketEvent, NewMarket, Page } from "../types.ts";
import { Field, Select, TextArea } from "./fields.tsx";
import { ErrorNotice } from "./notices.tsx";
import { useLoaded } from "./use-data.ts";
import { categoryProblem, descriptionProblem, futureProblem, given, lineProblem } from "./validation.ts";
import "./market-form.css";

interface DraftOutcome {
  /** Stays with the field when others go. */
  readonly key: number;
  readonly name: string;
}

export interface MarketDraft {
  readonly question: string;
  readonly description: string;
  readonly category: string;
  readonly outcomes: readonly DraftOutcome[];
  /** Of a field for date and time. */
  readonly closesAt: string;
  /** An id, "" for none. */
  readonly eventId: string;
  readonly slug: string;
}

export function emptyDraft(): MarketDraft {
  const outcomes = ["Yes", "No"].map((name, key) => ({ key, name }));
  return { question: "", description: "", category: "", outcomes, closesAt: "", eventId: "", slug: "" };
}

interface Problems {
  readonly question: string | null;
  readonly description: string | null;
  readonly category: string | null;
  readonly closesAt: string | null;
  readonly slug: string | null;
  /** One an outcome. */
  readonly outcomes: readonly (string | null)[];
}

/** The exchange takes two names for one where they look the same. */
const folded = (name: string): string => name.trim().normalize("NFKC").toLowerCase();

export function problemsOf(draft: MarketDraft): Problems {
  const names = draft.outcomes.map(({ name }) => folded(name));
  return {
    question: lineProblem(draft.question.trim(), MIN_QUESTION_LENGTH, MAX_QUESTION_LENGTH),
    description: descriptionProblem(draft.description),
    category: categoryProblem(draft.category),
    closesAt: futureProblem(draft.closesAt),
    slug: draft.slug === "" ? null : slugProblem(draft.slug),
    outcomes: draft.outcomes.map(({ name }, i) => {
      const problem = lineProblem(name.trim(), 1, MAX_OUTCOME_NAME_LENGTH);
      return problem ?? (names.indexOf(names[i]!) < i ? "Another outcome has this name." : null);
    }),
  };
}

export function slugProblem(slug: string): string | null {
  if (slug.length > MAX_SLUG_LENGTH) return `At most ${MAX_SLUG_LENGTH} characters.`;
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(slug)) return "Small letters a to z, digits, and single hyphens between them.";
  return /^([0-9]+|proposals)$/.test(slug) ? "This one would be taken for something else." : null;
}

export function hasProblems({ outcomes, ...fields }: Problems): boolean {
  return [...outcomes, ...Object.values(fields)].some((problem) => problem !== null);
}

export function newMarketOf(draft: MarketDraft): NewMarket {
  return {
    question: draft.question.trim(),
    description: given(draft.description),
    category: given(draft.category),
    outcomes: draft.outcomes.map(({ name }) => name.trim()),
    closes_at: readLocalTime(draft.closesAt),
    event_id: draft.eventId === "" ? null : Number(draft.eventId),
    slug: given(draft.slug),
  };
}

/** @param problems null: not shown yet */
export function MarketFields({
  draft,
  problems,
  onChange,
  children,
}: {
  draft: MarketDraft;
  problems: Problems | null;
  onChange: (draft: MarketDraft) => void;
  /** Behind the others. */
  children?: ComponentChildren;
}) {
  const set =
    (name: Exclude<keyof MarketDraft, "outcomes">) =>
    (value: string): void =>
      onChange({ ...draft, [name]: value });
  return (
    <>
      <Field
        label="Question"
        value={draft.question}
        onInput={set("question")}
        problem={problems?.question ?? null}
        hint="One that has an answer on a known day: “Will the Fed cut its rate at its June 2027 meeting?”"
      />
      <TextArea
        label="Description (optional)"
        rows={6}
        value={draft.description}
        onInput={set("description")}
        problem={problems?.description ?? null}
        hint="What decides: the source that counts, the time zone, and what happens where nothing is known by then."
      />
      <Outcomes
        outcomes={draft.outcomes}
        problems={problems?.outcomes}
        onChange={(outcomes) => onChange({ ...draft, outcomes })}
      />
      <div class="two">
        <Field
          label="Trading ends (optional)"
          type="datetime-local"
          value={draft.closesAt}
          onInput={set("closesAt")}
          problem={problems?.closesAt ?? null}
          hint="In your time zone. Before the result can be known to anybody."
        />
        <Field
          label="Category (optional)"
          value={draft.category}
          onInput={set("category")}
          problem={problems?.category ?? null}
          hint="One word, such as economics, sports or politics."
        />
      </div>
      <EventChoice value={draft.eventId} onChange={set("eventId")} />
      {children}
    </>
  );
}

function Outcomes({
  outcomes,
  problems,
  onChange,
}: {
  outcomes: readonly DraftOutcome[];
  problems: Problems["outcomes"] | undefined;
  onChange: (outcomes: readonly DraftOutcome[]) => void;
}) {
  const [lastKey, setLastKey] = useState(outcomes.length);
  const add = (): void => {
    onChange([...outcomes, { key: lastKey, name: "" }]);
    setLastKey(lastKey + 1);
    focusLast();
  };
  const remove = (key: number): void => {
    onChange(outcomes.filter((each) => each.key !== key));
    focusLast();
  };
  return (
    <fieldset class="outcomes">
      <legend>Outcomes</legend>
      <p class="hint">
        Exactly one of them must come true. {MIN_OUTCOMES} to {MAX_OUTCOMES}; where there may be others, add “Other”.
      </p>
      {outcomes.map(({ key, name }, i) => (
        <div key={key} class="outcome">
          <Field
            label={`Outcome ${i + 1}`}
            value={name}
            problem={problems?.[i] ?? null}
            onInput={(value) => onChange(outcomes.map((each) => (each.key === key ? { key, name: value } : each)))}
          />
          <button
            type="button"
            class="quiet"
            aria-label={`Remove outcome ${i + 1}`}
            disabled={outcomes.length <= MIN_OUTCOMES}
            onClick={() => remove(key)}
          >
            ×
          </button>
        </div>
      ))}
      <button type="button" class="small" disabled={outcomes.length >= MAX_OUTCOMES} onClick={add}>
        Add an outcome
      </button>
    </fieldset>
  );
}

function focusLast(): void {
  requestAnimationFrame(() => {
    const fields = document.querySelectorAll<HTMLInputElement>(".outcomes input");
    fields[fields.length - 1]?.focus();
  });
}

const MAX_EVENTS = 100;

/** Of the newest events, or of those that a search finds. */
function EventChoice({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState("");
  const [q, setQ] = useState("");
  const { data, error, reload } = useLoaded(
    (signal) => call<Page<MarketEvent>>("GET", "/events", { query: { q, limit: MAX_EVENTS }, signal }),
    q,
  );
  const events = data?.items ?? [];
  const isChosenShown = value === "" || events.some(({ id }) => String(id) === value);
  const options: [string, string][] = [
    ["", "None: the market stands by itself"],
    ...(isChosenShown ? [] : [[value, `Event ${value}`] as [string, string]]),
    ...events.map(({ id, title }): [string, string] => [String(id), title]),
  ];
  if (data !== null && q === "" && events.length === 0) return null;
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      <Select label="Event (optional)" value={value} options={options} onChange={onChange} />
      {(q !== "" || (data !== null && data.next_cursor !== null)) && (
        <div class="row">
          <input
            type="search"
            aria-label="Search events"
            placeholder="Search events"
            value={text}
            maxLength={200}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              event.preventDefault();
              setQ(text.trim());
            }}
          />
          <button type="button" onClick={() => setQ(text.trim())}>
            Search
          </button>
        </div>
      )}
    </>
  );
}
