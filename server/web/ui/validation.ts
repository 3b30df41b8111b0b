/** What is wrong with what was typed, in words beside its field, before it is sent; null where nothing is. */

import { MAX_NOTE_LENGTH } from "../../http/limits.ts";
import { MAX_CATEGORY_LENGTH, MAX_DESCRIPTION_LENGTH } from "../../markets/limits.ts";
import { parseLocalTime } from "../format.ts";

const CONTROL = /\p{Cc}/u;
/** Several lines may have breaks and tabs. */
const CONTROL_IN_TEXT = /[^\P{Cc}\n\r\t]/u;

/** As the exchange counts them. */
const lengthOf = (text: string): number => [...text].length;

/** @param text without blanks around it */
export function lineProblem(text: string, min: number, max: number): string | null {
  if (text === "") return min === 0 ? null : "This is needed.";
  const length = lengthOf(text);
  if (length < min) return `At least ${min} characters.`;
  if (length > max) return `At most ${max} characters; these are ${length}.`;
  return CONTROL.test(text) ? "It has characters that can't be shown." : null;
}

/** @param text without blanks around it */
function textProblem(text: string, max: number): string | null {
  const length = lengthOf(text);
  if (length > max) return `At most ${max} characters; these are ${length}.`;
  return CONTROL_IN_TEXT.test(text) ? "It has characters that can't be shown." : null;
}

export const noteProblem = (text: string): string | null => textProblem(text.trim(), MAX_NOTE_LENGTH);
export const descriptionProblem = (text: string): string | null => textProblem(text.trim(), MAX_DESCRIPTION_LENGTH);
export const categoryProblem = (text: string): string | null => lineProblem(text.trim(), 0, MAX_CATEGORY_LENGTH);

/** Of a field for date and time that may be left empty. */
export const timeProblem = (text: string): string | null =>
  text !== "" && parseLocalTime(text) === null ? "This is no whole date and time." : null;

/** As `timeProblem`, of what is still to come. */
export function futureProblem(text: string): string | null {
  const at = parseLocalTime(text);
  return at !== null && at <= Date.now() ? "This must lie in the future." : timeProblem(text);
}

/** Text as it is sent: without blanks around it, null where none is left. */
export function trimmedOrNull(text: string): string | null {
  const trimmed = text.trim();
  return trimmed === "" ? null : trimmed;
}

/** Goes to the first field with a problem, once that is shown. */
export function focusFirstProblem(form: HTMLElement): void {
  requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
}
