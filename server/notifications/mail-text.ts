/**
 * The mail that says what happened to an account. Unlike other mails with a link, it has the names of markets: an operator
 * has approved each. It may go out encoded, because of their letters.
 */
import type { Mail } from "../messages/notifier.ts";

interface MailLine {
  readonly title: string;
  readonly detail: string;
  /** ms since the epoch. */
  readonly at: number;
}

interface MailLinks {
  readonly portfolio: string;
  readonly settings: string;
  /** The page that ends mails. */
  readonly unsubscribe: string;
  /** Where a mail program ends them by itself (RFC 8058). */
  readonly oneClick: string;
}

/** What one mail says; the list on the page has the rest. */
const MAX_LINES = 20;
const MAX_SUBJECT = 100;

/** "2026-11-26 17:40 UTC" */
const utcTime = (at: number): string => `${new Date(at).toISOString().slice(0, 16).replace("T", " ")} UTC`;

/** @param lines the latest first, one at least */
export function happenedMail(to: string, lines: readonly [MailLine, ...MailLine[]], links: MailLinks): Mail {
  const [{ title }, ...others] = lines;
  const subject = others.length === 0 ? title : `${title}, and ${others.length} more`;
  const shown = lines.slice(0, MAX_LINES);
  const entries = shown.map((line) => `${line.title}\n  ${line.detail}\n  ${utcTime(line.at)}`);
  if (shown.length < lines.length) entries.push("More happened: your portfolio has all of it.");
  return {
    to,
    subject: subject.length > MAX_SUBJECT ? `${subject.slice(0, MAX_SUBJECT - 1)}…` : subject,
    text: `${entries.join("\n\n")}

Your portfolio:

${links.portfolio}

You can choose what we mail you in the settings of your account:

${links.settings}

To end all mails of this kind, open this link. You don't need to sign in:

${links.unsubscribe}
`,
    headers: {
      "List-Unsubscribe": `<${links.oneClick}>`,
      "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    },
  };
}
