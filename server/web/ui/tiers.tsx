/** What each KYC tier allows, with the account's own marked. */
import { DAILY_ACTIVITY_LIMIT_MICRO } from "../../../engine/limits.ts";
import { money } from "../format.ts";
import { Badge } from "./badge.tsx";

const aDay = (tier: number): string => `${money(DAILY_ACTIVITY_LIMIT_MICRO[tier]!)} USDC of purchases a day`;

const TIERS = [
  { name: "Tier 0", asks: "An account", allows: "Look at everything" },
  { name: "Tier 1", asks: "E-mail and phone verified", allows: `Trade, up to ${aDay(1)}` },
  { name: "Tier 2", asks: "Identity verified", allows: `Trade, up to ${aDay(2)}, and withdraw` },
] as const;

export function Tiers({ tier }: { tier: number }) {
  return (
    <ol class="tiers" aria-label="Verification tiers">
      {TIERS.map(({ name, asks, allows }, i) => (
        <li key={name} class={i === tier ? "own" : ""} aria-current={i === tier ? "true" : undefined}>
          <div class="row between">
            <strong>{name}</strong>
            {i === tier && <Badge text="Yours" tone={tier === 0 ? "warn" : "good"} />}
          </div>
          <div>{allows}</div>
          <div class="faint">{asks}</div>
        </li>
      ))}
    </ol>
  );
}
