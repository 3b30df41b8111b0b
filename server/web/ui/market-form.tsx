/** The fields of a new market, as users propose one and operators make one: what was typed, checked, and sent. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { MAX_OUTCOMES, MIN_OUTCOMES } from "../../../engine/limits.ts";
import { Field, TextArea } from "./fields.tsx";
import "./market-form.css";
import { EventChoice } from "./event-choice.tsx";
import type { DraftOutcome, MarketDraft, Problems } from "./market-draft.ts";

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
