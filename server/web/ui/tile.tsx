/** The mark of a market or an event: its picture, or the initials of its address in one of the series' colours. */
import { useState } from "preact/hooks";

const SERIES = 8;

interface TileProps {
  slug: string;
  /** Its path. */
  picture?: string | null;
  size?: "large" | "tiny" | "";
}

export function Tile({ slug, picture = null, size = "" }: TileProps) {
  /** The path that gave no picture: another one may have taken its place meanwhile. */
  const [missing, setMissing] = useState<string | null>(null);
  if (picture !== null && picture !== missing) {
    return <img class={`tile ${size}`} src={picture} alt="" loading="lazy" onError={() => setMissing(picture)} />;
  }
  return (
    <span
      class={`tile ${size}`}
      style={{ "--color": `var(--series-${seriesOf(slug)})` }}
      aria-hidden="true"
      translate={false}
    >
      {initialsOf(slug)}
    </span>
  );
}

/** The initials of the first two words, "GE" of "general-election". */
function initialsOf(slug: string): string {
  const words = slug.split("-").filter((word) => word !== "");
  const [first = "?", second] = words;
  return (second === undefined ? first.slice(0, 2) : first.charAt(0) + second.charAt(0)).toUpperCase();
}

/** The same for the same address, wherever it is shown. */
function seriesOf(slug: string): number {
  let hash = 0;
  for (const letter of slug) hash = (31 * hash + (letter.codePointAt(0) ?? 0)) % 65_521;
  return 1 + (hash % SERIES);
}
