/** What clients ask of their own connection, whatever they speak: a token, and that its orders end with it. */
import type { Principal, TokenAuthenticator } from "../accounts/types.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import { authorize } from "../http/admission.ts";
import type { CompiledRoute } from "../http/dispatch.ts";
import type { SocketConnection } from "./connection.ts";
import { type OperationAdmission, unauthenticated } from "./operation-admission.ts";

/** What actions need of the hub. */
export interface ActionHost {
  /** Returns the holder of a token or ticket. @throws ApiError 40100, 2002, 40300, 42900 */
  authenticate(connection: SocketConnection, token: string): Principal | Promise<Principal>;
  /** Gives the connection a fresh token of its user, or its first token. */
  setPrincipal(connection: SocketConnection, principal: Principal): void;
}

/** What becomes of a token that a client presents. One call exactly, or none where the connection has closed. */
interface TokenOutcome {
  accepted(principal: Principal): void;
  rejected(error: unknown): void;
}

export class ConnectionActions {
  private readonly host: ActionHost;
  private readonly authenticator: TokenAuthenticator;
  private readonly now: () => number;
  /** The route that cancel on disconnect needs access to. */
  private readonly placeRoute: CompiledRoute;

  /** @param now ms */
  constructor(host: ActionHost, authenticator: TokenAuthenticator, admission: OperationAdmission, now: () => number) {
    this.host = host;
    this.authenticator = authenticator;
    this.now = now;
    this.placeRoute = admission.route("POST /orders");
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
      this.authenticator.checkLive(principal, this.now());
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
