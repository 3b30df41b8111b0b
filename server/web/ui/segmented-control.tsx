/** A choice among a few options in one row, of which one is chosen. */
import { useId } from "preact/hooks";
import type { Children } from "./use-data.ts";

/** Radio buttons drawn as one row of segments; arrow keys move between them. */
export function SegmentedControl<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: readonly (readonly [value: T, text: Children])[];
  onChange: (value: T) => void;
}) {
  const name = useId();
  return (
    <fieldset class="choice">
      <legend class="hidden">{label}</legend>
      {options.map(([each, text]) => (
        <label key={each} class={each === value ? "chosen" : ""}>
          <input type="radio" name={name} class="hidden" checked={each === value} onChange={() => onChange(each)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}
