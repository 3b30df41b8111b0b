/**
 * Puts HTTP and WebSocket in front of the services: limits and credentials, the route table, the site, the metrics and
 * the hub of sockets. Opens no port: listen.ts does.
 */
import { fileURLToPath } from "node:url";
import { Histogram } from "../../engine/util/histogram.ts";
import { type AccountRouteContext, createAccountRoutes } from "../accounts/routes.ts";
import { Admission } from "../http/admission.ts";
import { createAddressReader } from "../http/client-address.ts";
import { Connections, roomForConnections } from "../http/connections.ts";
import { compileRoutes } from "../http/dispatch.ts";
import { EventLoopGuard } from "../http/event-loop-guard.ts";
import { MAX_HTTP_CONNECTIONS, SIGN_IN_REFUSALS_PER_SECOND } from "../http/limits.ts";
import { RateLimiter } from "../http/rate-limiter.ts";
import { ReplyDeadlines } from "../http/reply-deadlines.ts";
import { ResponseThrottle } from "../http/response-throttle.ts";
import type { Route } from "../http/route.ts";
import { SecurityHeaders } from "../http/security-headers.ts";
import { registerRoutes } from "../http/server.ts";
import { StaticSite } from "../http/static-site.ts";
import type { Logger } from "../logger.ts";
import { createMarketAdminRoutes, type MarketAdminRouteContext } from "../markets/admin-routes.ts";
import { createHistoryRoutes } from "../markets/history-routes.ts";
import { createProposalRoutes } from "../markets/proposal-routes.ts";
import { createMarketRoutes, type MarketRouteContext } from "../markets/routes.ts";
import { createWatchlistRoutes } from "../markets/watchlist-routes.ts";
import { createNotificationRoutes, type NotificationContext } from "../notifications/routes.ts";
import { createOAuthRoutes, type OAuthRouteContext } from "../oauth/routes.ts";
import { createOperatorRoutes, type OperatorRouteContext } from "../operators/routes.ts";
import { createDocumentRoutes } from "../reference/routes.ts";
import { holdsLog } from "../replication/settings.ts";
import type { MetricsOptions } from "../service/metrics.ts";
import { loadedAtFirst } from "../service/paced-text.ts";
import { createServiceRoutes, type ServiceRouteContext } from "../service/routes.ts";
import type { StandbyFigures } from "../service/standby-metrics.ts";
import { type AccessRouteContext, createAccessRoutes } from "../sign-in/routes.ts";
import { createLimitsRoute, type LimitsRouteContext } from "../trading/limits-route.ts";
import { createOrderRoutes, type OrderRouteContext } from "../trading/routes.ts";
import type { LogOutput } from "../util/log-output.ts";
import { createMoneyAdminRoutes } from "../wallet/admin-routes.ts";
import type { MoneyAdminContext } from "../wallet/payment-routes.ts";
import { createWalletRoutes } from "../wallet/routes.ts";
import { SocketHub } from "../websocket/hub.ts";
import { MAX_WS_CONNECTIONS } from "../websocket/limits.ts";
import { createSocketRoutes, type SocketRouteContext } from "../websocket/routes.ts";
import { SocketTickets } from "../websocket/tickets.ts";
import type { AccountServices } from "./account-services.ts";
import type { Config } from "./config.ts";
import type { ExchangeDatabase } from "./database.ts";
import type { HeldLog } from "./held-log.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { PublicUrl } from "./listen.ts";
import type { NotificationServices } from "./notification-services.ts";
import type { OperatorServices } from "./operator-services.ts";
import type { Port } from "./port.ts";
import type { Threads } from "./threads.ts";
import type { TradingServices } from "./trading-services.ts";

/** The longest wait of a rejected sign-in: half of what uWebSockets.js lets a connection be idle. */
const MAX_WAITING_REFUSALS = 5 * SIGN_IN_REFUSALS_PER_SECOND;

interface GatewayOptions {
  readonly config: Config;
  readonly port: Port;
  readonly database: ExchangeDatabase;
  readonly threads: Threads;
  /** Null where other boxes don't get the log. */
  readonly heldLog: HeldLog | null;
  readonly trading: TradingServices;
  readonly identity: AccountServices;
  readonly operators: OperatorServices;
  readonly notifying: NotificationServices;
  readonly lifecycle: Lifecycle;
  readonly publicUrl: PublicUrl;
  readonly logger: Logger;
  readonly output: LogOutput;
}

export type Gateway = ReturnType<typeof createGateway>;

