/** The order ticket: its fields, the preview of the order, its submission and the result. The page owns the draft. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { TRADING_FEE_BPS } from "../../../engine/limits.ts";
import { balance, onOrderUpdate, openOrders, positions } from "../account-state.ts";
import { exchangeTime } from "../clock.ts";
import { errorMessage } from "../error-messages.ts";
import { streamState } from "../stream.ts";
import type { Limits, Market, Order, Outcome, PlaceOrder } from "../types.ts";
import { Icon } from "../ui/icon.tsx";
import { ErrorNotice, Notice } from "../ui/notices.tsx";
import { toast } from "../ui/toast.tsx";
import { type Fetched, useAction } from "../ui/use-data.ts";
import { focusFirstProblem } from "../ui/validation.ts";
import { combineDepth, type DepthLevel, impliedLadder, type Ladder } from "./depth.ts";
import { closedReason } from "./market-status.ts";
import { type ChangeDraft, type Draft, type PreviewContext, previewOrder } from "./order-preview.ts";
import { OrderSummary } from "./order-summary.tsx";
import { PlacedOrder } from "./placed-order.tsx";
import { newOrder, pendingOrders, sendOrder } from "./send-order.ts";
import { TicketFields } from "./ticket-fields.tsx";
import { SubmitButton } from "./ticket-submit.tsx";

export interface TicketProps {
  readonly market: Market;
  readonly outcome: Outcome;
  readonly books: ReadonlyMap<number, Ladder>;
  readonly limits: Fetched<Limits>;
  readonly draft: Draft;
  readonly change: ChangeDraft;
  readonly onOutcome: (id: number) => void;
}

export function Ticket(props: TicketProps) {
  const { market, outcome, draft, change, onOutcome } = props;
  const depth = useOppositeDepth(props);
  const context = contextOf(props, depth);
  const preview = previewOrder(draft, context);
  const { placed, error, hasTried, setTried, run } = useSubmission(props);
  const closed = closedReason(market);
  const pending = pendingOrders.value.get(market.id);
  const isBusy = pending?.isBusy ?? false;
  const unanswered = pending === undefined || pending.isBusy ? null : pending.body;
  const send = (event: Event): void => {
    event.preventDefault();
    if (isBusy) return;
    setTried(true);
    if (unanswered !== null) void run(unanswered);
    else if (preview.body !== null && closed === null) void run(newOrder(preview.body));
    else if (closed === null) focusFirstProblem(event.currentTarget as HTMLElement);
  };
  const { summary } = preview;
  return (
    <form class="ticket" noValidate onSubmit={send}>
      {closed !== null && <Notice kind="warn">{closed}</Notice>}
      <TicketFields
        {...{ draft, change, preview, context, hasTried, onOutcome }}
        outcomes={market.outcomes}
        isDisabled={pending !== undefined || closed !== null}
      />
      {summary !== null && depth === null && (
        <p class="hint">The order books aren't available. You'll see what fills once the order is placed.</p>
      )}
      {summary !== null && depth !== null && <OrderSummary draft={draft} summary={summary} outcome={outcome} />}
      {preview.warnings.map((text) => (
        <p key={text} class="warning">
          <Icon name="alert" />
          {text}
        </p>
      ))}
      <SubmitButton {...{ draft, preview, outcome, isBusy, unanswered }} isClosed={closed !== null} />
      {unanswered === null ? (
        <ErrorNotice error={error} />
      ) : (
        <Notice kind="warn">
          No response from the exchange: your order may or may not have been placed. Retrying is safe: it repeats the
          same order and can't fill twice.
        </Notice>
      )}
      <div aria-live="polite">{placed !== null && <PlacedOrder order={placed} outcomes={market.outcomes} />}</div>
    </form>
  );
}

/** The side of the book that the order fills against; null while the stream or a book is missing. */
function useOppositeDepth({ market, outcome, books, draft }: TicketProps): readonly DepthLevel[] | null {
  const side = draft.side === "buy" ? "asks" : "bids";
  const areBooksKnown = streamState.value === "live" && books.size === market.outcomes.length;
  return useMemo(() => {
    const direct = books.get(outcome.id);
    if (direct === undefined || !areBooksKnown) return null;
    const ids = market.outcomes.map(({ id }) => id);
    return combineDepth(direct[side], impliedLadder(books, ids, outcome.id)[side], side);
  }, [books, outcome.id, side, areBooksKnown]);
}

function contextOf(
  { market, outcome, limits: { data: limits } }: TicketProps,
  depth: readonly DepthLevel[] | null,
): PreviewContext {
  return {
    marketId: market.id,
    outcome,
    depth,
    available: balance.value?.available ?? null,
    position: positions.value?.get(outcome.id),
    ownOrders: (openOrders.value ?? []).filter(({ market_id }) => market_id === market.id),
    feeBps: limits?.fees.trading_fee ?? TRADING_FEE_BPS,
    activity: limits?.daily_activity ?? null,
    closesAt: market.closes_at,
    now: exchangeTime(),
  };
}

/** Bounds the order updates kept before the response names the order. */
const MAX_UPDATES = 200;

/** Sends orders, and follows the last one through its updates. */
function useSubmission({ market, limits, change }: TicketProps) {
  const [hasTried, setTried] = useState(false);
  const [placed, setPlaced] = useState<Order | null>(null);
  const updates = useRef(new Map<number, Order>());
  const isMounted = useRef(true);
  useEffect(() => {
    isMounted.current = true;
    const unsubscribe = onOrderUpdate((order) => {
      if (order.market_id !== market.id) return;
      updates.current.set(order.id, order);
      setPlaced((before) => (before?.id === order.id ? order : before));
    });
    return () => {
      isMounted.current = false;
      unsubscribe();
    };
  }, [market.id]);
  const { run, error } = useAction(async (body: PlaceOrder) => {
    setPlaced(null);
    if (updates.current.size > MAX_UPDATES) updates.current.clear();
    try {
      const order = await sendOrder(body);
      if (order === null) return;
      // The stream may have been faster than the response.
      setPlaced(updates.current.get(order.id) ?? openOrders.peek()?.find(({ id }) => id === order.id) ?? order);
      setTried(false);
      change({ quantity: "" });
    } catch (thrown) {
      if (!isMounted.current) toast(errorMessage(thrown), true);
      throw thrown;
    }
    limits.reload();
  });
  return { placed, error, hasTried, setTried, run };
}
