/** The head of every page: navigation, search, the user's money and menu. */
import { balance } from "../account-state.ts";
import { spendable } from "../format.ts";
import { withReturnPath } from "../pages/return-path.ts";
import { here, href, location } from "../router.ts";
import { isOperator, sessionNotice, sessionState, user } from "../session.ts";
import { Icon } from "../ui/icon.tsx";
import { useEdge } from "../ui/use-edge.ts";
import { AccountLinks } from "./account-links.tsx";
import { useTheme } from "./appearance.ts";
import { PortfolioValue } from "./portfolio-value.tsx";
import { SearchField } from "./search-field.tsx";

export function Header() {
  const path = location.value?.path;
  const link = (to: string, text: string, isCurrent: boolean) => (
    <a href={href(to)} aria-current={isCurrent ? "page" : undefined}>
      {text}
    </a>
  );
  const isSignedIn = sessionState.value === "in";
  const head = useEdge("--head");
  return (
    <header class="top" ref={head}>
      <a class="brand" href={href("/")} aria-label="Prediction Exchange">
        <Logo />
        <span>Prediction Exchange</span>
      </a>
      <nav aria-label="Main">
        {link("/", "Markets", path === "/")}
        {isSignedIn && link("/portfolio", "Portfolio", path === "/portfolio")}
        {isOperator.value && link("/desk", "Desk", path?.startsWith("/desk") ?? false)}
        {!isSignedIn && link("/docs", "API", path?.startsWith("/docs") ?? false)}
      </nav>
      <SearchField hasKey />
      <div class="who">{isSignedIn ? <SignedIn /> : <SignedOut />}</div>
    </header>
  );
}

function Logo() {
  return (
    <svg width="26" height="26" viewBox="0 0 26 26" aria-hidden="true">
      <rect width="26" height="26" rx="7" fill="var(--text)" />
      <path d="M7 18V8h5.200a3.400 3.400 0 0 1 0 6.800H10" fill="none" stroke="var(--bg)" stroke-width="2.400" />
      <circle cx="18.300" cy="17" r="2.300" fill="var(--accent)" />
    </svg>
  );
}

function SignedOut() {
  if (sessionState.value === "unknown") return <span class="faint">{sessionNotice.value ?? "…"}</span>;
  return (
    <>
      <ThemeButton />
      <a class="button small" href={href(withReturnPath("/sign-in"))}>
        Sign in
      </a>
      <a class="button small primary" href={href(withReturnPath("/sign-up"))}>
        Sign up
      </a>
    </>
  );
}

function SignedIn() {
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

function ThemeButton() {
  const { isDark, change } = useTheme();
  return (
    <button
      type="button"
      class="quiet"
      aria-label={isDark ? "Switch to light mode" : "Switch to dark mode"}
      onClick={change}
    >
      <Icon name={isDark ? "sun" : "moon"} size={18} />
    </button>
  );
}
