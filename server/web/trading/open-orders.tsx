/** The user's open orders, with actions to amend and cancel them, in a panel that names them. */
import { useRef, useState } from "preact/hooks";
import { humanize, priceNumber, shares } from "../format.ts";
import type { Market, Order } from "../types.ts";
import { type Column, Table } from "../ui/table.tsx";
import { AmendDialog } from "./amend-dialog.tsx";
import { CancelAllDialog, CancelButton } from "./cancel-orders.tsx";
import { OrderName, orderTerms } from "./order-name.tsx";

const termColumns: readonly Column<Order>[] = [
  { title: "Price, ¢", isNumber: true, show: ({ price }) => priceNumber(price) },
  { title: "Filled", isNumber: true, show: ({ filled, quantity }) => `${shares(filled)} of ${shares(quantity)}` },
  {
    title: "Time in force",
    show: (each) => (
      <span>
        {orderTerms(each)}
        {each.status === "queued" && <span class="faint"> ({humanize("queued")})</span>}
      </span>
    ),
  },
];

interface OpenOrdersProps {
  orders: readonly Order[];
  markets: ReadonlyMap<number, Market>;
  /** Set if all orders are in this market. */
  marketId?: number | null;
}

export function OpenOrders({ orders, markets, marketId = null }: OpenOrdersProps) {
  const [amended, setAmended] = useState<number | null>(null);
  const [isConfirming, setConfirming] = useState(false);
  const list = useRef<HTMLElement>(null);
  /** Moves the focus to the list: the focused button disappears with its row. */
  const canceled = (): void => {
    requestAnimationFrame(() => list.current?.focus());
  };
  const order = orders.find(({ id }) => id === amended);
  const columns: Column<Order>[] = [
    {
      title: "Order",
      show: (each) => (
        <OrderName order={each} market={markets.get(each.market_id)} isSingleMarket={marketId !== null} />
      ),
    },
    ...termColumns,
    {
      title: "Actions",
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
  const cancelAll = orders.length > 1 && (
    <button type="button" class="small danger" onClick={() => setConfirming(true)}>
      Cancel all
    </button>
  );
  return (
    <section class="bare" aria-label="Open orders" tabIndex={-1} ref={list}>
      {cancelAll && <p class="row ends">{cancelAll}</p>}
      <Table caption="Open orders" columns={columns} rows={orders} keyOf={({ id }) => id} empty="No open orders." />
      {order !== undefined && (
        <AmendDialog order={order} market={markets.get(order.market_id)} onClose={() => setAmended(null)} />
      )}
      {isConfirming && (
        <CancelAllDialog
          count={orders.length}
          marketId={marketId}
          onClose={() => setConfirming(false)}
          onDone={() => {
            setConfirming(false);
            canceled();
          }}
        />
      )}
    </section>
  );
}
