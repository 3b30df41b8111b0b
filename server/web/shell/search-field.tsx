/** Searches markets and events from any page. `/` goes to it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { location, navigate, search, setSearch } from "../router.ts";
import { Icon } from "../ui/icon.tsx";
import { isTyping } from "../ui/keys.ts";

const TYPING_MS = 200;
/** The longest text that the API searches for. */
const MAX_LETTERS = 200;

/** @param hasKey the field that `/` goes to, if it is shown */
export function SearchField({ hasKey = false }: { hasKey?: boolean }) {
  const isHere = location.value?.path === "/search";
  const sought = isHere ? (search.value.get("q") ?? "") : "";
  const [text, setText] = useState(sought);
  const field = useRef<HTMLInputElement>(null);
  /** What this field has asked for last: more may have been typed since. */
  const asked = useRef(sought);
  // The search can also change through the history, a link or the other field.
  useEffect(() => {
    if (sought !== asked.current) setText(sought);
    asked.current = sought;
  }, [sought]);
  const seek = (): void => {
    const q = text.trim();
    if (q === sought) return;
    asked.current = q;
    if (isHere) setSearch({ q, page: null });
    else if (q !== "") navigate(`/search?q=${encodeURIComponent(q)}`, false, true);
  };
  useEffect(() => {
    const timer = setTimeout(seek, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    if (!hasKey) return;
    const toField = (event: KeyboardEvent): void => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (!(field.current?.checkVisibility() ?? false)) return;
      event.preventDefault();
      field.current?.select();
    };
    document.addEventListener("keydown", toField);
    return () => document.removeEventListener("keydown", toField);
  }, [hasKey]);
  return (
    <search class="find">
      <Icon name="search" />
      <input
        type="search"
        ref={field}
        aria-label="Search markets and events"
        aria-keyshortcuts={hasKey ? "/" : undefined}
        placeholder="Search markets and events"
        maxLength={MAX_LETTERS}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") seek();
          if (event.key === "Escape") setText("");
        }}
      />
      <span class="key" aria-hidden="true">
        /
      </span>
    </search>
  );
}
