/** The fields of a new market, for users who propose one and operators who create one. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { MAX_OUTCOMES, MIN_OUTCOMES } from "../../../engine/limits.ts";
import { Field, TextArea } from "./fields.tsx";
import "./market-form.css";
import { EventChoice } from "./event-choice.tsx";
import type { DraftOutcome, MarketDraft, Problems } from "./market-draft.ts";

/** @param problems null: don't show validation messages yet */
export function MarketFields({
  draft,
  problems,
  onChange,
  children,
}: {
  draft: MarketDraft;
  problems: Problems | null;
  onChange: (draft: MarketDraft) => void;
  /** After the other fields. */
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
        hint="A question that has an answer by a known date: “Will the Fed cut rates at its June 2027 meeting?”"
      />
      <TextArea
        label="Description (optional)"
        rows={6}
        value={draft.description}
        onInput={set("description")}
        problem={problems?.description ?? null}
        hint="Resolution rules: the source, the time zone, and what happens if there is no result by then."
      />
      <Outcomes
        outcomes={draft.outcomes}
        problems={problems?.outcomes}
        onChange={(outcomes) => onChange({ ...draft, outcomes })}
      />
      <div class="two">
        <Field
          label="Closes at (optional)"
          type="datetime-local"
          value={draft.closesAt}
          onInput={set("closesAt")}
          problem={problems?.closesAt ?? null}
          hint="In your time zone. Choose a time before anyone can know the result."
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
    focusLastOutcome();
  };
  const remove = (key: number): void => {
    onChange(outcomes.filter((each) => each.key !== key));
    focusLastOutcome();
  };
  return (
    <fieldset class="outcomes">
      <legend>Outcomes</legend>
      <p class="hint">
        {MIN_OUTCOMES} to {MAX_OUTCOMES} outcomes, exactly one of which occurs. Add “Other” if the list isn't complete.
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
        Add outcome
      </button>
    </fieldset>
  );
}

function focusLastOutcome(): void {
  requestAnimationFrame(() => {
    const fields = document.querySelectorAll<HTMLInputElement>(".outcomes input");
    fields[fields.length - 1]?.focus();
  });
}
