/** What a user is told of, and until when it was seen: a JSON text in the user's row. */

/** What a user can switch. */
export type Topic = "fills" | "resolutions" | "payments" | "alerts";
export type Topics = Readonly<Record<Topic, boolean>>;

interface NotificationState {
  /** In the page's list. */
  readonly page: Topics;
  readonly mail: Topics;
  /** ms: what happened until then, the user has seen. */
  readonly seenAt: number;
  /** The secret of the links that end mails; null before the first mail. */
  readonly mailSecret: string | null;
}

const DEFAULTS: NotificationState = {
  page: { fills: true, resolutions: true, payments: true, alerts: true },
  mail: { fills: false, resolutions: true, payments: true, alerts: true },
  seenAt: 0,
  mailSecret: null,
};
export const NO_TOPICS: Topics = { fills: false, resolutions: false, payments: false, alerts: false };

/** @param text of the user's row */
export function readState(text: string | null): NotificationState {
  if (text === null) return DEFAULTS;
  const { page, mail, ...rest } = JSON.parse(text) as Partial<NotificationState>;
  return { ...DEFAULTS, ...rest, page: { ...DEFAULTS.page, ...page }, mail: { ...DEFAULTS.mail, ...mail } };
}

/** Text of the changed state. */
export const changedState = (text: string | null, changes: Partial<NotificationState>): string =>
  JSON.stringify({ ...readState(text), ...changes });
