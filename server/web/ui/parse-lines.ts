/** Texts with an entry on each line. */

/** The entries without those that are empty, and each once. */
export const parseLines = (text: string): string[] => [
  ...new Set(
    text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== ""),
  ),
];
