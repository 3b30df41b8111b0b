/** A category with its icon, where it is one of the usual ones. */
import { capitalized } from "../../util/format.ts";
import { Icon, type IconName } from "./icon.tsx";

const WITH_ICON: readonly IconName[] = [
  "politics",
  "economics",
  "sports",
  "crypto",
  "science",
  "climate",
  "technology",
  "culture",
];

export function Category({ name, size = 14 }: { name: string; size?: number }) {
  const icon = WITH_ICON.find((each) => each === name.toLowerCase());
  return (
    <>
      {icon !== undefined && <Icon name={icon} size={size} />}
      {capitalized(name)}
    </>
  );
}
