/** One-time passwords against the vectors of RFC 4226 and RFC 6238, and the protection against code reuse. */
import { describe, expect, test } from "vitest";
import { base32, codeAt, matchStep, STEP_MS, totpUri } from "../../server/sign-in/totp.ts";
import { readBase32 } from "../support/second-factor.ts";

const SECRET = Buffer.from("12345678901234567890");

test("codes are those of RFC 4226, appendix D", () => {
  const expected = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"];
  expect(expected.map((_, counter) => codeAt(SECRET, counter))).toEqual(expected);
});

test.each([
  [59, "94287082"],
  [1_111_111_109, "07081804"],
  [1_111_111_111, "14050471"],
  [1_234_567_890, "89005924"],
  [2_000_000_000, "69279037"],
  [20_000_000_000, "65353130"],
])("codes are those of RFC 6238, appendix B: %i s", (seconds, code) => {
  const step = Math.floor((seconds * 1_000) / STEP_MS);
  expect(codeAt(SECRET, step, 8)).toBe(code);
  expect(matchStep(SECRET, code.slice(2), seconds * 1_000, 0)).toBe(step);
});

describe("a code is taken", () => {
  const step = 60_000_000;
  const now = step * STEP_MS + 12_345;

  test("a TOTP code is taken one step early and one step late, no more", () => {
    const taken = [-2, -1, 0, 1, 2].map((offset) => matchStep(SECRET, codeAt(SECRET, step + offset), now, 0));
    expect(taken).toEqual([null, step - 1, step, step + 1, null]);
  });

  test("a TOTP code is taken once: its step and those before are over", () => {
    const taken = (last: number) =>
      [-1, 0, 1].map((offset) => matchStep(SECRET, codeAt(SECRET, step + offset), now, last));
    expect(taken(step - 1)).toEqual([null, step, step + 1]);
    expect(taken(step)).toEqual([null, null, step + 1]);
    expect(taken(step + 1)).toEqual([null, null, null]);
  });
});

test("base 32 is that of RFC 4648, section 10, without padding", () => {
  const vectors = {
    "": "",
    f: "MY",
    fo: "MZXQ",
    foo: "MZXW6",
    foob: "MZXW6YQ",
    fooba: "MZXW6YTB",
    foobar: "MZXW6YTBOI",
  };
  const found = Object.keys(vectors).map((text) => [text, base32(Buffer.from(text))]);
  expect(Object.fromEntries(found)).toEqual(vectors);
  expect(readBase32(base32(SECRET))).toEqual(SECRET);
});

test("the URI names the exchange and the account, whatever stands in the address", () => {
  const uri = new URL(totpUri(SECRET, "Prediction Exchange", "a+b&c?d#e@example.com"));
  expect([uri.protocol, uri.host, decodeURIComponent(uri.pathname)]).toEqual([
    "otpauth:",
    "totp",
    "/Prediction Exchange:a+b&c?d#e@example.com",
  ]);
  expect(Object.fromEntries(uri.searchParams)).toEqual({ secret: base32(SECRET), issuer: "Prediction Exchange" });
});
