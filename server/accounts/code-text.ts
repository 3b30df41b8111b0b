/** Codes as people type, paste and dictate them. Imports nothing: the web page reads it too. */

/** Spaces of all kinds, dashes, and what can't be seen. */
const SEPARATORS = /[\s\p{Pd}\u2212\p{Cf}]/gu;

/** The code without what stands between and around its groups: "123-456", " 123 456". */
export const withoutSeparators = (text: string): string => text.replaceAll(SEPARATORS, "");

export const isSixDigits = (code: string): boolean => /^\d{6}$/.test(code);
