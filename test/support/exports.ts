/** Lists as CSV: downloads a file and parses it into the items of the JSON pages. */
import { expect } from "vitest";
import { API_BASE, type Client } from "./client.ts";

export const CSV = "text/csv";
export const PATH = "/wallet/transactions";
export const HEADER =
  "id,type,amount,balance_after,market_id,outcome_id,order_id,trade_id,match_id,created_at,deposit_id";

/** Downloads the rows that fit the query; `accept` is the Accept header. */
export async function download(client: Client, query = "", accept = CSV, path = PATH) {
  const headers = { Accept: accept, Authorization: `Bearer ${client.token}`, "X-Request-Id": "export" };
  const { status, headers: given, body } = await client.send("GET", `${API_BASE}${path}${query}`, headers, null);
  return { status, headers: given, text: body.toString() };
}

/** Returns the rows of a file without quoted cells as the JSON API shows them: numbers, booleans, null for an empty field. */
export function parse(text: string, header = HEADER): object[] {
  const lines = text.split("\r\n");
  expect([lines[0], lines.pop()]).toEqual([header, ""]);
  return lines.slice(1).map((line) => {
    const fields = line.split(",");
    return Object.fromEntries(header.split(",").map((name, i) => [name, fieldValue(fields[i]!)]));
  });
}

function fieldValue(field: string): string | number | boolean | null {
  if (field === "") return null;
  if (field === "true" || field === "false") return field === "true";
  return /^-?\d+(\.\d+)?$/.test(field) ? Number(field) : field;
}
