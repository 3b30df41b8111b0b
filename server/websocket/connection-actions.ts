/** What clients ask of their own connection, whatever they speak: a token, and that its orders end with it. */
import type { Principal, TokenAuthenticator } from "../accounts/types.ts";
import { ApiError, asApiError, ErrorKind } from "../errors.ts";
import { authorize, type Entry } from "../http/admission.ts";
import type { CompiledRoute } from "../http/dispatch.ts";
import { newRequestId } from "../http/reply.ts";
import { type Logger, logInternal } from "../logger.ts";
import type { Channels, Subscribed } from "./channels.ts";
import { CLOSE_INTERNAL_ERROR, type SocketConnection } from "./connection.ts";
import { type OperationAdmission, unauthenticated } from "./operation-admission.ts";
import { Replay, type ReplayContext, type ReplayOutcome } from "./replay.ts";
import type { Subscription } from "./types.ts";

/** What actions need of the hub. */
export interface ActionHost {
  /** Returns the holder of a token or ticket. @throws ApiError 40100, 2002, 40300, 42900 */
  authenticate(connection: SocketConnection, token: string): Principal | Promise<Principal>;
  /** Gives the connection a fresh token of its user, or its first token. */
  setPrincipal(connection: SocketConnection, principal: Principal): void;
  readonly channels: Channels;
  readonly replays: ReplayContext;
  /** Sends the snapshots of pending subscriptions, unless that is under way. */
  sendSnapshots(connection: SocketConnection): void;
}

interface ActionOptions {
  readonly authenticator: TokenAuthenticator;
  readonly admission: OperationAdmission;
  readonly logger: Logger;
  /** ms */
  readonly now: () => number;
}

/** What becomes of a token that a client presents. One call exactly, or none where the connection has closed. */
interface TokenOutcome {
  accepted(principal: Principal): void;
  rejected(error: unknown): void;
}

export class ConnectionActions {
  private readonly host: ActionHost;
  private readonly options: ActionOptions;
  /** The route that cancel on disconnect needs access to. */
  private readonly placeRoute: CompiledRoute;
  /** The route that a replay reads from, and counts as. */
  private readonly eventsRoute: CompiledRoute;

  constructor(host: ActionHost, options: ActionOptions) {
    this.host = host;
    this.options = options;
    this.placeRoute = options.admission.route("POST /orders");
    this.eventsRoute = options.admission.route("GET /me/events");
  }

  /** @param respond gets the list, before any message of the channels @throws ApiError */
  subscribe(connection: SocketConnection, named: Subscription, respond: (list: readonly Subscribed[]) => void): void {
    const { channels } = this.host;
    const topics = channels.subscribe(connection, named);
    respond(channels.list(topics));
    const isUnderWay = connection.pendingSubscriptions.length > 0;
    connection.pendingSubscriptions = [...connection.pendingSubscriptions, ...topics];
    if (!isUnderWay) this.host.sendSnapshots(connection);
  }

  /** Ends the named subscriptions that exist, and returns them with their last sequences. @throws ApiError */
  unsubscribe(connection: SocketConnection, named: Subscription): readonly Subscribed[] {
    return this.host.channels.unsubscribe(connection, named);
  }

  /**
   * Replays the order updates after `sequence`. @param reply gets the rate @param outcome of the start alone: a replay that
   * fails later closes the connection
   * @throws ApiError
   */
  resume(
    connection: SocketConnection,
    sequence: number,
    reply: Entry["reply"],
    outcome: Pick<ReplayOutcome, "started" | "rejected">,
  ): void {
    const { admission, logger } = this.options;
    const { userId } = admission.admit(connection, this.eventsRoute, "resume", this.options.now(), reply);
    Replay.start(this.host.replays, connection, userId, sequence, {
      ...outcome,
      failed: (error) => {
        logInternal(logger, asApiError(error), newRequestId());
        connection.end(CLOSE_INTERNAL_ERROR, "the replay failed: resume again");
      },
    });
  }

  /** @throws ApiError 40100, 40300 */
  setCancelOnDisconnect({ principal, origin }: SocketConnection, enabled: boolean): void {
    if (principal === null) throw unauthenticated("trade");
    authorize(this.placeRoute.route, principal);
    origin.connection.cancelOnDisconnect = enabled;
  }

  /**
   * A fresh token of the same user replaces the connection's own; an anonymous connection signs in. The outcome is told
   * before anything that the token gives access to.
   * @throws ApiError where the token is plainly wrong
   */
  presentToken(connection: SocketConnection, token: string, outcome: TokenOutcome): void {
    const accept = (principal: Principal): void => {
      const { principal: before, socket } = connection;
      if (socket === null) return;
      this.options.authenticator.checkLive(principal, this.options.now());
      if (before !== null && before.userId !== principal.userId) {
        throw new ApiError(ErrorKind.forbidden, "the token is another user's: open another connection");
      }
      outcome.accepted(principal);
      this.host.setPrincipal(connection, principal);
    };
    const found = this.host.authenticate(connection, token);
    if (found instanceof Promise) found.then(accept).catch((error) => outcome.rejected(error));
    else accept(found);
  }
}
