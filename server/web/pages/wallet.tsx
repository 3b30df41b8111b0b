/** The user's wallet: balance, transactions, deposits and withdrawals. */
import { useEffect } from "preact/hooks";
import "./wallet.css";
import { money, spendable } from "../../util/format.ts";
import { balance } from "../account-state.ts";
import { request } from "../session.ts";
import type { Limits } from "../types.ts";
import { Loading } from "../ui/notices.tsx";
import { useTabs } from "../ui/tabs.tsx";
import { useFetch } from "../ui/use-data.ts";
import { useFresh } from "../ui/use-fresh.ts";
import { Deposits } from "./wallet/deposits.tsx";
import { Transactions } from "./wallet/transactions.tsx";
import { Withdrawals } from "./wallet/withdrawals.tsx";

const SECTIONS = [
  ["transactions", "Transactions"],
  ["deposits", "Deposits"],
  ["withdrawals", "Withdrawals"],
] as const;

export default function WalletPage() {
  useEffect(() => {
    document.title = "Wallet · Prediction Exchange";
  }, []);
  const { section, tabs } = useTabs("/wallet", "Wallet sections", SECTIONS);
  return (
    <>
      <h1>Wallet</h1>
      <Balances />
      {tabs}
      {section === "transactions" && <Transactions />}
      {section === "deposits" && <Deposits />}
      {section === "withdrawals" && <Withdrawals />}
    </>
  );
}

function Balances() {
  const limits = useFetch<Limits>((signal) => request("GET", "/me/limits", { signal }), "limits");
  // A change of the balance changes the daily activity.
  useFresh(limits.reload);
  if (balance.value === null) return <Loading what="Loading your balance" />;
  const { available, held, total } = balance.value;
  const activity = limits.data?.daily_activity ?? null;
  return (
    <dl class="totals">
      <div>
        <dt>Available</dt>
        <dd class="large">
          {spendable(available)} <small>USDC</small>
        </dd>
      </div>
      <div>
        <dt>On hold</dt>
        <dd>{money(held)}</dd>
      </div>
      <div>
        <dt>Total</dt>
        <dd>{money(total)}</dd>
      </div>
      <div>
        <dt>Daily activity, limit {activity === null ? "–" : money(activity.limit)}</dt>
        <dd>
          {activity === null ? "–" : money(activity.used)}
          {activity !== null && activity.limit > 0 && (
            <meter class="used" min={0} max={activity.limit} value={activity.used} aria-hidden="true" />
          )}
          <small class="below faint">Buys, splits and open buy orders. Resets at 00:00 UTC.</small>
        </dd>
      </div>
    </dl>
  );
}
