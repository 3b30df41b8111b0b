/** Parts of the order ticket: price hint, available funds, time in force. */
import { money, percent, shares } from "../format.ts";
import { Field, Select } from "../ui/fields.tsx";
import { priceInput } from "./order-name.tsx";
import { availableShares, type Draft, type maxQuantity, type OrderPreview, timeInForceOf } from "./order-preview.ts";
import type { TicketProps } from "./ticket.tsx";

export function PriceHint({
  draft,
  best,
  change,
  plan,
}: {
  draft: Draft;
  best: number | null;
  change: TicketProps["change"];
  plan: OrderPreview;
}) {
  const worst = plan.summary?.traded.worstPrice ?? null;
  const offered = draft.kind === "market" ? worst : draft.kind === "limit" ? best : null;
  if (offered === null || priceInput(offered) === draft.price) return null;
  const what =
    draft.kind === "market" ? "The last share would trade at" : draft.side === "buy" ? "Best offer" : "Best bid";
  return (
    <>
      {what} {percent(offered)}.{" "}
      <button type="button" class="link" onClick={() => change({ price: priceInput(offered) })}>
        Use it
      </button>
    </>
  );
}

export function AvailableFunds({
  draft,
  most,
  around,
  change,
}: {
  draft: Draft;
  most: number | null;
  around: Parameters<typeof maxQuantity>[1];
  change: TicketProps["change"];
}) {
  const isBuy = draft.side === "buy";
  return (
    <p class="funds">
      <span>
        {isBuy ? "Available" : "Free to sell"}{" "}
        <b class="number">
          {isBuy
            ? `${around.available === null ? "–" : money(around.available)} USDC`
            : `${shares(availableShares(around.position))} shares`}
        </b>
      </span>
      <button
        type="button"
        class="small"
        disabled={most === null || most === 0}
        title={most === null ? "Type a price first" : undefined}
        onClick={() => change({ quantity: String(most) })}
      >
        Max
      </button>
    </p>
  );
}

export function TimeInForceFields({
  draft,
  change,
  problem,
}: {
  draft: Draft;
  change: TicketProps["change"];
  problem: string | null;
}) {
  const options =
    draft.kind === "market"
      ? ([
          ["ioc", "Take what is there, cancel the rest"],
          ["fok", "All or nothing (FOK)"],
        ] as const)
      : draft.kind === "post_only"
        ? ([
            ["gtc", "Until canceled (GTC)"],
            ["gtd", "Until a date (GTD)"],
          ] as const)
        : ([
            ["gtc", "Until canceled (GTC)"],
            ["gtd", "Until a date (GTD)"],
            ["ioc", "Immediate or cancel (IOC)"],
            ["fok", "All or nothing (FOK)"],
          ] as const);
  const force = timeInForceOf(draft);
  return (
    <details class="more-terms" open={force === "gtd"}>
      <summary>More: {options.find(([each]) => each === force)?.[1]}</summary>
      <Select
        label="How long it stands"
        value={force}
        options={options}
        onChange={(each) => change({ timeInForce: each })}
      />
      {force === "gtd" && (
        <Field
          label="Ends at"
          type="datetime-local"
          value={draft.expires}
          onInput={(expires) => change({ expires })}
          problem={problem}
          hint="In your own time zone."
        />
      )}
    </details>
  );
}
