/**
 * A bot's placements by client_order_id: each names one order, however often the bot sends it. A breach throws.
 */

import type { OrderJson } from "../../support/client.ts";
import { expectThat } from "./books.ts";
import { expectAsked, type PlacementBody } from "./requests.ts";

interface Placement {
  readonly body: PlacementBody;
  sends: number;
  orderId: number | null;
  /** Its events may arrive before its response: the bot used REST, or the response was lost. */
  mayBeOvertaken: boolean;
}

export class Placements {
  private readonly byClientId = new Map<string, Placement>();

  sent(body: PlacementBody, overSocket: boolean): void {
    const placement = this.byClientId.get(body.client_order_id);
    if (placement !== undefined) placement.sends++;
    else this.byClientId.set(body.client_order_id, { body, sends: 1, orderId: null, mayBeOvertaken: !overSocket });
  }

  /** The response was lost. */
  lost({ client_order_id }: PlacementBody): void {
    this.byClientId.get(client_order_id)!.mayBeOvertaken = true;
  }

  mayBeOvertaken(clientOrderId: string): boolean {
    return this.byClientId.get(clientOrderId)!.mayBeOvertaken;
  }

  /** A response or an event shows an order with a client_order_id. */
  meet(order: OrderJson): Placement {
    const placement = this.byClientId.get(order.client_order_id ?? "");
    expectThat(placement !== undefined, "a client_order_id of this bot", order);
    const isOne = placement.orderId === null || placement.orderId === order.id;
    expectThat(isOne, "one order for each client_order_id", placement, order);
    placement.orderId = order.id;
    expectAsked(order, placement.body, ["market_id", "outcome_id", "side", "type", "time_in_force", "post_only"]);
    return placement;
  }
}
