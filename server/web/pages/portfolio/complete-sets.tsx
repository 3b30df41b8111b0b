/** Splits USDC into complete sets, and merges complete sets back into USDC. */
import { useState } from "preact/hooks";
import { MAX_QUANTITY, MICRO_PER_SHARE } from "../../../../engine/limits.ts";
import { mergeFeeMicro } from "../../../../engine/money.ts";
import { money, percent, shares } from "../../../util/format.ts";
import { balance, positions } from "../../account-state.ts";
import { useIdempotencyKey } from "../../idempotency-key.ts";
import { useMarkets } from "../../market-cache.ts";
import { request } from "../../session.ts";
import { availableShares, parseQuantity } from "../../trading/order-preview.ts";
import type { Limits, Market, Position } from "../../types.ts";
import { useAction } from "../../ui/action.ts";
import { COUNT, NumberField, Select } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { SegmentedControl } from "../../ui/segmented-control.tsx";
import { toast } from "../../ui/toast.tsx";
import { type Children, useFetch } from "../../ui/use-data.ts";

type Kind = "split" | "merge";

/** @param only of this market alone, in a panel that names it */
export function CompleteSets({ only = null }: { only?: Market | null }) {
  const { data: limits } = useFetch<Limits>((signal) => request("GET", "/me/limits", { signal }), "limits");
  const feeBps = limits?.fees.merge_fee ?? null;
  return (
    <section class="bare sets" aria-label="Split or merge complete sets">
      {only === null && <h2 class="hidden">Split or merge complete sets</h2>}
      <p>
        A complete set is one share of every outcome of a market. Exactly one of them pays out, so a set is always worth
        1 USDC: a split turns 1 USDC into a set, a merge turns a set back into 1 USDC. Splitting is free
        {feeBps === null ? "" : feeBps === 0 ? ", and so is merging" : `; merging costs ${percent(feeBps)}`}. Split to
        sell shares you don't have yet; merge to free funds before the market resolves.
      </p>
      {only === null ? <AnyMarketForm feeBps={feeBps} /> : <OneMarketForm market={only} feeBps={feeBps} />}
    </section>
  );
}

const heldPositions = (): ReadonlyMap<number, Position> => positions.value ?? new Map<number, Position>();

function OneMarketForm({ market, feeBps }: { market: Market; feeBps: number | null }) {
  const [kind, setKind] = useState<Kind>("split");
  return <SetsForm {...{ kind, setKind, market, feeBps }} />;
}

function AnyMarketForm({ feeBps }: { feeBps: number | null }) {
  const openMarkets = usePages<Market>("/markets", { limit: 200 });
  const held = heldPositions();
  const heldMarkets = useMarkets(
    [...held.values()].filter(({ quantity }) => quantity > 0).map(({ market_id }) => market_id),
  );
  const [kind, setKind] = useState<Kind>("split");
  const [chosen, setChosen] = useState("");
  const choices =
    kind === "split"
      ? (openMarkets.items ?? [])
      : [...heldMarkets.values()].filter((market) => mergeableSets(market, held) > 0 && market.status === "open");
  return (
    <SetsForm
      {...{ kind, setKind, feeBps }}
      market={choices.find(({ id }) => String(id) === chosen)}
      choice={(problem) => (
        <>
          <ErrorNotice error={openMarkets.error} retry={openMarkets.reload} />
          <MarketSelect {...{ markets: choices, kind, value: chosen, onChange: setChosen, problem }} />
          {kind === "split" && openMarkets.more !== null && (
            <button type="button" class="small" onClick={openMarkets.more}>
              More markets
            </button>
          )}
        </>
      )}
    />
  );
}

interface SetsFormProps {
  kind: Kind;
  setKind: (kind: Kind) => void;
  /** Undefined: none is chosen. */
  market: Market | undefined;
  feeBps: number | null;
  /** Fields to choose the market, with what is wrong about the choice. */
  choice?: (problem: string | null) => Children;
}

