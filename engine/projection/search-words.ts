/**
 * The search words of markets and events: runs of letters and digits of any script, without case and diacritics. Indexing
 * and queries share this function, so that they always agree. SQLite's own tokenizers know fewer diacritics (no Greek or
 * Cyrillic ones), and their Unicode version differs from Node's.
 */

/** Combining marks that are diacritics. The vowel signs of Indic scripts are combining marks too, and stay. */
const DIACRITICS = /(?=\p{M})\p{Diacritic}/gu;
const WORDS = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
/** Letters with a stroke, which Unicode doesn't decompose. */
const STROKED = /[ØŁĐĦŦ]/g;
const UNSTROKED = new Map([..."ØŁĐĦŦ"].map((letter, i) => [letter, "OLDHT".charAt(i)]));

/** Each word once, in order of appearance. No word has a character with a meaning in a query language. */
export function searchWords(text: string): string[] {
  // Upper case: the lower case of sigma depends on the next letter, and only upper case unites ß with SS.
  const folded = text.normalize("NFKD").replace(DIACRITICS, "").toUpperCase();
  const plain = folded.replace(STROKED, (letter) => UNSTROKED.get(letter) ?? letter);
  return [...new Set(plain.match(WORDS))];
}

/** The words of several texts, in the form that the index stores. */
export function indexedWords(...texts: readonly (string | null)[]): string {
  return searchWords(texts.filter((text) => text !== null).join("\n")).join(" ");
}
