/** The layout of every page: header, connection status, footer, tabs. Loads pages on demand. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { PagePath } from "../http/page-paths.ts";
import { ApiError, NO_ANSWER_TO_READ, SOLVENCY } from "./api.ts";
import { timeZone } from "./browser.ts";
import { clock } from "./dates.ts";
import { Feed } from "./pages/feed.tsx";
import { withReturnPath } from "./pages/return-path.ts";
import { here, href, location } from "./router.ts";
import { sessionNotice, sessionState } from "./session.ts";
import { BottomTabs } from "./shell/bottom-tabs.tsx";
import { Header } from "./shell/header.tsx";
import { Keys } from "./shell/keys.tsx";
import { LazyDialog } from "./shell/lazy-dialog.tsx";
import { outage, retryNow, streamState } from "./stream.ts";
import { Icon } from "./ui/icon.tsx";
import { Empty, ErrorNotice, Loading } from "./ui/notices.tsx";
import { dialogs, Toasts } from "./ui/toast.tsx";
import { useOnLive } from "./ui/use-data.ts";
import { usePart } from "./ui/use-part.ts";

/** A page receives the path's parameter, "" if the path has none. */
type PageComponent = ComponentType<{ param: string }>;
type Loader = () => Promise<{ default: PageComponent }>;

/** The feed is in the first load; other pages load on demand. */
const PAGES: Readonly<Record<Exclude<PagePath, "/">, Loader>> = {
  "/markets/:market": () => import("./pages/market.tsx"),
  "/events/:event": () => import("./pages/event.tsx"),
  "/search": () => import("./pages/search.tsx"),
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
  "/unsubscribe/:token": () => import("./pages/unsubscribe.tsx"),
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
      <BottomTabs />
      <Keys />
      <LazyDialog />
      {dialogs.value === 0 && <Toasts />}
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
  if (sessionState.value === "unknown") return <Loading isPage what={sessionNotice.value ?? "Signing in"} />;
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

/** What an error of the network says of a page's code. */
const NOT_LOADED = new ApiError(0, 0, NO_ANSWER_TO_READ, null, null);

function Lazy({ load, param }: { load: Loader; param: string }) {
  // After a deployment, chunks have new names and the old ones are gone.
  const { part, error } = usePart(load);
  // Once the exchange is there again, so is the page's code. A browser may remember that a module failed: load all anew.
  useOnLive(() => error !== null && window.location.reload());
  if (error !== null) return <ErrorNotice error={NOT_LOADED} retry={() => window.location.reload()} />;
  return part === null ? <Loading isPage /> : <part.default param={param} />;
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

/** Warns that prices may be stale, so that nobody trades on them unknowingly. */
function StaleBanner() {
  const now = useSeconds(streamState.value === "stale");
  if (streamState.value !== "stale") return null;
  const { since = null, nextTry = 0, other } = outage.value ?? {};
  const seconds = Math.ceil((nextTry - now) / 1_000);
  return (
    <div class="stale-bar">
      <Icon name="off" />
      <span role="alert">
        <b>No connection to the exchange.</b>{" "}
        {since === null
          ? "The page tries again by itself."
          : `Prices are from ${clock(since)}. Your orders stay in the book.`}
      </span>
      {other && <a href={other + window.location.pathname}>Go on at {other}</a>}
      <span class="next-try">{seconds > 0 ? `Next try in ${seconds} s` : "Trying…"}</span>
      <button type="button" class="small outlined" onClick={retryNow}>
        Retry now
      </button>
    </div>
  );
}

/** The computer's time, each second while it is wanted. */
function useSeconds(isWanted: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isWanted) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isWanted]);
  return now;
}

function Footer() {
  const state = streamState.value;
  return (
    <footer>
      <span class={`stream ${state}`}>
        {state === "live" ? "Prices live" : state === "stale" ? "Disconnected" : "Connecting…"}
      </span>
      <a href={href("/docs")}>API reference</a>
      <a href={SOLVENCY}>Solvency</a>
      <span>Times are in {timeZone()}.</span>
      <span>Each share of the winning outcome pays 1 USDC.</span>
    </footer>
  );
}
