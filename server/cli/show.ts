/**
 * How a person at a terminal reads the result of a command: aligned tables and `name  value` lines, amounts in USDC, times in
 * ISO 8601. Pure: values in, text out. Programs read JSON instead (admin.ts).
 */
import { stripVTControlCharacters } from "node:util";
import { MICRO_PER_SHARE } from "../../engine/limits.ts";
import type { Finding } from "../../engine/projection/verify.ts";
import { isObject } from "../util/is-object.ts";

/** Fields in micro-USDC; a test compares them with the schemas of the operators' routes. */
export const MONEY_FIELDS: ReadonlySet<string> = new Set([
  "amount",
  "available",
  "daily_limit",
  "held",
  "limit",
  "total",
  "used",
]);
/** Fields in basis points. */
export const BPS_FIELDS: ReadonlySet<string> = new Set([
  ...["best_ask", "best_bid", "implied_ask", "implied_bid", "last_price", "price_24h_ago", "sparkline"],
  ...["maker_rebate", "merge_fee", "pat_rebate", "trading_fee"],
]);
/** Fields in ms since the epoch. */
export const isTimeField = (name: string): boolean => /(^|_)at$/.test(name);

const NONE = "-";
const GAP = "  ";
type Fields = Readonly<Record<string, unknown>>;

/** @param columns the width of the terminal @returns text with a line feed at its end */
export function shown(value: unknown, columns: number): string {
  if (!isObject(value)) return value === null ? "done\n" : `${cell("", value)}\n`;
  const { items, next_cursor, ...rest } = value;
  if (!Array.isArray(items)) return `${record(value, columns).join("\n")}\n`;
  const list =
    items.length === 0 ? ["none"] : isObject(items[0]) ? table(items as Fields[], columns) : items.map(String);
  const more = typeof next_cursor === "string" ? ["", `more: --cursor ${next_cursor}`] : [];
  return `${[...record(rest, columns), ...list, ...more].join("\n")}\n`;
}

/** One line a finding, the failed ones first, and a summary. */
export function shownFindings(findings: readonly Finding[]): string {
  const failed = findings.filter(({ ok }) => !ok);
  const passed = findings.filter(({ ok }) => ok);
  const lines = [...failed, ...passed].map(({ ok, name, figures }) => {
    return `${ok ? "ok    " : "FAILED"}${GAP}${plain(name)}${figures === "" ? "" : `: ${plain(figures)}`}`;
  });
  const { length } = findings;
  lines.push(failed.length === 0 ? `all ${length} checks passed` : `${failed.length} of ${length} checks FAILED`);
  return `${lines.join("\n")}\n`;
}

/** `name  value` lines; the fields of an object within get its name in front, a list of objects a table below its name. */
function record(fields: Fields, columns: number): string[] {
  const lines: (readonly [string, string])[] = [];
  const tables: string[] = [];
  const add = (prefix: string, each: Fields): void => {
    for (const [name, value] of Object.entries(each)) {
      const full = prefix + name;
      if (isObject(value)) add(`${full}.`, value);
      else if (Array.isArray(value) && isObject(value[0])) {
        tables.push("", `${full}:`, ...table(value as Fields[], columns));
      } else lines.push([full, cell(name, value)]);
    }
  };
  add("", fields);
  const width = Math.max(0, ...lines.map(([name]) => name.length));
  return [...lines.map(([name, value]) => `${name.padEnd(width)}${GAP}${value}`), ...tables];
}

/** Columns without a value are left out. What is wider than the terminal becomes a record for each row. */
function table(rows: readonly Fields[], columns: number): string[] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const used = names.filter((name) => rows.some((row) => row[name] !== null && row[name] !== undefined));
  const cells = [used, ...rows.map((row) => used.map((name) => cell(name, row[name] ?? null)))];
  const widths = used.map((_, i) => Math.max(...cells.map((line) => widthOf(line[i] ?? ""))));
  if (widths.reduce((sum, width) => sum + width + GAP.length, 0) - GAP.length > columns) {
    return rows.flatMap((row, i) => [...(i === 0 ? [] : [""]), ...record(row, columns)]);
  }
  const isNumber = used.map((name) => rows.every((row) => row[name] == null || typeof row[name] === "number"));
  return cells.map((line) =>
    line
      .map((text, i) => {
        const space = " ".repeat((widths[i] ?? 0) - widthOf(text));
        return isNumber[i] === true && !isTimeField(used[i] ?? "") ? space + text : text + space;
      })
      .join(GAP)
      .trimEnd(),
  );
}

const hasNames = (list: readonly unknown[]): boolean => list.every((each) => isObject(each) && "name" in each);

function cell(name: string, value: unknown): string {
  if (value === null || value === undefined || value === "") return NONE;
  if (typeof value === "number") {
    if (MONEY_FIELDS.has(name)) return `${usdc(value)} USDC`;
    if (BPS_FIELDS.has(name)) return `${value} BPS`;
    return isTimeField(name) ? new Date(value).toISOString() : String(value);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) {
    if (value.length === 0) return NONE;
    if (hasNames(value)) return value.map((each) => plain(String((each as Fields)["name"]))).join(", ");
    return isObject(value[0]) ? plain(JSON.stringify(value)) : value.map((each) => cell(name, each)).join(", ");
  }
  return plain(typeof value === "string" ? value : JSON.stringify(value));
}

/** Exact, with at least two decimals. */
function usdc(micro: number): string {
  const whole = Math.trunc(Math.abs(micro) / MICRO_PER_SHARE);
  const rest = String(Math.abs(micro) % MICRO_PER_SHARE)
    .padStart(6, "0")
    .replace(/0{1,4}$/, "");
  return `${micro < 0 ? "-" : ""}${whole}.${rest}`;
}

/** Users' texts must not steer the terminal, nor break a line. */
const plain = (text: string): string => stripVTControlCharacters(text).replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ");

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** The number of columns that a terminal gives the text. */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += /\p{M}|\p{Cf}/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}
