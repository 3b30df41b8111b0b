/**
 * Lists as files: orders (live ones from memory, all from the tables), fills, positions, settlements and transactions. A
 * file has the rows of the pages; the layout for spreadsheets has names, cents, USDC and UTC times, exact to the digit.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { download, parse } from "../support/exports.ts";
import { PASSWORD } from "../support/identity.ts";
import { asOperator } from "../support/markets.ts";
import { BUY, expectRefused, SELL, terms } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

let world: World;
let trader: Client;
let market: TestMarket;
let quoted: TestMarket;
/** A cell of a file must quote it. */
const QUESTION = 'Will "yes", or no, win?';

beforeAll(async () => {
  world = await World.start({
    users: 3,
    named: { operator: { role: "operator", password: PASSWORD } },
    markets: [2, 3],
  });
  trader = world.user();
  const other = world.user();
  market = world.market(3);
  const resolved = world.market();
  const chief = await asOperator(world);
  for (const user of [trader, other]) {
    await world.split(user, market, 500);
    await world.split(user, resolved, 7);
  }
  const named = await chief.data<{ id: number; slug: string; outcomes: { id: number }[] }>("POST", "/admin/markets", {
    ...{ question: QUESTION, outcomes: ["=Yes", "No"], category: "Tests" },
  });
  quoted = { id: named.id, slug: named.slug, outcomes: named.outcomes.map(({ id }) => id) };
  // 250 live orders: several slices.
  const orders = (price: number): object[] =>
    Array.from({ length: 50 }, () => ({ op: "place", ...terms(market, 1, BUY, price, 2) }));
  for (let i = 0; i < 5; i++) await trader.data("POST", "/orders/batch", { operations: orders(100 + i) });
  await trader.place({ ...terms(quoted, 0, BUY, 3_305, 1_000), client_order_id: "mine" });
  await trader.place({ ...terms(market, 0, SELL, 3_333, 10), post_only: true });
  await other.place(terms(market, 0, BUY, 3_333, 3));
  await other.place(terms(market, 2, SELL, 9_999, 1));
  await trader.place({ ...terms(market, 2, BUY, 9_999, 5), time_in_force: "ioc" });
  const { id } = await trader.place(terms(market, 2, BUY, 1, 5));
  await trader.data("DELETE", `/orders/${id}`);
  await chief.data("POST", `/admin/markets/${resolved.id}/close`);
  await chief.data("POST", `/admin/markets/${resolved.id}/resolve`, { outcome_id: resolved.outcomes[0] });
  chief.close();
});
afterAll(() => expectEndsWell(world));

const LISTS = [
  ["orders", "", "/orders", 252],
  ["orders", "status=all", "/orders?status=all", 254],
  ["orders", "market_id=3", "/orders?market_id=3", 1],
  ["fills", "", "/me/fills", 2],
  ["positions", "", "/me/positions", 5],
  ["settlements", "", "/wallet/settlements", 2],
  ["transactions", "", "/wallet/transactions", 9],
  ["transactions", "type=split", "/wallet/transactions?type=split", 2],
] as const;

