/** GET /wallet/transactions as CSV: downloads a file and parses it into the items of the JSON pages. */
import { expect } from "vitest";
import { API_BASE, type Client } from "./client.ts";

export const CSV = "text/csv";
export const PATH = "/wallet/transactions";
export const HEADER =
  "id,type,amount,balance_after,market_id,outcome_id,order_id,trade_id,match_id,created_at,deposit_id";

/** Downloads the transactions that fit the query; `accept` is the Accept header. */
export async function download(client: Client, query = "", accept = CSV) {
  const headers = { Accept: accept, Authorization: `Bearer ${client.token}`, "X-Request-Id": "export" };
  const { status, headers: given, body } = await client.send("GET", `${API_BASE}${PATH}${query}`, headers, null);
  return { status, headers: given, text: body.toString() };
}

/** Returns the rows as the JSON API shows them: numbers, and null for an empty field. */
export function parse(text: string): object[] {
  const lines = text.split("\r\n");
  expect([lines[0], lines.pop()]).toEqual([HEADER, ""]);
  return lines.slice(1).map((line) => {
    const fields = line.split(",");
    const entries = HEADER.split(",").map((name, i) => {
      const field = fields[i]!;
      return [name, name === "type" ? field : field === "" ? null : Number(field)];
    });
    return Object.fromEntries(entries);
  });
}
