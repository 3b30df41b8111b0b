/** The remaining steps before a user can trade: email, then phone. */
import { useEffect, useRef } from "preact/hooks";
import { money } from "../../util/format.ts";
import { href, search } from "../router.ts";
import { signedInUser } from "../session.ts";
import { Badge } from "../ui/badge.tsx";
import { PhoneVerification } from "../ui/phone-verification.tsx";
import { ResendEmail } from "../ui/resend-email.tsx";
import { Tiers } from "../ui/tiers.tsx";
import type { Children } from "../ui/use-data.ts";
import { useUserRefresh } from "../ui/use-user-refresh.ts";
import { returnPath, storeSignUpPath } from "./return-path.ts";
import { WaitingOrder } from "./waiting-order.tsx";
import "./account.css";

export default function Welcome() {
  useUserRefresh();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = "Welcome · Prediction Exchange";
    // The address knows it now.
    storeSignUpPath(null);
  }, []);
  const { email, email_verified, phone, phone_verified, kyc_tier, daily_activity } = signedInUser();
  const to = returnPath(search.value.get("to"));
  const isReady = kyc_tier > 0;
  return (
    <section class="narrow wide">
      <h1 ref={heading} tabIndex={-1}>
        {isReady
          ? "You can trade now"
          : `${email_verified || phone_verified ? "One step" : "Two steps"} before you can trade`}
      </h1>
      <WaitingOrder to={to} lead={isReady ? "" : "Almost there."} />
      <ol class="steps">
        <Step title="Verify your email" isDone={email_verified}>
          {email_verified ? (
            <p class="faint">{email}</p>
          ) : (
            <>
              <p>
                Open the link we sent to <strong>{email}</strong>, on any device. This page updates by itself.
              </p>
              <ResendEmail path="/auth/resend-verification" email={email} label="Resend link" />
            </>
          )}
        </Step>
        <Step title="Verify your phone number" isDone={phone_verified}>
          {phone_verified ? (
            <p class="faint number" translate={false}>
              {phone}
            </p>
          ) : (
            <PhoneVerification onVerified={() => heading.current?.focus()} />
          )}
        </Step>
        <Step title="Trade" isDone={isReady}>
          {isReady ? (
            <p>
              Your account has tier {kyc_tier}: up to {money(daily_activity.limit)} USDC of buys a day.
            </p>
          ) : (
            <p class="faint">Available once the other steps are done.</p>
          )}
        </Step>
      </ol>
      <p class="row">
        <a class={isReady ? "button primary" : "button"} href={href(to)}>
          {isReady ? (to === "/" ? "Browse markets" : "Continue") : "Skip for now"}
        </a>
        {isReady && kyc_tier < 2 && <a href={href("/account")}>Verify your identity to raise your limits</a>}
      </p>
      <h2>What each tier allows</h2>
      <Tiers tier={kyc_tier} />
    </section>
  );
}

function Step({ title, isDone, children }: { title: string; isDone: boolean; children: Children }) {
  return (
    <li class={isDone ? "panel done" : "panel"}>
      <div class="row between">
        <h2>{title}</h2>
        <Badge text={isDone ? "Done" : "To do"} tone={isDone ? "good" : ""} />
      </div>
      {children}
    </li>
  );
}
