/** Tabs within a panel: one of several views in the same place. Arrow keys move between them. */
import { useId, useRef } from "preact/hooks";
import type { Children } from "./use-data.ts";

export interface Tab<T extends string> {
  readonly name: T;
  readonly text: string;
  /** Beside the text, such as the number of orders. */
  readonly count?: number;
}

interface TabListProps<T extends string> {
  /** For screen readers. */
  label: string;
  tabs: readonly Tab<T>[];
  current: T;
  onChange: (name: T) => void;
  /** The view of the current tab. */
  children: Children;
}

export function TabList<T extends string>({ label, tabs, current, onChange, children }: TabListProps<T>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent): void => {
    const at = tabs.findIndex(({ name }) => name === current);
    const steps: Readonly<Record<string, number>> = {
      ArrowRight: (at + 1) % tabs.length,
      ArrowLeft: (at + tabs.length - 1) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
    };
    const next = tabs[steps[event.key] ?? -1];
    if (next === undefined) return;
    event.preventDefault();
    onChange(next.name);
    list.current?.querySelector<HTMLElement>(`[data-name="${next.name}"]`)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map(({ name, text, count }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            data-name={name}
            aria-selected={name === current}
            aria-controls={`${id}-panel`}
            tabIndex={name === current ? 0 : -1}
            onClick={() => onChange(name)}
          >
            {text}
            {count !== undefined && count > 0 && (
              <small translate={false}>
                <span class="hidden">, </span>
                {count}
              </small>
            )}
          </button>
        ))}
      </div>
      <div class="tab-panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`} tabIndex={-1}>
        {children}
      </div>
    </>
  );
}
