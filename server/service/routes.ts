/** The routes for monitoring, at the root: liveness, readiness and metrics. No rate limit counts them. */

import { type Route, route } from "../http/route.ts";
import { Text } from "../http/schemas.ts";
import { METRICS_TYPE, type Metrics } from "./metrics.ts";
import { Health, Readiness } from "./schemas.ts";
import type { StandbyFigures } from "./standby-metrics.ts";

export interface ServiceRouteContext {
  /** Null once everything works, else the reason. */
  readonly unready: () => string | null;
  readonly metrics: Metrics;
  /** Null on a single box. */
  readonly standby: Pick<StandbyFigures, "status" | "ack" | "held"> | null;
}

const MONITORING = { method: "GET", unversioned: true, rateClass: "none", enveloped: false } as const;

export function createServiceRoutes({ unready, metrics, standby }: ServiceRouteContext): Route[] {
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
        const reason = unready();
        reply.plain(reason === null ? 200 : 503, JSON.stringify({ status: reason ?? "ok", ...copyOf(standby) }));
        return undefined;
      },
    }),
    route({
      ...MONITORING,
      path: "/metrics",
      summary: "Metrics of the exchange and its process, in the Prometheus text format",
      response: Text,
      contentType: METRICS_TYPE,
      handler: () => metrics.text(),
    }),
  ];
}

/** What /readyz says about the copy of the log; nothing on a single box. */
function copyOf(standby: ServiceRouteContext["standby"]): object {
  if (standby === null) return {};
  const { status, held, ack } = standby;
  const alone = ack === "standby" ? { alone: status.get("alone") === 1 } : {};
  return { role: "active", epoch: status.get("epoch"), behind_batches: held.batches, ack, ...alone };
}
