/** A modal dialog. */
import { useEffect, useId, useRef } from "preact/hooks";
import { Icon } from "./icon.tsx";
import type { Children } from "./use-data.ts";

/** A modal dialog: traps the focus and closes on Escape. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: Children }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    return () => {
      // Unless the closing handler has already moved the focus.
      if (document.activeElement === document.body) before?.focus?.();
    };
  }, []);
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={onClose} onCancel={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  );
}
