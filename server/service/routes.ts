/** The routes for monitoring, at the root: liveness, readiness and metrics. No rate limit counts them. */

import { type Route, route } from "../http/route.ts";
import { Text } from "../http/schemas.ts";
import { Health, Readiness } from "./schemas.ts";
import type { StandbyFigures } from "./standby-metrics.ts";

export interface ServiceRouteContext {
  /** Null once everything works, else the reason. */
  readonly unready: () => string | null;
  readonly metrics: () => Promise<string>;
  /** Null on a single box. */
  readonly standby: Pick<StandbyFigures, "status" | "ack" | "held"> | null;
}

/** What a box says of itself at this moment. */
export interface MonitoringFacts {
  /** Whether it accepts orders, and the fields of /readyz. */
  readonly readiness: () => { readonly isReady: boolean; readonly fields: object };
  readonly metrics: () => Promise<string>;
}

/** Of the text format 0.0.4. */
const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";
const MONITORING = { method: "GET", unversioned: true, rateClass: "none", enveloped: false } as const;

export function createServiceRoutes({ unready, metrics, standby }: ServiceRouteContext): Route[] {
  return createMonitoringRoutes({
    readiness: () => {
      const reason = unready();
      return { isReady: reason === null, fields: { status: reason ?? "ok", ...copyOf(standby) } };
    },
    metrics,
  });
}

/** The routes of every box, whatever its role. */
export function createMonitoringRoutes({ readiness, metrics }: MonitoringFacts): Route[] {
  return [
    route({
      ...MONITORING,
      path: "/livez",
      summary: "Liveness: the process responds",
      response: Health,
      handler: () => '{"status":"ok"}',
    }),
    route({
      ...MONITORING,
      path: "/readyz",
      summary: "Readiness: the exchange accepts orders",
      response: Readiness,
      handler({ reply }) {
        const { isReady, fields } = readiness();
        reply.plain(isReady ? 200 : 503, JSON.stringify(fields));
        return undefined;
      },
    }),
    route({
      ...MONITORING,
      path: "/metrics",
      summary: "Metrics of the exchange and its process, in the Prometheus text format",
      response: Text,
      contentType: METRICS_TYPE,
      handler: metrics,
    }),
  ];
}

/** What /readyz says about the copy of the log; nothing on a single box. */
function copyOf(standby: ServiceRouteContext["standby"]): object {
  if (standby === null) return {};
  const { status, held, ack } = standby;
  const copied = { keys_copied: status.get("keysEqual") === 1 };
  const alone = ack === "standby" ? { alone: status.get("alone") === 1, ...copied } : copied;
  return { role: "active", epoch: status.get("epoch"), behind_batches: held.batches, ack, ...alone };
}
