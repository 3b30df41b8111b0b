/**
 * What a box that isn't active says on its port: its health, its metrics, and to everything else which box is active. It reads
 * no request's body and serves no data: a read here could lack what its caller was just told.
 */
import type { HttpRequest, HttpResponse, TemplatedApp } from "uWebSockets.js";
import { type ApiError, overloaded } from "../errors.ts";
import { errorBody, newRequestId } from "../http/reply.ts";
import type { SecurityHeaders } from "../http/security-headers.ts";
import type { ActiveBox } from "../replication/types.ts";
import { METRICS_TYPE } from "./metrics.ts";

/** What the box says of itself at this moment. */
export interface StandingByFacts {
  /** The fields of /readyz. */
  readonly readiness: () => object;
  /** The error of every other request. */
  readonly rejection: () => ApiError;
  /** The address of the active box; null where it has none. */
  readonly activeUrl: () => string | null;
  readonly metrics: () => Promise<string>;
}

interface Content {
  readonly status: string;
  readonly type: string;
  readonly body: string;
  /** Pages of other origins may not read it. */
  readonly isOwn: boolean;
}

const JSON_TYPE = "application/json";
const UNAVAILABLE = "503 Service Unavailable";

/** The error of a request to a standby. @param active null where no box is */
export function standbyRejection(active: ActiveBox | null): ApiError {
  if (active === null) return overloaded("this box is a standby, and no box is active");
  return overloaded(active.url === null ? `this box is a standby of ${active.box}` : `the active is ${active.url}`);
}

/** Registers the routes on `app`, which does not listen yet. */
export function registerStandingBy(app: TemplatedApp, facts: StandingByFacts, headers: SecurityHeaders): void {
  const respond = (res: HttpResponse, req: HttpRequest, { status, type, body, isOwn }: Content): void => {
    const isHead = req.getMethod() === "head";
    res.cork(() => {
      res.writeStatus(status).writeHeader("Content-Type", headers.typeLines(type, isOwn));
      if (isHead) res.endWithoutBody(Buffer.byteLength(body));
      else res.end(body);
    });
  };
  const health = (res: HttpResponse, req: HttpRequest): void =>
    respond(res, req, { status: "200 OK", type: JSON_TYPE, body: '{"status":"ok"}', isOwn: false });
  const readiness = (res: HttpResponse, req: HttpRequest): void =>
    respond(res, req, { status: UNAVAILABLE, type: JSON_TYPE, body: JSON.stringify(facts.readiness()), isOwn: false });
  app.get("/livez", health).head("/livez", health);
  app.get("/readyz", readiness).head("/readyz", readiness);
  app.get("/metrics", (res) => {
    let isGone = false;
    res.onAborted(() => {
      isGone = true;
    });
    facts.metrics().then(
      (text) => {
        if (!isGone) res.cork(() => res.writeHeader("Content-Type", headers.typeLines(METRICS_TYPE, true)).end(text));
      },
      () => {
        if (!isGone) res.close();
      },
    );
  });
  app.any("/*", (res, req) => {
    const isHead = req.getMethod() === "head";
    const error = facts.rejection();
    const url = facts.activeUrl();
    const id = newRequestId();
    const body = errorBody(error, id);
    res.cork(() => {
      res.writeStatus(UNAVAILABLE).writeHeader("Content-Type", headers.typeLines(JSON_TYPE, false));
      res.writeHeader("X-Request-Id", id).writeHeader("Retry-After", String(error.retryAfter));
      if (url !== null) res.writeHeader("Exchange-Active", url);
      if (isHead) res.endWithoutBody(Buffer.byteLength(body));
      // The body of the request, if it has one, isn't read.
      else res.end(body, true);
    });
  });
}
