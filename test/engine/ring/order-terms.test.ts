/** One word has an order's terms: in commands, in events, in rows and in what clients and operators see. */
import { expect, test } from "vitest";
import * as C from "../../../engine/constants.ts";
import { ORDER_TERMS, TERMS_SQL, termValue } from "../../../engine/ring/order-terms.ts";
import * as R from "../../../engine/ring/records.ts";
import { openSqlite } from "../../../engine/util/sqlite.ts";

/** Every combination of codes and flags. */
function* everyTerms(): Generator<number> {
  let all = [0];
  for (const { name, mask, shift, words } of ORDER_TERMS) {
    const codes = name === "side" ? [C.Side.buy, C.Side.sell] : Array.from({ length: words?.length ?? 2 }, (_, i) => i);
    all = all.flatMap((terms) => codes.map((code) => terms | ((code << shift) & mask)));
  }
  yield* all;
}

test("every combination of terms comes back from the two words of orderPlaced", () => {
  let count = 0;
  for (const terms of everyTerms()) {
    const command = R.packCommand(R.CommandKind.placeOrder, terms);
    const { open } = C.OrderStatus;
    const event = R.packEvent(R.EventKind.orderPlaced, R.sideOf(command), open, C.Reason.user, command & R.ORDER_FLAGS);
    const codes = R.codesOf(command);
    expect(R.isRaised(codes)).toBe(false);
    expect(R.placedTerms(event, codes)).toBe(terms);
    expect(R.placedTerms(event, codes | R.RAISED)).toBe(terms);
    count++;
  }
  expect(count).toBe(2 * 3 * 4 * 4 * 2 ** 4);
});

test("every combination of terms comes back from the columns of a row", () => {
  const db = openSqlite(":memory:");
  const columns = ORDER_TERMS.map(({ column }) => column);
  db.exec(`CREATE TABLE orders (${columns.map((column) => `${column} INTEGER NOT NULL`).join(", ")}) STRICT`);
  const insert = db.prepare(`INSERT INTO orders VALUES (${columns.map(() => "?").join(", ")})`);
  const all = [...everyTerms()];
  for (const terms of all) insert.run(...ORDER_TERMS.map(({ mask, shift }) => (terms & mask) >>> shift));
  expect(db.prepare(`SELECT ${TERMS_SQL} FROM orders ORDER BY rowid`).pluck().all()).toEqual(all);
  db.close();
});

test("a term's value is its word, a flag's is true or false", () => {
  const { sell } = C.Side;
  const flags = R.FLAG_POST_ONLY | R.FLAG_QUOTE | R.FLAG_TEXT;
  const terms = R.packTerms(sell, C.OrderType.limit, C.TimeInForce.gtd, C.SelfTradePrevention.cancelBoth, flags);
  expect(Object.fromEntries(ORDER_TERMS.map((term) => [term.name, termValue(term, terms)]))).toEqual({
    ...{ side: 2, type: "limit", time_in_force: "gtd", post_only: true, self_trade_prevention: "cancel_both" },
    ...{ pat: false, quote: true, cancel_on_disconnect: false },
  });
  expect(termValue(ORDER_TERMS[1]!, R.packTerms(sell, C.OrderType.unboundMarket, C.TimeInForce.fok, 0, 0))).toBe(
    "market",
  );
});
