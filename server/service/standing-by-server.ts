/**
 * The port of a box that isn't active: its health, its metrics, and to everything else which box is active, through the same
 * routing, framing and policy as the exchange's own port. It serves no data: a read here could lack what its caller was
 * just told.
 */
import type { TemplatedApp } from "uWebSockets.js";
import { systemClock } from "../../engine/util/clock.ts";
import type { TokenAuthenticator } from "../accounts/types.ts";
import { ApiError, ErrorKind, overloaded } from "../errors.ts";
import { Admission } from "../http/admission.ts";
import { NO_ADDRESS } from "../http/client-address.ts";
import type { Connections } from "../http/connections.ts";
import { compileRoutes } from "../http/dispatch.ts";
import { EventLoopGuard } from "../http/event-loop-guard.ts";
import type { SecurityHeaders } from "../http/security-headers.ts";
import { registerRejection } from "../http/server.ts";
import type { Logger } from "../logger.ts";
import type { ActiveBox } from "../replication/types.ts";
import type { OrderedReads } from "../trading/types.ts";
import { Counters } from "../util/counters.ts";
import { createMonitoringRoutes, type MonitoringFacts } from "./routes.ts";

export interface StandingByFacts {
  /** The fields of /readyz. */
  readonly readiness: () => object;
  /** The error of every request outside monitoring. */
  readonly rejection: () => ApiError;
  /** The address of the active box; null where it has none. */
  readonly activeUrl: () => string | null;
  readonly metrics: MonitoringFacts["metrics"];
}

export interface StandingByParts {
  readonly connections: Connections;
  readonly securityHeaders: SecurityHeaders;
  readonly logger: Logger;
}

/** The error of a request to a standby. @param active null where no box is */
export function standbyRejection(active: ActiveBox | null): ApiError {
  if (active === null) return overloaded("this box is a standby, and no box is active");
  return overloaded(active.url === null ? `this box is a standby of ${active.box}` : `the active is ${active.url}`);
}

/** No route here asks for a token. */
const NOBODY: TokenAuthenticator = {
  authenticateHeader() {
    throw new ApiError(ErrorKind.unauthenticated, "this box signs nobody in");
  },
  checkLive() {},
};

/** Nobody gets messages here. */
const NOTHING_SENT: OrderedReads = {
  afterMessagesSent: (_userId, _now, give) => give(),
  afterCommitted: (_userId, give) => give(),
  committed: () => Promise.resolve(),
};

/** Registers the routes on `app`, which does not listen yet. */
export function registerStandingBy(
  app: TemplatedApp,
  { readiness, metrics, rejection, activeUrl }: StandingByFacts,
  { connections, securityHeaders, logger }: StandingByParts,
): void {
  connections.register(app);
  const routes = createMonitoringRoutes({ readiness: () => ({ isReady: false, fields: readiness() }), metrics });
  const open = { rejection: null, writeRejection: null };
  const reject = () => {
    const url = activeUrl();
    return { error: rejection(), headers: url === null ? [] : ([["Exchange-Active", url]] as const) };
  };
  registerRejection(app, compileRoutes(routes), reject, {
    ...{ logger, securityHeaders, clock: systemClock, counters: new Counters(), guard: new EventLoopGuard() },
    admission: new Admission({ authenticator: NOBODY, limiter: null, lifecycle: open, isKnown: () => false }),
    addressOf: () => NO_ADDRESS,
    hasProxies: false,
    throttle: null,
    reads: NOTHING_SENT,
    deadlines: null,
  });
}
