/** A bot's wishes, and the contract's two forms of each: a REST request or a WebSocket operation. */

import type { TestMarket } from "../../support/world.ts";
import { expectThat, type OwnOrder } from "./books.ts";

export interface Quote {
  readonly outcome_id: number;
  readonly side: number;
  readonly price: number;
  readonly quantity: number;
}

export interface PlacementBody extends Quote {
  readonly market_id: number;
  readonly client_order_id: string;
  readonly [name: string]: unknown;
}

/** One request to the venue, independent of its form. */
export type Wish =
  | { readonly kind: "place"; readonly body: PlacementBody }
  | { readonly kind: "cancel"; readonly id: number }
  | { readonly kind: "cancelByClientId"; readonly clientOrderId: string }
  | { readonly kind: "cancelAll"; readonly filters: Readonly<Record<string, number>> }
  | { readonly kind: "amend"; readonly id: number; readonly change: Readonly<Record<string, number>> }
  | { readonly kind: "batch"; readonly wishes: readonly Wish[] }
  | { readonly kind: "quotes"; readonly quotes: readonly Quote[] }
  | { readonly kind: "sets"; readonly name: "split" | "merge"; readonly quantity: number };

type RestForm = [method: string, path: string, body?: object];
type SocketForm = [op: string, rest: { readonly data: object }];

export function restForm(wish: Wish, market: TestMarket): RestForm {
  switch (wish.kind) {
    case "place":
      return ["POST", "/orders", wish.body];
    case "cancel":
      return ["DELETE", `/orders/${wish.id}`];
    case "cancelByClientId":
      return ["DELETE", `/orders?client_order_id=${encodeURIComponent(wish.clientOrderId)}`];
    case "cancelAll": {
      const query = Object.entries(wish.filters).map(([name, value]) => `${name}=${value}`);
      return ["DELETE", `/orders${query.length === 0 ? "" : `?${query.join("&")}`}`];
    }
    case "amend":
      return ["PATCH", `/orders/${wish.id}`, wish.change];
    case "batch":
      return ["POST", "/orders/batch", { operations: wish.wishes.map(batchForm) }];
    case "quotes":
      return ["PUT", `/quotes/${market.id}`, { quotes: wish.quotes }];
    case "sets":
      return ["POST", `/wallet/${wish.name}`, { market_id: market.id, quantity: wish.quantity }];
  }
}

export function socketForm(wish: Wish, market: TestMarket): SocketForm {
  switch (wish.kind) {
    case "place":
      return ["order.place", { data: wish.body }];
    case "cancel":
      return ["order.cancel", { data: { id: wish.id } }];
    case "cancelByClientId":
      return ["order.cancel", { data: { client_order_id: wish.clientOrderId } }];
    case "cancelAll":
      return ["order.cancel_all", { data: wish.filters }];
    case "amend":
      return ["order.amend", { data: { id: wish.id, ...wish.change } }];
    case "batch":
      return ["order.batch", { data: { operations: wish.wishes.map(batchForm) } }];
    case "quotes":
      return ["quotes.replace", { data: { market_id: market.id, quotes: wish.quotes } }];
    case "sets":
      throw new Error("the contract changes sets over REST only");
  }
}

function batchForm(wish: Wish): object {
  switch (wish.kind) {
    case "place":
      return { op: "place", ...wish.body };
    case "cancel":
      return { op: "cancel", id: wish.id };
    case "cancelByClientId":
      return { op: "cancel", client_order_id: wish.clientOrderId };
    case "amend":
      return { op: "amend", id: wish.id, ...wish.change };
    default:
      throw new Error(`the contract has no ${wish.kind} in a batch`);
  }
}

/** The placements with a client_order_id in it. */
export function placementsIn(wish: Wish): readonly PlacementBody[] {
  if (wish.kind === "place") return [wish.body];
  return wish.kind === "batch" ? wish.wishes.flatMap(placementsIn) : [];
}

/** The order has what its placement asked for, or the contract's default. */
export function expectAsked(order: OwnOrder, body: PlacementBody, names: readonly (keyof OwnOrder)[]): void {
  const asked: Readonly<Record<string, unknown>> = {
    ...{ type: "limit", time_in_force: body["type"] === "market" ? "ioc" : "gtc", post_only: false },
    ...{ self_trade_prevention: "cancel_taker", expires_at: null, price: null },
    ...body,
  };
  for (const name of names) expectThat(order[name] === asked[name], `${name} as asked`, body, order);
}

export function isQuote(order: Pick<OwnOrder, "outcome_id" | "side" | "price">, quote: Quote): boolean {
  return order.outcome_id === quote.outcome_id && order.side === quote.side && order.price === quote.price;
}
