/**
 * Which phone numbers can be somebody's: E.164 as the contract says, valid in their region, able to get text messages.
 *
 * The "max" metadata is chosen on purpose. "min", half its size, which a server doesn't feel, knows a number's kind in
 * few regions only: German or French landlines pass there. "mobile" knows no other kind, so that a landline is no valid
 * number there and its owner can't be told what is wrong.
 */
import { type NumberType, parsePhoneNumberFromString } from "libphonenumber-js/max";
import { badRequest } from "../errors.ts";

/** E.164: a plus and at most 15 digits, of which the first, a country code's, is never 0. */
const E164 = /^\+[1-9]\d{4,14}$/;

/**
 * Where a plan doesn't tell mobiles from landlines (North America) the type says so, and such a number passes. Pagers,
 * personal numbers and the like are left out: what a text to them costs is their owner's choice, which invites fraud.
 */
const TEXTABLE_TYPES: readonly NumberType[] = ["MOBILE", "FIXED_LINE_OR_MOBILE"];

/**
 * The number as it was written, which is its only form: two texts are one number where they are equal.
 * @throws ApiError 40000 that doesn't repeat the text
 */
export function readPhoneNumber(text: string): string {
  if (!E164.test(text)) throw badRequest("phone: must be in E.164 form: a plus, the country code and digits only");
  const number = parsePhoneNumberFromString(text);
  // The parser repairs what isn't E.164, as a national prefix after the country code (+4407...): not the same text.
  if (number === undefined || number.number !== text || !number.isValid()) {
    throw badRequest("phone: must be a valid number");
  }
  // Satellite networks and other plans without a region cost dollars a text.
  if (number.country === undefined || !TEXTABLE_TYPES.includes(number.getType())) {
    throw badRequest("phone: must be a number that can receive text messages");
  }
  return text;
}
