/** Links between the sections of a page. */

import { useEffect, useRef } from "preact/hooks";
import { required } from "../required.ts";
import { href, search } from "../router.ts";
import type { Children } from "./use-data.ts";

/**
 * Selects a section by the ?show= parameter, the first section by default, and renders links to all sections.
 * @param path of the page @param label of the navigation, for screen readers @param counts beside the texts
 */
export function useTabs<T extends string>(
  path: string,
  label: string,
  sections: readonly (readonly [name: T, text: string])[],
  counts: Readonly<Partial<Record<string, string>>> = {},
): { section: T; tabs: Children } {
  const [first] = required(sections[0], "a section");
  const addressOf = (name: T): string => href(name === first ? path : `${path}?show=${name}`);
  const requested = search.value.get("show");
  const section = sections.find(([name]) => name === requested)?.[0] ?? first;
  const links = sections.map(([name, text]) => [addressOf(name), text, counts[name]] as const);
  return { section, tabs: <Tabs label={label} tabs={links} current={addressOf(section)} /> };
}

/** Links to the sections of a page, with the current one marked. */
export function Tabs({
  label,
  tabs,
  current,
}: {
  label: string;
  tabs: readonly (readonly [address: string, text: string, count?: string | undefined])[];
  current: string;
}) {
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    // Not all tabs fit on a phone.
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={nav}>
      {tabs.map(([address, text, count]) => (
        <a key={address} href={address} aria-current={address === current ? "page" : undefined}>
          {text}
          {count !== undefined && (
            <small translate={false}>
              <span class="hidden">, </span>
              {count}
            </small>
          )}
        </a>
      ))}
    </nav>
  );
}
