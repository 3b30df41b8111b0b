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
      <p>Each stands in for your second factor once, where you have lost it.</p>
      {left === 0 && (
        <Notice kind="warn">You have none left: if you lose your second factor, only operators can help.</Notice>
      )}
      <div>
        <button type="button" onClick={onRenew}>
          Make new codes
        </button>
      </div>
    </section>
  );
}

// ---------------------------------------------------------------- the owner's proof

export function CodesDialog({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) {
  return (
    <Dialog title="Your recovery codes" onClose={onClose}>
      <div class="stack">
        <div class="notice warn">
          <div>
            <strong>Store them now: they are shown this once.</strong> Each signs you in once in place of your second
            factor. Keep them where your phone isn't.
          </div>
        </div>
        <ul class="recovery-codes" aria-label="Recovery codes">
          {codes.map((code) => (
            <li key={code}>
              <code>{code}</code>
            </li>
          ))}
        </ul>
        <Copyable label="All of them" text={codes.join(" ")} />
        <p class="faint">
          The exchange keeps no copy. <a href={href("/account/sessions")}>Your sessions</a> show where you are signed
          in.
        </p>
        <div>
          <button type="button" class="primary" onClick={onClose}>
            I have stored them
          </button>
        </div>
      </div>
    </Dialog>
  );
}
