/** The layout of every page: header, navigation, account menu, connection status. Loads pages on demand. */

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { balance } from "./account-state.ts";
import { kept, timeZone } from "./browser.ts";
import { errorMessage } from "./error-messages.ts";
import { money } from "./format.ts";
import { Feed } from "./pages/feed.tsx";
import { withReturnPath } from "./pages/return-path.ts";
import type { PagePath } from "./paths.ts";
import { here, href, location, navigate } from "./router.ts";
import { isOperator, sessionNotice, sessionState, signOut, user } from "./session.ts";
import { streamState } from "./stream.ts";
import { Empty, ErrorNotice, Loading } from "./ui/notices.tsx";
import { Toasts, toast } from "./ui/toast.tsx";
import { useAction } from "./ui/use-data.ts";
import { useEdge } from "./ui/use-edge.ts";

/** A page receives the path's parameter, "" if the path has none. */
type PageComponent = ComponentType<{ param: string }>;
type Loader = () => Promise<{ default: PageComponent }>;

/** The feed is in the first load; other pages load on demand. */
const PAGES: Readonly<Record<Exclude<PagePath, "/">, Loader>> = {
  "/markets/:market": () => import("./pages/market.tsx"),
  "/events/:event": () => import("./pages/event.tsx"),
  "/portfolio": () => import("./pages/portfolio.tsx"),
  "/wallet": () => import("./pages/wallet.tsx"),
  "/propose": () => import("./pages/propose.tsx"),
  "/sign-in": () => import("./pages/sign-in.tsx"),
  "/sign-in/done": () => import("./pages/sign-in-done.tsx"),
  "/sign-up": () => import("./pages/sign-up.tsx"),
  "/verify-email": () => import("./pages/verify-email.tsx"),
  "/welcome": () => import("./pages/welcome.tsx"),
  "/forgot-password": () => import("./pages/forgot-password.tsx"),
  "/reset-password": () => import("./pages/reset-password.tsx"),
  "/account": () => import("./pages/account.tsx"),
  "/account/tokens": () => import("./pages/tokens.tsx"),
  "/account/apps": () => import("./pages/apps.tsx"),
  "/account/sessions": () => import("./pages/sessions.tsx"),
  "/account/security": () => import("./pages/security.tsx"),
  "/consent": () => import("./pages/consent.tsx"),
  "/desk": () => import("./pages/desk.tsx"),
  "/desk/:section": () => import("./pages/desk.tsx"),
  "/docs": () => import("./pages/docs.tsx"),
  "/docs/:document": () => import("./pages/docs.tsx"),
};
/** Pages that require a signed-in user. */
const SIGNED_IN_PAGES: ReadonlySet<PagePath> = new Set([
  ...(["/portfolio", "/wallet", "/propose", "/consent", "/desk", "/desk/:section", "/welcome"] as const),
  ...(["/account", "/account/tokens", "/account/apps", "/account/sessions", "/account/security"] as const),
]);

export function App() {
  return (
    <>
      <a class="skip" href={`${href(here())}#main`} onClick={skip}>
        Skip to content
      </a>
      <Header />
      <StaleBanner />
      <main id="main" tabIndex={-1}>
        <CurrentPage />
      </main>
      <Footer />
      <Toasts />
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function CurrentPage() {
  const found = location.value;
  useEffect(() => {
    // A page sets its own title once it knows what it shows.
    document.title = "Prediction Exchange";
  }, [found?.path]);
  if (found === null) return <PageNotFound />;
  if (found.path === "/") return <Feed />;
  if (SIGNED_IN_PAGES.has(found.path) && sessionState.value !== "in") return <SignInPrompt />;
  return <Lazy key={found.path} load={PAGES[found.path]} param={found.param} />;
}

function SignInPrompt() {
  if (sessionState.value === "unknown") return <Loading what={sessionNotice.value ?? "Signing in"} />;
  return (
    <section class="narrow">
      <h1>Sign in to continue</h1>
      <p>You need to be signed in to view this page.</p>
      <p class="row">
        <a class="button primary" href={href(withReturnPath("/sign-in"))}>
          Sign in
        </a>
        <a class="button" href={href(withReturnPath("/sign-up"))}>
          Create account
        </a>
      </p>
    </section>
  );
}

function Lazy({ load, param }: { load: Loader; param: string }) {
  const [Component, setComponent] = useState<PageComponent | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    load().then(
      (module) => setComponent(() => module.default),
      // After a deployment, chunks have new names and the old ones are gone.
      setError,
    );
  }, [load]);
  if (error !== null) return <ErrorNotice error={error} retry={() => window.location.reload()} />;
  return Component === null ? <Loading /> : <Component param={param} />;
}

