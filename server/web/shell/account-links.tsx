/** The links to the user's own pages: in the header's menu, and on a phone at the head of the account page. */

import { errorMessage } from "../error-messages.ts";
import { href, navigate } from "../router.ts";
import { isOperator, signOut, user } from "../session.ts";
import { useAction } from "../ui/action.ts";
import { toast } from "../ui/toast.tsx";
import { useDensity, useTheme } from "./appearance.ts";
import { showDialog } from "./lazy-dialog.tsx";

export function AccountLinks() {
  const { run, isBusy } = useAction(async () => {
    try {
      await signOut();
      navigate("/");
    } catch (error) {
      toast(`Sign-out failed. ${errorMessage(error)}`, true);
    }
  });
  const theme = useTheme();
  const density = useDensity();
  return (
    <>
      <p translate={false}>{user.value?.email}</p>
      <a href={href("/wallet")}>Wallet</a>
      <a href={href("/propose")}>Propose a market</a>
      {isOperator.value && <a href={href("/desk")}>Desk</a>}
      <hr />
      <a href={href("/account")}>Account</a>
      <a href={href("/account/tokens")}>Access tokens</a>
      <a href={href("/account/apps")}>Connected apps</a>
      <a href={href("/account/sessions")}>Sessions</a>
      <a href={href("/account/security")}>Security</a>
      <a href={href("/docs")}>API reference</a>
      <hr />
      <button type="button" onClick={theme.change}>
        {theme.isDark ? "Light colours" : "Dark colours"}
      </button>
      <button type="button" aria-pressed={density.isCompact} onClick={density.change}>
        {density.isCompact ? "Comfortable rows" : "Compact rows"}
      </button>
      <button type="button" onClick={() => showDialog("settings")}>
        Trading settings
      </button>
      <button type="button" disabled={isBusy} onClick={() => void run()}>
        Sign out
      </button>
    </>
  );
}
