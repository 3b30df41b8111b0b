/** The order ticket: what to trade, what it comes to, and what became of it. What is typed belongs to the page. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { TRADING_FEE_BPS } from "../../../engine/limits.ts";
import { balance, onOrderUpdate, openOrders, positions } from "../account-state.ts";
import { errorMessage } from "../error-messages.ts";
import { sessionState } from "../session.ts";
import { streamState } from "../stream.ts";
import type { Limits, Market, Order, Outcome, PlaceOrder } from "../types.ts";
import { Field, SegmentedControl, Select } from "../ui/fields.tsx";
import { ErrorNotice, Notice } from "../ui/notices.tsx";
import { toast } from "../ui/toast.tsx";
import { type Fetched, useAction } from "../ui/use-data.ts";
import { focusFirstProblem } from "../ui/validation.ts";
import { combineDepth, impliedLadder, type Ladder } from "./depth.ts";
import { closedReason } from "./market-status.ts";
import { type Draft, maxQuantity, type OrderPreview, previewOrder } from "./order-preview.ts";
import { OrderSummary } from "./order-summary.tsx";
import { PlacedOrder } from "./placed-order.tsx";
import { newOrder, pendingOrders, sendOrder } from "./send-order.ts";
import { AvailableFunds, PriceHint, TimeInForceFields } from "./ticket-fields.tsx";
import { SubmitButton } from "./ticket-submit.tsx";

export interface TicketProps {
  readonly market: Market;
  readonly outcome: Outcome;
  readonly books: ReadonlyMap<number, Ladder>;
  readonly limits: Fetched<Limits>;
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  readonly onOutcome: (id: number) => void;
}

/** Updates of orders that may be of the last one, before its answer says which it is. */
const MAX_HEARD = 200;

export function Ticket(props: TicketProps) {
  const { market, outcome, books, limits, draft, change, onOutcome } = props;
  const [hasTried, setTried] = useState(false);
  const [placed, setPlaced] = useState<Order | null>(null);
  const own = (openOrders.value ?? []).filter(({ market_id }) => market_id === market.id);
  const isBuy = draft.side === "buy";
  const areBooksKnown = streamState.value === "live" && books.size === market.outcomes.length;
  const offers = useMemo(() => {
    const ids = market.outcomes.map(({ id }) => id);
    const side = isBuy ? "asks" : "bids";
    const direct = books.get(outcome.id);
    if (direct === undefined || !areBooksKnown) return null;
    return combineDepth(direct[side], impliedLadder(books, ids, outcome.id)[side], side);
  }, [books, outcome.id, isBuy, areBooksKnown]);
  const around = {
    marketId: market.id,
    outcome,
    offers,
    available: balance.value?.available ?? null,
    position: positions.value?.get(outcome.id),
    ownOrders: own,
    feeBps: limits.data?.fees.trading_fee ?? TRADING_FEE_BPS,
    activity: limits.data?.daily_activity ?? null,
    closesAt: market.closes_at,
    now: Date.now(),
  };
  const plan = previewOrder(draft, around);
  const problem = (field: keyof OrderPreview["problems"]): string | null =>
    plan.problems[field] ?? (hasTried ? plan.missing[field] : null);
  const heard = useRef(new Map<number, Order>());
  const isThere = useRef(true);
  useEffect(() => {
    isThere.current = true;
    const stop = onOrderUpdate((order) => {
      if (order.market_id !== market.id) return;
      heard.current.set(order.id, order);
      setPlaced((before) => (before?.id === order.id ? order : before));
    });
    return () => {
      isThere.current = false;
      stop();
    };
  }, [market.id]);
  const { run, error } = useAction(async (body: PlaceOrder) => {
    setPlaced(null);
    if (heard.current.size > MAX_HEARD) heard.current.clear();
    try {
      const order = await sendOrder(body);
      if (order === null) return;
      // The stream may have been faster.
      setPlaced(heard.current.get(order.id) ?? openOrders.peek()?.find(({ id }) => id === order.id) ?? order);
      setTried(false);
      change({ quantity: "" });
    } catch (thrown) {
      if (!isThere.current) toast(errorMessage(thrown), true);
      throw thrown;
    }
    limits.reload();
  });
  const shut = closedReason(market);
  const pending = pendingOrders.value.get(market.id);
  const isBusy = pending?.isBusy ?? false;
  const unanswered = pending === undefined || pending.isBusy ? null : pending.body;
  const send = (event: Event): void => {
    event.preventDefault();
    if (isBusy) return;
    setTried(true);
    if (unanswered !== null) void run(unanswered);
    else if (plan.body !== null && shut === null) void run(newOrder(plan.body));
    else if (shut === null) focusFirstProblem(event.currentTarget as HTMLElement);
  };
  const most = maxQuantity(draft, around);
  return (
    <form class="ticket" noValidate onSubmit={send}>
      {shut !== null && <Notice kind="warn">{shut}</Notice>}
      <fieldset class="plain" disabled={pending !== undefined || shut !== null}>
        <legend class="hidden">Order</legend>
        <SegmentedControl
          label="Buy or sell"
          value={draft.side}
          options={[
            ["buy", "Buy"],
            ["sell", "Sell"],
          ]}
          tones={{ buy: "good", sell: "bad" }}
          onChange={(side) => change({ side })}
        />
        <Select
          label="Outcome"
          value={String(outcome.id)}
          options={market.outcomes.map(({ id, name }) => [String(id), name] as const)}
          onChange={(id) => onOutcome(Number(id))}
        />
        <SegmentedControl
          label="Kind of order"
          value={draft.kind}
          options={[
            ["limit", "Limit"],
            ["market", "Market"],
            ["post_only", "Post-only"],
          ]}
          onChange={(kind) => change({ kind })}
        />
        <Field
          label={draft.kind === "market" ? "Worst price (optional)" : "Price"}
          unit="%"
          inputMode="decimal"
          autoComplete="off"
          value={draft.price}
          onInput={(price) => change({ price })}
          problem={problem("price")}
          hint={<PriceHint draft={draft} best={offers?.[0]?.price ?? null} change={change} plan={plan} />}
        />
        <Field
          label="Shares"
          inputMode="numeric"
          autoComplete="off"
          value={draft.quantity}
          onInput={(quantity) => change({ quantity })}
          problem={problem("quantity")}
        />
        {sessionState.value === "in" && <AvailableFunds draft={draft} most={most} around={around} change={change} />}
        <TimeInForceFields draft={draft} change={change} problem={problem("expires")} />
      </fieldset>
      {plan.summary !== null && offers === null && (
        <p class="hint">The books aren't known at the moment: what it trades at once shows when it is placed.</p>
      )}
      {plan.summary !== null && offers !== null && (
        <OrderSummary draft={draft} summary={plan.summary} outcome={outcome} />
      )}
      {plan.warnings.map((text) => (
        <p key={text} class="warning">
          {text}
        </p>
      ))}
      <SubmitButton
        draft={draft}
        plan={plan}
        outcome={outcome}
        isBusy={isBusy}
        isShut={shut !== null}
        unanswered={unanswered}
      />
      {unanswered === null ? (
        <ErrorNotice error={error} />
      ) : (
        <Notice kind="warn">
          The exchange didn't answer, so it isn't known yet whether your order was placed. Asking again is safe: it is
          the same order and can't trade twice.
        </Notice>
      )}
      <div aria-live="polite">{placed !== null && <PlacedOrder order={placed} outcomes={market.outcomes} />}</div>
    </form>
  );
}
