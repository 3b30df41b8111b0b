/** Confirms an irreversible action, runs it, and stays open with the error if it fails. */

import { useAction } from "./action.ts";
import { Dialog } from "./dialog.tsx";
import { ErrorNotice } from "./notices.tsx";
import type { Children } from "./use-data.ts";

interface ConfirmProps {
  title: string;
  /** What the action does. */
  children: Children;
  /** Label of the confirming button, such as "Revoke". */
  act: string;
  onAct: () => Promise<void>;
  onClose: () => void;
}

export function ConfirmDialog({ title, children, act, onAct, onClose }: ConfirmProps) {
  const { run, isBusy, error } = useAction(onAct);
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="stack">
        <div>{children}</div>
        <ErrorNotice error={error} />
        <div class="row">
          <button type="button" class="danger" disabled={isBusy} onClick={() => void run()}>
            {isBusy ? "One moment…" : act}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </div>
    </Dialog>
  );
}
