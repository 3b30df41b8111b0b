/** The fields of the order ticket. The page owns the draft; this file only reports changes to it. */
import { cents, shares, spendable } from "../format.ts";
import { sessionState } from "../session.ts";
import type { Outcome } from "../types.ts";
import { COUNT, Field, NumberField, PRICE, SegmentedControl, Select } from "../ui/fields.tsx";
import { priceInput } from "./order-name.tsx";
import {
  availableShares,
  type ChangeDraft,
  type Draft,
  maxQuantity,
  type OrderPreview,
  type PreviewContext,
  timeInForceOf,
} from "./order-preview.ts";

interface FieldProps {
  readonly draft: Draft;
  readonly change: ChangeDraft;
}

interface FieldsProps extends FieldProps {
  readonly outcomes: readonly Outcome[];
  readonly preview: OrderPreview;
  readonly context: PreviewContext;
  /** The user has tried to submit: show what is missing. */
  readonly hasTried: boolean;
  readonly isDisabled: boolean;
  readonly onOutcome: (id: number) => void;
}

export function TicketFields(props: FieldsProps) {
  const { draft, change, outcomes, preview, context, hasTried, isDisabled, onOutcome } = props;
  const { problems, missing } = preview;
  const problem = (field: keyof typeof problems): string | null =>
    problems[field] ?? (hasTried ? missing[field] : null);
  return (
    <fieldset class="plain" disabled={isDisabled}>
      <legend class="hidden">Order</legend>
      <SegmentedControl
        label="Side"
        value={draft.side}
        options={[
          ["buy", "Buy"],
          ["sell", "Sell"],
        ]}
        tones={{ buy: "good", sell: "bad" }}
        onChange={(side) => change({ side })}
      />
      <Select
        label="Outcome"
        value={String(context.outcome.id)}
        options={outcomes.map(({ id, name }) => [String(id), name] as const)}
        onChange={(id) => onOutcome(Number(id))}
        areNames
      />
      <SegmentedControl
        label="Order type"
        value={draft.kind}
        options={[
          ["limit", "Limit"],
          ["market", "Market"],
          ["post_only", "Post-only"],
        ]}
        onChange={(kind) => change({ kind })}
      />
      <NumberField
        label={draft.kind === "market" ? "Worst price (optional)" : "Price"}
        unit="¢"
        kind={PRICE}
        value={draft.price}
        onInput={(price) => change({ price })}
        problem={problem("price")}
        hint={<PriceHint draft={draft} best={context.depth?.[0]?.price ?? null} change={change} preview={preview} />}
      />
      <NumberField
        label="Shares"
        kind={COUNT}
        value={draft.quantity}
        onInput={(quantity) => change({ quantity })}
        problem={problem("quantity")}
      />
      {sessionState.value === "in" && <AvailableFunds draft={draft} context={context} change={change} />}
      <TimeInForceFields draft={draft} change={change} problem={problem("expires")} />
    </fieldset>
  );
}

function PriceHint({ draft, best, change, preview }: FieldProps & { best: number | null; preview: OrderPreview }) {
  const worst = preview.summary?.fills.worstPrice ?? null;
  const offered = draft.kind === "market" ? worst : draft.kind === "limit" ? best : null;
  if (offered === null || priceInput(offered) === draft.price) return null;
  const label = draft.kind === "market" ? "Last share fills at" : draft.side === "buy" ? "Best ask" : "Best bid";
  return (
    <>
      {label} <span translate={false}>{cents(offered)}</span>.{" "}
      <button type="button" class="link" onClick={() => change({ price: priceInput(offered) })}>
        Use
      </button>
    </>
  );
}

function AvailableFunds({ draft, context, change }: FieldProps & { context: PreviewContext }) {
  const isBuy = draft.side === "buy";
  const max = maxQuantity(draft, context);
  return (
    <p class="funds">
      <span>
        Available{" "}
        <b class="number" translate={false}>
          {isBuy
            ? `${context.available === null ? "–" : spendable(context.available)} USDC`
            : `${shares(availableShares(context.position))} shares`}
        </b>
      </span>
      <button
        type="button"
        class="small"
        disabled={max === null || max === 0}
        title={max === null ? "Enter a price first" : undefined}
        onClick={() => change({ quantity: String(max) })}
      >
        Max
      </button>
    </p>
  );
}

const GTC = ["gtc", "Good till canceled (GTC)"] as const;
const GTD = ["gtd", "Good till date (GTD)"] as const;
const IOC = ["ioc", "Immediate or cancel (IOC)"] as const;
const FOK = ["fok", "Fill or kill (FOK)"] as const;
const TIMES_IN_FORCE = { market: [IOC, FOK], post_only: [GTC, GTD], limit: [GTC, GTD, IOC, FOK] } as const;

function TimeInForceFields({ draft, change, problem }: FieldProps & { problem: string | null }) {
  const options: readonly (readonly [Draft["timeInForce"], string])[] = TIMES_IN_FORCE[draft.kind];
  const chosen = timeInForceOf(draft);
  return (
    <details class="more-terms" open={chosen === "gtd"}>
      <summary>Time in force: {options.find(([each]) => each === chosen)?.[1]}</summary>
      <Select
        label="Time in force"
        value={chosen}
        options={options}
        onChange={(timeInForce) => change({ timeInForce })}
      />
      {chosen === "gtd" && (
        <Field
          label="Expires at"
          type="datetime-local"
          value={draft.expires}
          onInput={(expires) => change({ expires })}
          problem={problem}
          hint="In your time zone."
        />
      )}
    </details>
  );
}
