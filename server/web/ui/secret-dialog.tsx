/** Shows what is told this once, such as a new token: to be copied, and put away by whoever says that it is stored. */

import { Copyable } from "./copyable.tsx";
import { Dialog } from "./dialog.tsx";
import type { Children } from "./use-data.ts";

interface SecretProps {
  title: string;
  secrets: readonly (readonly [label: string, text: string])[];
  /** A command line that uses it, null where there is none. */
  example?: string | null;
  /** What whoever gets hold of it could do. */
  children: Children;
  onStored: () => void;
  /** Put away without a word: it is still there. */
  onClose: () => void;
}

export function SecretDialog({ title, secrets, example = null, children, onStored, onClose }: SecretProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="stack">
        <div class="notice warn">
          <div>
            <strong>Copy it now: it is shown this once.</strong> {children} Keep it in a secret store, not in your code.
          </div>
        </div>
        {secrets.map(([label, text]) => (
          <Copyable key={label} label={label} text={text} />
        ))}
        {example !== null && <Copyable label="Try it" text={example} />}
        <div>
          <button type="button" class="primary" onClick={onStored}>
            I have stored it
          </button>
        </div>
      </div>
    </Dialog>
  );
}
