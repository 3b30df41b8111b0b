/** The layout of the account pages: title, heading and tabs. */
import { useEffect } from "preact/hooks";
import { href } from "../router.ts";
import { Tabs } from "./tabs.tsx";
import type { Children } from "./use-data.ts";

const TABS = [
  ["/account", "Account"],
  ["/account/tokens", "Access tokens"],
  ["/account/apps", "Connected apps"],
  ["/account/sessions", "Sessions"],
  ["/account/security", "Security"],
] as const;

interface LayoutProps {
  path: (typeof TABS)[number][0];
  children: Children;
}

export function AccountLayout({ path, children }: LayoutProps) {
  const [, title = ""] = TABS.find(([each]) => each === path) ?? [];
  useEffect(() => {
    document.title = `${title} · Prediction Exchange`;
  }, []);
  return (
    <>
      <h1>{title}</h1>
      <Tabs label="Your account" tabs={TABS.map(([each, text]) => [href(each), text])} current={href(path)} />
      {children}
    </>
  );
}

/** Focuses a heading after the focused element has disappeared. */
export function focusHeading(id: string): void {
  requestAnimationFrame(() => document.getElementById(id)?.focus());
}
