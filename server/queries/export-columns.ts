/**
 * The columns of CSV exports. The layout `fields` has the API's fields with the API's units. The layout `spreadsheet` is for
 * people: markets and outcomes by name, prices in cents, amounts in USDC, times in UTC.
 */
import { MICRO_PER_SHARE } from "../../engine/limits.ts";
import { tradedMicro } from "../../engine/money.ts";
import { ORDER_FIELDS } from "../orders/order-json.ts";
import { csvCell, csvLine } from "../util/csv.ts";

export const LAYOUTS = ["fields", "spreadsheet"] as const;
export type Layout = (typeof LAYOUTS)[number];

/** An item of a list, as the API shows it. */
export type ExportedRow = Readonly<Record<string, unknown>>;

/** Names as people know them; "" for an id that is null. */
export interface Names {
  market(id: number | null): string;
  outcome(id: number | null): string;
}

/** The text of a cell, escaped. */
type Cell = (row: ExportedRow, names: Names) => string;
type Columns = readonly (readonly [heading: string, cell: Cell])[];

/** Spreadsheets take a file for UTF-8 only with this character at its start. */
const BYTE_ORDER_MARK = "\uFEFF";

function plain(value: unknown): string {
  if (typeof value === "boolean") return String(value);
  return csvCell((value ?? null) as string | number | null);
}

/** @param digits decimals @param scale what one unit of the number is divided by: a power of ten */
function decimal(value: unknown, scale: number, digits: number): string {
  if (typeof value !== "number") return "";
  if (!Number.isInteger(value)) return (value / scale).toFixed(digits);
  const size = Math.abs(value);
  const whole = Math.floor(size / scale);
  const rest = String(size - whole * scale).padStart(Math.log10(scale), "0");
  return `${value < 0 ? "-" : ""}${whole}.${rest.padEnd(digits, "0")}`;
}

const text =
  (name: string): Cell =>
  (row) =>
    plain(row[name]);
const words =
  (name: string): Cell =>
  (row) =>
    csvCell(((row[name] ?? "") as string).replaceAll("_", " "));
/** micro-USDC as USDC, six decimals. */
const usdc =
  (name: string): Cell =>
  (row) =>
    decimal(row[name], MICRO_PER_SHARE, 6);
/** Basis points as cents, two decimals. */
const cents =
  (name: string): Cell =>
  (row) =>
    decimal(row[name], 100, 2);
/** 2026-11-26 17:40:05.123 */
const time =
  (name: string): Cell =>
  (row) => {
    const { [name]: ms } = row;
    return typeof ms === "number" ? new Date(ms).toISOString().replace("T", " ").slice(0, -1) : "";
  };
const SIDES: readonly string[] = ["", "Buy", "Sell"];
const market: Columns[number] = ["Market", (row, names) => csvCell(names.market(row["market_id"] as number | null))];
const outcome: Columns[number] = [
  "Outcome",
  (row, names) => csvCell(names.outcome(row["outcome_id"] as number | null)),
];
const side: Columns[number] = ["Side", (row) => SIDES[row["side"] as number] ?? ""];
const at = (name: string, heading: string): Columns[number] => [`${heading}, UTC`, time(name)];

/** What a list's file contains. */
interface Export {
  readonly fields: readonly string[];
  readonly spreadsheet: Columns;
}

const ORDERS: Export = {
  fields: ORDER_FIELDS,
  spreadsheet: [
    at("created_at", "Placed"),
    market,
    outcome,
    side,
    ["Type", words("type")],
    ["Price, ¢", cents("price")],
    ["Shares", text("quantity")],
    ["Filled", text("filled")],
    ["Time in force", text("time_in_force")],
    at("expires_at", "Expires"),
    ["Status", words("status")],
    ["Reason", words("reason")],
    at("updated_at", "Updated"),
    ["Order", text("id")],
    ["Client order id", text("client_order_id")],
  ],
};

type FillTerms = Parameters<typeof tradedMicro>[0];

const FILLS: Export = {
  fields: [
    ...["id", "match_id", "order_id", "market_id", "outcome_id", "side", "price", "quantity", "role", "match_type"],
    ...["fee", "rebate", "builder_code", "created_at"],
  ],
  spreadsheet: [
    at("created_at", "Time"),
    market,
    outcome,
    side,
    ["Price, ¢", cents("price")],
    ["Shares", text("quantity")],
    ["Amount, USDC", (row) => decimal(tradedMicro(row as unknown as FillTerms), MICRO_PER_SHARE, 6)],
    ["Role", text("role")],
    ["Fee, USDC", usdc("fee")],
    ["Rebate, USDC", usdc("rebate")],
    ["Match", words("match_type")],
    ["Fill", text("id")],
    ["Order", text("order_id")],
  ],
};

const SETTLEMENTS: Export = {
  fields: ["id", "market_id", "outcome_id", "quantity", "payout", "amount", "cost", "realized_pnl", "created_at"],
  spreadsheet: [
    at("created_at", "Resolved"),
    market,
    ["You held", outcome[1]],
    ["Shares", text("quantity")],
    ["Payout, ¢", cents("payout")],
    ["Cost, USDC", usdc("cost")],
    ["Paid, USDC", usdc("amount")],
    ["Profit, USDC", usdc("realized_pnl")],
  ],
};

const TRANSACTIONS: Export = {
  fields: [
    ...["id", "type", "amount", "balance_after", "market_id", "outcome_id", "order_id", "trade_id", "match_id"],
    ...["created_at", "deposit_id"],
  ],
  spreadsheet: [
    at("created_at", "Time"),
    ["Type", text("type")],
    market,
    outcome,
    ["Amount, USDC", usdc("amount")],
    ["Balance after, USDC", usdc("balance_after")],
    ["Order", text("order_id")],
    ["Fill", text("trade_id")],
    ["Deposit", text("deposit_id")],
    ["Transaction", text("id")],
  ],
};

const POSITIONS: Export = {
  fields: [
    ...["market_id", "outcome_id", "quantity", "held", "cost", "average_price", "realized_pnl", "market_value"],
    "unrealized_pnl",
  ],
  spreadsheet: [
    market,
    outcome,
    ["Shares", text("quantity")],
    ["On hold", text("held")],
    ["Average, ¢", cents("average_price")],
    ["Cost, USDC", usdc("cost")],
    ["Value, USDC", usdc("market_value")],
    ["Profit, USDC", usdc("unrealized_pnl")],
    ["Realized, USDC", usdc("realized_pnl")],
  ],
};

const EXPORTS = {
  orders: ORDERS,
  fills: FILLS,
  settlements: SETTLEMENTS,
  transactions: TRANSACTIONS,
  positions: POSITIONS,
} as const;
export type ExportKind = keyof typeof EXPORTS;

/** The first line of a file. */
export function exportHead(kind: ExportKind, layout: Layout): string {
  const { fields, spreadsheet } = EXPORTS[kind];
  return layout === "fields" ? csvLine(fields) : BYTE_ORDER_MARK + csvLine(spreadsheet.map(([heading]) => heading));
}

/** The line of a row, as RFC 4180 wants it. */
function exportLine(kind: ExportKind, layout: Layout, row: ExportedRow, names: Names): string {
  const { fields, spreadsheet } = EXPORTS[kind];
  const cells =
    layout === "fields" ? fields.map((name) => plain(row[name])) : spreadsheet.map(([, of]) => of(row, names));
  return `${cells.join(",")}\r\n`;
}

export const exportLines = (kind: ExportKind, layout: Layout, rows: readonly ExportedRow[], names: Names): string =>
  rows.map((row) => exportLine(kind, layout, row, names)).join("");
