/**
 * Sends an order so that it takes effect at most once: under a client order id of its own, it can be repeated until the
 * exchange responds. Owns the pending orders, which outlive the ticket that sent them.
 */
import { effect, signal } from "@preact/signals";
import { addOrder, onOrderUpdate, PAGE_ORDER_PREFIX } from "../account-state.ts";
import { ApiError } from "../api.ts";
import { request, sessionState } from "../session.ts";
import type { Order, PlaceOrder } from "../types.ts";
import { toast } from "../ui/toast.tsx";

const TIMEOUT_MS = 8_000;
const TRIES = 3;
const PAUSE_MS = 1_000;
const ID_BYTES = 12;

/** An order without a response. If isBusy is false, all tries went unanswered, and the user can retry. */
interface Pending {
  readonly body: PlaceOrder;
  readonly isBusy: boolean;
  /** The latest order update from the stream. */
  readonly update: Order | null;
}

/** By market id: one at a time, whichever ticket sent it. */
export const pendingOrders = signal<ReadonlyMap<number, Pending>>(new Map());

function setPending(marketId: number, pending: Pending | null): void {
  const next = new Map(pendingOrders.peek());
  if (pending === null) next.delete(marketId);
  else next.set(marketId, pending);
  pendingOrders.value = next;
}

// The stream may report the order before the response arrives.
onOrderUpdate((order) => {
  const pending = pendingOrders.peek().get(order.market_id);
  if (pending?.body.client_order_id !== order.client_order_id || pending === undefined) return;
  if (pending.isBusy) return setPending(order.market_id, { ...pending, update: order });
  setPending(order.market_id, null);
  toast(`Order ${order.id} was placed: only its confirmation was lost.`);
});

// One user never sends another user's order.
effect(() => {
  if (sessionState.value === "out") pendingOrders.value = new Map();
});

/** Assigns a client order id to a new order. */
export function newOrder(body: Omit<PlaceOrder, "client_order_id">): PlaceOrder {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_BYTES));
  const id = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { ...body, client_order_id: PAGE_ORDER_PREFIX + id };
}

/**
 * Sends an order. Returns null without a response: the order stays pending, and may or may not exist.
 * @throws ApiError the exchange rejected the order: it doesn't exist
 */
export async function sendOrder(body: PlaceOrder): Promise<Order | null> {
  const marketId = body.market_id;
  const mine = (): Pending | undefined => {
    const pending = pendingOrders.peek().get(marketId);
    return pending?.body === body ? pending : undefined;
  };
  // An earlier try may have been placed.
  let mayExist = mine() !== undefined;
  setPending(marketId, { body, isBusy: true, update: null });
  for (let tries = 1; tries <= TRIES; tries++) {
    // The user has signed out.
    if (mine() === undefined) return null;
    try {
      const order = await request<Order>("POST", "/orders", { body, signal: AbortSignal.timeout(TIMEOUT_MS) });
      const update = mine()?.update ?? null;
      if (mine() === undefined) return null;
      setPending(marketId, null);
      if (update === null) addOrder(order);
      return update ?? order;
    } catch (error) {
      const pending = mine();
      if (pending === undefined) return null;
      const { update } = pending;
      if (update !== null) {
        setPending(marketId, null);
        return update;
      }
      if (error instanceof ApiError && isRejection(error, mayExist)) {
        setPending(marketId, null);
        throw error;
      }
      mayExist = true;
      if (tries < TRIES) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
    }
  }
  if (mine() !== undefined) setPending(marketId, { body, isBusy: false, update: null });
  return null;
}

/** The exchange responds with these only after it has found no order under the same client order id. */
const REJECTION_STATUSES: ReadonlySet<number> = new Set([400, 404, 409, 422]);
const DAILY_LIMIT = 42901;

/**
 * After an internal error, the order may exist. An overloaded exchange has placed nothing.
 * @param mayExist an earlier try may have been placed: a rate limit on this try says nothing about it
 */
function isRejection({ status, code }: ApiError, mayExist: boolean): boolean {
  if (mayExist) return REJECTION_STATUSES.has(status) || code === DAILY_LIMIT;
  return code === 50300 || (status >= 400 && status < 500);
}
