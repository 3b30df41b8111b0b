/** Short messages that disappear on their own; errors stay. Screen readers announce them. */
import { signal } from "@preact/signals";
import { Icon, type IconName } from "./icon.tsx";

interface ToastOptions {
  /** The second line, such as the market. */
  readonly detail?: string;
  readonly icon?: IconName;
  readonly action?: { readonly text: string; readonly run: () => void };
}

interface Toast extends ToastOptions {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
}

/** How many dialogs are open: the topmost one shows the toasts, since it covers all else and can alone be used. */
export const dialogs = signal(0);

const SHOWN_MS = 6_000;
const MAX_TOASTS = 3;
const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

export function toast(text: string, isError = false, options: ToastOptions = {}): void {
  const id = ++lastId;
  toasts.value = [...toasts.peek(), { id, text, isError, ...options }].slice(-MAX_TOASTS);
  // What failed stays until it was read.
  if (!isError) setTimeout(() => dismiss(id), SHOWN_MS);
}

const dismiss = (id: number): void => {
  toasts.value = toasts.peek().filter((each) => each.id !== id);
};

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, isError, detail, icon = "check", action }) => (
        <div key={id} class={isError ? "toast bad" : "toast"}>
          <Icon name={isError ? "alert" : icon} />
          <div translate={false}>
            <b>{text}</b>
            {detail !== undefined && <p>{detail}</p>}
            {action !== undefined && (
              <button
                type="button"
                class="link"
                onClick={() => {
                  dismiss(id);
                  action.run();
                }}
              >
                {action.text}
              </button>
            )}
          </div>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
