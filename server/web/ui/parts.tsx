/** The page's building blocks: notices, fields, dialogs, tables that stay readable on a phone. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { money, signedMoney } from "../format.ts";
import { href, search } from "../router.ts";
import { explain } from "../error-messages.ts";
import type { Children } from "./use-data.ts";

/** What went wrong, read aloud; nothing where nothing did. */
export function ErrorNotice({ error, retry }: { error: unknown; retry?: () => void }) {
  if (error === null || error === undefined) return null;
  return (
    <div class="notice bad" role="alert">
      <span>{explain(error)}</span>
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
export function Missing({ what }: { what: string }) {
  return (
    <section class="narrow">
      <h1>No such {what}</h1>
      <Empty>
        There is no {what} at this address. <a href={href("/")}>Go to the markets</a>.
      </Empty>
    </section>
  );
}

interface InputProps {
  label: string;
  /** Below the field, always there. */
  hint?: Children;
  /** What is wrong with what was typed. */
  problem?: string | null;
  /** Behind the text, such as a unit. */
  unit?: string;
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "email" | "password" | "tel" | "url" | "search" | "date" | "datetime-local";
  inputMode?: "text" | "decimal" | "numeric" | "email" | "tel";
  autoComplete?: string;
  placeholder?: string;
  maxLength?: number;
  min?: string;
  required?: boolean;
  disabled?: boolean;
}

/** What a field for a date has while only a part of it was typed; browsers say "", as of an empty one. */
const HALF_TYPED = "half typed";

/** A labelled text field. */
export function Field({ label, hint, problem = null, unit, value, onInput, ...rest }: InputProps) {
  const id = useId();
  const tell = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void => {
    const text = currentTarget.validity.badInput ? HALF_TYPED : currentTarget.value;
    if (text !== value) onInput(text);
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="input">
        <input
          id={id}
          value={value === HALF_TYPED ? "" : value}
          aria-invalid={problem !== null}
          aria-describedby={`${id}-hint`}
          onInput={tell}
          onKeyUp={tell}
          {...(rest as object)}
        />
        {unit !== undefined && <span class="unit">{unit}</span>}
      </div>
      <div id={`${id}-hint`} class={problem === null ? "hint" : "hint bad"}>
        {problem ?? hint}
      </div>
    </div>
  );
}

/** A labelled text of several lines. */
export function TextArea({
  label,
  hint,
  problem = null,
  value,
  onInput,
  rows = 3,
  placeholder,
}: Pick<InputProps, "label" | "hint" | "problem" | "value" | "onInput" | "placeholder"> & { rows?: number }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={rows}
        value={value}
        placeholder={placeholder}
        aria-invalid={problem !== null}
        aria-describedby={`${id}-hint`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <div id={`${id}-hint`} class={problem === null ? "hint" : "hint bad"}>
        {problem ?? hint}
      </div>
    </div>
  );
}

/** A labelled choice of few. */
export function Select<T extends string>({
  label,
  value,
  options,
  onChange,
  isLabelHidden = false,
}: {
  label: string;
  value: T;
  options: readonly (readonly [value: T, text: string])[];
  onChange: (value: T) => void;
  isLabelHidden?: boolean;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id} class={isLabelHidden ? "hidden" : ""}>
        {label}
      </label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Checkbox({
  label,
  checked,
  onChange,
  hint,
  disabled = false,
}: {
  label: Children;
  checked: boolean;
  onChange: (checked: boolean) => void;
  hint?: string;
  disabled?: boolean;
}) {
  return (
    <label class="checkbox">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>
        {label}
        {hint !== undefined && <small>{hint}</small>}
      </span>
    </label>
  );
}

/** One of few, as buttons beside each other; arrow keys move, as in any group of radio buttons. */
export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
  tones = {},
}: {
  label: string;
  value: T;
  options: readonly (readonly [value: T, text: string])[];
  onChange: (value: T) => void;
  tones?: Readonly<Record<string, "good" | "bad">>;
}) {
  const name = useId();
  return (
    <fieldset class="choice">
      <legend class="hidden">{label}</legend>
      {options.map(([each, text]) => (
        <label key={each} class={each === value ? `chosen ${tones[each] ?? ""}` : ""}>
          <input type="radio" name={name} class="hidden" checked={each === value} onChange={() => onChange(each)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

/** A dialog over the page; Escape closes it, and focus stays in it. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: Children }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    ref.current!.showModal();
    return () => {
      // Unless who closed it has taken the focus elsewhere.
      if (document.activeElement === document.body) before?.focus?.();
    };
  }, []);
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={onClose} onCancel={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** A text to take along, such as a token: selected by a click, copied by a button. */
export function Copyable({ label, text }: { label: string; text: string }) {
  const [isCopied, setCopied] = useState(false);
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const copy = async (): Promise<void> => {
    field.current!.select();
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without HTTPS browsers have no clipboard for pages, save this old way.
      document.execCommand("copy");
    }
    setCopied(true);
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="copyable">
        <input
          id={id}
          ref={field}
          class="mono"
          readOnly
          value={text}
          onFocus={(event) => event.currentTarget.select()}
        />
        <button type="button" onClick={() => void copy()}>
          {isCopied ? "Copied" : "Copy"}
        </button>
      </div>
    </div>
  );
}

export function Money({ micro }: { micro: number | null }) {
  return <span class="number">{micro === null ? "–" : money(micro)}</span>;
}

/** Green where it is a gain, red where it is a loss. */
export function Profit({ micro }: { micro: number | null }) {
  if (micro === null) return <span class="number">–</span>;
  return <span class={`number ${micro > 0 ? "up" : micro < 0 ? "down" : ""}`}>{signedMoney(micro)}</span>;
}

export interface Column<T> {
  readonly title: string;
  readonly isNumber?: boolean;
  readonly show: (row: T) => Children;
}

/** A table; on a phone each row becomes a card, with the columns' titles beside what they have. */
export function Table<T>({
  caption,
  columns,
  rows,
  keyOf,
  empty,
}: {
  /** For who hears the page. */
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string | number;
  empty: Children;
}) {
  if (rows.length === 0) return <Empty>{empty}</Empty>;
  return (
    <table class="cards">
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
            {columns.map(({ title, isNumber, show }) => (
              <td key={title} data-title={title} class={isNumber ? "right number" : ""}>
                {show(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What scrolls by itself, also by keyboard. */
export function Scrolled({ label, children }: { label: string; children: Children }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse scrolls with the arrow keys
    <section class="scrolled" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

export function More({ more }: { more: (() => void) | null }) {
  if (more === null) return null;
  return (
    <button type="button" class="more" onClick={more}>
      Show more
    </button>
  );
}

/** A state of a market, an order, an application: in words and in a colour. */
export function Badge({ text, tone = "" }: { text: string; tone?: "" | "good" | "bad" | "warn" }) {
  return <span class={`badge ${tone}`}>{text}</span>;
}

/**
 * The section that ?show= names, the first one where it names none, and the links to all of them.
 * @param path of the page @param label of the links, for who hears the page
 */
export function useSections<T extends string>(
  path: string,
  label: string,
  sections: readonly (readonly [name: T, text: string])[],
): { section: T; tabs: Children } {
  const [first] = sections[0]!;
  const addressOf = (name: T): string => href(name === first ? path : `${path}?show=${name}`);
  const asked = search.value.get("show");
  const section = sections.find(([name]) => name === asked)?.[0] ?? first;
  const links = sections.map(([name, text]) => [addressOf(name), text] as const);
  return { section, tabs: <Tabs label={label} tabs={links} current={addressOf(section)} /> };
}

/** Sections of a page by links, the present one marked. */
export function Tabs({
  label,
  tabs,
  current,
}: {
  label: string;
  tabs: readonly (readonly [string, string])[];
  current: string;
}) {
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a phone they don't all fit.
    nav.current!.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={nav}>
      {tabs.map(([address, text]) => (
        <a key={address} href={address} aria-current={address === current ? "page" : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}
