/**
 * Sends an order so that it takes effect at most once: under a client order id of its own, it can be repeated until the
 * exchange responds. Owns, for each market, the order on its way and the last one that was placed; both outlive the ticket.
 */
import { effect, type Signal, signal } from "@preact/signals";
import { addOrder, onOrderUpdate, PAGE_ORDER_PREFIX } from "../account-state.ts";
import { ApiError } from "../api.ts";
import { request, sessionState } from "../session.ts";
import { streamState } from "../stream.ts";
import type { Order, PlaceOrder } from "../types.ts";

const TIMEOUT_MS = 8_000;
const TRIES = 3;
const PAUSE_MS = 1_000;
const ID_BYTES = 12;

/** An order without a response. If isBusy is false, all tries went unanswered, and the user can retry. */
interface Pending {
  readonly body: PlaceOrder;
  readonly isBusy: boolean;
}

/** An order that was placed, with all of its fills that are known. */
export interface Placed {
  readonly order: Order;
  readonly fills: readonly Order["trades"][number][];
}

/** By market id: one at a time, whichever ticket sent it. */
export const pendingOrders = signal<ReadonlyMap<number, Pending>>(new Map());
/** By market id, until the user goes on. */
export const placedOrders = signal<ReadonlyMap<number, Placed>>(new Map());

function setIn<T>(orders: Signal<ReadonlyMap<number, T>>, marketId: number, value: T | null): void {
  const next = new Map(orders.peek());
  if (value === null) next.delete(marketId);
  else next.set(marketId, value);
  orders.value = next;
}

/** Forgets the order that was placed last. */
export const dismissPlaced = (marketId: number): void => setIn(placedOrders, marketId, null);

/** Adds what is known of an order. Its own state is the newest one: events may overtake responses. */
function learn(order: Order): void {
  const before = placedOrders.peek().get(order.market_id);
  const known = before?.order.id === order.id ? before : null;
  const fills = new Map([...(known?.fills ?? []), ...order.trades].map((fill) => [fill.id, fill]));
  const isNewer = known === null || order.filled >= known.order.filled;
  setIn(placedOrders, order.market_id, { order: isNewer ? order : known.order, fills: [...fills.values()] });
}

onOrderUpdate((order) => {
  const isKnown = placedOrders.peek().get(order.market_id)?.order.id === order.id;
  const pending = pendingOrders.peek().get(order.market_id);
  const isPending = pending !== undefined && pending.body.client_order_id === order.client_order_id;
  if (isKnown || isPending) learn(order);
  // All tries went unanswered, but the order was placed.
  if (isPending && !pending.isBusy) setIn(pendingOrders, order.market_id, null);
});

// One user never sends another user's order.
effect(() => {
  if (sessionState.value !== "out") return;
  pendingOrders.value = new Map();
  placedOrders.value = new Map();
});

// Once the exchange is there again, it knows whether the order was placed.
effect(() => {
  if (streamState.value !== "live") return;
  for (const { body, isBusy } of pendingOrders.peek().values()) if (!isBusy) void lookUp(body);
});

async function lookUp(body: PlaceOrder): Promise<void> {
  try {
    const order = await request<Order>("GET", `/orders/by-client-id/${body.client_order_id}`);
    if (pendingOrders.peek().get(body.market_id)?.body !== body) return;
    learn(order);
    addOrder(order);
    setIn(pendingOrders, body.market_id, null);
  } catch {
    // The user can still retry, which is safe.
  }
}

/** Completes the fills of an order whose events were missed. */
export async function loadFills({ order }: Placed): Promise<void> {
  const found = await request<Order>("GET", `/orders/${order.id}`).catch(() => null);
  if (found !== null && placedOrders.peek().get(order.market_id)?.order.id === order.id) learn(found);
}

/** Assigns a client order id to a new order. */
export function newOrder(body: Omit<PlaceOrder, "client_order_id">): PlaceOrder {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_BYTES));
  const id = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { ...body, client_order_id: PAGE_ORDER_PREFIX + id };
}

/**
 * Sends an order. Returns false without a response: the order stays pending, and may or may not exist.
 * @throws ApiError the exchange rejected the order: it doesn't exist
 */
export async function sendOrder(body: PlaceOrder): Promise<boolean> {
  const marketId = body.market_id;
  const isMine = (): boolean => pendingOrders.peek().get(marketId)?.body === body;
  const isPlaced = (): boolean => placedOrders.peek().get(marketId)?.order.client_order_id === body.client_order_id;
  // An earlier try may have been placed.
  let mayExist = isMine();
  dismissPlaced(marketId);
  setIn(pendingOrders, marketId, { body, isBusy: true });
  for (let tries = 1; tries <= TRIES; tries++) {
    // The user has signed out.
    if (!isMine()) return false;
    try {
      const order = await request<Order>("POST", "/orders", { body, signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (!isMine()) return false;
      setIn(pendingOrders, marketId, null);
      // The stream may have been faster than the response.
      if (!isPlaced()) {
        addOrder(order);
        learn(order);
      }
      return true;
    } catch (error) {
      if (!isMine()) return false;
      if (isPlaced()) {
        setIn(pendingOrders, marketId, null);
        return true;
      }
      if (error instanceof ApiError && isRejection(error, mayExist)) {
        setIn(pendingOrders, marketId, null);
        throw error;
      }
      mayExist = true;
      if (tries < TRIES) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
    }
  }
  if (isMine()) setIn(pendingOrders, marketId, { body, isBusy: false });
  return false;
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
