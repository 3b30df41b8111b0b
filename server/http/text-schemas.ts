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

/** The code of an integration, a part of a path: not `.` or `..`, which clients resolve. */
export const BUILDER_CODE = {
  pattern: "^(\\.*[A-Za-z0-9_-][A-Za-z0-9._-]*|\\.{3,})$",
  minLength: 1,
  maxLength: 32,
} as const;
