/**
 * Puts HTTP and WebSocket in front of the services: limits and credentials, the route table, the site, the metrics and
 * the hub of sockets. Opens no port: listen.ts does.
 */
import type * as Uws from "uWebSockets.js";
import { fileURLToPath } from "node:url";
import { Histogram } from "../../engine/util/histogram.ts";
import type { Config } from "../config.ts";
import { Admission } from "../http/admission.ts";
import { createAddressReader } from "../http/client-address.ts";
import { Connections, roomForConnections } from "../http/connections.ts";
import { compileRoutes } from "../http/dispatch.ts";
import { EventLoopGuard } from "../http/event-loop-guard.ts";
import { MAX_HTTP_CONNECTIONS, SIGN_IN_REFUSALS_PER_SECOND } from "../http/limits.ts";
import { RateLimiter } from "../http/rate-limiter.ts";
import { ResponseThrottle } from "../http/response-throttle.ts";
import { SecurityHeaders } from "../http/security-headers.ts";
import { registerRoutes } from "../http/server.ts";
import { StaticSite } from "../http/static-site.ts";
import type { Logger } from "../logger.ts";
import { Metrics } from "../operators/metrics.ts";
import type { LogOutput } from "../util/log-output.ts";
import { SocketHub } from "../websocket/hub.ts";
import { MAX_WS_CONNECTIONS } from "../websocket/limits.ts";
import { SocketTickets } from "../websocket/tickets.ts";
import type { AccountServices } from "./account-services.ts";
import type { ExchangeDatabase } from "./database.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { NotificationServices } from "./notification-services.ts";
import type { OperatorServices } from "./operator-services.ts";
import type { PublicUrl } from "./public-url.ts";
import { createRoutes } from "./routes.ts";
import type { Threads } from "./threads.ts";
import type { TradingServices } from "./trading-services.ts";

/** The longest wait of a refused sign-in: half of what uWebSockets.js lets a connection be idle. */
const MAX_WAITING_REFUSALS = 5 * SIGN_IN_REFUSALS_PER_SECOND;

interface GatewayOptions {
  readonly config: Config;
  readonly app: Uws.TemplatedApp;
  readonly database: ExchangeDatabase;
  readonly threads: Threads;
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

/** Registers every route, the site and the hub on `app`, which does not listen yet. */
export function createGateway(options: GatewayOptions) {
  const { config, app, trading, identity, operators, lifecycle, publicUrl, logger } = options;
  const { exchange, entry, history, counters, startedAt, clock } = trading;
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
      publicUrl: publicUrl.site,
      addressRule: config.withdrawalAddress,
      depositInstructions: config.depositInstructions,
      usualMergeFeeBps: config.mergeFeeBps,
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
  const access = {
    ...{ admission, authenticator, logger, counters, limiter, throttle, addressOf, site, reads: exchange.reads },
    securityHeaders: new SecurityHeaders(publicUrl.site),
    clock,
    guard: new EventLoopGuard(),
    hasProxies: config.trustedProxies.length > 0,
  };
  const sockets = { tickets, app, startedAt, maxSocketsPerAddress };
  const room = roomForConnections(MAX_WS_CONNECTIONS + MAX_HTTP_CONNECTIONS, logger);
  const connections = new Connections(room, () => hub.counts().connections, logger);
  connections.register(app);
  const hub = new SocketHub({ exchange, entry, history, routes, connections, ...sockets, ...access });
  exchange.listen(hub.outbox, hub.channels);
  hub.register();
  registerRoutes(app, routes, access);
  return { admission, hub, routes, site, throttle };
}

function createMetrics(options: GatewayOptions, sockets: Sockets): Metrics {
  const { config, database, threads, trading, operators, lifecycle } = options;
  const { counters, exchange, faults, history, lag, progress, totals } = trading;
  return new Metrics({
    ...{ totals, progress, lag, faults, counters, exchange, history, sockets },
    dataDir: config.dataDir,
    databasePath: database.path,
    journalPath: database.journalPath,
    archives: database.archives,
    upkeep: operators.upkeep,
    output: options.output,
    unready: lifecycle.unready,
    batchCommands: threads.batchCommands.map((memory) => new Histogram(memory)),
    commitTimes: new Histogram(threads.commitTimes),
    commitOrders: new Histogram(threads.commitOrders),
  });
}

type Sockets = ConstructorParameters<typeof Metrics>[0]["sockets"];
