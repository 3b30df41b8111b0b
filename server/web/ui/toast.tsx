/** Short messages that disappear on their own. Screen readers announce them. */
import { signal } from "@preact/signals";
import { Icon } from "./icon.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
}

const SHOWN_MS = 6_000;
const MAX_TOASTS = 3;
const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

export function toast(text: string, isError = false): void {
  const id = ++lastId;
  toasts.value = [...toasts.peek(), { id, text, isError }].slice(-MAX_TOASTS);
  // What failed stays until it was read.
  if (!isError) setTimeout(() => dismiss(id), SHOWN_MS);
}

const dismiss = (id: number): void => {
  toasts.value = toasts.peek().filter((each) => each.id !== id);
};

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, isError }) => (
        <div key={id} class={isError ? "toast bad" : "toast"}>
          <Icon name={isError ? "alert" : "check"} />
          <span>{text}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
