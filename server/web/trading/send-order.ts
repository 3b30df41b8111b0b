/**
 * Sends an order so that it trades once at most: with an id of its own, under which it may be sent again until it is
 * answered. Owns what is under way, which outlives the ticket that sent it.
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

/** An order that isn't answered yet; with isBusy false the exchange didn't answer at all, and it may be sent again. */
interface Pending {
  readonly body: PlaceOrder;
  readonly isBusy: boolean;
  /** What the stream told of it meanwhile. */
  readonly told: Order | null;
}

/** By market: one at a time, whichever ticket sent it. */
export const pendingOrders = signal<ReadonlyMap<number, Pending>>(new Map());

function setPending(marketId: number, pending: Pending | null): void {
  const next = new Map(pendingOrders.peek());
  if (pending === null) next.delete(marketId);
  else next.set(marketId, pending);
  pendingOrders.value = next;
}

// The stream may tell of it before anybody answers.
onOrderUpdate((order) => {
  const pending = pendingOrders.peek().get(order.market_id);
  if (pending?.body.client_order_id !== order.client_order_id || pending === undefined) return;
  if (pending.isBusy) return setPending(order.market_id, { ...pending, told: order });
  setPending(order.market_id, null);
  toast(`Order ${order.id} was placed: its answer was lost, nothing else.`);
});

// Nobody sends what another user has begun.
effect(() => {
  if (sessionState.value === "out") pendingOrders.value = new Map();
});

/** Gives a new order its id. */
export function newOrder(body: Omit<PlaceOrder, "client_order_id">): PlaceOrder {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_BYTES));
  const id = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { ...body, client_order_id: PAGE_ORDER_PREFIX + id };
}

/**
 * Null where nobody answered: it is pending then, and may be there or not.
 * @throws ApiError a refusal: there is no order
 */
export async function sendOrder(body: PlaceOrder): Promise<Order | null> {
  const marketId = body.market_id;
  const mine = (): Pending | undefined => {
    const pending = pendingOrders.peek().get(marketId);
    return pending?.body === body ? pending : undefined;
  };
  // An earlier try may have reached the exchange.
  let mayStand = mine() !== undefined;
  setPending(marketId, { body, isBusy: true, told: null });
  for (let tries = 1; tries <= TRIES; tries++) {
    // Who sent it has signed out.
    if (mine() === undefined) return null;
    try {
      const order = await request<Order>("POST", "/orders", { body, signal: AbortSignal.timeout(TIMEOUT_MS) });
      const told = mine()?.told ?? null;
      if (mine() === undefined) return null;
      setPending(marketId, null);
      if (told === null) addOrder(order);
      return told ?? order;
    } catch (error) {
      if (mine() === undefined) return null;
      const told = mine()!.told;
      if (told !== null) {
        setPending(marketId, null);
        return told;
      }
      if (error instanceof ApiError && isRejection(error, mayStand)) {
        setPending(marketId, null);
        throw error;
      }
      mayStand = true;
      if (tries < TRIES) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
    }
  }
  if (mine() !== undefined) setPending(marketId, { body, isBusy: false, told: null });
  return null;
}

/** What the exchange says of an order only once it has found none that was placed under the same id. */
const REJECTION_STATUSES: ReadonlySet<number> = new Set([400, 404, 409, 422]);
const DAILY_LIMIT = 42901;

/**
 * Of what failed within the exchange it isn't known how far it came; where it is overloaded nothing was done.
 * @param mayStand an earlier try may have been placed: a limit that stopped this one says nothing of that
 */
function isRejection({ status, code }: ApiError, mayStand: boolean): boolean {
  if (mayStand) return REJECTION_STATUSES.has(status) || code === DAILY_LIMIT;
  return code === 50300 || (status >= 400 && status < 500);
}
