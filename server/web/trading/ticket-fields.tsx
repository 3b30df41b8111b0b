/** The fields of the order ticket. The page owns the draft; this file only reports changes to it. */
import { MAX_PRICE_BPS, MIN_PRICE_BPS } from "../../../engine/limits.ts";
import { cents, SHARE_MICRO, shares, spendable } from "../../util/format.ts";
import { parseCount, parseMoney, parsePrice } from "../parse.ts";
import { sessionState } from "../session.ts";
import { settings } from "../settings.ts";
import type { Outcome } from "../types.ts";
import { AMOUNT, Checkbox, COUNT, Field, NumberField, PRICE, Select } from "../ui/fields.tsx";
import { Icon } from "../ui/icon.tsx";
import { SegmentedControl } from "../ui/segmented-control.tsx";
import type { Children } from "../ui/use-data.ts";
import { priceInput } from "./order-name.tsx";
import {
  availableShares,
  type ChangeDraft,
  type Draft,
  maxAmount,
  type OrderPreview,
  type PreviewContext,
  timeInForceOf,
  typedMoney,
  unitOf,
} from "./order-preview.ts";
import { SlippageField } from "./slippage-field.tsx";

interface FieldProps {
  readonly draft: Draft;
  readonly change: ChangeDraft;
  readonly context: PreviewContext;
}

interface FieldsProps extends FieldProps {
  readonly outcomes: readonly Outcome[];
  readonly preview: OrderPreview;
  /** The user has tried to submit: show what is missing. */
  readonly hasTried: boolean;
  readonly onOutcome: (id: number) => void;
}

/** Buy or sell, market or limit. */
export function TicketHead({
  draft,
  change,
  children,
}: Pick<FieldProps, "draft" | "change"> & { children?: Children }) {
  return (
    <div class="ticket-head">
      <fieldset class="sides">
        <legend class="hidden">Side</legend>
        {(["buy", "sell"] as const).map((side) => (
          <label key={side} class={draft.side === side ? "chosen" : ""}>
            <input
              type="radio"
              name="side"
              class="hidden"
              checked={draft.side === side}
              onChange={() => change({ side, amount: "" })}
            />
            {side === "buy" ? "Buy" : "Sell"}
          </label>
        ))}
      </fieldset>
      <SegmentedControl
        label="Order type"
        value={draft.kind}
        options={[
          ["market", "Market"],
          ["limit", "Limit"],
        ]}
        onChange={(kind) => change({ kind })}
      />
      {children}
    </div>
  );
}

export function TicketFields(props: FieldsProps) {
  const { draft, change, context, preview, hasTried } = props;
  const { problems, missing, bound } = preview;
  const problem = (field: keyof typeof problems): string | null =>
    problems[field] ?? (hasTried ? missing[field] : null);
  return (
    <>
      <OutcomeChoice {...props} />
      {draft.kind === "limit" && <PriceField {...props} problem={problem("price")} />}
      <AmountField {...props} problem={problem("amount")} />
      <div class="options">
        {draft.kind === "market" && <BoundOption side={draft.side} bound={bound} />}
        <AdvancedOptions draft={draft} change={change} context={context} problem={problem("expires")} />
      </div>
    </>
  );
}

/** What a share costs a buyer, or brings a seller. */
const priceFor = (side: Draft["side"], outcome: Outcome): number | null =>
  side === "buy" ? outcome.implied_ask : outcome.implied_bid;

/** Two buttons for two outcomes, a list for more. */
function OutcomeChoice({ draft, outcomes, context, onOutcome }: FieldsProps) {
  if (outcomes.length > 2) {
    return (
      <Select
        label="Outcome"
        value={String(context.outcome.id)}
        options={outcomes.map((each) => {
          const price = priceFor(draft.side, each);
          return [String(each.id), price === null ? each.name : `${each.name} · ${cents(price)}`] as const;
        })}
        onChange={(id) => onOutcome(Number(id))}
        areNames
      />
    );
  }
  return (
    <fieldset class="outcome-choice">
      <legend class="hidden">Outcome</legend>
      {outcomes.map((each) => (
        <label key={each.id} translate={false} class={each.id === context.outcome.id ? `chosen of-${each.index}` : ""}>
          <input
            type="radio"
            name="outcome"
            class="hidden"
            checked={each.id === context.outcome.id}
            onChange={() => onOutcome(each.id)}
          />
          <span>{each.name}</span>
          <b>{cents(priceFor(draft.side, each))}</b>
        </label>
      ))}
    </fieldset>
  );
}

/** Prices step by a tenth of a cent, with Shift by a cent. */
const STEP_BPS = 10;
const LARGE_STEP_BPS = 100;

/** The next multiple of the step. */
function stepped(price: number, direction: 1 | -1, step: number): number {
  const next = direction === 1 ? Math.floor(price / step) * step + step : Math.ceil(price / step) * step - step;
  return Math.min(MAX_PRICE_BPS, Math.max(MIN_PRICE_BPS, next));
}