function PageNotFound() {
  return (
    <section class="narrow">
      <h1>Page not found</h1>
      <Empty>
        No page exists at this address. <a href={href("/")}>Browse markets</a>
      </Empty>
    </section>
  );
}

function Header() {
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
        <img src="./favicon.svg" alt="" width="24" height="24" />
        <span>Prediction Exchange</span>
      </a>
      <nav aria-label="Main">
        {link("/", "Markets", path === "/")}
        {isSignedIn && link("/portfolio", "Portfolio", path === "/portfolio")}
        {isSignedIn && link("/wallet", "Wallet", path === "/wallet")}
        {isSignedIn && link("/propose", "Propose", path === "/propose")}
        {isOperator.value && link("/desk", "Desk", path?.startsWith("/desk") ?? false)}
        {link("/docs", "API", path?.startsWith("/docs") ?? false)}
      </nav>
      <div class="who">
        <ThemeButton />
        {isSignedIn ? <SignedIn /> : <SignedOut />}
      </div>
    </header>
  );
}

function SignedOut() {
  if (sessionState.value === "unknown") return <span class="faint">{sessionNotice.value ?? "…"}</span>;
  return (
    <>
      <a class="button" href={href(withReturnPath("/sign-in"))}>
        Sign in
      </a>
      <a class="button primary" href={href(withReturnPath("/sign-up"))}>
        Sign up
      </a>
    </>
  );
}

function SignedIn() {
  const { run, isBusy } = useAction(async () => {
    try {
      await signOut();
      navigate("/");
    } catch (error) {
      toast(`Sign-out failed. ${errorMessage(error)}`, true);
    }
  });
  return (
    <>
      {balance.value !== null && (
        <a class="balance number" translate={false} href={href("/wallet")} title="Available balance, USDC">
          {money(balance.value.available)} <small>USDC</small>
        </a>
      )}
      <details class="menu" key={here()}>
        <summary aria-label="Account menu">{user.value?.email.slice(0, 1).toUpperCase()}</summary>
        <div>
          <p class="faint">{user.value?.email}</p>
          <a href={href("/account")}>Account</a>
          <a href={href("/account/tokens")}>Access tokens</a>
          <a href={href("/account/apps")}>Connected apps</a>
          <a href={href("/account/sessions")}>Sessions</a>
          <a href={href("/account/security")}>Security</a>
          <button type="button" disabled={isBusy} onClick={() => void run()}>
            Sign out
          </button>
        </div>
      </details>
    </>
  );
}

/** Switches between light and dark; the system's setting is the default. */
function ThemeButton() {
  const [isDark, setDark] = useState(
    () =>
      (document.documentElement.dataset["theme"] ??
        (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark",
  );
  const change = (): void => {
    const theme = isDark ? "light" : "dark";
    document.documentElement.dataset["theme"] = theme;
    kept.set("theme", theme);
    setDark(!isDark);
  };
  return (
    <button
      type="button"
      class="quiet"
      aria-label={isDark ? "Switch to light mode" : "Switch to dark mode"}
      onClick={change}
    >
      {isDark ? "☀" : "☾"}
    </button>
  );
}

/** Warns that prices may be stale, so that nobody trades on them unknowingly. */
function StaleBanner() {
  if (streamState.value !== "stale") return null;
  return (
    <div class="stale" role="alert">
      Connection lost. Prices, books and orders may be out of date. Reconnecting…
    </div>
  );
}

function Footer() {
  const state = streamState.value;
  return (
    <footer>
      <span class={`stream ${state}`}>
        {state === "live" ? "Live" : state === "stale" ? "Disconnected" : "Connecting…"}
      </span>
      <a href={href("/docs")}>API reference</a>
      <a href={`${href("/")}api/v1/solvency`}>Solvency</a>
      <span class="faint">Times are in {timeZone()}.</span>
      <span class="faint">Each share of the winning outcome pays 1 USDC.</span>
    </footer>
  );
}
