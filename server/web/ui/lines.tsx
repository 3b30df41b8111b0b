/** A labelled field with an entry on each line. */
import { useId } from "preact/hooks";
import type { Children } from "./data.ts";

interface LinesProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: Children;
  /** What is wrong with what was typed. */
  problem?: string | null;
  rows?: number;
  placeholder?: string;
}

export function Lines({ label, value, onInput, hint, problem = null, rows = 3, placeholder }: LinesProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        class="mono"
        rows={rows}
        value={value}
        placeholder={placeholder}
        autoCapitalize="none"
        spellcheck={false}
        aria-invalid={problem !== null}
        aria-describedby={`${id}-hint`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <div id={`${id}-hint`} class={problem === null ? "hint" : "hint bad"}>
        {problem ?? hint}
      </div>
    </div>
  );
}

/** Without those that are empty, and each once. */
export const linesOf = (text: string): string[] => [
  ...new Set(
    text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== ""),
  ),
];
