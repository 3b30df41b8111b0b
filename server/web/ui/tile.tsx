/** The mark of a market or an event: the initials of its address in one of the series' colours. */

const SERIES = 8;

interface TileProps {
  slug: string;
  size?: "large" | "tiny" | "";
}

export function Tile({ slug, size = "" }: TileProps) {
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
