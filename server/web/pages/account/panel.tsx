/** A titled panel of the account page. */
import type { Children } from "../../ui/use-data.ts";

interface PanelProps {
  id: string;
  title: string;
  badge?: Children;
  children: Children;
}

export function Panel({ id, title, badge, children }: PanelProps) {
  return (
    <section class="panel" aria-labelledby={id}>
      <div class="row between">
        <h2 id={id} tabIndex={-1}>
          {title}
        </h2>
        {badge}
      </div>
      {children}
    </section>
  );
}
