/** Modal dialogs, centred or as a sheet at the bottom of the window. */
import { useEffect, useId, useRef } from "preact/hooks";
import { Icon } from "./icon.tsx";
import { dialogs, Toasts } from "./toast.tsx";
import type { Children } from "./use-data.ts";

/** Opens the dialog that the ref points to. Returns whether it is the topmost one. */
function useModal() {
  const ref = useRef<HTMLDialogElement>(null);
  const depth = useRef(0);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    depth.current = dialogs.value = dialogs.peek() + 1;
    ref.current?.showModal();
    return () => {
      dialogs.value = dialogs.peek() - 1;
      // Unless the closing handler has already moved the focus.
      if (document.activeElement === document.body) before?.focus?.();
    };
  }, []);
  return { ref, isTop: depth.current > 0 && depth.current === dialogs.value };
}

/** A modal dialog: traps the focus and closes on Escape. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: Children }) {
  const { ref, isTop } = useModal();
  const id = useId();
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={onClose} onCancel={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {children}
      {isTop && <Toasts />}
    </dialog>
  );
}

/** A dialog at the bottom of the window, for phones. Its content has its own way to close it. */
export function Sheet({ label, onClose, children }: { label: string; onClose: () => void; children: Children }) {
  const { ref, isTop } = useModal();
  useEffect(() => {
    const dialog = ref.current;
    // The scrim around the sheet is the dialog itself.
    const clicked = ({ target, clientY }: MouseEvent): void => {
      if (dialog !== null && target === dialog && clientY < dialog.getBoundingClientRect().top) onClose();
    };
    dialog?.addEventListener("click", clicked);
    return () => dialog?.removeEventListener("click", clicked);
  }, []);
  return (
    <dialog ref={ref} class="sheet" aria-label={label} onClose={onClose} onCancel={onClose}>
      {children}
      {isTop && <Toasts />}
    </dialog>
  );
}
