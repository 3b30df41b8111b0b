/** The layout of both references: operations with a filter beside the content; and pages for single schemas. */
import { useEffect, useRef, useState } from "preact/hooks";
import { href, navigate, search } from "../../router.ts";
import { Empty } from "../../ui/notices.tsx";
import type { Children } from "../../ui/use-data.ts";
import type { Document } from "./api-document.ts";
import { SchemaView } from "./schema.tsx";

export interface Entry {
  readonly id: string;
  /** HTTP method, shown before the title. */
  readonly method: string | null;
  readonly title: string;
  /** Further text that the filter matches. */
  readonly words: string;
}

export interface Group {
  readonly name: string;
  readonly description?: string | undefined;
  readonly entries: readonly Entry[];
}

/** Pixels above the current entry. */
const LIST_MARGIN = 80;

/** @param page path below /docs @param current id of the entry shown, "" for none */
export function ReferenceLayout({
  page,
  groups,
  current,
  children,
}: {
  page: string;
  groups: readonly Group[];
  current: string;
  children: Children;
}) {
  const [text, setText] = useState("");
  const frame = useRef<HTMLDivElement>(null);
  const shown = `${search.value.get("schema")} ${current}`;
  const before = useRef(shown);
  const list = useRef<HTMLElement>(null);
  // After following a link, scroll the list to the current entry.
  useEffect(() => {
    const link = list.current?.querySelector<HTMLElement>("[aria-current]");
    if (list.current && link) list.current.scrollTop = link.offsetTop - LIST_MARGIN;
  }, []);
  useEffect(() => {
    if (before.current === shown) return;
    before.current = shown;
    window.scrollTo(0, 0);
    // Keep the focus on the drop-down for keyboard users.
    if (document.activeElement?.tagName !== "SELECT")
      frame.current?.querySelector("h1")?.focus({ preventScroll: true });
  }, [shown]);
  const searchWords = text.trim().toLowerCase().split(/\s+/);
  const found = groups
    .map((group) => ({ ...group, entries: group.entries.filter((entry) => matches(entry, searchWords)) }))
    .filter(({ entries }) => entries.length > 0);
  return (
    <div class="reference">
      <aside>
        <search>
          <input
            type="search"
            aria-label="Filter operations"
            placeholder="Filter"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </search>
        <nav class="operations" aria-label="Operations" ref={list}>
          {found.length === 0 && <Empty>No results</Empty>}
          {found.map(({ name, entries }) => (
            <section key={name}>
              <h2>{name}</h2>
              <ul>
                {entries.map((entry) => (
                  <li key={entry.id}>
                    <EntryLink page={page} entry={entry} isCurrent={entry.id === current} />
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </nav>
        <OperationSelect page={page} groups={found} current={current} />
      </aside>
      <div class="shown" ref={frame}>
        {children}
      </div>
    </div>
  );
}

/** Replaces the list on a phone. */
function OperationSelect({ page, groups, current }: { page: string; groups: readonly Group[]; current: string }) {
  return (
    <select
      class="operations-select"
      aria-label="Operation"
      value={current}
      onChange={(event) => navigate(addressOf(page, event.currentTarget.value))}
    >
      <option value="">All operations</option>
      {groups.map(({ name, entries }) => (
        <optgroup key={name} label={name}>
          {entries.map(({ id, method, title }) => (
            <option key={id} value={id}>
              {method === null ? title : `${method} ${title}`}
            </option>
          ))}
        </optgroup>
      ))}
    </select>
  );
}

const addressOf = (page: string, id: string): string =>
  id === "" ? `/docs/${page}` : `/docs/${page}?operation=${encodeURIComponent(id)}`;

function matches({ method, title, words }: Entry, searchWords: readonly string[]): boolean {
  const text = `${method ?? ""} ${title} ${words}`.toLowerCase();
  return searchWords.every((word) => text.includes(word));
}

function EntryLink({ page, entry, isCurrent }: { page: string; entry: Entry; isCurrent: boolean }) {
  const { id, method, title } = entry;
  return (
    <a href={href(addressOf(page, id))} aria-current={isCurrent ? "page" : undefined}>
      {method !== null && <Method method={method} />}
      <span>{title}</span>
    </a>
  );
}

export function Method({ method }: { method: string }) {
  return <span class={`method ${method.toLowerCase()}`}>{method}</span>;
}

/** A linked list of entries. */
export function EntryList({ page, entries }: { page: string; entries: readonly Entry[] }) {
  return (
    <ul class="index">
      {entries.map((entry) => (
        <li key={entry.id}>
          <EntryLink page={page} entry={entry} isCurrent={false} />
        </li>
      ))}
    </ul>
  );
}

export function Title({ children }: { children: string }) {
  useEffect(() => {
    document.title = `${children} · API reference · Prediction Exchange`;
  }, [children]);
  return <h1 tabIndex={-1}>{children}</h1>;
}

/** Shows a named schema of the document. */
export function SchemaPage({ name, document, page }: { name: string; document: Document; page: string }) {
  const isKnown = document.components?.schemas?.[name] !== undefined;
  return (
    <>
      <Title>{name}</Title>
      {isKnown ? (
        <section class="panel">
          <SchemaView schema={{ $ref: `#/components/schemas/${name}` }} document={document} page={page} />
        </section>
      ) : (
        <Empty>No schema has this name.</Empty>
      )}
    </>
  );
}
