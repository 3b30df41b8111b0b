/**
 * Validates phone numbers: in E.164 form as the API requires, valid in their region, able to receive text messages.
 *
 * Uses the "max" metadata on purpose. "min" is half the size, which does not matter on a server, but knows the type of a
 * number in few regions only: German or French landlines would pass. "mobile" knows mobile numbers only, so a landline
 * would be an invalid number and the error could not say why. It is loaded with the first number.
 */
import type { NumberType } from "libphonenumber-js/max";
import { badRequest } from "../errors.ts";

/** E.164: a plus and at most 15 digits, the first of which belongs to the country code and is never 0. */
const E164 = /^\+[1-9]\d{4,14}$/;

/**
 * Where a numbering plan does not distinguish mobiles from landlines (North America), such a number passes. Pagers,
 * personal numbers and the like do not: their owner sets the price of a text, which invites fraud.
 */
const TEXTABLE_TYPES: readonly NumberType[] = ["MOBILE", "FIXED_LINE_OR_MOBILE"];

/**
 * Returns the number unchanged: it has one valid form only, so two numbers are the same if their texts are equal.
 * @throws ApiError 40000 (rejects), which does not quote the text
 */
export async function readPhoneNumber(text: string): Promise<string> {
  if (!E164.test(text)) throw badRequest("phone: must be in E.164 form: a plus, the country code and digits only");
  const { parsePhoneNumberFromString } = await import("libphonenumber-js/max");
  const number = parsePhoneNumberFromString(text);
  // The parser repairs some invalid numbers, such as a national prefix after the country code (+4407...).
  if (number === undefined || number.number !== text || !number.isValid()) {
    throw badRequest("phone: must be a valid number");
  }
  // A text to a satellite network, or another plan without a region, costs dollars.
  if (number.country === undefined || !TEXTABLE_TYPES.includes(number.getType())) {
    throw badRequest("phone: must be a number that can receive text messages");
  }
  return text;
}
