/** Splits USDC into complete sets and merges sets back into USDC. */
import { useState } from "preact/hooks";
import { MAX_QUANTITY, MICRO_PER_SHARE } from "../../../../engine/limits.ts";
import { mergeFeeMicro } from "../../../../engine/money.ts";
import { balance, positions } from "../../account-state.ts";
import { money, percent, shares } from "../../format.ts";
import { useIdempotencyKey } from "../../idempotency-key.ts";
import { useMarkets } from "../../market-cache.ts";
import { request } from "../../session.ts";
import { availableShares, parseQuantity } from "../../trading/order-preview.ts";
import type { Limits, Market, Position } from "../../types.ts";
import { Field, SegmentedControl, Select } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { toast } from "../../ui/toast.tsx";
import { useAction, useFetch, usePages } from "../../ui/use-data.ts";

/** Sets that the caller could dissolve: what is free of each outcome. */
function mergeableSets(market: Market, held: ReadonlyMap<number, Position>): number {
  return Math.min(...market.outcomes.map(({ id }) => availableShares(held.get(id))));
}

export function CompleteSets() {
  const held = positions.value ?? new Map<number, Position>();
  const markets = useMarkets(
    [...held.values()].filter(({ quantity }) => quantity > 0).map(({ market_id }) => market_id),
  );
  const found = usePages<Market>("/markets", { limit: 200 });
  const { data: limits } = useFetch<Limits>((signal) => request("GET", "/me/limits", { signal }), "limits");
  const feeBps = limits?.fees.merge_fee ?? null;
  const [kind, setKind] = useState<"split" | "merge">("split");
  const [chosen, setChosen] = useState("");
  const [text, setText] = useState("");
  const [hasTried, setTried] = useState(false);
  const open = found.items ?? [];
  const choices =
    kind === "split"
      ? open
      : [...markets.values()].filter((market) => mergeableSets(market, held) > 0 && market.status === "open");
  const market = choices.find(({ id }) => String(id) === chosen);
  const quantity = parseQuantity(text);
  const available = balance.value?.available ?? 0;
  const most =
    kind === "split"
      ? Math.min(MAX_QUANTITY, Math.floor(available / MICRO_PER_SHARE))
      : market === undefined
        ? null
        : mergeableSets(market, held);
  const problem =
    text === ""
      ? hasTried
        ? "Type how many sets."
        : null
      : quantity === null
        ? "A whole number of sets."
        : most !== null && quantity > most
          ? kind === "split"
            ? `Your available balance is enough for ${shares(most)} sets.`
            : `You have ${shares(most)} complete sets free.`
          : null;
  const marketProblem = hasTried && market === undefined ? "Choose a market." : null;
  const retryKey = useIdempotencyKey();
  const { run, isBusy, error } = useAction(async () => {
    const body = { market_id: market!.id, quantity };
    const path = `/wallet/${kind}`;
    await retryKey.send({ path, ...body }, (idempotencyKey) => request("POST", path, { body, idempotencyKey }));
    toast(kind === "split" ? `${shares(quantity!)} sets split.` : `${shares(quantity!)} sets merged.`);
    setText("");
    setTried(false);
  });
  const isReady = market !== undefined && quantity !== null && problem === null;
  return (
    <section class="panel sets" aria-labelledby="sets-title">
      <h2 id="sets-title">Split and merge complete sets</h2>
      <p>
        A complete set is one share of every outcome of a market. Exactly one of them pays, so a set is always worth 1
        USDC: splitting turns 1 USDC into a set, merging turns a set back into 1 USDC. Splitting is free
        {feeBps === null ? "" : feeBps === 0 ? ", and so is merging" : `, merging costs ${percent(feeBps)}`}. Split to
        offer shares that nobody has yet; merge to free money before the market is resolved.
      </p>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          if (isReady) void run();
        }}
      >
        <SegmentedControl
          label="Split or merge"
          value={kind}
          options={[
            ["split", "Split USDC"],
            ["merge", "Merge sets"],
          ]}
          onChange={setKind}
        />
        <ErrorNotice error={found.error} retry={found.reload} />
        <MarketChoice markets={choices} value={chosen} onChange={setChosen} problem={marketProblem} kind={kind} />
        {kind === "split" && found.more !== null && (
          <button type="button" class="small" onClick={found.more}>
            More markets
          </button>
        )}
        <Field
          label="Number of sets"
          inputMode="numeric"
          autoComplete="off"
          value={text}
          onInput={setText}
          problem={problem}
          hint={
            most === null ? undefined : (
              <>
                {shares(most)} at most.{" "}
                <button type="button" class="link" onClick={() => setText(String(most))}>
                  All
                </button>
              </>
            )
          }
        />
        {isReady && (
          <p aria-live="polite">
            {kind === "split"
              ? `${money(quantity * MICRO_PER_SHARE)} USDC become ${shares(quantity)} shares of each of ${market.outcomes.map(({ name }) => name).join(", ")}.`
              : mergeText(quantity, feeBps ?? 0)}
          </p>
        )}
        <ErrorNotice error={error} />
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Working…" : kind === "split" ? "Split" : "Merge"}
        </button>
      </form>
    </section>
  );
}

/** What so many sets bring, and what of it the merge costs. */
function mergeText(quantity: number, feeBps: number): string {
  const fee = mergeFeeMicro(quantity, feeBps);
  const kept = fee === 0 ? "" : `, after a merge fee of ${money(fee)} USDC`;
  return `${shares(quantity)} shares of each outcome become ${money(quantity * MICRO_PER_SHARE - fee)} USDC${kept}.`;
}

function MarketChoice({
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
  kind: "split" | "merge";
}) {
  const first =
    markets.length > 0 ? "Choose a market" : kind === "split" ? "No market is open" : "You have no complete sets";
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