/** Registers every route, the site and the hub on the port, which is not open yet. */
export function createGateway(options: GatewayOptions) {
  const { config, port, trading, identity, operators, lifecycle, publicUrl, logger } = options;
  const { exchange, entry, cancelTimers, history, counters, startedAt, clock } = trading;
  const { accounts, authenticator } = identity;
  const { operatorsNeedSecondFactor, maxSocketsPerAddress } = config;
  const limiter = config.rateLimits === null ? null : new RateLimiter(config.rateLimits);
  const addressOf = createAddressReader(config.trustedProxies);
  const tickets = new SocketTickets();
  const routes = compileRoutes(
    createRoutes({
      ...{ ...trading, ...identity, ...operators, ...options.notifying, tickets, limiter, operatorsNeedSecondFactor },
      metrics: createMetrics(options, () => ({
        ...hub.counts(),
        plain: connections.plain,
        refused: connections.refused,
      })),
      unready: lifecycle.unready,
      standby: standbyFigures(options.threads, options.heldLog),
      publicUrl: publicUrl.site,
      addressRule: config.withdrawalAddress,
      depositInstructions: config.depositInstructions,
      defaultMergeFeeBps: config.mergeFeeBps,
    }),
  );
  const throttle = new ResponseThrottle(SIGN_IN_REFUSALS_PER_SECOND, MAX_WAITING_REFUSALS);
  const site = new StaticSite(fileURLToPath(new URL("./web", import.meta.url)), publicUrl.site);
  const admission = new Admission({
    ...{ authenticator, limiter, lifecycle },
    isKnown: (email, client, now) => {
      const user = accounts.userByEmail(email);
      return user !== undefined && accounts.knownAddresses.has(user.id, client, now);
    },
  });
  const deadlines = holdsLog(config.standby) ? new ReplyDeadlines() : null;
  const access = {
    deadlines,
    ...{ admission, authenticator, logger, counters, limiter, throttle, addressOf, site, reads: exchange.reads },
    securityHeaders: new SecurityHeaders(publicUrl.site),
    clock,
    guard: new EventLoopGuard(),
    hasProxies: config.trustedProxies.length > 0,
  };
  const sockets = { tickets, publisher: port, startedAt, maxSocketsPerAddress };
  const room = roomForConnections(MAX_WS_CONNECTIONS + MAX_HTTP_CONNECTIONS, logger);
  const connections = new Connections({
    ...{ room, port, logger, trustedProxies: config.trustedProxies },
    countSockets: () => hub.counts().connections,
    countSocketsOf: (client) => hub.countSocketsOf(client),
  });
  const hub = new SocketHub({ exchange, entry, cancelTimers, history, routes, connections, ...sockets, ...access });
  exchange.listen(hub.users.outbox, hub.channels);
  port.onApp((app) => {
    connections.register(app);
    hub.register(app);
    registerRoutes(app, routes, access);
  });
  return { admission, hub, routes, site, throttle, deadlines };
}

/** The first scrape loads their library. */
function createMetrics(options: GatewayOptions, sockets: MetricsOptions["sockets"]): () => Promise<string> {
  const metrics = loadedAtFirst(async () => {
    const { Metrics } = await import("../service/metrics.ts");
    return new Metrics(metricsOptions(options, sockets));
  });
  return async () => (await metrics()).text();
}

function metricsOptions(options: GatewayOptions, sockets: MetricsOptions["sockets"]): MetricsOptions {
  const { config, database, threads, trading, operators, lifecycle } = options;
  const { counters, exchange, faults, history, lag, progress, totals } = trading;
  return {
    ...{ totals, progress, lag, faults, counters, exchange, history, sockets },
    dataDir: config.dataDir,
    databasePath: database.path,
    journalPath: database.journalPath,
    archives: database.archives,
    upkeep: operators.upkeep,
    bookHistory: operators.bookHistory,
    output: options.output,
    unready: lifecycle.unready,
    certificateEndsAt: () => options.port.certificateEndsAt,
    batchCommands: threads.batchCommands.map((memory) => new Histogram(memory)),
    commitTimes: new Histogram(threads.commitTimes),
    commitOrders: new Histogram(threads.commitOrders),
    standby: standbyFigures(threads, options.heldLog),
  };
}

function standbyFigures({ replication, commitTimes }: Threads, heldLog: HeldLog | null): StandbyFigures | null {
  if (replication === null || heldLog === null) return null;
  const { status, settings, releaseTimes } = replication;
  return { status, ack: settings.ack, held: heldLog, commitTimes: new Histogram(commitTimes), releaseTimes };
}

export interface RouteContext
  extends AccountRouteContext,
    AccessRouteContext,
    LimitsRouteContext,
    MarketAdminRouteContext,
    MarketRouteContext,
    MoneyAdminContext,
    NotificationContext,
    OAuthRouteContext,
    OperatorRouteContext,
    OrderRouteContext,
    ServiceRouteContext,
    SocketRouteContext {
  readonly exchange: OrderRouteContext["exchange"];
  /** Operators' routes need a session with a second factor. */
  readonly operatorsNeedSecondFactor: boolean;
}

export function createRoutes(context: RouteContext): Route[] {
  const routes: Route[] = [
    ...createOrderRoutes(context),
    ...createSocketRoutes(context),
    ...createProposalRoutes(context),
    ...createWatchlistRoutes(context),
    ...createMarketRoutes(context),
    ...createHistoryRoutes(context),
    ...createWalletRoutes(context),
    ...createNotificationRoutes(context),
    ...createMoneyAdminRoutes(context),
    ...createAccessRoutes(context),
    ...createAccountRoutes(context),
    ...createOAuthRoutes(context),
    ...createMarketAdminRoutes(context),
    ...createOperatorRoutes(context),
    ...createServiceRoutes(context),
    createLimitsRoute(context, () => routes),
    ...createDocumentRoutes(context.publicUrl, () => routes),
  ];
  const { operatorsNeedSecondFactor: secondFactor } = context;
  return routes.map((each) => (each.access === "operator" && secondFactor ? { ...each, secondFactor } : each));
}
