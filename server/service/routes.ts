/** The routes for monitoring, at the root: liveness, readiness and metrics. No rate limit counts them. */

import { type Route, route } from "../http/route.ts";
import { Text } from "../http/schemas.ts";
import { METRICS_TYPE, type Metrics } from "./metrics.ts";
import { Health } from "./schemas.ts";

export interface ServiceRouteContext {
  /** Null once everything works, else the reason. */
  readonly unready: () => string | null;
  readonly metrics: Metrics;
}

const MONITORING = { method: "GET", unversioned: true, rateClass: "none", enveloped: false } as const;

export function createServiceRoutes({ unready, metrics }: ServiceRouteContext): Route[] {
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
      response: Health,
      handler({ reply }) {
        const reason = unready();
        reply.plain(reason === null ? 200 : 503, JSON.stringify({ status: reason ?? "ok" }));
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
