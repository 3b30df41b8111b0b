/** A modal dialog. */
import { useEffect, useId, useRef } from "preact/hooks";
import type { Children } from "./use-data.ts";

/** A dialog over the page; Escape closes it, and focus stays in it. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: Children }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    ref.current!.showModal();
    return () => {
      // Unless who closed it has taken the focus elsewhere.
      if (document.activeElement === document.body) before?.focus?.();
    };
  }, []);
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={onClose} onCancel={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}
