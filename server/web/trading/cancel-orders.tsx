/** Cancels one order, or all of them after a confirmation. */
import { ApiError } from "../api.ts";
import { errorMessage } from "../error-messages.ts";
import { shares } from "../format.ts";
import { request } from "../session.ts";
import type { Order } from "../types.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNotice } from "../ui/notices.tsx";
import { toast } from "../ui/toast.tsx";
import { useAction } from "../ui/use-data.ts";

/** Then it may be asked for again, which does no harm: whoever wants an order gone can't wait for a lost answer. */
export const TIMEOUT_MS = 8_000;

export function CancelButton({ order, onDone }: { order: Order; onDone: () => void }) {
  const { run, isBusy } = useAction(async () => {
    try {
      await request("DELETE", `/orders/${order.id}`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    } catch (error) {
      // One that has ended meanwhile is no mistake: the list says what became of it.
      if (!(error instanceof ApiError) || error.code !== 40900) toast(errorMessage(error), true);
      return;
    }
    onDone();
  });
  return (
    <button
      type="button"
      class="small danger"
      disabled={isBusy}
      aria-label={`Cancel order ${order.id}`}
      onClick={() => void run()}
    >
      {isBusy ? "Canceling" : "Cancel"}
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
    toast(`${shares(order_ids.length)} orders are canceled.`);
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
          All your open orders {marketId === null ? "in all markets" : "in this market"} are canceled ({shares(count)}{" "}
          at the moment), those of your bots too. What was filled stays filled; what the rest held is free again.
        </p>
        <ErrorNotice error={error} />
        <div class="row">
          <button type="submit" class="sell" disabled={isBusy}>
            {isBusy ? "Canceling" : "Cancel all orders"}
          </button>
          <button type="button" onClick={onClose}>
            Keep them
          </button>
        </div>
      </form>
    </Dialog>
  );
}
