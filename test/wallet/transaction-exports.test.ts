/**
 * Transactions as CSV: an export has the same rows as the pages, with filters, and its cells are safe to open in a
 * spreadsheet. Long exports and slow clients are transaction-exports.long.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EXPORT_SLICE_ROWS } from "../../server/queries/limits.ts";
import { csvCell, csvLine } from "../../server/util/csv.ts";
import { eventually, expectEndsWell } from "../support/checks.ts";
import type { Client, TransactionJson } from "../support/client.ts";
import { CSV, download, HEADER, PATH, parse } from "../support/exports.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { BUY, expectRefused, SELL, terms } from "../support/trading.ts";
import { PUBLIC_URL, type TestMarket, USDC, World } from "../support/world.ts";

let world: World;
let trader: Client;
let market: TestMarket;

describe("a CSV export", () => {
  beforeAll(async () => {
    const chief = { role: "operator", password: PASSWORD } as const;
    const named = { reader: { scopes: [["orders:write"]] }, investor: {}, chief };
    world = await World.start({ users: 2, named, env: { PUBLIC_URL, MERGE_FEE: "25" } });
    market = world.market();
    trader = world.user();
    const other = world.user();
    for (const user of [trader, other]) await world.split(user, market, 5_000);
    // A match gives each side three transactions at most.
    const orders = (side: number, price: number): object[] =>
      Array.from({ length: 50 }, () => ({ op: "place", ...terms(market, 0, side, price, 2) }));
    for (let i = 0; i < 20; i++) {
      await trader.data("POST", "/orders/batch", { operations: orders(SELL, 1_000) });
      await other.data("POST", "/orders/batch", { operations: orders(BUY, 1_000) });
      await other.data("POST", "/orders/batch", { operations: orders(SELL, 900) });
      await trader.data("POST", "/orders/batch", { operations: orders(BUY, 900) });
      // A merge costs a fee without a fill.
      await trader.data("POST", "/wallet/merge", { market_id: market.id, quantity: 3 });
    }
    await eventually(async () => expect(await trader.all("/orders")).toEqual([]));
  });
  afterAll(() => expectEndsWell(world));

  test("a CSV export of some 5,000 transactions has those of the pages, in slices", async () => {
    const wanted = await trader.all<TransactionJson>(PATH, 200);
    expect(wanted.length).toBeGreaterThan(2 * EXPORT_SLICE_ROWS);
    const { status, headers, text } = await download(trader);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": 'attachment; filename="transactions.csv"',
      "transfer-encoding": "chunked",
      "x-request-id": "export",
    });
    expect(parse(text)).toEqual(wanted);
  });

  test("a CSV export has the transactions that match the filters", async () => {
    const all = await trader.all<TransactionJson>(PATH, 200);
    const [from, to] = [all[3_000]!.created_at, all[1_000]!.created_at];
    const within = all.filter(({ created_at }) => created_at >= from && created_at <= to);
    expect(parse((await download(trader, `?from=${from}&to=${to}`)).text)).toEqual(within);
    for (const type of ["trade", "fee", "rebate", "split", "deposit", "merge"]) {
      const wanted = all.filter((row) => row.type === type);
      expect(parse((await download(trader, `?type=${type}`)).text), type).toEqual(wanted);
    }
    expect((await download(trader, "?type=withdrawal")).text).toBe(`${HEADER}\r\n`);
  });

  test("a CSV export has amounts as integers of micro-USDC", async () => {
    const { text } = await download(trader, "?type=deposit");
    expect(parse(text)).toMatchObject([{ type: "deposit", amount: 10_000 * USDC, balance_after: 10_000 * USDC }]);
  });

  test("a CSV export has no formula from a market's texts in any cell, and amounts below zero stay numbers", async () => {
    const formula = "=cmd|' /C calc'!A0";
    const { client: chief } = await signIn(world.server, "chief@example.com");
    const { id } = await chief.data<{ id: number }>("POST", "/admin/markets", {
      ...{ question: formula, description: `@SUM(1+1)*${formula}`, category: "+1-2" },
      outcomes: ["=1+1", "-2+3", "@A1"],
    });
    const user = world.client("investor");
    await user.data("POST", "/wallet/split", { market_id: id, quantity: 2 });
    await user.data("POST", "/wallet/merge", { market_id: id, quantity: 1 });
    const { text } = await download(user);
    const cells = text.split("\r\n").flatMap((line) => line.split(","));
    const words = [...HEADER.split(","), "deposit", "split", "merge", "fee", ""];
    expect(cells.filter((cell) => !words.includes(cell) && !/^-?\d+$/.test(cell))).toEqual([]);
    expect(parse(text).map((row) => (row as { amount: number }).amount)).toEqual([
      -2_500,
      USDC,
      -2 * USDC,
      10_000 * USDC,
    ]);
    chief.close();
  });

  test("a CSV export quotes a cell where it must, and starts no text like a formula", () => {
    const cells: [value: string | number | null, text: string][] = [
      [null, ""],
      [-5, "-5"],
      [0, "0"],
      ["split", "split"],
      ["=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"],
      ["+1", "'+1"],
      ["-1", "'-1"],
      ["@SUM(A1)", "'@SUM(A1)"],
      ["\t=1", "'\t=1"],
      ["\r=1", `"'\r=1"`],
      ['=HYPERLINK("x","y")', `"'=HYPERLINK(""x"",""y"")"`],
      ['a "b", c', '"a ""b"", c"'],
      ["a\n=1", '"a\n=1"'],
      ["a=1", "a=1"],
    ];
    for (const [value, text] of cells) expect([value, csvCell(value)]).toEqual([value, text]);
    expect(csvLine(["a,b", -1, null])).toBe('"a,b",-1,\r\n');
  });

  test.each([
    [CSV, true],
    ["Text/CSV", true],
    ["text/csv, application/json;q=0.9", true],
    ["text/csv;q=0.9, */*;q=0.8", true],
    ["application/json", false],
    ["*/*", false],
    ["text/*", false],
    ["text/csv;q=0.5, application/json", false],
    ["text/csv;q=0, */*", false],
    ["text/csvx", false],
  ])("a CSV export with Accept: %s", async (accept, isCsv) => {
    const { headers } = await download(world.client("user1"), "", accept);
    expect(headers["content-type"]).toBe(isCsv ? "text/csv; charset=utf-8" : "application/json");
  });

  test("a CSV export is rejected in JSON for a bad query or token", async () => {
    const csv = { headers: { Accept: CSV } };
    const cases: [query: string, message: RegExp][] = [
      ["?type=all", /^type/],
      ["?from=2&to=1", /^from/],
      ["?limit=10", /^limit: a text\/csv export has no pages/],
      ["?cursor=WzFd", /^cursor: a text\/csv export has no pages/],
      ["?columns=id", /^columns: unknown field/],
    ];
    for (const [query, message] of cases) {
      await expectRefused(trader.request("GET", PATH + query, csv), 400, 40000, message);
    }
    await expectRefused(world.client("reader").request("GET", PATH, csv), 403, 40300, /portfolio:read/);
    await expectRefused(world.anonymous().request("GET", PATH, csv), 401, 40100);
  });
});
