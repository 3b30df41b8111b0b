/** Amounts as users type them: parsed as meant, or rejected. */
import { expect, test } from "vitest";
import { MAX_MONEY_MICRO } from "../../engine/limits.ts";
import { money, parseMoney } from "../../server/web/format.ts";

test.each([
  ["250", 250_000_000],
  [" 99.5 ", 99_500_000],
  ["0.000001", 1],
  ["1,234,567.89", 1_234_567_890_000],
  ["1 000", 1_000_000_000],
  [money(MAX_MONEY_MICRO), MAX_MONEY_MICRO],
  [money(MAX_MONEY_MICRO).replaceAll(",", ""), MAX_MONEY_MICRO],
])("%s is an amount", (text, micro) => {
  expect(parseMoney(text)).toBe(micro);
});

test.each(["", ".5", "-1", "1e3", "99,50", "1,50.00", "12,3456", ",100", "0.0000001", "9999999999", "1 00"])(
  "“%s” is none",
  (text) => {
    expect(parseMoney(text)).toBeNull();
  },
);