function PriceField({ draft, change, context, problem }: FieldProps & { problem: string | null }) {
  const { outcome } = context;
  const toPrice = (bps: number): void => change({ price: priceInput(bps) });
  const step = (direction: 1 | -1, isLarge: boolean): void => {
    const from = parsePrice(draft.price) ?? (draft.side === "buy" ? outcome.implied_bid : outcome.implied_ask);
    if (from !== null) toPrice(stepped(from, direction, isLarge ? LARGE_STEP_BPS : STEP_BPS));
  };
  const best = (name: string, bps: number | null) =>
    bps === null ? (
      <span>{name} –</span>
    ) : (
      <button type="button" class="link" translate={false} onClick={() => toPrice(bps)}>
        {name} {cents(bps)}
      </button>
    );
  return (
    <div class="with-bests">
      <NumberField
        label="Price a share"
        unit="¢"
        kind={PRICE}
        value={draft.price}
        onInput={(price) => change({ price })}
        onStep={step}
        problem={problem}
      />
      <p class="bests">
        {best("Best bid", outcome.implied_bid)}
        {best("Best offer", outcome.implied_ask)}
      </p>
    </div>
  );
}

const QUICK_AMOUNTS = { usdc: [10, 100, 500], shares: [10, 100, 1_000] } as const;
const QUICK_PERCENTS = [25, 50, 75] as const;

function AmountField({ draft, change, context, problem }: FieldProps & { problem: string | null }) {
  const unit = unitOf(draft);
  const free = availableShares(context.position);
  return (
    <div class="amount">
      <NumberField
        size="large"
        label={draft.side === "sell" ? "Shares" : "Amount"}
        unit={
          unit === "usdc"
            ? "USDC"
            : draft.side === "sell" && sessionState.value === "in"
              ? `of ${shares(free)}`
              : "shares"
        }
        kind={unit === "usdc" ? AMOUNT : COUNT}
        value={draft.amount}
        onInput={(amount) => change({ amount })}
        problem={problem}
        aside={
          draft.side === "buy" && (
            <SegmentedControl
              label="Amount in"
              value={unit}
              options={[
                ["usdc", "USDC"],
                ["shares", "Shares"],
              ]}
              onChange={(to) => change({ unit: to, amount: "" })}
            />
          )
        }
      />
      <QuickAmounts draft={draft} change={change} context={context} />
      <p class="funds">
        <span>Available</span>
        <span translate={false}>{availableText(draft, context)}</span>
      </p>
    </div>
  );
}

function availableText({ side }: Draft, { available, position }: PreviewContext): string {
  if (sessionState.value === "out") return "Sign in to see";
  if (side === "buy") return available === null ? "–" : `${spendable(available)} USDC`;
  const held = position?.held ?? 0;
  const free = `${shares(availableShares(position))} shares`;
  return held === 0 ? free : `${free}, ${shares(held)} on hold`;
}

function QuickAmounts({ draft, change, context }: FieldProps) {
  const unit = unitOf(draft);
  const max = maxAmount(draft, context);
  const set = (amount: string): void => change({ amount });
  const add = (more: number): void =>
    set(
      unit === "shares"
        ? String((parseCount(draft.amount) ?? 0) + more)
        : typedMoney((parseMoney(draft.amount) ?? 0) + more * SHARE_MICRO),
    );
  const all = (text: string) => (
    <button type="button" disabled={max === null} onClick={() => max !== null && set(max)}>
      {text}
    </button>
  );
  if (draft.side === "sell") {
    const free = availableShares(context.position);
    return (
      <div class="quick">
        {QUICK_PERCENTS.map((percent) => (
          <button
            key={percent}
            type="button"
            disabled={free === 0}
            onClick={() => set(String(Math.max(1, Math.floor((free * percent) / 100))))}
          >
            {percent}%
          </button>
        ))}
        {all("All")}
      </div>
    );
  }
  return (
    <div class="quick">
      {QUICK_AMOUNTS[unit].map((more) => (
        <button key={more} type="button" onClick={() => add(more)}>
          +{shares(more)}
        </button>
      ))}
      {all("Max")}
    </div>
  );
}

/** The bound of a market order, and the slippage that makes it. */
function BoundOption({ side, bound }: { side: Draft["side"]; bound: number | null }) {
  return (
    <details>
      <summary translate={false}>
        <span>
          {side === "buy" ? "At most" : "At least"} <b>{cents(bound)}</b> a share
        </span>
        <span class="value">
          slippage {cents(settings.slippageBps.value)}
          <Icon name="edit" size={14} />
        </span>
      </summary>
      <SlippageField />
    </details>
  );
}

const GTC = ["gtc", "Good till canceled"] as const;
const GTD = ["gtd", "Good till date"] as const;
const IOC = ["ioc", "Immediate or cancel"] as const;
const FOK = ["fok", "Fill or kill"] as const;

/** The times in force that the order can have. */
function timesInForce({ kind, isPostOnly }: Draft): readonly (readonly [Draft["timeInForce"], string])[] {
  if (kind === "market") return [IOC, FOK];
  return isPostOnly ? [GTC, GTD] : [GTC, GTD, IOC, FOK];
}

function AdvancedOptions({ draft, change, problem }: FieldProps & { problem: string | null }) {
  const options = timesInForce(draft);
  const chosen = timeInForceOf(draft);
  const text = options.find(([each]) => each === chosen)?.[1] ?? "";
  return (
    <details open={chosen === "gtd" || problem !== null}>
      <summary>
        <span>Advanced</span>
        <span class="value">
          {draft.kind === "limit" && draft.isPostOnly ? `${text}, post-only` : text}
          <Icon name="chevron" size={14} />
        </span>
      </summary>
      <div class="stack">
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
        {draft.kind === "limit" && (
          <Checkbox
            label="Post-only"
            hint="Only rests in the book: it is canceled where it would trade at once."
            checked={draft.isPostOnly}
            onChange={(isPostOnly) => change({ isPostOnly })}
          />
        )}
      </div>
    </details>
  );
}
