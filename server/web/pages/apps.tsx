/** Third-party apps: those with access to the account, and the user's own. */
import { AccountLayout } from "../ui/account-layout.tsx";
import "./account.css";
import { Clients } from "./apps/clients.tsx";
import { Grants } from "./apps/grants.tsx";

export default function Apps() {
  return (
    <AccountLayout path="/account/apps">
      <Grants />
      <Clients />
    </AccountLayout>
  );
}
