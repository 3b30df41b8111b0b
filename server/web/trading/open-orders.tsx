/** The caller's live orders, with what can be done to them: cancel, amend, cancel all. */
import { useRef, useState } from "preact/hooks";
import { MAX_QUANTITY } from "../../../engine/limits.ts";
import { ApiError } from "../api.ts";
import { explain } from "../error-messages.ts";
import { dateTime, percent, readPrice, shares, words } from "../format.ts";
import { marketName, outcomeName } from "../market-cache.ts";
import { href } from "../router.ts";
import { request } from "../session.ts";
import type { Market, Order } from "../types.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Field } from "../ui/fields.tsx";
import { ErrorNotice } from "../ui/notices.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { toast } from "../ui/toast.tsx";
import { useAction } from "../ui/use-data.ts";
import { readQuantity } from "./order-preview.ts";

/** Then it may be asked for again, which does no harm: whoever wants an order gone can't wait for a lost answer. */
const TIMEOUT_MS = 8_000;

const sideName = (side: number) => <span class={side === 1 ? "up" : "down"}>{side === 1 ? "Buy" : "Sell"}</span>;

/** A price as an amount that can be typed. */
export const priceText = (bps: number): string => String(bps / 100);

/** What an order is for; with its market where a list has several. */
export function OrderName({
  order,
  market,
  isAlone,
}: {
  order: Pick<Order, "market_id" | "outcome_id" | "side">;
  market: Market | undefined;
  isAlone: boolean;
}) {
  return (
    <span class="order-name">
      {!isAlone && (
        <a href={href(`/markets/${market?.slug ?? order.market_id}?outcome=${order.outcome_id}`)}>
          {marketName(market, order.market_id)}
        </a>
      )}
      <span>
        {sideName(order.side)} {outcomeName(market, order.outcome_id)}
      </span>
    </span>
  );
}

const FORCES: Readonly<Record<string, string>> = {
  gtc: "until canceled",
  ioc: "immediate or cancel",
  fok: "fill or kill",
};

/** How long an order stands, and that it never takes. */
export function terms({ time_in_force, expires_at, post_only }: Order): string {
  const force = time_in_force === "gtd" ? `until ${dateTime(expires_at)}` : (FORCES[time_in_force as string] ?? "");
  return post_only ? `${force}, post-only` : force;
}

export function OwnOrders({
  title,
  orders,
  markets,
  marketId = null,
}: {
  title: string;
  orders: readonly Order[];
  markets: ReadonlyMap<number, Market>;
  /** All orders are of this one. */
  marketId?: number | null;
}) {
  const [amended, setAmended] = useState<number | null>(null);
  const [isAsked, setAsked] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  /** Once the dialog is closed and the rows go away, what had the focus goes with them. */
  const canceled = (): void => {
    requestAnimationFrame(() => heading.current?.focus());
  };
  const order = orders.find(({ id }) => id === amended);
  const columns: Column<Order>[] = [
    {
      title: "Order",
      show: (each) => <OrderName order={each} market={markets.get(each.market_id)} isAlone={marketId !== null} />,
    },
    { title: "Price", isNumber: true, show: ({ price }) => percent(price) },
    { title: "Filled", isNumber: true, show: ({ filled, quantity }) => `${shares(filled)} of ${shares(quantity)}` },
    {
      title: "Terms",
      show: (each) => (
        <span>
          {terms(each)}
          {each.status === "queued" && <span class="faint"> ({words("queued")})</span>}
        </span>
      ),
    },
    {
      title: "Change",
      isNumber: true,
      show: (each) => (
        <span class="row actions">
          <button type="button" class="small" aria-label={`Amend order ${each.id}`} onClick={() => setAmended(each.id)}>
            Amend
          </button>
          <CancelButton order={each} onDone={canceled} />
        </span>
      ),
    },
  ];
  return (
    <section class="panel" aria-labelledby="orders-title">
      <div class="chart-head">
        <h2 id="orders-title" tabIndex={-1} ref={heading}>
          {title}
        </h2>
        {orders.length > 1 && (
          <button type="button" class="small danger" onClick={() => setAsked(true)}>
            Cancel all
          </button>
        )}
      </div>
      <Table
        caption={title}
        columns={columns}
        rows={orders}
        keyOf={({ id }) => id}
        empty="You have no open orders here."
      />
      {order !== undefined && (
        <AmendDialog order={order} market={markets.get(order.market_id)} onClose={() => setAmended(null)} />
      )}
      {isAsked && (
        <CancelAllDialog
          count={orders.length}
          marketId={marketId}
          onClose={() => setAsked(false)}
          onDone={() => {
            setAsked(false);
            canceled();
          }}
        />
      )}
    </section>
  );
}

function CancelButton({ order, onDone }: { order: Order; onDone: () => void }) {
  const { run, isBusy } = useAction(async () => {
    try {
      await request("DELETE", `/orders/${order.id}`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    } catch (error) {
      // One that has ended meanwhile is no mistake: the list says what became of it.
      if (!(error instanceof ApiError) || error.code !== 40900) toast(explain(error), true);
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

function CancelAllDialog({
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

function AmendDialog({ order, market, onClose }: { order: Order; market: Market | undefined; onClose: () => void }) {
  const [price, setPrice] = useState(() => (order.price === null ? "" : priceText(order.price)));
  const [quantity, setQuantity] = useState(() => String(order.quantity));
  const newPrice = readPrice(price);
  const newQuantity = readQuantity(quantity);
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
