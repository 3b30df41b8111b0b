/** Labelled form controls: text field, text area, select, checkbox, segmented control. The parent owns their values. */
import { useId } from "preact/hooks";
import { cents, exactMoney, percent, shares } from "../../util/format.ts";
import { parseCount, parseMoney, parsePercent } from "../parse.ts";
import { Icon } from "./icon.tsx";
import type { Children } from "./use-data.ts";

interface InputProps {
  label: string;
  /** Shown below the field unless there is a problem. */
  hint?: Children;
  /** How the page understood the value, shown first below the field. */
  understood?: string | null;
  /** Validation message; null if the value is valid. */
  problem?: string | null;
  /** Shown after the value, such as USDC. */
  unit?: string;
  /** At the end of the label's line. */
  aside?: Children;
  /** Lowers and raises the value, by buttons and by arrow keys; with Shift, in large steps. */
  onStep?: (direction: 1 | -1, isLarge: boolean) => void;
  /** "large": the value that the form is about. */
  size?: "large" | "";
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "email" | "password" | "tel" | "url" | "search" | "date" | "datetime-local";
  inputMode?: "text" | "decimal" | "numeric" | "email" | "tel";
  autoComplete?: string;
  placeholder?: string;
  maxLength?: number;
  min?: string;
  required?: boolean;
  disabled?: boolean;
}

/** The value of a date field that is only partly filled in. Browsers report "" for it, as for an empty field. */
const INCOMPLETE = "incomplete";

/** A labelled single-line text field. */
export function Field({
  label,
  hint,
  understood = null,
  problem = null,
  unit,
  aside,
  onStep,
  size = "",
  value,
  onInput,
  ...rest
}: InputProps) {
  const id = useId();
  const reportInput = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void => {
    const text = currentTarget.validity.badInput ? INCOMPLETE : currentTarget.value;
    if (text !== value) onInput(text);
  };
  return (
    <div class={`field ${size}`}>
      <Label id={id} text={label} aside={aside} />
      <div class={onStep === undefined ? "input" : "input stepper"}>
        {onStep !== undefined && <StepButton direction={-1} label={label} onStep={onStep} />}
        <input
          id={id}
          value={value === INCOMPLETE ? "" : value}
          aria-invalid={problem !== null}
          aria-describedby={`${id}-hint`}
          onInput={reportInput}
          onKeyUp={reportInput}
          onKeyDown={
            onStep &&
            ((event) => {
              const direction = event.key === "ArrowUp" ? 1 : event.key === "ArrowDown" ? -1 : null;
              if (direction === null) return;
              event.preventDefault();
              onStep(direction, event.shiftKey);
            })
          }
          {...(rest as object)}
        />
        {unit !== undefined && <span class="unit">{unit}</span>}
        {onStep !== undefined && <StepButton direction={1} label={label} onStep={onStep} />}
      </div>
      <div id={`${id}-hint`} class={problem === null ? "hint" : "hint bad"}>
        {understood !== null && (
          <b class="number" translate={false}>
            = {understood}.{" "}
          </b>
        )}
        {problem ?? hint}
      </div>
    </div>
  );
}

/** @param id of the field @param aside at the end of the label's line */
export function Label({ id, text, aside }: { id: string; text: string; aside: Children }) {
  if (aside === undefined) return <label for={id}>{text}</label>;
  return (
    <div class="label-row">
      <label for={id}>{text}</label>
      {aside}
    </div>
  );
}

function StepButton({
  direction,
  label,
  onStep,
}: Required<Pick<InputProps, "onStep">> & { direction: 1 | -1; label: string }) {
  return (
    <button
      type="button"
      class="quiet"
      tabIndex={-1}
      aria-label={`${direction === 1 ? "Raise" : "Lower"}: ${label}`}
      onClick={(event) => onStep(direction, event.shiftKey)}
    >
      <Icon name={direction === 1 ? "plus" : "minus"} />
    </button>
  );
}

/** What a number field means by its text: how to read it, and how to show what was read. */
export interface NumberKind {
  readonly inputMode: "decimal" | "numeric";
  readonly parse: (text: string) => number | null;
  readonly show: (value: number) => string;
}
export const AMOUNT: NumberKind = {
  inputMode: "decimal",
  parse: parseMoney,
  show: (micro) => `${exactMoney(micro)} USDC`,
};
export const PRICE: NumberKind = { inputMode: "decimal", parse: parsePercent, show: cents };
export const PERCENT: NumberKind = { inputMode: "decimal", parse: parsePercent, show: percent };
export const COUNT: NumberKind = { inputMode: "numeric", parse: parseCount, show: shares };

/** Digits with at most a decimal point: everybody reads them alike. */
const PLAIN = /^\s*\d*\.?\d*\s*$/;

/** A labelled field for a number. Shows the number that it understood where people of other countries could read another. */
export function NumberField({ kind, ...rest }: Omit<InputProps, "inputMode" | "type"> & { kind: NumberKind }) {
  const number = PLAIN.test(rest.value) ? null : kind.parse(rest.value);
  const understood = number === null ? null : kind.show(number);
  return <Field {...rest} inputMode={kind.inputMode} autoComplete="off" understood={understood} />;
}

/** A labelled multi-line text field. */
export function TextArea({
  label,
  hint,
  problem = null,
  value,
  onInput,
  rows = 3,
  placeholder,
}: Pick<InputProps, "label" | "hint" | "problem" | "value" | "onInput" | "placeholder"> & { rows?: number }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={rows}
        value={value}
        placeholder={placeholder}
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

/** A labelled drop-down. */
export function Select<T extends string>({
  label,
  value,
  options,
  onChange,
  isLabelHidden = false,
  areNames = false,
}: {
  label: string;
  value: T;
  options: readonly (readonly [value: T, text: string])[];
  onChange: (value: T) => void;
  isLabelHidden?: boolean;
  /** The options are names, which translations leave alone. */
  areNames?: boolean;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id} class={isLabelHidden ? "hidden" : ""}>
        {label}
      </label>
      <select
        id={id}
        value={value}
        translate={areNames ? false : undefined}
        onChange={(event) => onChange(event.currentTarget.value as T)}
      >
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Checkbox({
  label,
  checked,
  onChange,
  hint,
  disabled = false,
}: {
  label: Children;
  checked: boolean;
  onChange: (checked: boolean) => void;
  hint?: string;
  disabled?: boolean;
}) {
  return (
    <label class="checkbox">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>
        {label}
        {hint !== undefined && <small>{hint}</small>}
      </span>
    </label>
  );
}
