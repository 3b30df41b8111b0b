/** Amounts of money and profit, formatted and coloured. */
import { exactMoney, money, signedMoney } from "../../util/format.ts";

/** @param isExact to the micro-USDC, for lists of what was booked; else rounded to the cent */
export function Money({ micro, isExact = false }: { micro: number | null; isExact?: boolean }) {
  return (
    <span class="number" translate={false}>
      {micro === null ? "–" : (isExact ? exactMoney : money)(micro)}
    </span>
  );
}

/** Green for a gain, red for a loss. */
export function Profit({ micro }: { micro: number | null }) {
  if (micro === null)
    return (
      <span class="number" translate={false}>
        –
      </span>
    );
  return (
    <span translate={false} class={`number ${micro > 0 ? "up" : micro < 0 ? "down" : ""}`}>
      {signedMoney(micro)}
    </span>
  );
}
