/** Amends the price and quantity of an open order. */
import { useState } from "preact/hooks";
import { MAX_QUANTITY } from "../../../engine/limits.ts";
import { parsePrice, shares } from "../format.ts";
import { request } from "../session.ts";
import type { Market, Order } from "../types.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Field } from "../ui/fields.tsx";
import { ErrorNotice } from "../ui/notices.tsx";
import { toast } from "../ui/toast.tsx";
import { useAction } from "../ui/use-data.ts";
import { TIMEOUT_MS } from "./cancel-orders.tsx";
import { OrderName, priceInput } from "./order-name.tsx";
import { parseQuantity } from "./order-preview.ts";

export function AmendDialog({
  order,
  market,
  onClose,
}: {
  order: Order;
  market: Market | undefined;
  onClose: () => void;
}) {
  const [price, setPrice] = useState(() => (order.price === null ? "" : priceInput(order.price)));
  const [quantity, setQuantity] = useState(() => String(order.quantity));
  const newPrice = parsePrice(price);
  const newQuantity = parseQuantity(quantity);
  const priceProblem = newPrice === null ? "A price is between 0.01 and 99.99 %, with two decimals at most." : null;
  const quantityProblem =
    newQuantity === null
      ? `A whole number of shares, ${shares(MAX_QUANTITY)} at most.`
      : newQuantity <= order.filled
        ? `${shares(order.filled)} are filled already: choose more, or cancel the order.`
        : null;
  const isSame = newPrice === order.price && newQuantity === order.quantity;
  const keepsPriority = newPrice === order.price && newQuantity !== null && newQuantity <= order.quantity;
  const { run, isBusy, error } = useAction(async () => {
    if (newPrice === null || newQuantity === null) return;
    await request("PATCH", `/orders/${order.id}`, {
      body: {
        ...(newPrice === order.price ? {} : { price: newPrice }),
        ...(newQuantity === order.quantity ? {} : { quantity: newQuantity }),
      },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    toast(`Order ${order.id} is amended.`);
    onClose();
  });
  return (
    <Dialog title={`Amend order ${order.id}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (priceProblem === null && quantityProblem === null && !isSame) void run();
        }}
      >
        <p>
          <OrderName order={order} market={market} isAlone={false} />
        </p>
        <Field label="Price" unit="%" inputMode="decimal" value={price} onInput={setPrice} problem={priceProblem} />
        <Field
          label="Quantity in all"
          unit="shares"
          inputMode="numeric"
          value={quantity}
          onInput={setQuantity}
          problem={quantityProblem}
          hint={order.filled > 0 ? `${shares(order.filled)} of them are filled.` : undefined}
        />
        <p class="hint" aria-live="polite">
          {isSame
            ? "Nothing is changed yet."
            : keepsPriority
              ? "The order keeps its place in the queue."
              : "The order loses its place in the queue: it goes behind all others at its price, and trades at once where it meets an offer."}
        </p>
        <ErrorNotice error={error} />
        <div class="row">
          <button
            type="submit"
            class="primary"
            disabled={isBusy || isSame || priceProblem !== null || quantityProblem !== null}
          >
            {isBusy ? "Amending" : "Amend"}
          </button>
          <button type="button" onClick={onClose}>
            Leave as it is
          </button>
        </div>
      </form>
    </Dialog>
  );
}
