/** The result of the last order, as far as it is known. */
import { reasonText } from "../error-messages.ts";
import { cents, humanize, shares } from "../format.ts";
import type { Order, Outcome } from "../types.ts";

export function PlacedOrder({ order, outcomes }: { order: Order; outcomes: readonly Outcome[] }) {
  const { status, filled, quantity, price } = order;
  const name = `Order ${order.id}`;
  if (status === "queued")
    return (
      <p class="notice info" translate={false}>
        {name} placed.
      </p>
    );
  if (status === "open") {
    return (
      <p class="notice info" translate={false}>
        {name} rests in the book at {cents(price)}.
      </p>
    );
  }
  if (status === "filled") {
    return (
      <p class="notice good" translate={false}>
        {name}: all {shares(quantity)} shares {order.side === 1 ? "bought" : "sold"}.
      </p>
    );
  }
  if (status === "partially_filled") {
    return (
      <p class="notice good" translate={false}>
        {name}: {shares(filled)} of {shares(quantity)} shares filled, the remainder rests at {cents(price)}.
      </p>
    );
  }
  return (
    <p translate={false} class={filled > 0 ? "notice good" : "notice warn"}>
      {name}
      {order.reason === "user" ? "" : ` ${humanize(status as string)}`}: {reasonText(order.reason as string)}.{" "}
      {filled > 0
        ? `${shares(filled)} of ${shares(quantity)} shares filled.`
        : `No shares of ${outcomes.find(({ id }) => id === order.outcome_id)?.name} filled.`}
    </p>
  );
}
