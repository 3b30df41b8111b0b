/**
 * Lines of CSV (RFC 4180) that are safe to open in a spreadsheet: a text that a spreadsheet would read as a formula gets
 * an apostrophe in front (OWASP, "CSV Injection"). Numbers stay numbers, negative ones too.
 */

/** Characters that begin a formula, or let one begin in a later cell. */
const FORMULA = /^[=+\-@\t\r]/;
/** Characters that need quotes. */
const SPECIAL = /[",\r\n]/;

/** @param value null for an empty cell */
export function csvCell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvLine(values: readonly (string | number | null)[]): string {
  return `${values.map(csvCell).join(",")}\r\n`;
}
