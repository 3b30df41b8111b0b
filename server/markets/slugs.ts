/** Names of markets and events in paths: their form, and one made of a question. */
import { MAX_SLUG_LENGTH } from "./limits.ts";

/** A path takes an id in a slug's place, and below /markets one other word. */
export const SLUG_PATTERN = "^(?!(?:[0-9]+|proposals)$)[a-z0-9]+(?:-[a-z0-9]+)*$";
const SLUG = new RegExp(SLUG_PATTERN);
/** What a slug begins with whose text gives none by itself. */
const FALLBACK = "market";
/** Leaves room for a number behind it. */
const MADE_LENGTH = MAX_SLUG_LENGTH - 20;

/** The text's words in ASCII, shortened, and behind them a number with which it is free. */
export function slugOf(text: string, isTaken: (slug: string) => boolean): string {
  const folded = text
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[\p{M}'’]/gu, "");
  const [first = "", ...others] = folded.match(/[a-z0-9]+/g) ?? [];
  let slug = first.slice(0, MADE_LENGTH);
  for (const word of others) {
    if (slug.length + 1 + word.length > MADE_LENGTH) break;
    slug += `-${word}`;
  }
  if (!SLUG.test(slug)) slug = slug === "" ? FALLBACK : `${FALLBACK}-${slug}`;
  if (!isTaken(slug)) return slug;
  // Many texts may make the same slug: the first free number is found by halves, where those before it are taken.
  let free = 2;
  while (isTaken(`${slug}-${free}`)) free *= 2;
  for (let taken = free >> 1; free - taken > 1; ) {
    const middle = (free + taken) >> 1;
    if (isTaken(`${slug}-${middle}`)) taken = middle;
    else free = middle;
  }
  return `${slug}-${free}`;
}
