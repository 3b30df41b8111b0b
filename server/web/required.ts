/** Unwraps values that must exist. For our own mistakes only, never for what a user did. */

/** Returns the value. @param what names it in the error @throws Error if it is null or undefined */
export function required<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`missing: ${what}`);
  return value;
}
