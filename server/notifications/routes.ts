/** The routes of notifications, of their settings, and of price alerts. */
import { changeUser } from "../accounts/users.ts";
import { notFound } from "../errors.ts";
import { OWN_SESSION, pathId, type Route, route } from "../http/route.ts";
import { Nothing } from "../http/schemas.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import { isListed } from "../markets/views.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { NotificationMails } from "./mails.ts";
import type { Notifications } from "./notifications.ts";
import { type PriceAlert, type PriceAlerts, readAlerts } from "./price-alerts.ts";
import * as S from "./schemas.ts";
import { changedState, readState } from "./settings.ts";

export interface NotificationContext {
  readonly exchange: { readonly registry: MarketRegistry };
  readonly writer: LogWriter;
  readonly notifications: Notifications;
  readonly priceAlerts: PriceAlerts;
  readonly notificationMails: NotificationMails;
  readonly publicUrl: () => string;
}

export function createNotificationRoutes(context: NotificationContext): Route[] {
  return [...listRoutes(context), ...settingsRoutes(context), ...alertRoutes(context), ...unsubscribeRoutes(context)];
}

function listRoutes({ notifications, writer }: NotificationContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/notifications",
      summary: "What happened lately: fills of resting orders, payouts, payments, price alerts",
      response: S.Notifications,
      async handler({ principal, now }) {
        const { user } = principal.credential;
        const { page, seenAt } = readState(user.notifications);
        const items = await notifications.of(user, page, now);
        const unseen = items.filter(({ at }) => at > seenAt).length;
        return JSON.stringify({ items, unseen, seen_at: seenAt });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "PATCH",
      path: "/me/notifications",
      summary: "Mark what happened until a time as seen",
      body: S.SeenNotifications,
      response: S.SeenNotifications,
      async handler({ principal, body, now }) {
        const { user } = principal.credential;
        const { seenAt: before } = readState(user.notifications);
        // What is seen stays seen: a second tab may be behind.
        const seenAt = Math.max(before, Math.min(body.seen_at, now));
        if (seenAt > before) {
          await writer.write([changeUser(user, { notifications: changedState(user.notifications, { seenAt }) })], []);
        }
        return JSON.stringify({ seen_at: seenAt });
      },
    }),
  ];
}

function settingsJson(text: string | null): string {
  const { page, mail } = readState(text);
  return JSON.stringify({ page, mail });
}

function settingsRoutes({ writer, notificationMails }: NotificationContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/notification-settings",
      summary: "What the list of notifications has, and what is mailed",
      response: S.NotificationSettings,
      handler: ({ principal }) => settingsJson(principal.credential.user.notifications),
    }),
    route({
      ...OWN_SESSION,
      method: "PATCH",
      path: "/me/notification-settings",
      summary: "Change what the list of notifications has, or what is mailed; the response has all settings",
      body: S.NotificationSettingsChange,
      response: S.NotificationSettings,
      async handler({ principal, body }) {
        const { user } = principal.credential;
        const { page, mail } = readState(user.notifications);
        const changes = { page: { ...page, ...body.page }, mail: { ...mail, ...body.mail } };
        await writer.write([changeUser(user, { notifications: changedState(user.notifications, changes) })], []);
        notificationMails.settingsChanged(user);
        return settingsJson(user.notifications);
      },
    }),
  ];
}

function alertRoutes({ priceAlerts, exchange }: NotificationContext): Route[] {
  const { registry } = exchange;
  const alertView = ({ id, outcome, direction, price, at }: PriceAlert): object => ({
    id,
    market_id: registry.marketOf(outcome).id,
    outcome_id: outcome,
    direction,
    price,
    created_at: at,
  });
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/price-alerts",
      summary: "Price alerts that wait",
      response: S.PriceAlerts,
      handler({ principal }) {
        const waiting = readAlerts(principal.credential.user).filter(({ fired }) => fired === null);
        return JSON.stringify({ items: waiting.reverse().map(alertView) });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/price-alerts",
      summary: "Be told once when an outcome trades at a price or beyond",
      idempotencyKey: { instead: "a repeat makes a second alert; delete it" },
      body: S.NewPriceAlert,
      response: S.PriceAlert,
      status: 201,
      async handler({ principal, body: { outcome_id, direction, price }, now }) {
        const outcome = registry.outcome(outcome_id);
        if (outcome === undefined || !isListed(registry.marketOf(outcome_id))) throw notFound("outcome");
        const alert = await priceAlerts.create(principal.credential.user, outcome, direction, price, now);
        return JSON.stringify(alertView(alert));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/price-alerts/:id",
      summary: "Delete a price alert that waits",
      response: Nothing,
      async handler({ principal, params }) {
        await priceAlerts.delete(principal.credential.user, pathId(params[0], "price alert"));
        return "null";
      },
    }),
  ];
}

function unsubscribeRoutes({ notificationMails, publicUrl }: NotificationContext): Route[] {
  const path = "/auth/unsubscribe/:token";
  return [
    route({
      method: "GET",
      path,
      summary:
        "The address in the header of a mail that says what happened: redirects to the page that ends such mails",
      response: Nothing,
      status: 302,
      failurePage: () => `${publicUrl()}/unsubscribe/-`,
      handler({ params: [token], reply }) {
        notificationMails.checkLink(token);
        reply.redirect(`${publicUrl()}/unsubscribe/${token}`);
        return undefined;
      },
    }),
    route({
      method: "POST",
      path,
      summary: "End all mails that say what happened to an account: by their link, without a sign-in",
      idempotencyKey: "harmless",
      oneClick: true,
      response: Nothing,
      async handler({ params }) {
        await notificationMails.unsubscribe(params[0]);
        return "null";
      },
    }),
  ];
}
