/** What each KYC tier allows, with the user's tier marked. */
import { DAILY_ACTIVITY_LIMIT_MICRO } from "../../../engine/limits.ts";
import { money } from "../../util/format.ts";
import { Badge } from "./badge.tsx";

const aDay = (tier: number): string => `${money(DAILY_ACTIVITY_LIMIT_MICRO[tier] ?? 0)} USDC of buys a day`;

const TIERS = [
  { name: "Tier 0", requires: "An account", allows: "View markets" },
  { name: "Tier 1", requires: "Email and phone verified", allows: `Trade up to ${aDay(1)}` },
  { name: "Tier 2", requires: "Identity verified", allows: `Trade up to ${aDay(2)}, and withdraw` },
] as const;

export function Tiers({ tier }: { tier: number }) {
  return (
    <ol class="tiers" aria-label="Verification tiers">
      {TIERS.map(({ name, requires, allows }, i) => (
        <li key={name} class={i === tier ? "own" : ""} aria-current={i === tier ? "true" : undefined}>
          <div class="row between">
            <strong>{name}</strong>
            {i === tier && <Badge text="Current" tone={tier === 0 ? "warn" : "good"} />}
          </div>
          <div>{allows}</div>
          <div class="faint">{requires}</div>
        </li>
      ))}
    </ol>
  );
}