function SetsForm({ kind, setKind, market, feeBps, choice }: SetsFormProps) {
  const [text, setText] = useState("");
  const [hasTried, setTried] = useState(false);
  const quantity = parseQuantity(text);
  const max = maxSets(kind, market, heldPositions());
  const problem = text === "" ? (hasTried ? "Enter a number of sets." : null) : quantityProblem(kind, quantity, max);
  const isReady = market !== undefined && quantity !== null && problem === null;
  const idempotencyKey = useIdempotencyKey();
  const { run, isBusy, error } = useAction(async (body: { market_id: number; quantity: number }) => {
    const path = `/wallet/${kind}`;
    await idempotencyKey.send({ path, ...body }, (key) => request("POST", path, { body, idempotencyKey: key }));
    toast(`${shares(body.quantity)} sets ${kind === "split" ? "split" : "merged"}.`);
    setText("");
    setTried(false);
  });
  const submit = (event: Event): void => {
    event.preventDefault();
    setTried(true);
    if (isReady) void run({ market_id: market.id, quantity });
  };
  return (
    <form noValidate onSubmit={submit}>
      <SegmentedControl
        label="Split or merge"
        value={kind}
        options={[
          ["split", "Split USDC"],
          ["merge", "Merge sets"],
        ]}
        onChange={setKind}
      />
      {choice?.(hasTried && market === undefined ? "Select a market." : null)}
      <QuantityField value={text} onInput={setText} problem={problem} max={max} />
      {isReady && <p aria-live="polite">{resultText(kind, market, quantity, feeBps ?? 0)}</p>}
      <ErrorNotice error={error} />
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Working…" : kind === "split" ? "Split" : "Merge"}
      </button>
    </form>
  );
}

/** Complete sets that the user can merge: the smallest available quantity of any outcome. */
function mergeableSets(market: Market, held: ReadonlyMap<number, Position>): number {
  return Math.min(...market.outcomes.map(({ id }) => availableShares(held.get(id))));
}

/** Null: no market is selected yet. */
function maxSets(kind: Kind, market: Market | undefined, held: ReadonlyMap<number, Position>): number | null {
  if (kind === "split") {
    return Math.min(MAX_QUANTITY, Math.floor((balance.value?.available ?? 0) / MICRO_PER_SHARE));
  }
  return market === undefined ? null : mergeableSets(market, held);
}

function quantityProblem(kind: Kind, quantity: number | null, max: number | null): string | null {
  if (quantity === null) return "Must be a whole number of sets.";
  if (max === null || quantity <= max) return null;
  return kind === "split"
    ? `Your available balance covers ${shares(max)} sets.`
    : `You have ${shares(max)} complete sets available.`;
}

function resultText(kind: Kind, { outcomes }: Market, quantity: number, feeBps: number): string {
  if (kind === "split") {
    const names = outcomes.map(({ name }) => name).join(", ");
    return `${money(quantity * MICRO_PER_SHARE)} USDC become ${shares(quantity)} shares of each of ${names}.`;
  }
  const fee = mergeFeeMicro(quantity, feeBps);
  const afterFee = fee === 0 ? "" : `, after a merge fee of ${money(fee)} USDC`;
  return `${shares(quantity)} shares of each outcome become ${money(quantity * MICRO_PER_SHARE - fee)} USDC${afterFee}.`;
}

function QuantityField({
  value,
  onInput,
  problem,
  max,
}: {
  value: string;
  onInput: (text: string) => void;
  problem: string | null;
  max: number | null;
}) {
  return (
    <NumberField
      label="Number of sets"
      kind={COUNT}
      value={value}
      onInput={onInput}
      problem={problem}
      hint={
        max === null ? undefined : (
          <>
            At most {shares(max)}.{" "}
            <button type="button" class="link" onClick={() => onInput(String(max))}>
              Max
            </button>
          </>
        )
      }
    />
  );
}

function MarketSelect({
  markets,
  value,
  onChange,
  problem,
  kind,
}: {
  markets: readonly Market[];
  value: string;
  onChange: (id: string) => void;
  problem: string | null;
  kind: Kind;
}) {
  const first = markets.length > 0 ? "Select a market" : kind === "split" ? "No open markets" : "No complete sets";
  return (
    <div>
      <Select
        label="Market"
        value={markets.some((market) => String(market.id) === value) ? value : ""}
        options={[["", first] as const, ...markets.map((market) => [String(market.id), market.question] as const)]}
        onChange={onChange}
      />
      {problem !== null && (
        <p class="hint bad" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}
