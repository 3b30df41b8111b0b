/** Amounts of money and profit, formatted and coloured. */
import { money, signedMoney } from "../format.ts";

export function Money({ micro }: { micro: number | null }) {
  return (
    <span class="number" translate={false}>
      {micro === null ? "–" : money(micro)}
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
