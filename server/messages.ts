/**
 * The words of every mail and text message. Pure, and sends nothing. Lines are ASCII of at most 76 characters and a
 * link stands alone on its own, so that a mail goes out as it is written here and no encoding folds the link.
 */
import type { Mail, TextMessage } from "./messenger.ts";

const EXCHANGE = "Prediction Exchange";

/** @param validMs how long the link is valid from now on */
export function verificationMail(to: string, link: string, validMs: number): Mail {
  return {
    to,
    subject: `Confirm your email address for ${EXCHANGE}`,
    text: `Welcome to ${EXCHANGE}.

Open this link to confirm your email address:

${link}

The link is valid for ${wordDuration(validMs)}.

If you did not sign up, ignore this mail: nothing happens without the link.
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
