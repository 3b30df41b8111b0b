/** Tables that turn into cards on a phone, scrollable regions, and the button that loads the next page. */
import { Empty } from "./notices.tsx";
import type { Children } from "./use-data.ts";

export interface Column<T> {
  readonly title: string;
  readonly isNumber?: boolean;
  readonly show: (row: T) => Children;
  /** In the row of totals. */
  readonly total?: Children;
  /** Where the cell stands on a phone, if rows are of two lines there: cells without a place are hidden. */
  readonly phone?: "main" | "upper" | "lower" | "end";
}

/** A table. On a phone, each row becomes a card with the column titles beside the values, or two lines: see `phone`. */
export function Table<T>({
  caption,
  columns,
  rows,
  keyOf,
  empty,
}: {
  /** For screen readers. */
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string | number;
  empty: Children;
}) {
  if (rows.length === 0) return <Empty>{empty}</Empty>;
  const hasPlaces = columns.some(({ phone }) => phone !== undefined);
  return (
    <table class={hasPlaces ? "cards rows" : "cards"}>
      <caption class="hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ title, isNumber }) => (
            <th key={title} scope="col" class={isNumber ? "right" : ""}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ title, isNumber, show, phone }) => (
              <td
                key={title}
                data-title={title}
                data-phone={phone}
                class={isNumber ? "right number" : ""}
                translate={isNumber ? false : undefined}
              >
                {show(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
      {columns.some(({ total }) => total !== undefined) && (
        <tfoot>
          <tr>
            {columns.map(({ title, isNumber, total, phone }) => (
              <td
                key={title}
                data-title={total === undefined ? undefined : title}
                data-phone={phone}
                class={isNumber ? "right number" : ""}
                translate={isNumber ? false : undefined}
              >
                {total}
              </td>
            ))}
          </tr>
        </tfoot>
      )}
    </table>
  );
}

/** A region that scrolls on its own, by keyboard too. */
export function Scrollable({ label, children }: { label: string; children: Children }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll with the arrow keys
    <section class="scrolled" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

/** @param more null: this is the last page */
export function LoadMore({ more }: { more: (() => void) | null }) {
  if (more === null) return null;
  return (
    <button type="button" class="more" onClick={more}>
      Show more
    </button>
  );
}
