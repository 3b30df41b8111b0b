/** The head of a signed-in user: their money, deposits and menu. */

import { spendable } from "../../util/format.ts";
import { balance } from "../account-state.ts";
import { here, href } from "../router.ts";
import { user } from "../session.ts";
import { PortfolioValue } from "../trading/portfolio-value.tsx";
import { AccountLinks } from "./account-links.tsx";
import { NotificationBell } from "./notifications.tsx";
import { ThemeButton } from "./theme-button.tsx";

export default function SignedIn() {
  const initials = user.value?.email.slice(0, 2).toUpperCase() ?? "";
  return (
    <>
      <div class="money-top" translate={false}>
        {balance.value !== null && (
          <>
            <a href={href("/portfolio")}>
              <small>Portfolio, USDC</small>
              <b>
                <PortfolioValue />
              </b>
            </a>
            <a href={href("/wallet")} title="Available balance, USDC">
              <small>Available, USDC</small>
              <b>{spendable(balance.value.available)}</b>
            </a>
          </>
        )}
      </div>
      <a class="button small deposit" href={href("/wallet?show=deposits")}>
        Deposit
      </a>
      <NotificationBell />
      <ThemeButton />
      <details class="menu" key={here()}>
        <summary aria-label={`Account menu, ${initials}`}>{initials}</summary>
        <div>
          <AccountLinks />
        </div>
      </details>
    </>
  );
}
