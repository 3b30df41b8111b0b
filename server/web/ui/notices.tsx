import { errorMessage } from "../error-messages.ts";
import { href } from "../router.ts";
import type { Children } from "./use-data.ts";

/** What went wrong, read aloud; nothing where nothing did. */
export function ErrorNotice({ error, retry }: { error: unknown; retry?: () => void }) {
  if (error === null || error === undefined) return null;
  return (
    <div class="notice bad" role="alert">
      <span>{errorMessage(error)}</span>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Notice({ kind = "info", children }: { kind?: "info" | "good" | "warn" | "bad"; children: Children }) {
  return (
    <div class={`notice ${kind}`} role="status">
      <div>{children}</div>
    </div>
  );
}

export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <p class="loading" role="status">
      {what}…
    </p>
  );
}

export function Empty({ children }: { children: Children }) {
  return <p class="empty">{children}</p>;
}

/** In place of the page of a thing that isn't there. @param what such as market */
export function NotFound({ what }: { what: string }) {
  return (
    <section class="narrow">
      <h1>No such {what}</h1>
      <Empty>
        There is no {what} at this address. <a href={href("/")}>Go to the markets</a>.
      </Empty>
    </section>
  );
}
