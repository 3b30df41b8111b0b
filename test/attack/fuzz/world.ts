/**
 * The exchange that is attacked: whose money must stay as it is (the victim), who goes on trading (the sentinel), who
 * attacks with tokens of its own, and expendable users and markets, with the ids that guesses hit.
 */
import type { Seed } from "../../../server/bootstrap/seed.ts";

export const PASSWORD = "a quiet harbour at dawn";
const ALL_SCOPES = ["markets:read", "markets:propose", "orders:write", "portfolio:read"];
const UNIMPORTANT = 8;
export const ATTACKERS = 4;

/** Ids that operators' requests name: of users and of markets alike. */
export const UNIMPORTANT_ID: readonly number[] = Array.from({ length: UNIMPORTANT }, (_, n) => 1 + n);
/** Markets have two outcomes each, and so ids that follow. */
const VICTIM_MARKET = UNIMPORTANT + 1;
const SENTINEL_MARKET = UNIMPORTANT + 2;
export const MARKETS_TO_TRADE: readonly number[] = [UNIMPORTANT + 3, UNIMPORTANT + 4];
export const OUTCOMES_TO_TRADE: readonly number[] = MARKETS_TO_TRADE.flatMap((id) => [2 * id - 1, 2 * id]);
/** In the victim's own market and in the sentinel's, the first outcome. */
export const VICTIM_ORDER = {
  market_id: VICTIM_MARKET,
  outcome_id: 2 * VICTIM_MARKET - 1,
  side: 1,
  price: 4_000,
  quantity: 7,
};
export const SENTINEL_ORDER = {
  market_id: SENTINEL_MARKET,
  outcome_id: 2 * SENTINEL_MARKET - 1,
  side: 1,
  price: 1,
  quantity: 1,
};

export const tokenOf = (name: string): string => `pm_pat_fuzz-${name}-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`;

export function seed(): Seed {
  const user = (name: string, more: object = {}) => ({
    email: `${name}@example.com`,
    kyc_tier: 2,
    deposit: 10_000_000_000,
    pats: [{ name: "token", scopes: ALL_SCOPES, token: tokenOf(name) }],
    ...more,
  });
  const numbered = (name: string, count: number, more = {}) =>
    Array.from({ length: count }, (_, n) => user(`${name}${n}`, more));
  const users = [
    ...numbered("unimportant", UNIMPORTANT),
    ...numbered("fuzz", ATTACKERS, { password: PASSWORD }),
    user("operator", { role: "operator", password: PASSWORD }),
    user("victim"),
    user("sentinel"),
  ];
  const markets = Array.from({ length: UNIMPORTANT + 4 }, (_, n) => {
    return { slug: `market-${n}`, question: `Question ${n}?`, outcomes: ["Yes", "No"] };
  });
  return { users, events: [{ slug: "event-0", title: "Event 0" }], markets } as Seed;
}
