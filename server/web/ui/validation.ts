/** Client-side validation. Each `...Problem` function returns a message for the user, or null if the text is valid. */

import { MAX_NOTE_LENGTH } from "../../http/limits.ts";
import { MAX_CATEGORY_LENGTH, MAX_DESCRIPTION_LENGTH } from "../../markets/limits.ts";
import { exchangeTime } from "../clock.ts";
import { parseLocalTime } from "../parse.ts";

const CONTROL = /\p{Cc}/u;
/** Multi-line text may contain line breaks and tabs. */
const CONTROL_IN_TEXT = /[^\P{Cc}\n\r\t]/u;

/** In code points, as the server counts. */
const lengthOf = (text: string): number => [...text].length;

/** @param text trimmed */
export function lineProblem(text: string, min: number, max: number): string | null {
  if (text === "") return min === 0 ? null : "Required.";
  const length = lengthOf(text);
  if (length < min) return `At least ${min} characters.`;
  if (length > max) return `At most ${max} characters (now ${length}).`;
  return CONTROL.test(text) ? "Contains control characters." : null;
}

/** @param text trimmed */
function textProblem(text: string, max: number): string | null {
  const length = lengthOf(text);
  if (length > max) return `At most ${max} characters (now ${length}).`;
  return CONTROL_IN_TEXT.test(text) ? "Contains control characters." : null;
}

export const noteProblem = (text: string): string | null => textProblem(text.trim(), MAX_NOTE_LENGTH);
export const descriptionProblem = (text: string): string | null => textProblem(text.trim(), MAX_DESCRIPTION_LENGTH);
export const categoryProblem = (text: string): string | null => lineProblem(text.trim(), 0, MAX_CATEGORY_LENGTH);

/** Of an optional date and time field. */
export const timeProblem = (text: string): string | null =>
  text !== "" && parseLocalTime(text) === null ? "Enter a complete date and time." : null;

/** As `timeProblem`, and the time must be in the future. */
export function futureProblem(text: string): string | null {
  const at = parseLocalTime(text);
  return at !== null && at <= exchangeTime() ? "Must be in the future." : timeProblem(text);
}

/** The trimmed text; null if it is blank. */
export function trimmedOrNull(text: string): string | null {
  const trimmed = text.trim();
  return trimmed === "" ? null : trimmed;
}

/** Focuses the first invalid field after the next render. */
export function focusFirstProblem(form: HTMLElement): void {
  requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
}
