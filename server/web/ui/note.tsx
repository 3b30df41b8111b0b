/** A note beside what it is about: what is the matter in bold, what it means, and what to do. */
import { Icon, type IconName } from "./icon.tsx";
import type { Children } from "./use-data.ts";

export interface NoteAction {
  readonly text: string;
  readonly run: () => void;
  readonly icon?: IconName;
}

interface NoteProps {
  title?: Children;
  children?: Children;
  actions?: readonly NoteAction[];
  icon?: IconName;
  /** "caution" for what stands in the way or may surprise. */
  tone?: "caution" | "info";
  /** "alert" interrupts a screen reader. */
  role?: "alert" | "status";
}

export function Note({ title, children, actions = [], icon = "alert", tone = "caution", role = "status" }: NoteProps) {
  return (
    <div class={`note ${tone}`} role={role} translate={false}>
      <Icon name={icon} />
      <div>
        {title !== undefined && <b>{title}</b>}
        {children !== undefined && <div>{children}</div>}
        {actions.length > 0 && (
          <p class="row">
            {actions.map(({ text, run, icon: of }) => (
              <button key={text} type="button" class="small outlined" onClick={run}>
                {of !== undefined && <Icon name={of} />}
                {text}
              </button>
            ))}
          </p>
        )}
      </div>
    </div>
  );
}
