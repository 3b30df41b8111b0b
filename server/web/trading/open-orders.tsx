/** The user's open orders, with actions to amend and cancel them, in a panel that names them. */
import { useRef, useState } from "preact/hooks";
import { notionalMicro } from "../../../engine/money.ts";
import { humanize, money, priceNumber, shares } from "../../util/format.ts";
import { hasMoreOrders, MAX_LOADED } from "../account-state.ts";
import { rowTime } from "../dates.ts";
import type { Market, Order } from "../types.ts";
import { Icon } from "../ui/icon.tsx";
import { Notice } from "../ui/notices.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { AmendDialog } from "./amend-dialog.tsx";
import { CancelAllDialog, CancelButton } from "./cancel-orders.tsx";
import { FilledTrack, orderLine, orderTerms, SideBadge, subjectColumns } from "./order-name.tsx";

/** The columns that name an order: when it was placed, and what it is for. */
export function orderColumns(markets: ReadonlyMap<number, Market>, isSingleMarket: boolean): readonly Column<Order>[] {
  return [
    { title: "Placed", show: ({ created_at }) => <span class="muted">{rowTime(created_at)}</span> },
    ...subjectColumns(markets, isSingleMarket, orderLine),
    { title: "Side", show: ({ side }) => <SideBadge side={side} /> },
  ];
}

/** What an order holds until it is filled or ends: USDC of a bid, shares of an offer. */
function heldBy({ side, price, remaining }: Order): string {
  if (side !== 1) return `${shares(remaining)} sh.`;
  return price === null ? "–" : money(notionalMicro(price, remaining));
}

const termColumns: readonly Column<Order>[] = [
  { title: "Price, ¢", isNumber: true, show: ({ price }) => priceNumber(price) },
  { title: "Filled", show: (order) => <FilledTrack {...order} /> },
  { title: "Shares", isNumber: true, show: ({ quantity }) => shares(quantity) },
  { title: "On hold", isNumber: true, show: heldBy },
  {
    title: "Lasts",
    show: (order) => (
      <span class="muted">
        {orderTerms(order)}
        {order.status === "queued" && ` (${humanize("queued")})`}
      </span>
    ),
  },
];

interface OpenOrdersProps {
  orders: readonly Order[];
  markets: ReadonlyMap<number, Market>;
  /** Set if all orders are in this market. */
  marketId?: number | null;
  /** The button that cancels all of them stands elsewhere. */
  hasOwnCancelAll?: boolean;
  empty?: string;
}

export function OpenOrders({
  orders,
  markets,
  marketId = null,
  hasOwnCancelAll = false,
  empty = "No open orders.",
}: OpenOrdersProps) {
  const [amended, setAmended] = useState<number | null>(null);
  const list = useRef<HTMLElement>(null);
  /** Moves the focus to the list: the focused button disappears with its row. */
  const canceled = (): void => {
    requestAnimationFrame(() => list.current?.focus());
  };
  const order = orders.find(({ id }) => id === amended);
  const columns: Column<Order>[] = [
    ...orderColumns(markets, marketId !== null),
    ...termColumns,
    {
      title: "Actions",
      isNumber: true,
      phone: "end",
      show: (each) => (
        <span class="row-actions">
          <button type="button" title="Amend" aria-label={`Amend order ${each.id}`} onClick={() => setAmended(each.id)}>
            <Icon name="edit" />
          </button>
          <CancelButton order={each} onDone={canceled} />
        </span>
      ),
    },
  ];
  return (
    <section class="bare" aria-label="Open orders" tabIndex={-1} ref={list}>
      {!hasOwnCancelAll && orders.length > 1 && (
        <p class="row ends">
          <CancelAllButton orders={orders} marketId={marketId} onDone={canceled} />
        </p>
      )}
      {hasMoreOrders.value && (
        <Notice>These are the newest {shares(MAX_LOADED)} of your open orders. A CSV file has all of them.</Notice>
      )}
      <Table caption="Open orders" columns={columns} rows={orders} keyOf={({ id }) => id} empty={empty} />
      {order !== undefined && (
        <AmendDialog order={order} market={markets.get(order.market_id)} onClose={() => setAmended(null)} />
      )}
    </section>
  );
}

/** Cancels all open orders after a question. @param marketId only those of this market, unless it is null */
export function CancelAllButton({
  orders,
  marketId,
  onDone = () => {},
}: {
  orders: readonly Order[];
  marketId: number | null;
  onDone?: () => void;
}) {
  const [isConfirming, setConfirming] = useState(false);
  return (
    <>
      <button type="button" class="small" onClick={() => setConfirming(true)}>
        Cancel all{hasMoreOrders.value ? "" : ` ${shares(orders.length)}`}
      </button>
      {isConfirming && (
        <CancelAllDialog
          count={orders.length}
          marketId={marketId}
          onClose={() => setConfirming(false)}
          onDone={() => {
            setConfirming(false);
            onDone();
          }}
        />
      )}
    </>
  );
}
