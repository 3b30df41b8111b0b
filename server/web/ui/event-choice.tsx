/** Selects the event that a new market belongs to. */
import { useState } from "preact/hooks";
import { call } from "../api.ts";
import type { MarketEvent, Page } from "../types.ts";
import { Select } from "./fields.tsx";
import { ErrorNotice } from "./notices.tsx";
import { useFetch } from "./use-data.ts";

const MAX_EVENTS = 100;

/** Lists the newest events, or search results. */
export function EventChoice({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState("");
  const [q, setQ] = useState("");
  const { data, error, reload } = useFetch(
    (signal) => call<Page<MarketEvent>>("GET", "/events", { query: { q, limit: MAX_EVENTS }, signal }),
    q,
  );
  const events = data?.items ?? [];
  const isChosenShown = value === "" || events.some(({ id }) => String(id) === value);
  const options: [string, string][] = [
    ["", "None"],
    ...(isChosenShown ? [] : [[value, `Event ${value}`] as [string, string]]),
    ...events.map(({ id, title }): [string, string] => [String(id), title]),
  ];
  if (data !== null && q === "" && events.length === 0) return null;
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      <Select label="Event (optional)" value={value} options={options} onChange={onChange} />
      {(q !== "" || (data !== null && data.next_cursor !== null)) && (
        <div class="row">
          <input
            type="search"
            aria-label="Search events"
            placeholder="Search events"
            value={text}
            maxLength={200}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              event.preventDefault();
              setQ(text.trim());
            }}
          />
          <button type="button" onClick={() => setQ(text.trim())}>
            Search
          </button>
        </div>
      )}
    </>
  );
}
