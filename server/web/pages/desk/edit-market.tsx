/** Edits a market's description, category, closing time and picture. */

import { useState } from "preact/hooks";
import { exchangeTime } from "../../clock.ts";
import { parseLocalTime, toLocalTime } from "../../parse.ts";
import { request } from "../../session.ts";
import type { Market, MarketChanges, MarketRecord } from "../../types.ts";
import { Field, TextArea } from "../../ui/fields.tsx";
import { Notice } from "../../ui/notices.tsx";
import { categoryProblem, descriptionProblem, timeProblem, trimmedOrNull } from "../../ui/validation.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import { PictureField } from "./picture-field.tsx";

export interface DialogProps {
  readonly market: MarketRecord;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function EditDialog({ market: current, onClose, onDone }: DialogProps) {
  /** The market when the dialog opened: fields that this operator leaves alone keep another operator's changes. */
  const [market] = useState(current);
  const [description, setDescription] = useState(market.description ?? "");
  const [category, setCategory] = useState(market.category ?? "");
  const [closesAt, setClosesAt] = useState(toLocalTime(market.closes_at));
  const [picture, setPicture] = useState<string | null | undefined>(undefined);
  const [isChecked, setChecked] = useState(false);
  const changes: MarketChanges = {
    ...changesOf(market, { description, category, closesAt }),
    ...(picture === undefined ? {} : { picture }),
  };
  const problems = {
    description: descriptionProblem(description),
    category: categoryProblem(category),
    closesAt: timeProblem(closesAt),
  };
  const isPast = changes.closes_at != null && changes.closes_at <= exchangeTime();
  return (
    <DecisionDialog
      title="Edit market"
      confirm="Save"
      isDangerous={isPast}
      noteHint={null}
      check={() => {
        setChecked(true);
        return Object.values(problems).every((problem) => problem === null);
      }}
      act={async () => {
        if (Object.keys(changes).length === 0) return "No changes.";
        await request<Market>("PATCH", `/admin/markets/${market.id}`, { body: changes });
        return "Market updated.";
      }}
      onClose={onClose}
      onDone={onDone}
    >
      <TextArea
        label="Description"
        rows={8}
        value={description}
        onInput={setDescription}
        problem={isChecked ? problems.description : null}
        hint="Traders rely on the description: don't change the resolution rules."
      />
      <Field
        label="Category"
        value={category}
        onInput={setCategory}
        problem={isChecked ? problems.category : null}
        hint="Empty for none."
      />
      <Field
        label="Closes at"
        type="datetime-local"
        value={closesAt}
        onInput={setClosesAt}
        problem={isChecked ? problems.closesAt : null}
        hint="In your time zone. Empty: closed by an operator."
      />
      <PictureField slug={market.slug} current={market.picture} value={picture} onChange={setPicture} />
      {isPast && <Notice kind="warn">This time is in the past: the market closes immediately and permanently.</Notice>}
    </DecisionDialog>
  );
}

/** The fields that differ from the market. */
function changesOf(
  market: MarketRecord,
  typed: { description: string; category: string; closesAt: string },
): MarketChanges {
  const description = trimmedOrNull(typed.description);
  const category = trimmedOrNull(typed.category);
  return {
    ...(description === market.description ? {} : { description }),
    ...(category === market.category ? {} : { category }),
    // The field shows minutes only: an untouched time keeps its seconds.
    ...(typed.closesAt === toLocalTime(market.closes_at) ? {} : { closes_at: parseLocalTime(typed.closesAt) }),
  };
}
