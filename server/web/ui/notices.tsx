/** Messages in place: errors with a retry button, notices, loading and empty states, and the not-found section. */
import { errorMessage } from "../error-messages.ts";
import { href } from "../router.ts";
import { Icon } from "./icon.tsx";
import type { Children } from "./use-data.ts";

/** Shows an error to the user, and announces it. Renders nothing without an error. */
export function ErrorNotice({ error, retry }: { error: unknown; retry?: () => void }) {
  if (error === null || error === undefined) return null;
  return (
    <div class="notice bad" role="alert">
      <Icon name="alert" />
      <span>{errorMessage(error)}</span>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Retry
        </button>
      )}
    </div>
  );
}

export function Notice({ kind = "info", children }: { kind?: "info" | "good" | "warn" | "bad"; children: Children }) {
  return (
    <div class={`notice ${kind}`} role="status">
      <Icon name={kind === "warn" || kind === "bad" ? "alert" : kind === "good" ? "check" : "info"} />
      <div>{children}</div>
    </div>
  );
}

/** @param isPage the rest of the page waits for it, so that nothing moves */
export function Loading({ what = "Loading", isPage = false }: { what?: string; isPage?: boolean }) {
  return (
    <p class={isPage ? "loading of-page" : "loading"} role="status">
      {what}…
    </p>
  );
}

export function Empty({ children }: { children: Children }) {
  return <p class="empty">{children}</p>;
}

/** Replaces a page whose subject doesn't exist. @param what such as "market" */
export function NotFound({ what }: { what: "market" | "event" }) {
  return (
    <section class="narrow">
      <h1>{what === "market" ? "Market" : "Event"} not found</h1>
      <Empty>
        No {what} exists at this address. <a href={href("/")}>Browse markets</a>
      </Empty>
    </section>
  );
}
