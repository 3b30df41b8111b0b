/** The order ticket: its fields, the preview of the order, its submission and the result. The page owns the draft. */

import { useEffect, useRef, useState } from "preact/hooks";
import { TRADING_FEE_BPS } from "../../../engine/limits.ts";
import { capitalized, cents, money, SHARE_MICRO, shares } from "../../util/format.ts";
import { balance, openOrders, positions } from "../account-state.ts";
import { exchangeTime } from "../clock.ts";
import { errorMessage, reasonText } from "../error-messages.ts";
import { sessionState } from "../session.ts";
import { settings } from "../settings.ts";
import { streamState } from "../stream.ts";
import type { Limits, Market, Order, Outcome, PlaceOrder } from "../types.ts";
import { Dialog } from "../ui/dialog.tsx";
import { useKeys } from "../ui/keys.ts";
import { Pairs } from "../ui/pairs.tsx";
import { toast } from "../ui/toast.tsx";
import type { Children, Fetched } from "../ui/use-data.ts";
import { useOnChange } from "../ui/use-on-change.ts";
import { focusFirstProblem } from "../ui/validation.ts";
import type { Depth, DepthLevel } from "./depth.ts";
import { EndedMarket } from "./ended-market.tsx";
import { averageBps } from "./fills.ts";
import { forgetDraft, keepDraft } from "./kept-draft.ts";
import { type ChangeDraft, type Draft, type OrderPreview, type PreviewContext, previewOrder } from "./order-preview.ts";
import { isUnfilled, OrderResult } from "./order-result.tsx";
import { dismissPlaced, newOrder, pendingOrders, placedOrders, sendOrder } from "./send-order.ts";
import { TicketFields, TicketHead } from "./ticket-fields.tsx";
import { type Refused, sendText, TicketFooter } from "./ticket-footer.tsx";

export interface TicketProps {
  readonly market: Market;
  readonly outcome: Outcome;
  /** Of the chosen outcome; null until all books are known. */
  readonly depth: Depth | null;
  readonly limits: Fetched<Limits>;
  readonly draft: Draft;
  readonly change: ChangeDraft;
  readonly onOutcome: (id: number) => void;
  /** At the end of the head, such as a button that closes the sheet. */
  readonly corner?: Children;
}

export function Ticket(props: TicketProps) {
  const { market, outcome, draft, change } = props;
  const placed = placedOrders.value.get(market.id);
  const done = (): void => {
    const shown = placedOrders.peek().get(market.id);
    if (shown === undefined) return;
    dismissPlaced(market.id);
    // What ended without a fill can be sent again.
    if (!isUnfilled(shown.order)) change({ amount: "" });
  };
  useEffect(() => done, [market.id]);
  useOnChange(done, [draft, outcome.id]);
  if (placed !== undefined && !isUnfilled(placed.order)) {
    return <OrderResult placed={placed} market={market} onDone={done} corner={props.corner} />;
  }
  if (market.status !== "open") return <EndedMarket market={market} />;
  return <OrderForm {...props} unfilled={placed?.order ?? null} />;
}

function OrderForm(props: TicketProps & { unfilled: Order | null }) {
  const { market, outcome, draft, change, onOutcome, unfilled, corner } = props;
  const form = useRef<HTMLFormElement>(null);
  const context = contextOf(props);
  const preview = previewOrder(draft, context);
  const { refused, hasTried, setTried, run } = useSubmission(props);
  const [asked, setAsked] = useState<PlaceOrder | null>(null);
  const pending = pendingOrders.value.get(market.id);
  const isBusy = pending?.isBusy ?? false;
  const unanswered = pending === undefined || pending.isBusy ? null : pending.body;
  useGuestDraft(props, preview);
  useTicketKeys(props, form);
  const place = (body: OrderPreview["body"]): void => {
    if (body === null) return;
    if (settings.asksAlways.peek()) setAsked(newOrder(body));
    else void run(newOrder(body));
  };
  const send = (event: Event): void => {
    event.preventDefault();
    if (isBusy || sessionState.peek() !== "in") return;
    setTried(true);
    if (unanswered !== null) void run(unanswered);
    else if (refused !== null) void run(refused.body);
    else if (preview.far !== null && settings.asksWhenFar.peek()) return;
    else if (preview.body === null) focusFirstProblem(event.currentTarget as HTMLElement);
    else place(preview.body);
  };
  return (
    <form class="ticket" noValidate onSubmit={send} ref={form}>
      <TicketHead draft={draft} change={change}>
        {corner}
      </TicketHead>
      <div class="ticket-body">
        <fieldset disabled={pending !== undefined}>
          <legend class="hidden">Order</legend>
          <TicketFields {...{ draft, change, preview, context, hasTried, onOutcome }} outcomes={market.outcomes} />
        </fieldset>
      </div>
      <TicketFooter
        {...{ draft, change, preview, context, onOutcome, isBusy, unanswered, refused }}
        outcomes={market.outcomes}
        notPlaced={unfilled === null ? null : notPlacedText(unfilled)}
        sendFar={() => preview.body !== null && void run(newOrder(preview.body))}
      />
      {asked !== null && (
        <Confirmation
          {...{ draft, preview, outcome, market }}
          onClose={() => setAsked(null)}
          onSend={() => {
            setAsked(null);
            void run(asked);
          }}
        />
      )}
    </form>
  );
}

