/** In place of the ticket where a market isn't open: what it has become, and what that means for the user. */

import { money, shares, signedMoney } from "../../util/format.ts";
import { positions } from "../account-state.ts";
import { dateTime } from "../dates.ts";
import { winnerOf } from "../market-facts.ts";
import { request, sessionState } from "../session.ts";
import type { Market, Page, Settlement } from "../types.ts";
import { Icon } from "../ui/icon.tsx";
import { ErrorNotice } from "../ui/notices.tsx";
import { Pairs } from "../ui/pairs.tsx";
import { useFetch } from "../ui/use-data.ts";
import { useOnChange } from "../ui/use-on-change.ts";

export function EndedMarket({ market }: { market: Market }) {
  const { status, resolution } = market;
  const winner = winnerOf(market)?.name;
  return (
    <section class="result" aria-labelledby="ended-title" translate={false}>
      <div class="result-head">
        <span class="result-icon">
          {winner !== undefined && winner.length <= 3 ? <b>{winner}</b> : <Icon name={iconOf(status)} size={24} />}
        </span>
        <h2 id="ended-title">{titleOf(status, winner)}</h2>
        <p>{textOf(market)}</p>
      </div>
      {resolution !== null && sessionState.value === "in" && <Settled market={market} />}
      <div class="ticket-foot">
        <a class="button send" href="#rules-title">
          {resolution === null ? "Rules" : "Rules and evidence"}
        </a>
      </div>
    </section>
  );
}

const iconOf = (status: string) => (status === "halted" ? "alert" : status === "proposed" ? "info" : "check");

function titleOf(status: string, winner: string | undefined): string {
  if (winner !== undefined) return `Resolved: ${winner}`;
  const titles: Readonly<Record<string, string>> = {
    halted: "Trading is halted",
    closed: "Closed for trading",
    resolved: "Resolved",
    voided: "Voided",
    proposed: "Not open yet",
    rejected: "This proposal was rejected",
  };
  return titles[status] ?? status;
}

function textOf({ status, resolution, closes_at }: Market): string {
  if (status === "voided") return `${dateTime(resolution?.resolved_at ?? null)}. All outcomes pay the same.`;
  if (resolution !== null) return `${dateTime(resolution.resolved_at)}. Trading has ended.`;
  if (status === "halted") return "Open orders stay in the book and can be canceled.";
  if (status === "closed") return `${closes_at === null ? "" : `${dateTime(closes_at)}. `}Waiting for its result.`;
  return "Only open markets can be traded.";
}

/** What the user held, was paid and has made. */
function Settled({ market }: { market: Market }) {
  const { id, outcomes } = market;
  const held = [...(positions.value?.values() ?? [])].filter(({ market_id }) => market_id === id);
  const key = held.map(({ outcome_id, quantity }) => `${outcome_id}:${quantity}`).join();
  const { data, error, reload } = useFetch<Page<Settlement>>(
    (signal) => request("GET", "/wallet/settlements", { query: { market_id: id }, signal }),
    String(id),
  );
  // A settlement changes the position.
  useOnChange(reload, [key]);
  if (data === null) return <ErrorNotice error={error} retry={reload} />;
  if (data.items.length === 0) return null;
  const total = (of: "amount" | "realized_pnl"): number => data.items.reduce((sum, each) => sum + each[of], 0);
  const shown = outcomes.map(({ id: outcomeId, name }) => {
    const count = data.items.reduce((sum, each) => sum + (each.outcome_id === outcomeId ? each.quantity : 0), 0);
    return count === 0 ? null : `${shares(count)} ${name}`;
  });
  const profit = total("realized_pnl");
  return (
    <Pairs
      pairs={[
        ["You held", shown.filter((each) => each !== null).join(", ")],
        ["Paid to your wallet", `${money(total("amount"))} USDC`],
        ["Profit at settlement", <span class={profit < 0 ? "down" : "up"}>{signedMoney(profit)}</span>],
      ]}
    />
  );
}
