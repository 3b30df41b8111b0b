/** Parses text with one entry per line. */

/** Returns the trimmed lines without blanks and duplicates. */
export const parseLines = (text: string): string[] => [
  ...new Set(
    text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== ""),
  ),
];
