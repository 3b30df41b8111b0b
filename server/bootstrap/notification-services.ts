/** Constructs what tells users what happened: the list, price alerts, mails. */
import { join } from "node:path";
import type { Accounts } from "../accounts/accounts.ts";
import type { Logger } from "../logger.ts";
import { NotificationMails } from "../notifications/mails.ts";
import { Notifications } from "../notifications/notifications.ts";
import { PriceAlerts } from "../notifications/price-alerts.ts";
import { MAILS_FILE } from "../util/data-folder.ts";
import type { AccountServices } from "./account-services.ts";
import type { Config } from "./config.ts";
import type { PublicUrl } from "./listen.ts";
import type { TradingServices } from "./trading-services.ts";

interface NotificationOptions {
  readonly config: Config;
  readonly accounts: Accounts;
  readonly trading: TradingServices;
  readonly identity: AccountServices;
  readonly publicUrl: PublicUrl;
  readonly logger: Logger;
}

export type NotificationServices = ReturnType<typeof createNotificationServices>;

export function createNotificationServices({
  config,
  accounts,
  trading,
  identity,
  publicUrl,
  logger,
}: NotificationOptions) {
  const { history, writer } = trading;
  const { registry } = trading.exchange;
  const notifications = new Notifications(history, registry);
  const priceAlerts = new PriceAlerts({ registry, accounts, writer });
  const notificationMails = new NotificationMails({
    ...{ accounts, registry, history, notifications, writer, logger },
    notifier: identity.notifier,
    site: publicUrl.site,
    api: publicUrl.api,
    file: join(config.dataDir, MAILS_FILE),
    intervalMs: config.mailIntervalMs,
  });
  priceAlerts.onFired = (user) => notificationMails.alertFired(user);
  return { notifications, priceAlerts, notificationMails };
}
