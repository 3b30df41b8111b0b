/** The dialog that lists all keys. */
import { Dialog } from "../ui/dialog.tsx";

const LISTED = [
  [
    "Anywhere",
    [
      ["/", "Search"],
      ["g then m", "Markets"],
      ["g then p", "Portfolio"],
      ["?", "These keys"],
      ["Esc", "Close, or clear the ticket"],
    ],
  ],
  [
    "Ticket",
    [
      ["b", "Buy"],
      ["s", "Sell"],
      ["m", "Market order"],
      ["l", "Limit order"],
      ["y", "First outcome, such as Yes"],
      ["n", "Next outcome, such as No"],
      ["Enter", "Send"],
    ],
  ],
] as const;

export function KeyList({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      {LISTED.map(([title, keys]) => (
        <section key={title} class="keys">
          <h3>{title}</h3>
          <dl>
            {keys.map(([key, text]) => (
              <div key={key}>
                <dt>{text}</dt>
                <dd>
                  <kbd class="key">{key}</kbd>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <p class="hint">
        Keys of one letter work where no field has the focus. You can turn them off in the trading settings.
      </p>
    </Dialog>
  );
}
