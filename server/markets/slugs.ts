/** Slugs, the names of markets and events in paths: their form, and their derivation from a question. */
import { MAX_SLUG_LENGTH } from "./limits.ts";

/** Paths also accept an id in place of a slug, and /markets/proposals is a route: neither can be a slug. */
export const SLUG_PATTERN = "^(?!(?:[0-9]+|proposals)$)[a-z0-9]+(?:-[a-z0-9]+)*$";
const SLUG = new RegExp(SLUG_PATTERN);
/** Prefix for texts that yield no valid slug by themselves. */
const FALLBACK = "market";
/** Leaves room for a numeric suffix. */
const DERIVED_LENGTH = MAX_SLUG_LENGTH - 20;

/** The text's words in ASCII, shortened, with a numeric suffix if the slug is taken. */
export function slugOf(text: string, isTaken: (slug: string) => boolean): string {
  const folded = text
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[\p{M}'’]/gu, "");
  const [first = "", ...others] = folded.match(/[a-z0-9]+/g) ?? [];
  let slug = first.slice(0, DERIVED_LENGTH);
  for (const word of others) {
    if (slug.length + 1 + word.length > DERIVED_LENGTH) break;
    slug += `-${word}`;
  }
  if (!SLUG.test(slug)) slug = slug === "" ? FALLBACK : `${FALLBACK}-${slug}`;
  if (!isTaken(slug)) return slug;
  // Many texts can yield the same slug: a binary search finds the first free number.
  let free = 2;
  while (isTaken(`${slug}-${free}`)) free *= 2;
  for (let taken = free >> 1; free - taken > 1; ) {
    const middle = (free + taken) >> 1;
    if (isTaken(`${slug}-${middle}`)) taken = middle;
    else free = middle;
  }
  return `${slug}-${free}`;
}
