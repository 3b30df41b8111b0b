/** Texts that people write, as request bodies have them. */

import Type from "typebox";
import { MAX_NOTE_LENGTH } from "./limits.ts";
import { closed, nullable } from "./schemas.ts";

/** Without blanks around it. Counted by the pattern too: `maxLength` takes a letter with any number of marks for one. */
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

/** What an operator notes beside a decision, for whom it concerns to read. */
export const note = optional(text(MAX_NOTE_LENGTH));
export const NoteOnly = closed({ note });
