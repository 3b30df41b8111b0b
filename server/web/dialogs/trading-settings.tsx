/** How the user wants to trade in this browser. */
import { setChoice, settings } from "../settings.ts";
import { SlippageField } from "../trading/slippage-field.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Checkbox } from "../ui/fields.tsx";

export function TradingSettings({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Trading settings" onClose={onClose}>
      <div class="stack">
        <SlippageField />
        <Checkbox
          label="Ask before an order far from the market"
          hint="A limit 5¢ or more beyond the best price fills at once, and can cost more than it seems."
          checked={settings.asksWhenFar.value}
          onChange={(isOn) => setChoice("asksWhenFar", isOn)}
        />
        <Checkbox
          label="Ask before every order"
          checked={settings.asksAlways.value}
          onChange={(isOn) => setChoice("asksAlways", isOn)}
        />
        <Checkbox
          label="Keys of one letter"
          hint="Such as b for Buy. Press ? to see them all."
          checked={settings.hasKeys.value}
          onChange={(isOn) => setChoice("hasKeys", isOn)}
        />
        <p class="hint">Kept in this browser.</p>
      </div>
    </Dialog>
  );
}
