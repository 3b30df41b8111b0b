/** Amends the price and quantity of an open order. */
import { useState } from "preact/hooks";
import { MAX_QUANTITY } from "../../../engine/limits.ts";
import { shares } from "../../util/format.ts";
import { parsePrice } from "../parse.ts";
import { request } from "../session.ts";
import type { Market, Order } from "../types.ts";
import { useAction } from "../ui/action.ts";
import { Dialog } from "../ui/dialog.tsx";
import { COUNT, NumberField, PRICE } from "../ui/fields.tsx";
import { ErrorNotice } from "../ui/notices.tsx";
import { toast } from "../ui/toast.tsx";
import { TIMEOUT_MS } from "./cancel-orders.tsx";
import { OrderName, priceInput } from "./order-name.tsx";
import { parseQuantity } from "./order-preview.ts";

const KEEPS_PRIORITY = "The order keeps its queue priority.";
const LOSES_PRIORITY =
  "The order loses its queue priority: it moves behind all orders at its price, and fills now if it crosses the book.";

function quantityProblem(quantity: number | null, filled: number): string | null {
  if (quantity === null) return `Quantity must be a whole number of shares, at most ${shares(MAX_QUANTITY)}.`;
  return quantity <= filled ? `${shares(filled)} are already filled: choose more, or cancel the order.` : null;
}

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
  const problems = {
    price: newPrice === null ? "Price must be between 0.01¢ and 99.99¢, with at most two decimals." : null,
    quantity: quantityProblem(newQuantity, order.filled),
  };
  const isValid = problems.price === null && problems.quantity === null;
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
    toast(`Order ${order.id} amended.`);
    onClose();
  });
  return (
    <Dialog title={`Amend order ${order.id}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isValid && !isSame) void run();
        }}
      >
        <p>
          <OrderName order={order} market={market} />
        </p>
        <NumberField label="Price" unit="¢" kind={PRICE} value={price} onInput={setPrice} problem={problems.price} />
        <NumberField
          label="Total quantity"
          unit="shares"
          kind={COUNT}
          value={quantity}
          onInput={setQuantity}
          problem={problems.quantity}
          hint={order.filled > 0 ? `${shares(order.filled)} already filled.` : undefined}
        />
        <p class="hint" aria-live="polite">
          {isSame ? "No changes yet." : keepsPriority ? KEEPS_PRIORITY : LOSES_PRIORITY}
        </p>
        <ErrorNotice error={error} />
        <div class="row ends">
          <button type="submit" class="primary" disabled={isBusy || isSame || !isValid}>
            {isBusy ? "Amending…" : "Amend"}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
