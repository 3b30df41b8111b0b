/** What a user is told of, where, and until when it was seen and mailed: a JSON text in the user's row. */

/** What a user can switch. */
export type Topic = "fills" | "resolutions" | "payments" | "alerts";

type Switches = Readonly<Record<Topic, boolean>>;

export interface NotificationSettings {
  /** In the page's list. */
  readonly page: Switches;
  readonly mail: Switches;
}

export interface NotificationState extends NotificationSettings {
  /** ms: what happened until then, the user has seen. */
  readonly seenAt: number;
  /** ms: what happened until then was mailed, or isn't to be. */
  readonly mailedAt: number;
}

/** A bot's fills would fill a mailbox, so mails about fills are asked for. */
const DEFAULTS: NotificationState = {
  page: { fills: true, resolutions: true, payments: true, alerts: true },
  mail: { fills: false, resolutions: true, payments: true, alerts: true },
  seenAt: 0,
  mailedAt: 0,
};

/** @param text of the user's row */
export function readState(text: string | null): NotificationState {
  if (text === null) return DEFAULTS;
  const { page, mail, ...times } = JSON.parse(text) as Partial<NotificationState>;
  return { ...DEFAULTS, ...times, page: { ...DEFAULTS.page, ...page }, mail: { ...DEFAULTS.mail, ...mail } };
}

/** Text of the changed state. */
export const changedState = (text: string | null, changes: Partial<NotificationState>): string =>
  JSON.stringify({ ...readState(text), ...changes });
