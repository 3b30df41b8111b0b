/** The account page: email, phone, identity verification, limits and password. */
import { useState } from "preact/hooks";
import { dateTime } from "../dates.ts";
import { signedInUser } from "../session.ts";
import { AccountLinks } from "../shell/account-links.tsx";
import { AccountLayout, focusHeading } from "../ui/account-layout.tsx";
import { Badge } from "../ui/badge.tsx";
import { PhoneVerification } from "../ui/phone-verification.tsx";
import { ResendEmail } from "../ui/resend-email.tsx";
import { useUserRefresh } from "../ui/use-user-refresh.ts";
import "./account.css";
import { IdentityPanel } from "./account/identity.tsx";
import { LimitsPanel } from "./account/limits.tsx";
import { NotificationsPanel } from "./account/notifications.tsx";
import { Panel } from "./account/panel.tsx";
import { PasswordPanel } from "./account/password.tsx";

export default function Account() {
  useUserRefresh();
  return (
    <AccountLayout path="/account">
      <nav class="panel account-links" aria-label="More">
        <AccountLinks />
      </nav>
      <div class="account">
        <div class="stack">
          <EmailPanel />
          <PhonePanel />
          <IdentityPanel />
        </div>
        <div class="stack">
          <NotificationsPanel />
          <LimitsPanel />
          <PasswordPanel />
        </div>
      </div>
    </AccountLayout>
  );
}

const verified = (isVerified: boolean) => (
  <Badge text={isVerified ? "Verified" : "Not verified"} tone={isVerified ? "good" : "warn"} />
);

function EmailPanel() {
  const { email, email_verified, created_at, id } = signedInUser();
  return (
    <Panel id="email" title="Email" badge={verified(email_verified)}>
      <p class="break">{email}</p>
      {!email_verified && (
        <>
          <p>Open the link we sent you. It is valid for 24 hours.</p>
          <ResendEmail path="/auth/resend-verification" email={email} label="Resend link" />
        </>
      )}
      <p class="faint">
        User ID {id}, created {dateTime(created_at)}
      </p>
    </Panel>
  );
}

function PhonePanel() {
  const { phone, phone_verified } = signedInUser();
  const [isChanging, setChanging] = useState(false);
  const isVerifying = !phone_verified || isChanging;
  return (
    <Panel id="phone" title="Phone" badge={verified(phone_verified)}>
      {phone_verified && phone !== null && (
        <p class="number" translate={false}>
          {phone}
        </p>
      )}
      {!phone_verified && <p>Trading requires a verified phone number and email.</p>}
      {isChanging && <p>The current number stays in effect until the new one is verified.</p>}
      {isVerifying && (
        <PhoneVerification
          onVerified={() => {
            setChanging(false);
            focusHeading("phone");
          }}
        />
      )}
      {phone_verified && (
        <p>
          <button type="button" onClick={() => setChanging(!isChanging)}>
            {isChanging ? "Keep current number" : "Change number"}
          </button>
        </p>
      )}
    </Panel>
  );
}
