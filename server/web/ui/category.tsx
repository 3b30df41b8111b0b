/** A category with its icon, where it is one of the usual ones. */
import { capitalized } from "../format.ts";
import { Icon, type IconName } from "./icon.tsx";

const ICONS: Readonly<Record<string, IconName>> = {
  politics: "politics",
  economics: "economics",
  sports: "sports",
  crypto: "crypto",
  science: "science",
  climate: "climate",
  technology: "technology",
  culture: "culture",
};

export function Category({ name, size = 14 }: { name: string; size?: number }) {
  const icon = ICONS[name.toLowerCase()];
  return (
    <>
      {icon !== undefined && <Icon name={icon} size={size} />}
      {capitalized(name)}
    </>
  );
}
