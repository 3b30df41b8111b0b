/** Codes as people type and paste them. */
import { expect, test } from "vitest";
import { isSixDigits, withoutSeparators } from "../../server/accounts/code-text.ts";

test.each([
  "123456",
  " 123456",
  "123 456",
  "123-456",
  "123\u00a0456\n",
  "123\u2011456",
  "12\u201334\u201456",
  "\ufeff123\u200b456\t",
])("%j is 123456", (text) => {
  expect(withoutSeparators(text)).toBe("123456");
  expect(isSixDigits(withoutSeparators(text))).toBe(true);
});

test.each(["12345", "1234567", "12345a", "123.456", "123,456", "١٢٣٤٥٦", ""])("%j is no code of six digits", (text) => {
  expect(isSixDigits(withoutSeparators(text))).toBe(false);
});
