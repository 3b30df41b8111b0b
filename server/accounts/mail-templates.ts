/**
 * The words of every mail and text message. Pure, and sends nothing. Lines are ASCII of at most 76 characters and a
 * link stands alone on its own, so that a mail goes out as it is written here and no encoding folds the link. What users
 * wrote is any text, and stands in no mail that has a link.
 */
import type { Mail, TextMessage } from "./notifier.ts";

const EXCHANGE = "Prediction Exchange";

/** @param validMs how long the link is valid from now on */
export function verificationMail(to: string, link: string, validMs: number): Mail {
  return {
    to,
    subject: `Confirm your email address for ${EXCHANGE}`,
    text: `Welcome to ${EXCHANGE}.

Open this link to confirm your email address, with the password that you
chose when you signed up:

${link}

The link is valid for ${wordDuration(validMs)}.

If you did not sign up, ignore this mail: the account stays closed. To use
your address yourself, choose "Forgot your password?" on the sign-in page.
`,
  };
}

/** @param validMs how long the link is valid from now on */
export function passwordResetMail(to: string, link: string, validMs: number): Mail {
  return {
    to,
    subject: `Reset your ${EXCHANGE} password`,
    text: `Somebody asked to reset the password of your ${EXCHANGE} account.

Open this link to choose a new password:

${link}

The link is valid for ${wordDuration(validMs)} and works once.

If you did not ask for it, ignore this mail: your password stays as it is.
`,
  };
}

export function passwordChangedMail(to: string): Mail {
  return {
    to,
    subject: `Your ${EXCHANGE} password was changed`,
    text: `The password of your ${EXCHANGE} account was changed.

If you did not change it, somebody else may have access to your account
or your mails. Secure your mailbox and reset your password at once.
`,
  };
}

/** @param what such as "has new recovery codes" */
export function secondFactorChangedMail(to: string, what: string): Mail {
  return {
    to,
    subject: `The second factor of your ${EXCHANGE} account changed`,
    text: `A second factor of your ${EXCHANGE} account
${what}.

If you did not do this, somebody else has access to your account. Reset your
password at once, and look at your second factors and sessions.
`,
  };
}

/** @param left recovery codes that weren't used */
export function recoveryCodeUsedMail(to: string, left: number): Mail {
  return {
    to,
    subject: `A recovery code of your ${EXCHANGE} account was used`,
    text: `Somebody signed in to your ${EXCHANGE} account with your password
and a recovery code. You have ${left} recovery ${left === 1 ? "code" : "codes"} left.

If it was not you, reset your password at once and make new recovery codes.
`,
  };
}

export function wrongCodesMail(to: string): Mail {
  return {
    to,
    subject: `Wrong codes at the sign-in to ${EXCHANGE}`,
    text: `Somebody knows the password of your ${EXCHANGE} account, and showed
many wrong codes of your second factor within an hour. Codes are refused for
up to an hour now; a passkey goes on working.

If it was not you, reset your password at once.
`,
  };
}

export function secondFactorResetAskedMail(to: string): Mail {
  return {
    to,
    subject: `A reset of your second factor at ${EXCHANGE} was asked for`,
    text: `An operator asked to remove the second factors of your ${EXCHANGE}
account, so that you can sign in with your password alone. Another operator
must agree.

If you did not ask for this, tell the operators of the exchange at once.
`,
  };
}

export function secondFactorsResetMail(to: string): Mail {
  return {
    to,
    subject: `Your second factors at ${EXCHANGE} were removed`,
    text: `The operators of ${EXCHANGE} removed the second factors of your
account, and ended its sessions. Sign in with your password and add a second
factor again.

If you did not ask for this, tell the operators of the exchange at once and
reset your password.
`,
  };
}

/** @param amount micro-USDC @param address where it is to be paid to */
export function withdrawalRequestedMail(to: string, amount: number, address: string): Mail {
  return {
    to,
    subject: `Withdrawal of ${wordAmount(amount)} from ${EXCHANGE}`,
    text: `A withdrawal of ${wordAmount(amount)} was asked for. It is to be paid
from your ${EXCHANGE} account to

${address}

If you did not ask for it, cancel it in your wallet at once and change your
password: somebody else may have access to your account.
`,
  };
}

/** @param amount micro-USDC @param address where it was paid to */
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

The amount is in your available balance again. If a reason was given, it
stands beside the withdrawal in your wallet.
`,
  };
}

/** Of a proposal that an operator decided; its words, and the operator's, are as they were given. */
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
    text: `Your application with a government ID was approved: your ${EXCHANGE}
account has KYC tier 2 from now on.
`,
  };
}

export function identityRefusedMail(to: string): Mail {
  return {
    to,
    subject: `Your identity is not verified at ${EXCHANGE}`,
    text: `Your application with a government ID was refused: your ${EXCHANGE}
account stays as it is. What was noted on the decision is shown with the
application, and you can apply again.
`,
  };
}

/** @param validMs how long the code is valid from now on */
export function phoneCodeText(to: string, code: string, validMs: number): TextMessage {
  const body = `Your ${EXCHANGE} code is ${code}. It is valid for ${wordDuration(validMs)}. Don't share it. If you didn't ask for it, ignore it.`;
  return { to, body };
}

const MICRO_DIGITS = 6;

/** "12.50 USDC": exact, with two decimals or as many as it takes. */
function wordAmount(micro: number): string {
  const digits = String(micro).padStart(MICRO_DIGITS + 1, "0");
  const decimals = digits.slice(-MICRO_DIGITS).replace(/0{1,4}$/, "");
  return `${digits.slice(0, -MICRO_DIGITS)}.${decimals} USDC`;
}

const UNITS = [
  { name: "hour", ms: 3_600_000 },
  { name: "minute", ms: 60_000 },
  { name: "second", ms: 1_000 },
] as const;

/** "24 hours", "90 minutes": whole numbers of the largest unit that fits evenly, of seconds rounded down. */
function wordDuration(ms: number): string {
  const unit = UNITS.find((each) => ms >= each.ms && ms % each.ms === 0) ?? UNITS[2];
  const count = Math.floor(ms / unit.ms);
  return `${count} ${unit.name}${count === 1 ? "" : "s"}`;
}
