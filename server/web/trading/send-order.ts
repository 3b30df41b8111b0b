/**
 * Sends an order so that it trades once at most: with an id of its own, under which it may be sent again until it is
 * answered. Owns nothing of the ticket.
 */
import { addOrder } from "../account-state.ts";
import { ApiError } from "../api.ts";
import { request } from "../session.ts";
import type { Order, PlaceOrder } from "../types.ts";

const TIMEOUT_MS = 8_000;
const TRIES = 3;
const PAUSE_MS = 1_000;
const ID_BYTES = 12;

/** Nobody answered: the order may be there or not. The same body can be sent again. */
export class NoAnswer extends Error {
  readonly body: PlaceOrder;

  constructor(body: PlaceOrder) {
    super("no answer");
    this.body = body;
  }
}

/** Gives a new order its id. */
export function newOrder(body: Omit<PlaceOrder, "client_order_id">): PlaceOrder {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_BYTES));
  const id = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { ...body, client_order_id: `page-${id}` };
}

/** @throws ApiError a refusal: there is no order @throws NoAnswer */
export async function sendOrder(body: PlaceOrder): Promise<Order> {
  for (let tries = 1; ; tries++) {
    try {
      const order = await request<Order>("POST", "/orders", { body, signal: AbortSignal.timeout(TIMEOUT_MS) });
      addOrder(order);
      return order;
    } catch (error) {
      if (error instanceof ApiError && isRefusal(error)) throw error;
      if (tries === TRIES) throw new NoAnswer(body);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
    }
  }
}

/** Of what failed within the exchange it isn't known how far it came; where it is overloaded nothing was done. */
function isRefusal({ status, code }: ApiError): boolean {
  return code === 50300 || (status >= 400 && status < 500);
}
