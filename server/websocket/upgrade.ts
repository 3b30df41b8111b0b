/**
 * The upgrade of an HTTP request to a WebSocket: its token or ticket, its subprotocol, and the bound on connections per
 * address. It reads the request synchronously, and never touches the response once the client is gone.
 */
import type { HttpRequest, HttpResponse, us_socket_context_t } from "uWebSockets.js";
import type { Clock } from "../../engine/util/clock.ts";
import type { Principal } from "../accounts/types.ts";
import { ApiError, badRequest, ErrorKind, overloaded } from "../errors.ts";
import type { Admission } from "../http/admission.ts";
import { type AddressOptions, type ClientAddress, clientAddress } from "../http/client-address.ts";
import type { EventLoopGuard } from "../http/event-loop-guard.ts";
import type { RateLimiter, RateQuery } from "../http/rate-limiter.ts";
import type { SecurityHeaders } from "../http/security-headers.ts";
import { replyWithoutRoute } from "../http/server.ts";
import type { Logger } from "../logger.ts";
import type { Authenticator } from "../sign-in/authenticator.ts";
import type { Counters } from "../util/counters.ts";
import { SocketConnection } from "./connection.ts";
import { MAX_WS_CONNECTIONS } from "./limits.ts";
import { type SocketTickets, TICKET_PREFIX } from "./tickets.ts";
import { FORMATS, type Format } from "./types.ts";
import { credentialOf } from "./upgrade-credential.ts";

/** Signatures to verify have a rate bucket of their own. */
const VERIFICATION: Omit<RateQuery, "address" | "now"> = {
  ...{ route: "GET /ws", rateClass: "default", userId: null, factor: 1, identifier: "", isKnown: false },
};
/** Retry-After of an address that has as many connections as it may have, s. */
const ADDRESS_RETRY_S = 10;
/** Orders hold the number of their connection in 32 bits; when numbers repeat, the first orders are long gone. */
const MAX_CONNECTION_NUMBER = 0x7fff_ffff;

export interface UpgradeOptions extends AddressOptions {
  readonly authenticator: Authenticator;
  readonly tickets: SocketTickets;
  readonly logger: Logger;
  readonly counters: Counters;
  readonly securityHeaders: SecurityHeaders;
  readonly guard: EventLoopGuard;
  readonly clock: Clock;
  /** Null where nothing is limited. */
  readonly limiter: RateLimiter | null;
  readonly maxSocketsPerAddress: number;
  readonly admission: Admission;
}

export class Upgrade {
  private readonly options: UpgradeOptions;
  private readonly countConnections: () => number;
  /** Connections and upgrades under way, by client address. */
  private readonly byAddress = new Map<string, number>();
  private lastNumber = 0;

  constructor(options: UpgradeOptions, countConnections: () => number) {
    this.options = options;
    this.countConnections = countConnections;
  }

  /** Upgrades the request once its sender is known, or responds with an error. */
  run(res: HttpResponse, req: HttpRequest, context: us_socket_context_t): void {
    const { options } = this;
    const { reply, head } = replyWithoutRoute(res, req, options);
    const { forwardedFor, fault, authorization } = head;
    const format = formatOf(req);
    const [key, extensions] = [req.getHeader("sec-websocket-key"), req.getHeader("sec-websocket-extensions")];
    const address = clientAddress(res, forwardedFor, options);
    const accept = (principal: Principal | null): void => {
      if (reply.done) return this.releaseAddress(address);
      this.lastNumber = (this.lastNumber % MAX_CONNECTION_NUMBER) + 1;
      const { webSocket } = options.counters;
      const connection = new SocketConnection(principal, address, format ?? "json", this.lastNumber, webSocket);
      res.cork(() => res.upgrade({ connection }, key, format ?? "", extensions, context));
    };
    let token: string | null;
    try {
      if (fault !== null) throw badRequest(fault);
      options.admission.checkOpen();
      // The token may be in the URL: nothing of the URL is ever logged.
      token = credentialOf(req, req.getQuery() ?? "", authorization);
      if (this.countConnections() >= MAX_WS_CONNECTIONS) throw overloaded("too many connections: try again");
      this.claimAddress(address);
    } catch (error) {
      return reply.fail(error);
    }
    const fail = (error: unknown): void => {
      this.releaseAddress(address);
      reply.fail(error);
    };
    try {
      const found = token === null ? null : this.authenticate(token, address, options.clock.now());
      if (!(found instanceof Promise)) accept(found);
      else found.then(accept).catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  /** Returns the holder of a token or ticket. @throws ApiError 40100, 2002, 40300, 42900 */
  authenticate(token: string, address: ClientAddress, now: number): Principal | Promise<Principal> {
    const { authenticator, tickets, limiter } = this.options;
    if (token.startsWith(TICKET_PREFIX)) {
      const principal = tickets.redeem(token, now);
      if (principal !== null) return authenticator.admit(principal, now, () => address);
      throw new ApiError(ErrorKind.unauthenticated, "the ticket is not valid: used, or older than a minute");
    }
    // Only a signature to verify counts: known tokens and plainly wrong ones cost nothing.
    const mayVerify = (): void => {
      limiter?.consume({ ...VERIFICATION, address: address.client, now });
    };
    return authenticator.authenticate(token, now, () => address, mayVerify);
  }

  /** Counts a connection until it closes or fails to open. @throws ApiError 42900 above the bound per address */
  private claimAddress({ client }: ClientAddress): void {
    const count = this.byAddress.get(client) ?? 0;
    const { maxSocketsPerAddress } = this.options;
    if (count >= maxSocketsPerAddress) {
      const text = `at most ${maxSocketsPerAddress} WebSocket connections from one IP address`;
      throw new ApiError(ErrorKind.limitExceeded, text, ADDRESS_RETRY_S);
    }
    this.byAddress.set(client, count + 1);
  }

  /** Open connections of a client. */
  countOf(client: string): number {
    return this.byAddress.get(client) ?? 0;
  }

  /** A connection closed, or an upgrade failed. */
  releaseAddress({ client }: ClientAddress): void {
    const count = this.byAddress.get(client) ?? 0;
    if (count > 1) this.byAddress.set(client, count - 1);
    else this.byAddress.delete(client);
  }
}

/** The first subprotocol offered that we know; null for none. */
function formatOf(req: HttpRequest): Format | null {
  for (const name of req.getHeader("sec-websocket-protocol").split(",")) {
    const format = FORMATS.find((each) => each === name.trim());
    if (format !== undefined) return format;
  }
  return null;
}
