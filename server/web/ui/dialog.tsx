/** Modal dialogs, centred or as a sheet at the bottom of the window. */
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { coverPage } from "./cover.ts";
import { Icon } from "./icon.tsx";
import { dialogs, Toasts } from "./toast.tsx";
import type { Children } from "./use-data.ts";
import { PHONE } from "./use-media.ts";

/** Opens the dialog that the ref points to. Returns whether it is the topmost one. */
function useModal(onClose: () => void) {
  const ref = useRef<HTMLDialogElement>(null);
  const depth = useRef(0);
  const close = useRef(onClose);
  close.current = onClose;
  // At once, not after the next frame: a step back may follow on what closes the sheet.
  useLayoutEffect(() => {
    // On a phone a dialog is a sheet, which a step back closes, and a swipe down.
    if (!matchMedia(PHONE).matches) return;
    const uncover = coverPage(() => close.current());
    const release = ref.current === null ? () => {} : followSwipe(ref.current, () => close.current());
    return () => {
      release();
      uncover();
    };
  }, []);
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
  const { ref, isTop } = useModal(onClose);
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
  const { ref, isTop } = useModal(onClose);
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

/** The part of a sheet's top from which it can be swiped down, and how far it must be, CSS pixels. */
const GRIP = 56;
const SWIPE = 90;

/** Lets a finger pull a sheet down by its top. Returns the function that ends this. */
function followSwipe(sheet: HTMLElement, onClose: () => void): () => void {
  let from: number | null = null;
  let by = 0;
  const place = (): void => {
    sheet.style.translate = by === 0 ? "" : `0 ${by}px`;
  };
  const start = ({ touches }: TouchEvent): void => {
    const [finger] = touches;
    if (finger === undefined || touches.length > 1) return;
    if (finger.clientY - sheet.getBoundingClientRect().top < GRIP) from = finger.clientY;
  };
  const move = (event: TouchEvent): void => {
    const [finger] = event.touches;
    if (from === null || finger === undefined) return;
    by = Math.max(0, finger.clientY - from);
    // Otherwise the page behind would scroll, or reload.
    if (by > 0 && event.cancelable) event.preventDefault();
    place();
  };
  const end = (): void => {
    const isFar = by > SWIPE;
    [from, by] = [null, 0];
    if (isFar) onClose();
    else place();
  };
  const stop = new AbortController();
  const { signal } = stop;
  sheet.addEventListener("touchstart", start, { signal, passive: true });
  sheet.addEventListener("touchmove", move, { signal, passive: false });
  sheet.addEventListener("touchend", end, { signal });
  sheet.addEventListener("touchcancel", end, { signal });
  return () => stop.abort();
}
