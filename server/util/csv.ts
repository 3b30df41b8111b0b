/**
 * Lines of CSV (RFC 4180) that are safe to open in a spreadsheet: a text that such a program would take for a formula gets
 * an apostrophe in front (OWASP, "CSV Injection"). Numbers stay numbers, negative ones too.
 */

/** What begins a formula, or lets one begin in a later cell. */
const FORMULA = /^[=+\-@\t\r]/;
/** What needs quotes. */
const SPECIAL = /[",\r\n]/;

/** @param value null: an empty cell */
export function csvCell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvLine(values: readonly (string | number | null)[]): string {
  return `${values.map(csvCell).join(",")}\r\n`;
}
