/** Numbers as people of any country type them: read as meant, or rejected. */
import { describe, expect, test } from "vitest";
import { MAX_MONEY_MICRO } from "../../engine/limits.ts";
import {
  cents,
  chanceText,
  compact,
  exactMoney,
  money,
  priceNumber,
  signedMoney,
  spendable,
} from "../../server/util/format.ts";
import { parseCount, parseMoney, parsePercent, parsePrice } from "../../server/web/parse.ts";

describe("amounts", () => {
  test.each([
    ["250", 250_000_000],
    [" 99.5 ", 99_500_000],
    ["99,50", 99_500_000],
    ["0.000001", 1],
    ["0,000001", 1],
    ["0,001", 1_000],
    ["0,500", 500_000],
    ["00,100", 100_000],
    ["1,234", 1_234_000_000],
    ["1.234", 1_234_000],
    ["1234,567", 1_234_567_000],
    ["12,3456", 12_345_600],
    ["1,234,567.89", 1_234_567_890_000],
    ["1.234.567,89", 1_234_567_890_000],
    ["1.234,5", 1_234_500_000],
    ["1.234.567", 1_234_567_000_000],
    ["1 000", 1_000_000_000],
    ["1 234,567", 1_234_567_000],
    ["1\u00a0234,567", 1_234_567_000],
    ["1\u202f234.5", 1_234_500_000],
    ["1'234.50", 1_234_500_000],
    ["1’234,50", 1_234_500_000],
    ["5.", 5_000_000],
    [exactMoney(MAX_MONEY_MICRO), MAX_MONEY_MICRO],
    [exactMoney(MAX_MONEY_MICRO).replaceAll(",", ""), MAX_MONEY_MICRO],
  ])("an amount that is read: %s", (text, micro) => {
    expect(parseMoney(text)).toBe(micro);
  });

  test.each([
    ...["", " ", ".5", ",5", ",100", "-1", "+1", "1e3", "0x10", "Infinity", "١٢", "1_000", "1/2", "$5", "5 USDC"],
    // Groups of other lengths, of two kinds, behind a zero, or with their separator as decimal point.
    ...["1,50.00", "1 00", "1  000", "12 34", "1,234 567", "1 234,567,890", "0,123.4", "0 500", "0.500,1", "1,234,56"],
    ...["1234,567.8", "1.234.56", "1,2,3", "1..5", "1.,5"],
    ...["0.0000001", "0,0000001", "9999999999", "9,999,999,999", "12345678901"],
  ])("a text that is no amount: “%s”", (text) => {
    expect(parseMoney(text)).toBeNull();
  });

  test("what the page shows is read as the same amount", () => {
    for (let micro = 1; micro < MAX_MONEY_MICRO; micro = micro * 7 + 3)
      expect(parseMoney(exactMoney(micro))).toBe(micro);
  });
});

describe("what the page shows", () => {
  test.each([
    [5_100, "51%"],
    [5_149, "51%"],
    [5_150, "52%"],
    [0, "0%"],
    [1, "<1%"],
    [99, "<1%"],
    [100, "1%"],
    [9_900, "99%"],
    [9_901, ">99%"],
    [9_999, ">99%"],
    [10_000, "100%"],
    [null, "–"],
  ])("the page shows a chance of %s BPS as %s", (bps, text) => {
    expect(chanceText(bps)).toBe(text);
  });

  test.each([
    [5_200, "52.0"],
    [5_210, "52.1"],
    [5_125, "51.25"],
    [1, "0.01"],
    [10, "0.1"],
    [9_999, "99.99"],
    [null, "–"],
  ])("the page shows a price of %s BPS as %s cents", (bps, text) => {
    expect(priceNumber(bps)).toBe(text);
    expect(cents(bps)).toBe(bps === null ? text : `${text}¢`);
  });

  test.each([
    [4_218_360_000, "4,218.36", "4,218.36"],
    [450_807_375, "450.81", "450.80"],
    [999_999, "1.00", "0.99"],
    [4_999, "<0.01", "0.00"],
    [5_000, "0.01", "0.00"],
    [0, "0.00", "0.00"],
  ])("the page shows %s micro-USDC as %s, and %s to spend", (micro, text, free) => {
    expect([money(micro), spendable(micro)]).toEqual([text, free]);
    if (micro > 0) expect([signedMoney(micro), signedMoney(-micro)]).toEqual([`+${text}`, `−${text}`]);
  });

  test.each([
    [1_917, "1,917"],
    [9_999, "9,999"],
    [10_000, "10.0K"],
    [411_953, "412K"],
    [91_400, "91.4K"],
    [1_234_567, "1.23M"],
  ])("the page shows %s shares in a summary as %s", (count, text) => {
    expect(compact(count)).toBe(text);
  });
});

test.each([
  ["42,5", 4_250],
  ["42.5", 4_250],
  ["0,01", 1],
  ["99,99", 9_999],
  ["7", 700],
  ["0", null],
  ["100", null],
  ["42,555", null],
  ["4,250", null],
])("“%s” as a price is %s BPS", (text, bps) => {
  expect(parsePrice(text)).toBe(bps);
});

test("a percentage may be 0 and 100, and has two decimals", () => {
  expect([parsePercent("0"), parsePercent("100,00"), parsePercent("3,333.333")]).toEqual([0, 10_000, null]);
});

test.each([
  ["500", 500],
  ["0,500", null],
  ["00,100", null],
  ["1,5", null],
  ["1,234", 1_234],
  ["1 234", 1_234],
  ["1.234", null],
  ["1,000,000", 1_000_000],
  ["5,", null],
  ["5.", null],
  ["0", 0],
])("“%s” as a number of shares is %s", (text, count) => {
  expect(parseCount(text)).toBe(count);
});
