/** The dialog that confirms an operator's decision. */
import { useState } from "preact/hooks";
import { ApiError } from "../../api.ts";
import { useAction } from "../../ui/action.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { TextArea } from "../../ui/fields.tsx";
import { ErrorNotice, Notice } from "../../ui/notices.tsx";
import { toast } from "../../ui/toast.tsx";
import type { Children } from "../../ui/use-data.ts";
import { focusFirstProblem, noteProblem, trimmedOrNull } from "../../ui/validation.ts";
import { focusHeading } from "./heading.tsx";
import { refreshPendingCounts } from "./pending-counts.ts";

interface DecisionProps {
  title: string;
  /** Label of the confirming button. */
  confirm: string;
  isDangerous?: boolean;
  /** Says who will read the note; null: no note. */
  noteHint: string | null;
  /** Validates the dialog's own fields: shows their problems and returns false if any. */
  check?: () => boolean;
  /** @returns a message about what has happened */
  act: (note: string | null) => Promise<string>;
  onClose: () => void;
  /** Reloads what the action has changed. */
  onDone: () => void;
  children: Children;
}

/**
 * Explains an action and asks for confirmation. Keeps the input until the action succeeds. If the server reports a
 * conflict, refreshes the page behind the dialog.
 */
export function DecisionDialog({
  title,
  confirm,
  isDangerous = false,
  noteHint,
  check = () => true,
  act,
  onClose,
  onDone,
  children,
}: DecisionProps) {
  const [note, setNote] = useState("");
  const problem = noteProblem(note);
  const [hasConflict, setConflict] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    setConflict(false);
    try {
      toast(await act(trimmedOrNull(note)));
    } catch (thrown) {
      const hasChanged = thrown instanceof ApiError && (thrown.status === 409 || thrown.status === 404);
      setConflict(hasChanged);
      if (hasChanged) onDone();
      throw thrown;
    } finally {
      void refreshPendingCounts();
    }
    onClose();
    onDone();
    focusHeading();
  });
  const close = (): void => {
    onClose();
    // The button that opened the dialog may be gone.
    if (hasConflict) focusHeading();
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    // Evaluate both, so that both show their problems.
    const isValid = check();
    if (isValid && problem === null) void run();
    else focusFirstProblem(event.currentTarget as HTMLElement);
  };
  return (
    <Dialog title={title} onClose={close}>
      <form noValidate onSubmit={submit}>
        {children}
        {noteHint !== null && (
          <TextArea label="Note (optional)" value={note} onInput={setNote} problem={problem} hint={noteHint} />
        )}
        <ErrorNotice error={error} />
        {hasConflict && <Notice kind="warn">The data behind this dialog has been refreshed.</Notice>}
        <div class="row ends">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={isDangerous ? "sell" : "primary"} disabled={isBusy}>
            {isBusy ? "One moment…" : confirm}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
