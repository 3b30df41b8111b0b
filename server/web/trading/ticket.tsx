/** The order ticket: what to trade, what it comes to, and what became of it. What is typed belongs to the page. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { MICRO_PER_BPS, TRADING_FEE_BPS } from "../../../engine/limits.ts";
import { balance, onOrder, openOrders, positions } from "../account-state.ts";
import { explain, reason } from "../error-messages.ts";
import { money, percent, shares, signedMoney, words } from "../format.ts";
import { here, href } from "../router.ts";
import { sessionState, user } from "../session.ts";
import { liveState } from "../stream.ts";
import type { Limits, Market, Order, Outcome, PlaceOrder } from "../types.ts";
import { Choice, Field, Select } from "../ui/fields.tsx";
import { ErrorNotice, Notice } from "../ui/notices.tsx";
import { toast } from "../ui/toast.tsx";
import { type Loaded, useAction } from "../ui/use-data.ts";
import { focusProblem } from "../ui/validation.ts";
import { impliedLadder, type Ladder, offersOf } from "./depth.ts";
import { priceText } from "./open-orders.tsx";
import {
  type Draft,
  freeShares,
  mostShares,
  type Plan,
  planOrder,
  type Summary,
  timeInForceOf,
} from "./order-preview.ts";
import { newOrder, pendingOrders, sendOrder } from "./send-order.ts";

export interface TicketProps {
  readonly market: Market;
  readonly outcome: Outcome;
  readonly books: ReadonlyMap<number, Ladder>;
  readonly limits: Loaded<Limits>;
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  readonly onOutcome: (id: number) => void;
}

/** Updates of orders that may be of the last one, before its answer says which it is. */
const MAX_HEARD = 200;

/** Nobody can trade in it now, and why; null where one can. */
export function closedReason({ status }: Market): string | null {
  if (status === "open") return null;
  if (status === "halted") return "Trading is halted at the moment. Open orders rest on and can be canceled.";
  if (status === "resolved" || status === "voided") return "This market is over: trading has ended.";
  return status === "proposed" ? "This market was proposed and isn't open yet." : "This market is closed for trading.";
}

