/** The field of the slippage setting. */
import { useState } from "preact/hooks";
import { cents, priceNumber } from "../../util/format.ts";
import { MAX_SLIPPAGE_BPS, setSlippage, settings } from "../settings.ts";
import { NumberField, PRICE } from "../ui/fields.tsx";

export function SlippageField() {
  const [text, setText] = useState(() => priceNumber(settings.slippageBps.peek()));
  const bps = PRICE.parse(text);
  const isValid = bps !== null && bps <= MAX_SLIPPAGE_BPS;
  const change = (typed: string): void => {
    setText(typed);
    const parsed = PRICE.parse(typed);
    if (parsed !== null && parsed <= MAX_SLIPPAGE_BPS) setSlippage(parsed);
  };
  return (
    <NumberField
      label="Slippage"
      unit="¢"
      kind={PRICE}
      value={text}
      onInput={change}
      problem={isValid ? null : `Must be between 0 and ${cents(MAX_SLIPPAGE_BPS)}.`}
      hint="How far beyond the best price a market order may fill. Kept in this browser."
    />
  );
}
