/** The dialog that sets a price alert on an outcome of a market. */
import { useState } from "preact/hooks";
import { alertPrice, cents } from "../../../util/format.ts";
import { parsePrice } from "../../parse.ts";
import { request } from "../../session.ts";
import type { Market, PriceAlert } from "../../types.ts";
import { useAction } from "../../ui/action.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { NumberField, PRICE, Select } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { SegmentedControl } from "../../ui/segmented-control.tsx";
import { toast } from "../../ui/toast.tsx";

type Direction = "above" | "below";

const DIRECTIONS = [
  ["above", "At or above"],
  ["below", "At or below"],
] as const;

export function PriceAlertDialog({ market, onClose }: { market: Market; onClose: () => void }) {
  const [outcomeId, setOutcome] = useState(String(market.outcomes[0]?.id ?? ""));
  const [direction, setDirection] = useState<Direction>("above");
  const outcome = market.outcomes.find(({ id }) => String(id) === outcomeId);
  const last = outcome?.last_price ?? null;
  const [text, setText] = useState("");
  const price = parsePrice(text);
  const isReached = price !== null && last !== null && (direction === "above" ? last >= price : last <= price);
  const problem =
    text === ""
      ? null
      : price === null
        ? "Price must be between 0.01¢ and 99.99¢, with at most two decimals."
        : isReached
          ? `The last price is ${cents(last)} already.`
          : null;
  const { run, isBusy, error } = useAction(async () => {
    const { price: at } = await request<PriceAlert>("POST", "/me/price-alerts", {
      body: { outcome_id: Number(outcomeId), direction, price },
    });
    toast(`Alert set: ${outcome?.name ?? ""} at ${alertPrice(at, direction)}.`);
    onClose();
  });
  return (
    <Dialog title="Alert me" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (problem === null && price !== null) void run();
        }}
      >
        <p translate={false}>{market.question}</p>
        <Select
          label="Outcome"
          value={outcomeId}
          options={market.outcomes.map(({ id, name }) => [String(id), name] as const)}
          onChange={setOutcome}
          areNames
        />
        <SegmentedControl label="When it trades" value={direction} options={DIRECTIONS} onChange={setDirection} />
        <NumberField
          label="Price"
          unit="¢"
          kind={PRICE}
          value={text}
          onInput={setText}
          problem={problem}
          hint={`You are told once, at the first trade at this price or beyond. Last: ${cents(last)}.`}
        />
        <ErrorNotice error={error} />
        <div class="row">
          <button type="submit" class="primary" disabled={isBusy || price === null || problem !== null}>
            Set alert
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
