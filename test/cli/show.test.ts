/** The results of the operator's commands as a person at a terminal reads them. */
import { expect, test } from "vitest";
import { BPS_FIELDS, isTimeField, MONEY_FIELDS, shown, shownFindings } from "../../server/cli/show.ts";
import { ROUTES } from "../support/client.ts";

const AT = Date.UTC(2026, 10, 25, 9, 30);

test("a list is an aligned table: numbers to the right, money in USDC, times in ISO, empty columns left out", () => {
  const items = [
    { id: 7, email: "ann@example.com", amount: 1_500_000, note: null, created_at: AT, suspended: false },
    { id: 1_234, email: "b@example.com", amount: -1, note: null, created_at: AT, suspended: true },
  ];
  expect(
    shown({ items, next_cursor: "WzFd" }, 120),
  ).toBe(`  id  email                    amount  created_at                suspended
   7  ann@example.com       1.50 USDC  2026-11-25T09:30:00.000Z  no
1234  b@example.com    -0.000001 USDC  2026-11-25T09:30:00.000Z  yes

more: --cursor WzFd
`);
  expect(shown({ items: [], next_cursor: null }, 80)).toBe("none\n");
});

test("a table wider than the terminal becomes a record for each row", () => {
  const items = [
    { id: 1, question: "Is it so?", created_at: AT },
    { id: 2, question: "Is it not?", created_at: AT },
  ];
  expect(shown({ items, next_cursor: null }, 30)).toBe(`id          1
question    Is it so?
created_at  2026-11-25T09:30:00.000Z

id          2
question    Is it not?
created_at  2026-11-25T09:30:00.000Z
`);
});

test("one thing is lines of names and values; what is within it has its name in front, and lists are tables", () => {
  const user = {
    id: 3,
    balance: { available: 10_000_000, held: 0 },
    terms: { trading_fee: 150, daily_limit: null },
    outcomes: [
      { id: 7, name: "Yes" },
      { id: 8, name: "No" },
    ],
    tokens: [],
    deposits: [{ id: 1, amount: 5_000_000, reference: "a" }],
  };
  expect(shown(user, 80)).toBe(`id                 3
balance.available  10.00 USDC
balance.held       0.00 USDC
terms.trading_fee  150 BPS
terms.daily_limit  -
tokens             -

outcomes:
id  name
 7  Yes
 8  No

deposits:
id     amount  reference
 1  5.00 USDC  a
`);
  expect([shown(null, 80), shown("text", 80), shown({ password: "x" }, 80)]).toEqual([
    "done\n",
    "text\n",
    "password  x\n",
  ]);
});

test("a user's text neither steers the terminal nor breaks the table, whatever its script", () => {
  const items = [
    { name: "\u001b[2J\u001b]0;title\u0007evil\nline\u2028\u009b31m", id: 1 },
    { name: "\u4f60\u597d", id: 2 },
    { name: "e\u0301", id: 3 },
  ];
  const text = shown({ items, next_cursor: null }, 80);
  expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u2028]/u);
  const [, , wide, narrow] = text.split("\n");
  // Two columns for each of the two ideographs, one for the letter with its accent.
  expect(wide!.length + 2).toBe(narrow!.length - 1);
});

test("verify: the failed checks first, one line each, and a summary", () => {
  const findings = [
    { name: "sums balance", ok: true, figures: "1 = 1" },
    { name: "no order is lost", ok: false, figures: "2 rows:\n7" },
  ];
  expect(shownFindings(findings)).toBe(`FAILED  no order is lost: 2 rows: 7
ok      sums balance: 1 = 1
1 of 2 checks FAILED
`);
  expect(shownFindings(findings.slice(0, 1))).toMatch(/\nall 1 checks passed\n$/);
});

test("the fields of money, basis points and times are those of the operators' routes", () => {
  const kinds = new Map<string, Set<string>>();
  const look = (schema: unknown, name: string, said = ""): void => {
    const { type, description = said, properties = {}, items, anyOf = [] } = schema as Record<string, never>;
    for (const [field, each] of Object.entries(properties)) look(each, field);
    for (const each of anyOf as unknown[]) look(each, name, description);
    if (items !== undefined) look(items, name);
    if (type !== "integer" && type !== "number") return;
    const text = String(description);
    const kind = /micro-USDC/.test(text) ? "money" : /^ms since/.test(text) ? "time" : /basis points|BPS/.test(text);
    kinds.set(name, (kinds.get(name) ?? new Set()).add(String(kind)));
  };
  for (const { access, response } of ROUTES) if (access === "operator") look(response, "");
  const shownAs = (name: string): string =>
    MONEY_FIELDS.has(name) ? "money" : isTimeField(name) ? "time" : String(BPS_FIELDS.has(name));
  expect([...kinds].map(([name, found]) => [name, [...found]])).toEqual(
    [...kinds.keys()].map((name) => [name, [shownAs(name)]]),
  );
  for (const name of [...MONEY_FIELDS, ...BPS_FIELDS]) expect(kinds.has(name), name).toBe(true);
});
