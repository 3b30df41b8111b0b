/** The dialog that confirms an operator's decision. */
import { useState } from "preact/hooks";
import { ApiError } from "../../api.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { TextArea } from "../../ui/fields.tsx";
import { ErrorNotice, Notice } from "../../ui/notices.tsx";
import { toast } from "../../ui/toast.tsx";
import { type Children, useAction } from "../../ui/use-data.ts";
import { focusFirstProblem, noteProblem, trimmedOrNull } from "../../ui/validation.ts";
import { focusHeading } from "./heading.tsx";
import { refreshPendingCounts } from "./pending-counts.ts";

/**
 * Says what will happen and asks once more. What was typed stays until it is done. Where the exchange says that things
 * are no longer so, what is behind the dialog is read anew.
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
}: {
  title: string;
  /** On the button that does it. */
  confirm: string;
  isDangerous?: boolean;
  /** Who will read the note; null where there is none. */
  noteHint: string | null;
  /** False, and problems beside its fields, where something is wrong with them. */
  check?: () => boolean;
  /** @returns what has happened, in words */
  act: (note: string | null) => Promise<string>;
  onClose: () => void;
  /** Reads what the decision has changed. */
  onDone: () => void;
  children: Children;
}) {
  const [note, setNote] = useState("");
  const problem = noteProblem(note);
  const [isOther, setOther] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    setOther(false);
    try {
      toast(await act(trimmedOrNull(note)));
    } catch (thrown) {
      const hasChanged = thrown instanceof ApiError && (thrown.status === 409 || thrown.status === 404);
      setOther(hasChanged);
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
    // What it was opened from may be gone.
    if (isOther) focusHeading();
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    // Both are looked at, so that both say what is wrong.
    const isGood = check();
    if (isGood && problem === null) void run();
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
        {isOther && <Notice kind="warn">What is behind this dialog has been read anew.</Notice>}
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