/** Null if the user canceled it. */
const notPlacedText = ({ reason }: Order): string | null =>
  reason === "user" ? null : `${capitalized(reasonText(reason))}. Nothing was charged.`;

/** The side of the book that the order fills against; null while the stream or a book is missing. */
const oppositeDepth = ({ depth, draft }: TicketProps): readonly DepthLevel[] | null =>
  streamState.value === "live" ? (depth?.[draft.side === "buy" ? "asks" : "bids"] ?? null) : null;

function contextOf(props: TicketProps): PreviewContext {
  const { market, outcome } = props;
  const limits = props.limits.data;
  return {
    marketId: market.id,
    outcome,
    depth: oppositeDepth(props),
    isStale: streamState.value === "stale",
    available: balance.value?.available ?? null,
    position: positions.value?.get(outcome.id),
    ownOrders: (openOrders.value ?? []).filter(({ market_id }) => market_id === market.id),
    feeBps: limits?.fees.trading_fee ?? TRADING_FEE_BPS,
    activity: limits?.daily_activity ?? null,
    closesAt: market.closes_at,
    now: exchangeTime(),
    slippageBps: settings.slippageBps.value,
  };
}

/** Sends orders. What was refused is forgotten once the user changes the order. */
function useSubmission({ outcome, limits, draft }: TicketProps) {
  const [hasTried, setTried] = useState(false);
  const [refused, setRefused] = useState<Refused | null>(null);
  const isMounted = useRef(true);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
    };
  }, []);
  useOnChange(() => setRefused(null), [draft, outcome.id]);
  const run = async (body: PlaceOrder): Promise<void> => {
    setRefused(null);
    try {
      if (!(await sendOrder(body))) return;
      setTried(false);
      forgetDraft();
    } catch (error) {
      if (isMounted.current) setRefused({ error, body });
      else toast(errorMessage(error), true);
    }
    limits.reload();
  };
  return { refused, hasTried, setTried, run };
}

/** Keeps what a guest has entered until they have an account. */
function useGuestDraft({ market, outcome, draft }: TicketProps, { summary, bound }: OrderPreview): void {
  const isGuest = sessionState.value === "out";
  useEffect(() => {
    if (!isGuest || draft.amount === "") return;
    const average = summary === null ? bound : averageBps(summary);
    const count = summary === null ? "" : `${shares(summary.quantity)} `;
    const text = `${count}${outcome.name}${average === null ? "" : ` at ${cents(average)}`}`;
    keepDraft({ marketId: market.id, outcomeId: outcome.id, draft, text });
  }, [isGuest, draft, outcome.id]);
}

function useTicketKeys({ market, change, onOutcome }: TicketProps, form: { current: HTMLFormElement | null }): void {
  const { outcomes } = market;
  const choose = (index: number): unknown => {
    const found = outcomes[index];
    return found === undefined ? false : onOutcome(found.id);
  };
  const next = (outcome: number): unknown => choose((outcome + 1) % outcomes.length);
  useKeys({
    b: () => change({ side: "buy", amount: "" }),
    s: () => change({ side: "sell", amount: "" }),
    m: () => change({ kind: "market" }),
    l: () => change({ kind: "limit" }),
    y: () => choose(0),
    n: () => next(0),
    Enter: () => form.current?.requestSubmit(),
    Escape: () => change({ amount: "", price: "" }),
  });
}

/** Asks before the order is sent, if the user wants that. */
function Confirmation({
  draft,
  preview,
  outcome,
  market,
  onClose,
  onSend,
}: {
  draft: Draft;
  preview: OrderPreview;
  outcome: Outcome;
  market: Market;
  onClose: () => void;
  onSend: () => void;
}) {
  const { summary, bound } = preview;
  if (summary === null) return null;
  const { quantity, fills, notional, fee, hold } = summary;
  const isBuy = draft.side === "buy";
  const lines: [string, string][] = [
    ["Expected price", cents(averageBps(fills) ?? bound)],
    [isBuy ? "At most" : "At least", cents(bound)],
    [isBuy ? "Expected cost" : "You get about", `${money(notional - fee)} USDC`],
    ...(isBuy
      ? ([
          ["Held until it fills", `${money(hold)} USDC`],
          [`Pays if ${outcome.name}`, `${money(quantity * SHARE_MICRO)} USDC`],
        ] as [string, string][])
      : ([["Fee", `${money(fee)} USDC`]] as [string, string][])),
  ];
  return (
    <Dialog title={`${isBuy ? "Buy" : "Sell"} ${shares(quantity)} shares of ${outcome.name}?`} onClose={onClose}>
      <p>{market.question}</p>
      <Pairs pairs={lines} />
      <div class="row halves">
        <button type="button" onClick={onClose}>
          Back
        </button>
        <button type="button" class={draft.side} translate={false} onClick={onSend}>
          {sendText(draft, preview, outcome)}
        </button>
      </div>
    </Dialog>
  );
}
