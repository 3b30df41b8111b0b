/** Counts and admits the operations of sockets, whatever they speak: each as the request of a route. */
import { assert } from "../../engine/util/assert.ts";
import type { Principal } from "../accounts/types.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { Admission, Entry, Sender } from "../http/admission.ts";
import type { CompiledRoute } from "../http/dispatch.ts";
import type { SocketConnection } from "./connection.ts";

export class OperationAdmission {
  private readonly admission: Admission;
  private readonly routes: readonly CompiledRoute[];

  constructor(admission: Admission, routes: readonly CompiledRoute[]) {
    this.admission = admission;
    this.routes = routes;
  }

  /** The route of a template. */
  route(template: string): CompiledRoute {
    const found = this.routes.find((compiled) => compiled.template === template);
    assert(found !== undefined, "the route of an operation exists");
    return found;
  }

  /**
   * Counts an operation as a request of its route, and admits the connection's user to it. `reply` gets the rate.
   * @param purpose what an anonymous connection is told to connect with a token for
   * @throws ApiError 50300, 42900, 40100, 2002, 40300
   */
  admit(
    connection: SocketConnection,
    compiled: CompiledRoute,
    purpose: string,
    now: number,
    reply: Entry["reply"],
  ): Principal {
    reply.rate = null;
    const entry = { compiled, address: connection.address, now, reply };
    const principal = this.admission.enter(entry, senderOf(connection, purpose));
    assert(principal !== null, "the routes of operations aren't public");
    return principal;
  }
}

/** @param purpose what the client wants to do */
export const unauthenticated = (purpose: string): ApiError =>
  new ApiError(ErrorKind.unauthenticated, `connect with a token to ${purpose}`);

function senderOf({ principal }: SocketConnection, purpose: string): Sender {
  return { principal, rejection: principal === null ? unauthenticated(purpose) : null };
}
