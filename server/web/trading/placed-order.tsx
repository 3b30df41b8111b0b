/** The outcome of the order that was placed last. */
import { reasonText } from "../error-messages.ts";
import { humanize, percent, shares } from "../format.ts";
import type { Order, Outcome } from "../types.ts";

/** What became of the last order, as far as it is known. */
export function PlacedOrder({ order, outcomes }: { order: Order; outcomes: readonly Outcome[] }) {
  const { status, filled, quantity, price } = order;
  const name = `Order ${order.id}`;
  if (status === "queued") return <p class="notice info">{name} is placed.</p>;
  if (status === "open") {
    return (
      <p class="notice info">
        {name} waits in the book at {percent(price)}.
      </p>
    );
  }
  if (status === "filled") {
    return (
      <p class="notice good">
        {name}: all {shares(quantity)} shares {order.side === 1 ? "bought" : "sold"}.
      </p>
    );
  }
  if (status === "partially_filled") {
    return (
      <p class="notice good">
        {name}: {shares(filled)} of {shares(quantity)} shares filled, the rest waits at {percent(price)}.
      </p>
    );
  }
  return (
    <p class={filled > 0 ? "notice good" : "notice warn"}>
      {name}
      {order.reason === "user" ? "" : ` ${humanize(status as string)}`}: {reasonText(order.reason as string)}.{" "}
      {filled > 0
        ? `${shares(filled)} of ${shares(quantity)} shares were filled.`
        : `No shares of ${outcomes.find(({ id }) => id === order.outcome_id)?.name} were traded.`}
    </p>
  );
}
