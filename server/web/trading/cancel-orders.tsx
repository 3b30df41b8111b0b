/** Cancels one order, or all of them after a confirmation. */

import { shares } from "../../util/format.ts";
import { hasMoreOrders } from "../account-state.ts";
import { ApiError } from "../api.ts";
import { errorMessage } from "../error-messages.ts";
import { request } from "../session.ts";
import type { Order } from "../types.ts";
import { useAction } from "../ui/action.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { ErrorNotice } from "../ui/notices.tsx";
import { toast } from "../ui/toast.tsx";

/** After this, the user can retry, which is harmless: someone canceling an order can't wait for a lost response. */
export const TIMEOUT_MS = 8_000;

/** Cancels an order. One that has already ended is fine: the stream reports its end. @returns whether it is canceled */
export async function cancelOrder({ id }: Pick<Order, "id">): Promise<boolean> {
  try {
    await request("DELETE", `/orders/${id}`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return true;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== ENDED) toast(errorMessage(error), true);
    return false;
  }
}

const ENDED = 40900;

export function CancelButton({ order, onDone }: { order: Order; onDone: () => void }) {
  const { run, isBusy } = useAction(async () => {
    if (await cancelOrder(order)) onDone();
  });
  return (
    <button
      type="button"
      title="Cancel"
      disabled={isBusy}
      aria-label={`Cancel order ${order.id}`}
      onClick={() => void run()}
    >
      <Icon name="close" />
    </button>
  );
}

export function CancelAllDialog({
  count,
  marketId,
  onClose,
  onDone,
}: {
  count: number;
  marketId: number | null;
  onClose: () => void;
  onDone: () => void;
}) {
  const { run, isBusy, error } = useAction(async () => {
    const { order_ids } = await request<{ order_ids: number[] }>("DELETE", "/orders", {
      query: { market_id: marketId },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    toast(`${shares(order_ids.length)} orders canceled.`);
    onDone();
  });
  return (
    <Dialog title="Cancel all orders?" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <p>
          This cancels all your open orders {marketId === null ? "in all markets" : "in this market"} (now{" "}
          {hasMoreOrders.value ? "more than " : ""}
          {shares(count)}), including orders from bots. Fills stand; holds are released.
        </p>
        <ErrorNotice error={error} />
        <div class="row">
          <button type="submit" class="sell" disabled={isBusy}>
            {isBusy ? "Canceling…" : "Cancel all orders"}
          </button>
          <button type="button" onClick={onClose}>
            Keep orders
          </button>
        </div>
      </form>
    </Dialog>
  );
}
