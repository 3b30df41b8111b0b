/** Reads order requests: the JSON bodies of placements, amendments, cancels and batches as commands of order entry. */

import type { Static } from "typebox";
import { OrderType, TimeInForce } from "../../engine/constants.ts";
import { SHOWN_TERMS, termBits } from "../../engine/ring/order-terms.ts";
import type { ClientOrderId } from "../../engine/ring/order-texts.ts";
import { packTerms, typeOf, withTimeInForce, withType } from "../../engine/ring/records.ts";
import type { Principal } from "../accounts/types.ts";
import { badRequest, notFound } from "../errors.ts";
import { CLIENT_ORDER_ID } from "../http/text-schemas.ts";
import { compileSchema } from "../http/validate.ts";
import type { Operation } from "./batch.ts";
import type { OrderEntry } from "./order-entry.ts";
import { type AmendOrder, BatchOperations, type PlaceOrder } from "./schemas.ts";
import type { Amendment, Origin, Placement, Reply } from "./types.ts";

/**
 * @param idempotencyKey stands for the client order id where the body has none; "" for none
 * @throws ApiError 40000 for a key that can't
 */
export function readPlacement(body: Static<typeof PlaceOrder>, timestamps: boolean, idempotencyKey: string): Placement {
  return {
    marketId: body.market_id,
    outcomeId: body.outcome_id,
    terms: termsIn(body),
    price: body.price ?? null,
    quantity: body.quantity,
    clientOrderId: body.client_order_id ?? (idempotencyKey === "" ? null : clientOrderIdOf(idempotencyKey)),
    expiresAt: body.expires_at ?? null,
    validUntil: body.valid_until ?? null,
    timestamps,
  };
}

/** The order's terms, each with its default. */
function termsIn(body: Static<typeof PlaceOrder>): number {
  let terms = packTerms(body.side, 0, 0, 0, 0);
  for (const term of SHOWN_TERMS) {
    const value = body[term.name];
    if (value !== undefined) terms |= termBits(term, value);
  }
  if (typeOf(terms) !== OrderType.market) return terms;
  if (body.time_in_force === undefined) terms = withTimeInForce(terms, TimeInForce.ioc);
  return (body.price ?? null) === null ? withType(terms, OrderType.unboundMarket) : terms;
}

/** @throws ApiError 40000 */
function clientOrderIdOf(idempotencyKey: string): string {
  if (CLIENT_ORDER_ID.accepts(idempotencyKey)) return idempotencyKey;
  throw badRequest(
    `Idempotency-Key: stands for the client_order_id here, and must match ${CLIENT_ORDER_ID.schema.pattern}`,
  );
}

export function readAmendment(orderId: number, body: Static<typeof AmendOrder>): Amendment {
  return { orderId, price: body.price ?? null, quantity: body.quantity ?? null, validUntil: body.valid_until ?? null };
}

/** Returns the client order id of a path, which may be percent-encoded. @throws ApiError 4040 if it can name no order */
export function clientOrderIdIn(text: string): string {
  let name = text;
  try {
    name = decodeURIComponent(text);
  } catch {
    // The text is no valid encoding, and so no client order id either.
  }
  if (!CLIENT_ORDER_ID.accepts(name)) throw notFound("order");
  return name;
}

/**
 * Turns each operation of a batch into a command. A malformed operation throws only when its turn comes, so that it
 * doesn't affect the others.
 */
export function createOperations(
  entry: OrderEntry,
): (principal: Principal, origin: Origin, operation: object) => Operation {
  const checks = {
    place: compileSchema(BatchOperations.place),
    cancel: compileSchema(BatchOperations.cancel),
    amend: compileSchema(BatchOperations.amend),
  };
  return (principal, origin, operation) => (now, reply) => {
    const { op } = operation as { op?: unknown };
    if (op === "place")
      return entry.place(principal, origin, readPlacement(checks.place(operation), false, ""), now, reply);
    if (op === "amend") {
      const change = checks.amend(operation);
      return entry.amend(principal, origin, readAmendment(change.id, change), now, reply);
    }
    if (op !== "cancel") throw badRequest(`op: must be one of ${Object.keys(checks).join(", ")}`);
    const { id, client_order_id: clientOrderId } = checks.cancel(operation);
    cancelEither(entry, principal.userId, { id, clientOrderId }, now, reply);
  };
}

/** The order that a cancel names. */
export interface NamedOrder {
  readonly id: number | undefined;
  readonly clientOrderId: ClientOrderId | undefined;
}

/** Cancels the order with an id or a client order id. @throws ApiError 40000 unless exactly one of the two is given */
export function cancelEither(
  entry: OrderEntry,
  userId: number,
  { id, clientOrderId }: NamedOrder,
  now: number,
  reply: Reply,
): void {
  if (id !== undefined && clientOrderId === undefined) entry.cancel(userId, id, now, reply);
  else if (clientOrderId !== undefined && id === undefined) entry.cancelByClientId(userId, clientOrderId, now, reply);
  else throw badRequest("id: required, or else client_order_id");
}
