/** What the portfolio is worth, over time and now, with the wallet beside it. */

import { capitalized, money, spendable, statusText } from "../../../util/format.ts";
import { balance, positions } from "../../account-state.ts";
import { date, dateTime } from "../../dates.ts";
import { href } from "../../router.ts";
import { request } from "../../session.ts";
import { sumOf, useValuedPositions, worthOf } from "../../trading/valuation.ts";
import type { Page, Portfolio, Withdrawal } from "../../types.ts";
import { Profit } from "../../ui/amounts.tsx";
import { Loading } from "../../ui/notices.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { useFresh } from "../../ui/use-fresh.ts";
import { useValueHistory, ValueChart } from "./value-chart.tsx";

export function Summary() {
  const { valued } = useValuedPositions();
  const { data, reload } = useFetch<Portfolio>((signal) => request("GET", "/me/portfolio", { signal }), "portfolio");
  useFresh(reload);
  const history = useValueHistory();
  // Everything appears at once, so that nothing moves.
  if (balance.value === null || positions.value === null || data === null || !history.isRead)
    return <Loading isPage what="Loading your portfolio" />;
  const inPositions = worthOf(valued);
  const value = balance.value.total + inPositions;
  const unrealized = inPositions - sumOf(valued.map(({ cost }) => cost));
  const realized = sumOf(valued.map(({ realized_pnl }) => realized_pnl));
  const profit = unrealized + realized;
  return (
    <div class="portfolio-head">
      <section class="panel value" aria-labelledby="value-title">
        <header>
          <div>
            <h2 id="value-title">Portfolio value</h2>
            <p class="worth" translate={false}>
              {money(value)} <small>USDC</small>
            </p>
            <Since profit={profit} netDeposits={value - profit} since={history.firstAt} />
          </div>
          <dl>
            <div>
              <dt>Unrealized</dt>
              <dd>
                <Profit micro={unrealized} />
              </dd>
            </div>
            <div>
              <dt>Realized</dt>
              <dd>
                <Profit micro={realized} />
              </dd>
            </div>
            <div>
              <dt>Fees paid</dt>
              <dd translate={false}>{data.fees === 0 ? "–" : money(-data.fees)}</dd>
            </div>
            <div>
              <dt>Rebates</dt>
              <dd translate={false}>{data.rebates === 0 ? "–" : `+${money(data.rebates)}`}</dd>
            </div>
          </dl>
        </header>
        <ValueChart value={value} profit={profit} {...history} />
      </section>
      <WalletPanel inPositions={inPositions} />
    </div>
  );
}

/** The profit on what was paid in, since the first deposit. @param since when that was, ms; null: unknown */
function Since({ profit, netDeposits, since }: { profit: number; netDeposits: number; since: number | null }) {
  return (
    <p>
      <Profit micro={profit} />
      {netDeposits > 0 && (
        <span class={profit > 0 ? "up" : profit < 0 ? "down" : ""} translate={false}>
          {` (${profit > 0 ? "+" : profit < 0 ? "−" : ""}${((100 * Math.abs(profit)) / netDeposits).toFixed(1)}%)`}
        </span>
      )}{" "}
      <span class="faint">
        {since !== null && `since ${date(since)}, `}on {money(netDeposits)} deposited net
      </span>
    </p>
  );
}

function WalletPanel({ inPositions }: { inPositions: number }) {
  const { available, held } = balance.value ?? { available: 0, held: 0 };
  return (
    <section class="panel wallet" aria-labelledby="wallet-title">
      <div class="panel-head">
        <h2 id="wallet-title">Wallet</h2>
        <a href={href("/wallet")}>Transactions</a>
      </div>
      <div>
        <p>Available</p>
        <p class="available" translate={false}>
          {spendable(available)} <small>USDC</small>
        </p>
        <p class="row">
          <a class="button primary" href={href("/wallet?show=deposits")}>
            Deposit
          </a>
          <a class="button" href={href("/wallet?show=withdrawals")}>
            Withdraw
          </a>
        </p>
        <dl>
          <div>
            <dt>On hold</dt>
            <dd translate={false}>{money(held)}</dd>
          </div>
          <div>
            <dt>In positions</dt>
            <dd translate={false}>{money(inPositions)}</dd>
          </div>
        </dl>
      </div>
      <LastWithdrawal />
    </section>
  );
}

/** The steps of the latest withdrawal. */
function LastWithdrawal() {
  const { data, reload } = useFetch<Page<Withdrawal>>(
    (signal) => request("GET", "/wallet/withdrawals", { query: { limit: 1 }, signal }),
    "withdrawal",
  );
  useFresh(reload);
  const last = data?.items[0];
  if (last === undefined) return null;
  const { amount, address, status, created_at, decided_at } = last;
  const steps: (readonly [string, number | null])[] =
    status === "pending"
      ? [
          ["Requested", created_at],
          ["In review", null],
          ["Paid", null],
        ]
      : [
          ["Requested", created_at],
          [capitalized(statusText(status as string)), decided_at],
        ];
  return (
    <div class="withdrawal">
      <p>
        <b translate={false}>Withdrawal, {money(amount)} USDC</b>
        <span class="mono faint" translate={false} title={address}>
          {address.length > 14 ? `${address.slice(0, 6)}…${address.slice(-4)}` : address}
        </span>
      </p>
      <ol>
        {steps.map(([name, at]) => (
          <li key={name} class={at === null ? "" : "done"}>
            <b>{name}</b>
            <span>{at === null ? "" : dateTime(at)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}
