/** The head of every page: navigation, search, the user's money and menu. */
import type { ComponentType } from "preact";
import { withReturnPath } from "../pages/return-path.ts";
import { href, location } from "../router.ts";
import { isOperator, sessionNotice, sessionState } from "../session.ts";
import { useEdge } from "../ui/use-edge.ts";
import { usePart } from "../ui/use-part.ts";
import { SearchField } from "./search-field.tsx";
import { ThemeButton } from "./theme-button.tsx";

/** Their pages belong to the markets. */
const MARKET_PATHS: readonly string[] = ["/", "/markets/:market", "/events/:event"];

export function Header() {
  const path = location.value?.path;
  const link = (to: string, text: string, isCurrent: boolean) => (
    <a href={href(to)} aria-current={isCurrent ? (path === to ? "page" : "true") : undefined}>
      {text}
    </a>
  );
  const isSignedIn = sessionState.value === "in";
  const head = useEdge("--head");
  return (
    <header class={path === "/markets/:market" ? "top of-market" : "top"} ref={head}>
      <a class="brand" href={href("/")} aria-label="Prediction Exchange">
        <Logo />
        <span>Prediction Exchange</span>
      </a>
      <nav aria-label="Main">
        {link("/", "Markets", MARKET_PATHS.includes(path ?? ""))}
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

const loadSignedIn = (): Promise<ComponentType> => import("./signed-in.tsx").then((module) => module.default);

/** Loaded once somebody has signed in. */
function SignedIn() {
  const { part: Content } = usePart(loadSignedIn);
  return Content === null ? null : <Content />;
}
