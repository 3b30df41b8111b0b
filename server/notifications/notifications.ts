/** What a user is told: what happened, from the tables, and price alerts that fired, from the user's row. */
import { MS_PER_DAY } from "../../engine/money.ts";
import type { User } from "../accounts/types.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import type { History } from "../queries/history.ts";
import { type NotificationObject, notification } from "../queries/notification-reader.ts";
import { MAX_FILLS_SEEN, MAX_NOTIFICATIONS, NOTIFICATION_DAYS } from "./limits.ts";
import { readAlerts } from "./price-alerts.ts";
import type { Topic, Topics } from "./settings.ts";

/** The switch of each kind. */
const TOPIC_OF: Readonly<Record<NotificationObject["kind"], Topic>> = {
  fill: "fills",
  resolution: "resolutions",
  deposit: "payments",
  withdrawal: "payments",
  alert: "alerts",
};

export class Notifications {
  private readonly history: History;
  private readonly registry: MarketRegistry;

  constructor(history: History, registry: MarketRegistry) {
    this.history = history;
    this.registry = registry;
  }

  /**
   * The latest first, MAX_NOTIFICATIONS at most. An order that rested has one notification, at its last fill.
   * @param topics which are wanted @param now ms
   */
  of(user: User, topics: Topics, now: number): Promise<NotificationObject[]> {
    return this.between(user, topics, now - NOTIFICATION_DAYS * MS_PER_DAY, Number.MAX_SAFE_INTEGER);
  }

  /** As `of`, of what happened after `since` and until `until`, ms. */
  async between(user: User, topics: Topics, since: number, until: number): Promise<NotificationObject[]> {
    const read = { userId: user.id, since, limit: MAX_NOTIFICATIONS, fills: topics.fills ? MAX_FILLS_SEEN : 0 };
    const stored = await this.history.notifications(read);
    return [...stored, ...this.firedAlerts(user)]
      .filter(({ kind, at }) => topics[TOPIC_OF[kind]] && at > since && at <= until)
      .sort((a, b) => b.at - a.at)
      .slice(0, MAX_NOTIFICATIONS);
  }

  private firedAlerts(user: User): NotificationObject[] {
    return readAlerts(user).flatMap(({ fired, outcome, direction, price }) =>
      fired === null || this.registry.outcome(outcome) === undefined
        ? []
        : [
            notification({
              ...{ kind: "alert", at: fired.at, outcome_id: outcome, direction, price },
              market_id: this.registry.marketOf(outcome).id,
            }),
          ],
    );
  }
}
