/** Shows a secret that is available only once, such as a new token, until the user confirms having stored it. */

import { Copyable } from "./copyable.tsx";
import { Dialog } from "./dialog.tsx";
import type { Children } from "./use-data.ts";

interface SecretProps {
  title: string;
  secrets: readonly (readonly [label: string, text: string])[];
  /** A command line that uses the secret, or null. */
  example?: string | null;
  /** What someone who has the secret can do. */
  children: Children;
  onStored: () => void;
  /** Closed without confirmation: the page can show the secret again. */
  onClose: () => void;
}

/** Reminds the user of a secret that was closed without confirmation. @param what such as the name of a token */
export function UnstoredSecretNotice({ what, onShow }: { what: string; onShow: () => void }) {
  return (
    <div class="notice warn" role="status">
      <span>You haven't confirmed that you stored {what}. It can't be shown again after you leave this page.</span>
      <button type="button" onClick={onShow}>
        Show again
      </button>
    </div>
  );
}

export function SecretDialog({ title, secrets, example = null, children, onStored, onClose }: SecretProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="stack">
        <div class="notice warn">
          <div>
            <strong>Copy it now: it won't be shown again.</strong> {children} Keep it in a secret store, not in your
            code.
          </div>
        </div>
        {secrets.map(([label, text]) => (
          <Copyable key={label} label={label} text={text} />
        ))}
        {example !== null && <Copyable label="Try it" text={example} />}
        <div>
          <button type="button" class="primary" onClick={onStored}>
            I've stored it
          </button>
        </div>
      </div>
    </Dialog>
  );
}