export function Ticket(props: TicketProps) {
  const { market, outcome, books, limits, draft, change, onOutcome } = props;
  const [hasTried, setTried] = useState(false);
  const [placed, setPlaced] = useState<Order | null>(null);
  const own = (openOrders.value ?? []).filter(({ market_id }) => market_id === market.id);
  const isBuy = draft.side === "buy";
  const areBooksKnown = liveState.value === "live" && books.size === market.outcomes.length;
  const offers = useMemo(() => {
    const ids = market.outcomes.map(({ id }) => id);
    const side = isBuy ? "asks" : "bids";
    const direct = books.get(outcome.id);
    if (direct === undefined || !areBooksKnown) return null;
    return offersOf(direct[side], impliedLadder(books, ids, outcome.id)[side], side);
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
  const plan = planOrder(draft, around);
  const problem = (field: keyof Plan["problems"]): string | null =>
    plan.problems[field] ?? (hasTried ? plan.missing[field] : null);
  const heard = useRef(new Map<number, Order>());
  const isThere = useRef(true);
  useEffect(() => {
    isThere.current = true;
    const stop = onOrder((order) => {
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
      if (!isThere.current) toast(explain(thrown), true);
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
    else if (shut === null) focusProblem(event.currentTarget as HTMLElement);
  };
  const most = mostShares(draft, around);
  return (
    <form class="ticket" noValidate onSubmit={send}>
      {shut !== null && <Notice kind="warn">{shut}</Notice>}
      <fieldset class="plain" disabled={pending !== undefined || shut !== null}>
        <legend class="hidden">Order</legend>
        <Choice
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
        <Choice
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
        {sessionState.value === "in" && <Funds draft={draft} most={most} around={around} change={change} />}
        <More draft={draft} change={change} problem={problem("expires")} />
      </fieldset>
      {plan.summary !== null && offers === null && (
        <p class="hint">The books aren't known at the moment: what it trades at once shows when it is placed.</p>
      )}
      {plan.summary !== null && offers !== null && <Outlook draft={draft} summary={plan.summary} outcome={outcome} />}
      {plan.warnings.map((text) => (
        <p key={text} class="warning">
          {text}
        </p>
      ))}
      <Submit
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
      <div aria-live="polite">{placed !== null && <Placed order={placed} outcomes={market.outcomes} />}</div>
    </form>
  );
}

function PriceHint({
  draft,
  best,
  change,
  plan,
}: {
  draft: Draft;
  best: number | null;
  change: TicketProps["change"];
  plan: Plan;
}) {
  const worst = plan.summary?.traded.worstPrice ?? null;
  const offered = draft.kind === "market" ? worst : draft.kind === "limit" ? best : null;
  if (offered === null || priceText(offered) === draft.price) return null;
  const what =
    draft.kind === "market" ? "The last share would trade at" : draft.side === "buy" ? "Best offer" : "Best bid";
  return (
    <>
      {what} {percent(offered)}.{" "}
      <button type="button" class="link" onClick={() => change({ price: priceText(offered) })}>
        Use it
      </button>
    </>
  );
}

function Funds({
  draft,
  most,
  around,
  change,
}: {
  draft: Draft;
  most: number | null;
  around: Parameters<typeof mostShares>[1];
  change: TicketProps["change"];
}) {
  const isBuy = draft.side === "buy";
  return (
    <p class="funds">
      <span>
        {isBuy ? "Available" : "Free to sell"}{" "}
        <b class="number">
          {isBuy
            ? `${around.available === null ? "–" : money(around.available)} USDC`
            : `${shares(freeShares(around.position))} shares`}
        </b>
      </span>
      <button
        type="button"
        class="small"
        disabled={most === null || most === 0}
        title={most === null ? "Type a price first" : undefined}
        onClick={() => change({ quantity: String(most) })}
      >
        Max
      </button>
    </p>
  );
}

function More({ draft, change, problem }: { draft: Draft; change: TicketProps["change"]; problem: string | null }) {
  const options =
    draft.kind === "market"
      ? ([
          ["ioc", "Take what is there, cancel the rest"],
          ["fok", "All or nothing (FOK)"],
        ] as const)
      : draft.kind === "post_only"
        ? ([
            ["gtc", "Until canceled (GTC)"],
            ["gtd", "Until a date (GTD)"],
          ] as const)
        : ([
            ["gtc", "Until canceled (GTC)"],
            ["gtd", "Until a date (GTD)"],
            ["ioc", "Immediate or cancel (IOC)"],
            ["fok", "All or nothing (FOK)"],
          ] as const);
  const force = timeInForceOf(draft);
  return (
    <details class="more-terms" open={force === "gtd"}>
      <summary>More: {options.find(([each]) => each === force)?.[1]}</summary>
      <Select
        label="How long it stands"
        value={force}
        options={options}
        onChange={(each) => change({ timeInForce: each })}
      />
      {force === "gtd" && (
        <Field
          label="Ends at"
          type="datetime-local"
          value={draft.expires}
          onInput={(expires) => change({ expires })}
          problem={problem}
          hint="In your own time zone."
        />
      )}
    </details>
  );
}

/** What it comes to. */
function Outlook({ draft, summary, outcome }: { draft: Draft; summary: Summary; outcome: Outcome }) {
  const { traded, resting, notional, fee, hold, payout, profit, quantity } = summary;
  const isBuy = draft.side === "buy";
  const average = traded.quantity === 0 ? null : Math.round(traded.notional / traded.quantity / MICRO_PER_BPS);
  const counted = traded.quantity + resting;
  return (
    <dl class="outlook">
      {traded.quantity > 0 && (
        <>
          <dt>Trades at once</dt>
          <dd>
            {traded.quantity === quantity ? "all" : `${shares(traded.quantity)} of ${shares(quantity)}`}, about{" "}
            {percent(average)} each
          </dd>
        </>
      )}
      {resting > 0 && (
        <>
          <dt>Waits in the book</dt>
          <dd>{resting === quantity ? "all" : `${shares(resting)} shares`}</dd>
        </>
      )}
      <dt>{isBuy ? "Cost" : "Proceeds"}</dt>
      <dd>{money(notional)} USDC</dd>
      {!isBuy && (
        <>
          <dt>Trading fee</dt>
          <dd>−{money(fee)} USDC</dd>
          <dt>You receive</dt>
          <dd>
            <b>{money(notional - fee)} USDC</b>
          </dd>
        </>
      )}
      {isBuy && (
        <>
          <dt>Trading fee</dt>
          <dd>none for buyers</dd>
          {hold > notional && (
            <>
              <dt>Set aside meanwhile</dt>
              <dd>{money(hold)} USDC</dd>
            </>
          )}
          {counted > 0 && (
            <>
              <dt>Pays if {outcome.name}</dt>
              <dd>{money(payout)} USDC</dd>
            </>
          )}
        </>
      )}
      {profit !== null && counted > 0 && (
        <>
          <dt>{isBuy ? "Profit then" : "Profit against what you paid"}</dt>
          <dd>
            <b class={profit >= 0 ? "up" : "down"}>{signedMoney(profit)} USDC</b>
          </dd>
        </>
      )}
      {traded.isImplied && (
        <>
          <dt class="wide">
            Part of it comes from orders for the other outcomes, by {isBuy ? "minting" : "merging"} sets.
          </dt>
          <dd />
        </>
      )}
    </dl>
  );
}

function Submit({
  draft,
  plan,
  outcome,
  isBusy,
  isShut,
  unanswered,
}: {
  draft: Draft;
  plan: Plan;
  outcome: Outcome;
  isBusy: boolean;
  isShut: boolean;
  unanswered: PlaceOrder | null;
}) {
  if (sessionState.value === "out") {
    return (
      <p class="row gate">
        <a class="button primary" href={href(`/sign-in?to=${encodeURIComponent(here())}`)}>
          Sign in to trade
        </a>
        <a class="button" href={href("/sign-up")}>
          Create an account
        </a>
      </p>
    );
  }
  if (user.value !== null && user.value.kyc_tier === 0) {
    return (
      <Notice>
        To trade, verify your phone number first. <a href={href("/account")}>Verify it</a>
      </Notice>
    );
  }
  const isBuy = draft.side === "buy";
  const quantity = plan.summary === null ? "" : ` ${shares(plan.summary.quantity)}`;
  const text =
    unanswered !== null
      ? isBusy
        ? "Asking again…"
        : "Ask again"
      : isBusy
        ? "Placing…"
        : `${isBuy ? "Buy" : "Sell"}${quantity} ${outcome.name}`;
  return (
    <button type="submit" class={isBuy ? "buy send" : "sell send"} disabled={isBusy || isShut || user.value === null}>
      {text}
    </button>
  );
}

/** What became of the last order, as far as it is known. */
function Placed({ order, outcomes }: { order: Order; outcomes: readonly Outcome[] }) {
  const { status, filled, quantity, price } = order;
  const name = `Order ${order.id}`;
  if (status === "queued") return <p class="notice info">{name} is placed.</p>;
  if (status === "open") {
    return (
      <p class="notice info">
        {name} waits in the book at {percent(price)}.
      </p>
    );
  }
  if (status === "filled") {
    return (
      <p class="notice good">
        {name}: all {shares(quantity)} shares {order.side === 1 ? "bought" : "sold"}.
      </p>
    );
  }
  if (status === "partially_filled") {
    return (
      <p class="notice good">
        {name}: {shares(filled)} of {shares(quantity)} shares filled, the rest waits at {percent(price)}.
      </p>
    );
  }
  return (
    <p class={filled > 0 ? "notice good" : "notice warn"}>
      {name}
      {order.reason === "user" ? "" : ` ${words(status as string)}`}: {reason(order.reason as string)}.{" "}
      {filled > 0
        ? `${shares(filled)} of ${shares(quantity)} shares were filled.`
        : `No shares of ${outcomes.find(({ id }) => id === order.outcome_id)?.name} were traded.`}
    </p>
  );
}
