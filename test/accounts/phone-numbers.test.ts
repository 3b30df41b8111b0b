/** Which phone numbers are taken, by region and by kind. */
import type { CountryCode } from "libphonenumber-js/max";
import { getCountries, getExampleNumber } from "libphonenumber-js/max";
import examples from "libphonenumber-js/mobile/examples";
import { describe, expect, test } from "vitest";
import { readPhoneNumber } from "../../server/accounts/phone-numbers.ts";
import { ApiError } from "../../server/errors.ts";

async function rejection(text: string): Promise<ApiError> {
  try {
    await readPhoneNumber(text);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error(`"${text}" was taken`);
}

test.for(["+14155552671", "+447400123456", "+491701234567", "+33612345678", "+8613800138000", "+5491123456789"])(
  "%s is taken as it is",
  async (text) => {
    expect(await readPhoneNumber(text)).toBe(text);
  },
);

test("a mobile number of every region is taken as it is", async () => {
  const regions = getCountries().filter((region: CountryCode) => examples[region] !== undefined);
  expect(regions.length).toBeGreaterThan(200);
  for (const region of regions) {
    const { number } = getExampleNumber(region, examples)!;
    expect(await readPhoneNumber(number), region).toBe(number);
  }
});

describe("what isn't E.164 is refused", () => {
  const texts = [
    "",
    "+",
    "14155552671",
    "0014155552671",
    "+1 415 555 2671",
    "+1-415-555-2671",
    "+1(415)5552671",
    "+1.415.555.2671",
    " +14155552671",
    "+14155552671 ",
    "+14155552671\n",
    "+14155552671\r\nTo: +447400123456",
    "+14155552671,+447400123456",
    "+14155552671;ext=1",
    "tel:+14155552671",
    "++14155552671",
    "\uff0b14155552671",
    "+\u0661\u0664\u0661\u0665\u0665\u0665\u0665\u0662\u0666\u0667\u0661",
    "+1415555267a",
    "+0123456789",
    "+1415555267100000",
    `+${"1".repeat(100_000)}`,
  ];
  test.for(texts.map((text) => [JSON.stringify(text).slice(0, 40), text] as const))(
    "a phone number that isn't E.164 is rejected: %s",
    async ([, text]) => {
      const error = await rejection(text);
      expect(error.kind.code).toBe(40000);
      expect(error.message).toMatch(/^phone: .*E\.164/);
    },
  );
});

describe("a number that its region doesn't have is refused", () => {
  const numbers = {
    "too short": "+1415555",
    "too long": "+141555526711",
    "no such area": "+10000000000",
    "no such country": "+99912345678",
    "with the national prefix": "+4407400123456",
    "not handed out": "+4478901234567",
    "too short for Germany": "+49111",
  };
  test.for(Object.entries(numbers))("a number that its region doesn't have is rejected: %s: %s", async ([, number]) => {
    expect((await rejection(number)).message).toBe("phone: must be a valid number");
  });
});

describe("a number that gets no text messages is refused", () => {
  const numbers = {
    "London landline": "+442083661177",
    "Berlin landline": "+4930123456",
    "Paris landline": "+33142685300",
    "North American premium rate": "+19005551234",
    "French premium rate": "+33891123456",
    "toll-free": "+18005551234",
    "personal number": "+447012345678",
    "international toll-free": "+80012345678",
    "satellite phone": "+881612345678",
  };
  test.for(Object.entries(numbers))("a number that gets no text messages is rejected: %s: %s", async ([, number]) => {
    const error = await rejection(number);
    expect(error.message).toBe("phone: must be a number that can receive text messages");
    expect(error.message).not.toContain(number);
  });
});