describe("a file of", () => {
  test.each(LISTS)("a file of %s?%s has the rows of the pages", async (list, query, path, count) => {
    const { status, headers, text } = await fileOf(list, query);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="${list}.csv"`,
    });
    const items = await trader.all<Record<string, unknown>>(path);
    const header = text.slice(0, text.indexOf("\r\n"));
    // An order's trades are the list of fills.
    const rows = items.map(({ trades, ...row }) => row);
    expect(header.split(",").toSorted()).toEqual(Object.keys(rows[0]!).toSorted());
    expect(parse(text, header)).toEqual(rows);
    expect(rows.length).toBe(count);
  });

  test("a file of orders names markets and outcomes, and has prices in cents", async () => {
    const sheet = await sheetOf("orders", `market_id=${quoted.id}`);
    const [{ created_at = 0, updated_at = 0, id = 0 } = {}] = await trader.all<{
      created_at?: number;
      updated_at?: number;
      id?: number;
    }>("/orders?client_order_id=mine");
    expect(sheet).toEqual([
      ["Placed, UTC", "Market", "Outcome", "Side", "Type", "Price, ¢", "Shares", "Filled", "Time in force"].concat(
        ...["Expires, UTC", "Status", "Reason", "Updated, UTC", "Order", "Client order id"],
      ),
      [utc(created_at), QUESTION, "'=Yes", "Buy", "limit", "33.05", "1000", "0", "gtc"].concat(
        ...["", "open", "", utc(updated_at), String(id), "mine"],
      ),
    ]);
  });

  test("a file of fills has amounts in USDC to six decimals", async () => {
    const columns = ["Outcome", "Side", "Price, ¢", "Shares", "Amount, USDC", "Role", "Fee, USDC", "Rebate, USDC"];
    expect(pick(await sheetOf("fills"), columns)).toEqual([
      ["Outcome 2", "Buy", "99.99", "1", "-0.999900", "taker", "0.000000", "0.000000"],
      ["Outcome 0", "Sell", "33.33", "3", "0.999900", "maker", "0.015000", "0.005000"].map((value, i) =>
        i < 6 ? value : expect.stringMatching(/^0\.0\d{5}$/),
      ),
    ]);
  });

  test("files of positions, settlements and transactions have profits and signs", async () => {
    const positions = pick(await sheetOf("positions", `market_id=${market.id}`), ["Outcome", "Shares", "Average, ¢"]);
    expect(positions.map(([outcome]) => outcome)).toEqual(["Outcome 2", "Outcome 1", "Outcome 0"]);
    expect(positions.at(-1)).toEqual(["Outcome 0", "497", "33.33"]);
    const settlements = await sheetOf("settlements");
    expect(pick(settlements, ["You held", "Shares", "Payout, ¢", "Paid, USDC"])).toEqual([
      ["Outcome 1", "7", "0.00", "0.000000"],
      ["Outcome 0", "7", "100.00", "7.000000"],
    ]);
    const transactions = pick(await sheetOf("transactions"), ["Type", "Amount, USDC", "Outcome"]);
    expect(transactions).toContainEqual(["split", "-500.000000", ""]);
    expect(transactions.at(-1)).toEqual(["deposit", "10000.000000", ""]);
  });

  test("the file of a user who has nothing is its head alone", async () => {
    const nobody = world.user();
    for (const list of ["orders", "fills", "positions", "settlements"]) {
      const { text } = await fileOf(list, "", nobody);
      expect(text, list).toMatch(/^[a-z_,]+\r\n$/);
    }
  });

  test("no file is paged or shown to others, and each has two layouts", async () => {
    for (const list of ["orders", "fills", "positions", "settlements", "transactions"]) {
      const path = `/me/exports/${list}`;
      await expectRefused(trader.request("GET", `${path}?limit=1`), 400, 40000, /^limit: unknown field/);
      await expectRefused(trader.request("GET", `${path}?layout=excel`), 400, 40000, /^layout/);
      await expectRefused(world.anonymous().request("GET", path), 401, 40100);
    }
    await expectRefused(trader.request("GET", "/me/exports/orders?from=2&to=1"), 400, 40000, /^from/);
    await expectRefused(trader.request("GET", "/me/exports/orders?status=open"), 400, 40000, /^status/);
  });
});

const fileOf = (list: string, query = "", client = trader) =>
  download(client, `?${query}`, "*/*", `/me/exports/${list}`);

const utc = (ms: number): string => new Date(ms).toISOString().replace("T", " ").replace("Z", "");

/** The cells of a file for spreadsheets, with its head. */
async function sheetOf(list: string, query = ""): Promise<string[][]> {
  const { status, text } = await fileOf(list, `layout=spreadsheet&${query}`);
  expect(status).toBe(200);
  // Without it, Excel reads UTF-8 as the system's character set.
  expect(text.charCodeAt(0)).toBe(0xfeff);
  return rowsOf(text.slice(1));
}

/** Reads CSV as RFC 4180 has it. */
function rowsOf(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain ?? "");
    if (end === "\r\n") rows.push([]);
  }
  expect(rows.pop()).toEqual([]);
  return rows;
}

function pick([head = [], ...rows]: string[][], columns: readonly string[]): string[][] {
  const at = columns.map((column) => head.indexOf(column));
  expect(at).not.toContain(-1);
  return rows.map((row) => at.map((i) => row[i]!));
}
