/** Password fields: one for an existing password, and one that rates a new password while it is typed. */
import { useId, useState } from "preact/hooks";
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from "../../accounts/limits.ts";
import { Label } from "./fields.tsx";
import type { Children } from "./use-data.ts";

interface PasswordProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  /** Validation message; null if the value is valid. */
  problem?: string | null;
}

interface PasswordFieldProps extends PasswordProps {
  hint?: Children;
  /** At the end of the label's line. */
  aside?: Children;
  autoComplete?: "current-password" | "new-password";
}

export function PasswordField({
  label,
  value,
  onInput,
  problem = null,
  hint,
  aside,
  autoComplete = "current-password",
}: PasswordFieldProps) {
  const id = useId();
  const [isShown, setShown] = useState(false);
  const kind: object = { type: isShown ? "text" : "password" };
  return (
    <div class="field">
      <Label id={id} text={label} aside={aside} />
      <div class="password">
        <input
          id={id}
          {...kind}
          value={value}
          autoComplete={autoComplete}
          autoCapitalize="none"
          spellcheck={false}
          aria-invalid={problem !== null}
          aria-describedby={`${id}-hint`}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
        <button type="button" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          {isShown ? "Hide" : "Show"}
        </button>
      </div>
      <div id={`${id}-hint`} class={problem === null ? "hint" : "hint bad"}>
        {problem ?? hint}
      </div>
    </div>
  );
}

/** A new password, with its requirements. */
export function NewPasswordField({ label, value, onInput, problem = null }: PasswordProps) {
  const length = [...value].length;
  // The server's list of common passwords is longer than this page's.
  const isCommon = looksCommon(value) || (problem?.startsWith("Too common") ?? false);
  return (
    <div class="stack small-gap">
      <PasswordField label={label} value={value} onInput={onInput} problem={problem} autoComplete="new-password" />
      <ul class="requirements" aria-label="Password requirements">
        <Requirement isMet={length >= MIN_PASSWORD_LENGTH}>
          At least {MIN_PASSWORD_LENGTH} characters{length > 0 && length < MIN_PASSWORD_LENGTH && ` (now ${length})`}
        </Requirement>
        <Requirement isMet={length >= MIN_PASSWORD_LENGTH && !isCommon}>
          Not a common password; a few random words work best
        </Requirement>
      </ul>
    </div>
  );
}

function Requirement({ isMet, children }: { isMet: boolean; children: Children }) {
  return (
    <li class={isMet ? "met" : ""}>
      <span aria-hidden="true">{isMet ? "✓" : "○"}</span> {children}
      {isMet && <span class="hidden"> (met)</span>}
    </li>
  );
}

/** Returns the validation message for a new password, null if it is valid here. The server knows more common passwords. */
export function newPasswordProblem(password: string): string | null {
  const length = [...password].length;
  if (length === 0) return "Choose a password.";
  if (length < MIN_PASSWORD_LENGTH) return `Too short: use at least ${MIN_PASSWORD_LENGTH} characters.`;
  if (length > MAX_PASSWORD_LENGTH) return `Too long: use at most ${MAX_PASSWORD_LENGTH} characters.`;
  return looksCommon(password) ? "Too common: choose another password." : null;
}

/** Prefixes of the most common passwords. */
const STEMS = ["password", "passw0rd", "p@ssword", "qwerty", "letmein", "iloveyou", "welcome", "football", "1q2w3e4r"];

function looksCommon(password: string): boolean {
  const text = password.toLowerCase();
  if (/^(.{1,3})\1*.?.?$/u.test(text) && text.length > 3) return true;
  if ("01234567890123456789".includes(text) || "98765432109876543210".includes(text)) return true;
  return STEMS.some((stem) => text.replace(/[^a-z]*$/, "") === stem || text.replace(/\d*$/, "") === stem);
}
