/** Free texts in request bodies: one line, several lines, and operators' notes. */

import Type from "typebox";
import { MAX_NOTE_LENGTH } from "./limits.ts";
import { closed, nullable } from "./schemas.ts";

/** No surrounding white space. The pattern counts too: `maxLength` counts a letter with any number of marks as one. */
const textOf = (characters: string, minLength: number, maxLength: number) =>
  Type.String({
    minLength,
    maxLength,
    pattern: `^(?!\\s)(?:${characters}){${minLength},${maxLength}}(?<!\\s)$`,
  });

/** One line. */
export const line = (minLength: number, maxLength: number) => textOf("[^\\p{Cc}\\p{Cs}]", minLength, maxLength);
/** Several lines. */
export const text = (maxLength: number) => textOf("[^\\p{Cc}\\p{Cs}]|[\\n\\r\\t]", 1, maxLength);
/** May be missing or null. */
export const optional = <T extends Parameters<typeof nullable>[0]>(schema: T) => Type.Optional(nullable(schema));

export const Note = text(MAX_NOTE_LENGTH);
/** The note that an operator leaves with a decision; the user concerned can read it. */
export const note = optional(Note);
export const NoteOnly = closed({ note });

/**
 * A name that becomes a part of a path: not `.` or `..`, which clients resolve. As a schema, and as a check.
 * @param others what it may have beside letters, digits, `.` and `-`
 */
function pathName(others: string, maxLength: number) {
  const pattern = `^(\\.*[A-Za-z0-9${others}-][A-Za-z0-9.${others}-]*|\\.{3,})$`;
  const fits = new RegExp(pattern);
  const accepts = (text: string): boolean => text.length <= maxLength && fits.test(text);
  return { schema: { pattern, minLength: 1, maxLength }, accepts };
}

/** The code of an integration. */
export const BUILDER_CODE = pathName("_", 32);
export const CLIENT_ORDER_ID = pathName("_:", 64);
