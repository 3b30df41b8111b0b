/** Recovery codes: how many are left, and new ones shown once. */
import { href } from "../../router.ts";
import { Badge } from "../../ui/badge.tsx";
import { Copyable } from "../../ui/copyable.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Notice } from "../../ui/notices.tsx";

export function CodesPanel({ left, onRenew }: { left: number; onRenew: () => void }) {
  return (
    <section class="panel" aria-labelledby="recovery">
      <div class="row between">
        <h2 id="recovery">Recovery codes</h2>
        <Badge text={`${left} left`} tone={left > 3 ? "good" : "warn"} />
      </div>
      <p>Each code replaces a lost second factor once.</p>
      {left === 0 && (
        <Notice kind="warn">
          You have none left. If you lose your second factor, only an operator can restore access.
        </Notice>
      )}
      <div>
        <button type="button" onClick={onRenew}>
          Generate new codes
        </button>
      </div>
    </section>
  );
}

export function CodesDialog({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) {
  return (
    <Dialog title="Your recovery codes" onClose={onClose}>
      <div class="stack">
        <div class="notice warn">
          <div>
            <strong>Store them now: they won't be shown again.</strong> Each code replaces your second factor once. Keep
            them apart from your phone.
          </div>
        </div>
        <ul class="recovery-codes" aria-label="Recovery codes">
          {codes.map((code) => (
            <li key={code}>
              <code>{code}</code>
            </li>
          ))}
        </ul>
        <Copyable label="All codes" text={codes.join(" ")} />
        <p class="faint">
          We don't keep a copy. <a href={href("/account/sessions")}>Your sessions</a> show where you're signed in.
        </p>
        <div>
          <button type="button" class="primary" onClick={onClose}>
            I've stored them
          </button>
        </div>
      </div>
    </Dialog>
  );
}
