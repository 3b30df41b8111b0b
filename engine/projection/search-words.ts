/**
 * The words that markets and events are found by: runs of letters and digits of any script, with case and diacritics
 * taken away. What is indexed and what is looked for go through this one function, so that they always fit; SQLite's own
 * tokenizers know fewer diacritics (no Greek, no Cyrillic ones), and their Unicode is of another year than Node's.
 */

/** Combining marks that are diacritics; the vowel signs of Indic scripts are marks too, and stay. */
const DIACRITICS = /(?=\p{M})\p{Diacritic}/gu;
const WORDS = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
/** Letters whose stroke Unicode does not take for a mark. */
const STROKED = /[ØŁĐĦŦ]/g;
const UNSTROKED: Readonly<Record<string, string>> = { Ø: "O", Ł: "L", Đ: "D", Ħ: "H", Ŧ: "T" };

/** Each word once, in the order in which they come; none of them has a character that a query language could mean. */
export function searchWords(text: string): string[] {
  // Upper case, because lower case has a sigma that depends on what follows, and ß has no other partner.
  const folded = text.normalize("NFKD").replace(DIACRITICS, "").toUpperCase();
  const plain = folded.replace(STROKED, (letter) => UNSTROKED[letter]!);
  return [...new Set(plain.match(WORDS))];
}

/** The words of several texts, as a row of the index has them. */
export function indexedWords(...texts: readonly (string | null)[]): string {
  return searchWords(texts.filter((text) => text !== null).join("\n")).join(" ");
}
