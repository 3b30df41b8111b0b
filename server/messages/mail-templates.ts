/**
 * The text of every mail and text message. Sends nothing. Lines are ASCII of at most 76 characters and a link stands
 * alone on its line, so that a mail goes out exactly as written here and no encoding folds the link. A mail that contains
 * a link never contains text that a user wrote.
 */
import { exactMoney } from "../util/format.ts";
import type { Mail, TextMessage } from "./notifier.ts";

const EXCHANGE = "Prediction Exchange";

/** @param validMs how long the link stays valid */
export function verificationMail(to: string, link: string, validMs: number): Mail {
  return {
    to,
    subject: `Confirm your email address for ${EXCHANGE}`,
    text: `Welcome to ${EXCHANGE}.

Please confirm your email address. Open this link and enter the password
that you chose when you signed up:

${link}

The link is valid for ${wordDuration(validMs)}.

If you did not sign up, ignore this email: nobody can use the account. To
use your address yourself, choose "Forgot your password?" on the sign-in
page.
`,
  };
}

/** @param validMs how long the link stays valid */
export function passwordResetMail(to: string, link: string, validMs: number): Mail {
  return {
    to,
    subject: `Reset your ${EXCHANGE} password`,
    text: `We received a request to reset the password of your ${EXCHANGE}
account. To choose a new password, open this link:

${link}

The link is valid for ${wordDuration(validMs)} and works once.

If you did not request this, ignore this email: your password has not
changed.
`,
  };
}

export function passwordChangedMail(to: string): Mail {
  return {
    to,
    subject: `Your ${EXCHANGE} password was changed`,
    text: `The password of your ${EXCHANGE} account was changed.

If you did not change it, somebody else may have access to your account or
your email. Secure your mailbox, then reset your password immediately.
`,
  };
}

/** @param change what happened, such as "New recovery codes were created." */
export function secondFactorChangedMail(to: string, change: string): Mail {
  return {
    to,
    subject: `The second factors of your ${EXCHANGE} account changed`,
    text: `${change}

This changed how you sign in to your ${EXCHANGE} account.

If you did not do this, somebody else has access to your account. Reset your
password immediately, then check your second factors and sessions.
`,
  };
}

/** @param left unused recovery codes */
export function recoveryCodeUsedMail(to: string, left: number): Mail {
  return {
    to,
    subject: `A recovery code of your ${EXCHANGE} account was used`,
    text: `Somebody signed in to your ${EXCHANGE} account with your password
and a recovery code. You have ${left} recovery ${left === 1 ? "code" : "codes"} left.

If this was not you, reset your password immediately and create new recovery
codes.
`,
  };
}

export function wrongCodesMail(to: string): Mail {
  return {
    to,
    subject: `Failed sign-ins to your ${EXCHANGE} account`,
    text: `Somebody signed in to your ${EXCHANGE} account with your password
and then entered many wrong codes of your second factor. We now reject codes
for up to an hour. A passkey still works.

If this was not you, reset your password immediately.
`,
  };
}

export function secondFactorResetRequestedMail(to: string): Mail {
  return {
    to,
    subject: `Request to remove your second factors at ${EXCHANGE}`,
    text: `An operator requested the removal of the second factors of your
${EXCHANGE} account, so that you can sign in with your password
alone. A second operator must approve the removal.

If you did not request this, contact the exchange's operators immediately.
`,
  };
}

export function secondFactorsResetMail(to: string): Mail {
  return {
    to,
    subject: `Your second factors at ${EXCHANGE} were removed`,
    text: `The operators of ${EXCHANGE} removed the second factors of your
account and ended its sessions. Sign in with your password, then add a
second factor again.

If you did not request this, contact the exchange's operators immediately
and reset your password.
`,
  };
}

/** @param amount micro-USDC @param address the destination */
export function withdrawalRequestedMail(to: string, amount: number, address: string): Mail {
  return {
    to,
    subject: `Withdrawal of ${wordAmount(amount)} from ${EXCHANGE}`,
    text: `A withdrawal of ${wordAmount(amount)} was requested from your
${EXCHANGE} account. It will be paid to

${address}

If you did not request it, cancel it in your wallet immediately and change
your password: somebody else may have access to your account.
`,
  };
}

/** @param amount micro-USDC @param address the destination */
export function withdrawalPaidMail(to: string, amount: number, address: string): Mail {
  return {
    to,
    subject: `Your withdrawal of ${wordAmount(amount)} was paid`,
    text: `Your withdrawal of ${wordAmount(amount)} was paid
from your ${EXCHANGE} account to

${address}
`,
  };
}

/** @param amount micro-USDC */
export function withdrawalRefusedMail(to: string, amount: number): Mail {
  return {
    to,
    subject: `Your withdrawal of ${wordAmount(amount)} was refused`,
    text: `Your withdrawal of ${wordAmount(amount)}
from your ${EXCHANGE} account was refused.

We returned the amount to your available balance. If the operator gave a
reason, your wallet shows it next to the withdrawal.
`,
  };
}

/** Quotes the proposal's question and the operator's note verbatim. */
export function proposalDecidedMail(to: string, question: string, isApproved: boolean, note: string | null): Mail {
  const decision = isApproved
    ? "was approved. The market is open for trading."
    : "was refused. It will not be opened for trading.";
  return {
    to,
    subject: `Your ${EXCHANGE} proposal was ${isApproved ? "approved" : "refused"}`,
    text: `The market that you proposed ${decision}

    ${question}
${note === null ? "" : `\nThe operator's note:\n\n    ${note.replaceAll("\n", "\n    ")}\n`}`,
  };
}

export function identityApprovedMail(to: string): Mail {
  return {
    to,
    subject: `Your identity is verified at ${EXCHANGE}`,
    text: `We approved your identity application. Your ${EXCHANGE}
account now has KYC tier 2.
`,
  };
}

export function identityRefusedMail(to: string): Mail {
  return {
    to,
    subject: `We could not verify your identity at ${EXCHANGE}`,
    text: `We could not approve your identity application. Your ${EXCHANGE}
account keeps its current KYC tier.

If the operator gave a reason, your account shows it with the application.
You can apply again.
`,
  };
}

/** @param validMs how long the code stays valid */
export function phoneCodeText(to: string, code: string, validMs: number): TextMessage {
  const body = `Your ${EXCHANGE} code is ${code}. It is valid for ${wordDuration(validMs)}. Don't share it. If you didn't request it, ignore this message.`;
  return { to, body };
}

/** "1,012.50 USDC": as on the page, exact. */
const wordAmount = (micro: number): string => `${exactMoney(micro)} USDC`;

const UNITS = [
  { name: "hour", ms: 3_600_000 },
  { name: "minute", ms: 60_000 },
  { name: "second", ms: 1_000 },
] as const;

/** "24 hours", "90 minutes": in the largest unit that divides the time evenly, else in whole seconds, rounded down. */
function wordDuration(ms: number): string {
  const unit = UNITS.find((each) => ms >= each.ms && ms % each.ms === 0) ?? UNITS[2];
  const count = Math.floor(ms / unit.ms);
  return `${count} ${unit.name}${count === 1 ? "" : "s"}`;
}
