/** The frame of every page: who is signed in, where one can go, whether what is shown is live. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { balance } from "./account-state.ts";
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

/** A page gets the path's parameter, "" where it has none. */
type PageComponent = ComponentType<{ param: string }>;
type Loader = () => Promise<{ default: PageComponent }>;

/** The feed comes with the first load, the others when they are gone to. */
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
/** Pages that show what is the caller's own: who isn't signed in is asked to. */
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
  document.getElementById("main")!.focus();
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
  if (sessionState.value === "unknown") return <Loading what={sessionNotice.value ?? "Signing you in"} />;
  return (
    <section class="narrow">
      <h1>Sign in first</h1>
      <p>This page shows what is yours alone.</p>
      <p class="row">
        <a class="button primary" href={href(withReturnPath("/sign-in"))}>
          Sign in
        </a>
        <a class="button" href={href(withReturnPath("/sign-up"))}>
          Create an account
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
      // A new version is served under other names.
      setError,
    );
  }, [load]);
  if (error !== null) return <ErrorNotice error={error} retry={() => window.location.reload()} />;
  return Component === null ? <Loading /> : <Component param={param} />;
}

function PageNotFound() {
  return (
    <section class="narrow">
      <h1>Nothing here</h1>
      <Empty>
        There is no page at this address. <a href={href("/")}>Go to the markets</a>.
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
  const isIn = sessionState.value === "in";
  return (
    <header class="top">
      <a class="brand" href={href("/")} aria-label="Prediction Exchange">
        <img src="./favicon.svg" alt="" width="24" height="24" />
        <span>Prediction Exchange</span>
      </a>
      <nav aria-label="Main">
        {link("/", "Markets", path === "/")}
        {isIn && link("/portfolio", "Portfolio", path === "/portfolio")}
        {isIn && link("/wallet", "Wallet", path === "/wallet")}
        {isIn && link("/propose", "Propose", path === "/propose")}
        {isOperator.value && link("/desk", "Desk", path?.startsWith("/desk") ?? false)}
        {link("/docs", "API", path?.startsWith("/docs") ?? false)}
      </nav>
      <div class="who">
        <ThemeButton />
        {isIn ? <SignedIn /> : <SignedOut />}
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
      toast(`You are still signed in. ${errorMessage(error)}`, true);
    }
  });
  return (
    <>
      {balance.value !== null && (
        <a class="balance number" href={href("/wallet")} title="Available balance, USDC">
          {money(balance.value.available)} <small>USDC</small>
        </a>
      )}
      <details class="menu" key={here()}>
        <summary aria-label="Your account">{user.value?.email.slice(0, 1).toUpperCase()}</summary>
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

/** Light, dark, or as the machine has it. */
function ThemeButton() {
  const [isDark, setDark] = useState(
    () =>
      (document.documentElement.dataset["theme"] ??
        (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark",
  );
  const change = (): void => {
    const theme = isDark ? "light" : "dark";
    document.documentElement.dataset["theme"] = theme;
    localStorage.setItem("theme", theme);
    setDark(!isDark);
  };
  return (
    <button type="button" class="quiet" aria-label={isDark ? "Use light colours" : "Use dark colours"} onClick={change}>
      {isDark ? "☀" : "☾"}
    </button>
  );
}

/** Nobody should trade on prices that stand still without knowing. */
function StaleBanner() {
  if (streamState.value !== "stale") return null;
  return (
    <div class="old" role="alert">
      Not live: the connection to the exchange is lost. Prices, books and orders may be old; reconnecting…
    </div>
  );
}

function Footer() {
  const state = streamState.value;
  return (
    <footer>
      <span class={`stream ${state}`}>
        {state === "live" ? "Live" : state === "stale" ? "Not live" : "Connecting…"}
      </span>
      <a href={href("/docs")}>API reference</a>
      <a href={`${href("/")}api/v1/solvency`}>Solvency</a>
      <span class="faint">A share of the outcome that happens pays 1 USDC.</span>
    </footer>
  );
}
