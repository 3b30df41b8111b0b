/** Parts of a market's page in one place, of which a tab chooses one. */
import { type Tab, TabList } from "../../ui/tab-list.tsx";
import type { Children } from "../../ui/use-data.ts";

export interface Part extends Tab<string> {
  readonly content: Children;
}

interface PartTabsProps {
  label: string;
  parts: readonly Part[];
  /** Null before the user has chosen: the first part. */
  current: string | null;
  onChange: (name: string) => void;
}

export function PartTabs({ label, parts, current, onChange }: PartTabsProps) {
  const shown = parts.find(({ name }) => name === current) ?? parts[0];
  if (shown === undefined) return null;
  return (
    <TabList label={label} tabs={parts} current={shown.name} onChange={onChange}>
      {shown.content}
    </TabList>
  );
}
