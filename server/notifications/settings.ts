/** What a user is told of, and until when it was seen: a JSON text in the user's row. */

/** What a user can switch. */
export type Topic = "fills" | "resolutions" | "payments" | "alerts";

interface NotificationState {
  /** In the page's list. */
  readonly page: Readonly<Record<Topic, boolean>>;
  /** ms: what happened until then, the user has seen. */
  readonly seenAt: number;
}

const DEFAULTS: NotificationState = {
  page: { fills: true, resolutions: true, payments: true, alerts: true },
  seenAt: 0,
};

/** @param text of the user's row */
export function readState(text: string | null): NotificationState {
  if (text === null) return DEFAULTS;
  const { page, ...times } = JSON.parse(text) as Partial<NotificationState>;
  return { ...DEFAULTS, ...times, page: { ...DEFAULTS.page, ...page } };
}

/** Text of the changed state. */
export const changedState = (text: string | null, changes: Partial<NotificationState>): string =>
  JSON.stringify({ ...readState(text), ...changes });
