/** The page of a market: outcomes, order book, chart, trades, order ticket, and the user's positions and orders. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import "./market.css";
import { cents } from "../../util/format.ts";
import { openOrders } from "../account-state.ts";
import { ApiError } from "../api.ts";
import { errorMessage } from "../error-messages.ts";
import { cacheMarkets } from "../market-cache.ts";
import { isBinary, isRunning } from "../market-facts.ts";
import { useLiveMarket } from "../market-tickers.ts";
import { search, setSearch } from "../router.ts";
import { request, sessionState } from "../session.ts";
import { settings } from "../settings.ts";
import { subscribe } from "../stream.ts";
import { useBooks } from "../trading/books.ts";
import { depthOf } from "../trading/depth.ts";
import { keptDraft } from "../trading/kept-draft.ts";
import { OrderBook } from "../trading/order-book.tsx";
import { priceInput } from "../trading/order-name.tsx";
import { type Draft, EMPTY_DRAFT } from "../trading/order-preview.ts";
import { PriceChart } from "../trading/price-chart.tsx";
import { RecentTrades } from "../trading/recent-trades.tsx";
import { Ticket, type TicketProps } from "../trading/ticket.tsx";
import type { Limits, Market, Outcome, Trade } from "../types.ts";
import { Sheet } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { ErrorNotice, Loading, NotFound } from "../ui/notices.tsx";
import { useBatched } from "../ui/throttle.ts";
import { toast } from "../ui/toast.tsx";
import { useAfterPaint } from "../ui/use-after-paint.ts";
import { type Children, useFetch } from "../ui/use-data.ts";
import { useEdge } from "../ui/use-edge.ts";
import { PHONE, useMedia, WIDE } from "../ui/use-media.ts";
import { usePart } from "../ui/use-part.ts";
import { MarketFigures, MarketHeader } from "./market/header.tsx";
import { Outcomes } from "./market/outcomes.tsx";
import { type Part, PartTabs } from "./market/part-tabs.tsx";
import { Rules } from "./market/rules.tsx";

interface MarketOptions {
  param: string;
  /** What stands below the outcomes on the page of an event, which has no more of the market than its prices. */
  others?: Children;
}

export default function MarketPage({ param }: { param: string }) {
  return <MarketBy param={param} />;
}

/** The market with an id or a slug, kept up to date. */
export function MarketBy({ param, others }: MarketOptions) {
  const loaded = useFetch(
    (signal) => request<Market>("GET", `/markets/${encodeURIComponent(param)}`, { signal }),
    param,
  );
  const { data, error, reload, set } = loaded;
  useEffect(() => {
    if (data === null) return;
    if (others === undefined) document.title = data.question;
    cacheMarkets([data]);
  }, [data?.id]);
  const add = useBatched((update: readonly MarketUpdate[]) => set((market) => update.reduce(applyUpdate, market)));
  useEffect(() => {
    if (data === null) return;
    const unsubscribers = [
      subscribe("markets", data.id, null, ({ data: market }) => add({ market })),
      subscribe("trades", data.id, null, ({ data: trade }) => add({ trade }), reload),
    ];
    return () => {
      for (const unsubscribe of unsubscribers) unsubscribe();
    };
  }, [data?.id]);
  if (error instanceof ApiError && error.status === 404) return <NotFound what="market" />;
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading isPage what="Loading the market" />}
      {data !== null && <MarketView key={data.id} market={data} others={others} />}
    </>
  );
}

type MarketUpdate = { readonly market: Market } | { readonly trade: Trade };

/** Applies a stream event. It may belong to the market that was shown before. */
function applyUpdate(market: Market, update: MarketUpdate): Market {
  if ("market" in update) return update.market.id === market.id ? update.market : market;
  const { market_id, match_type, quantity } = update.trade;
  // Mint creates complete sets, merge redeems them.
  if (market_id !== market.id || match_type === "direct") return market;
  return { ...market, open_interest: market.open_interest + (match_type === "mint" ? quantity : -quantity) };
}

function MarketView({ market: given, others }: { market: Market; others: Children }) {
  const isOfEvent = others !== undefined;
  const market = useLiveMarket(given);
  const books = useBooks(given);
  const { outcomes } = market;
  const outcome = chosenOutcome(market);
  const depth = useMemo(
    () =>
      depthOf(
        books,
        outcomes.map(({ id }) => id),
        outcome.id,
      ),
    [books, outcome.id],
  );
  const [draft, setDraft] = useState<Draft>(() => firstDraft(given.id));
  const change = (changes: Partial<Draft>): void => setDraft((before) => ({ ...before, ...changes }));
  const choose = (id: number): void => setSearch({ outcome: String(id) });
  const isSignedIn = sessionState.value === "in";
  const OwnTrading = useOwnTrading(isSignedIn && !isOfEvent);
  const limits = useFetch<Limits>(isSignedIn ? (signal) => request("GET", "/me/limits", { signal }) : null, "limits");
  const open = openOrders.value;
  const own = useMemo(() => (open ?? []).filter(({ market_id }) => market_id === market.id), [open, market.id]);
  // What answers the user is painted first: the list and the ticket. The book, the trades and the chart take longer.
  const drawnId = useAfterPaint(outcome.id);
  const drawn = outcomes.find(({ id }) => id === drawnId) ?? outcome;
  const lastDepth = useRef(depth);
  if (drawn === outcome) lastDepth.current = depth;
  const drawnDepth = lastDepth.current;
  const ownOfDrawn = useMemo(() => own.filter(({ outcome_id }) => outcome_id === drawn.id), [own, drawn.id]);
  // They subscribe to their own updates: don't render them on every price change.
  const trades = useMemo(() => <RecentTrades market={given} outcome={drawn} />, [given.id, drawn.id]);
  const ticket = useTicketPlace({ market, outcome, depth, limits, draft, change, onOutcome: choose });
  const pickPrice = (price: number): void => {
    change({ price: priceInput(price), ...(draft.kind === "market" ? { kind: "limit" as const } : {}) });
    ticket.show();
  };
  const trade = (id: number, side: Draft["side"]): void => {
    choose(id);
    change({ side });
    ticket.show();
  };
  // For parts that aren't rendered with every key that is pressed in the ticket.
  const latest = useRef({ pickPrice, trade });
  latest.current = { pickPrice, trade };
  const isPhone = useMedia(PHONE);
  const [part, setPart] = useState<string | null>(null);
  const header = useMemo(() => (isOfEvent ? null : <MarketHeader market={market} />), [market, isOfEvent]);
  const chart = useMemo(
    () => <PriceChart market={market} outcome={drawn} depth={drawnDepth} isNamed={isOfEvent} />,
    [market, drawn, drawnDepth, isOfEvent],
  );
  const list = useMemo(
    () =>
      isBinary(market) ? null : (
        <Outcomes
          market={market}
          chosen={outcome.id}
          isNamed={isOfEvent}
          onChoose={choose}
          onTrade={(id, side) => latest.current.trade(id, side)}
        />
      ),
    [market, outcome.id, isOfEvent],
  );
  const ladder = books.get(drawn.id) ?? null;
  const book = useMemo(
    () =>
      isRunning(market) && (
        <OrderBook
          market={market}
          outcome={drawn}
          ladder={ladder}
          depth={drawnDepth}
          ownOrders={ownOfDrawn}
          onOutcome={choose}
          onPick={(price) => latest.current.pickPrice(price)}
        />
      ),
    [market, drawn, ladder, drawnDepth, ownOfDrawn],
  );
  /** On a phone, one part at a time. */
  const parts = useMemo<readonly Part[]>(
    () =>
      isPhone
        ? [
            {
              ...{ name: "rules", text: "Rules" },
              content: (
                <>
                  <Rules market={market} />
                  <MarketFigures market={market} hasClose={false} />
                </>
              ),
            },
            ...(book === false ? [] : [{ name: "book", text: "Book", content: book }]),
            { name: "trades", text: "Trades", content: trades },
          ]
        : [],
    [isPhone, market, book, trades],
  );
  const ownTrading = useMemo(
    () =>
      isSignedIn && OwnTrading !== null ? (
        <OwnTrading
          market={market}
          orders={own}
          onSell={(id) => latest.current.trade(id, "sell")}
          before={parts}
          chosen={part}
          onChoose={setPart}
        />
      ) : (
        parts.length > 0 && (
          <section class="panel" aria-label="About this market">
            <PartTabs label="About this market" parts={parts} current={part} onChange={setPart} />
          </section>
        )
      ),
    [isSignedIn, OwnTrading, market, own, parts, part],
  );
  return (
    <div class={isOfEvent ? "market of-event" : "market"}>
      {header}
      <div class="market-columns">
        <div class="top-part">
          {chart}
          {list}
          {others}
        </div>
        {!isPhone && !isOfEvent && (
          <div class="book-part">
            {book}
            {trades}
          </div>
        )}
        {!isOfEvent && (
          <div class="own-part">
            {!isPhone && <Rules market={market} />}
            {ownTrading}
          </div>
        )}
        {ticket.aside}
      </div>
      {ticket.bar}
    </div>
  );
}

const loadOwnTrading = () => import("./market/own-trading.tsx").then(({ OwnTrading }) => OwnTrading);

/** The part of the page that guests don't see. */
function useOwnTrading(isWanted: boolean) {
  const { part, error } = usePart(isWanted ? loadOwnTrading : null);
  useEffect(() => {
    if (error !== null) toast(errorMessage(error), true);
  }, [error]);
  return part;
}

/** The order that a guest prepared before they signed up; else what the address asks for. */
function firstDraft(marketId: number): Draft {
  const kept = keptDraft();
  if (kept?.marketId === marketId) return { ...EMPTY_DRAFT, ...kept.draft };
  return { ...EMPTY_DRAFT, side: search.peek().get("side") === "sell" ? "sell" : "buy" };
}

/** The outcome that the address names, the first one by default. */
function chosenOutcome({ outcomes }: Market): Outcome {
  const [first] = outcomes;
  if (first === undefined) throw new Error("a market has outcomes");
  return outcomes.find(({ id }) => id === Number(search.value.get("outcome"))) ?? first;
}

interface TicketPlace {
  /** Beside the market on wide screens, else null. */
  readonly aside: Children;
  /** At the bottom of narrow screens, with the dialog it opens, else null. */
  readonly bar: Children;
  /** Brings the ticket into view. */
  readonly show: () => void;
}

/** Places the ticket beside the market on wide screens, and in a dialog on narrow ones. */
function useTicketPlace(props: TicketProps): TicketPlace {
  const isWide = useMedia(WIDE);
  const [isOpen, setOpen] = useState(false);
  const isTradable = props.market.status === "open";
  const aside = useRef<HTMLDivElement>(null);
  const show = (): void => {
    if (isWide) aside.current?.scrollIntoView({ block: "nearest" });
    else setOpen(true);
  };
  // What has become of a market is part of its page, at any width.
  if (isWide || (!isTradable && !isOpen)) {
    const column = (
      <div class="ticket-part" ref={aside}>
        <aside class="panel" aria-label="Order ticket">
          <Ticket {...props} />
        </aside>
        {isTradable && settings.hasKeys.value && <KeyHints />}
      </div>
    );
    return { aside: column, bar: null, show };
  }
  const close = (): void => setOpen(false);
  const bar = (
    <>
      {isTradable && <TicketBar {...props} onOpen={() => setOpen(true)} />}
      {isOpen && (
        <Sheet label="Order ticket" onClose={close}>
          <Ticket
            {...props}
            corner={
              <button type="button" class="quiet close" aria-label="Close" onClick={close}>
                <Icon name="close" size={20} />
              </button>
            }
          />
        </Sheet>
      )}
    </>
  );
  return { aside: null, bar, show };
}

/** For those with a keyboard. */
function KeyHints() {
  return (
    <p class="ticket-hints" aria-hidden="true">
      <span>
        <kbd class="key">b</kbd> <kbd class="key">s</kbd> side
      </span>
      <span>
        <kbd class="key">m</kbd> <kbd class="key">l</kbd> kind
      </span>
      <span>
        <kbd class="key">?</kbd> all keys
      </span>
    </p>
  );
}

function TicketBar({ market, outcome, change, onOutcome, onOpen }: TicketProps & { onOpen: () => void }) {
  const open = (side: Draft["side"], of = outcome): void => {
    if (of !== outcome) onOutcome(of.id);
    change({ side });
    onOpen();
  };
  const bar = useEdge<HTMLDivElement>("--bar");
  if (isBinary(market)) {
    return (
      <div class="ticket-bar" ref={bar}>
        {market.outcomes.map((each) => (
          <button
            key={each.id}
            type="button"
            class={each.index === 0 ? "primary" : ""}
            translate={false}
            onClick={() => open("buy", each)}
          >
            <span>Buy {each.name}</span> <b>{cents(each.implied_ask)}</b>
          </button>
        ))}
      </div>
    );
  }
  return (
    <div class="ticket-bar" ref={bar}>
      <span class="ticket-bar-name" translate={false}>
        {outcome.name}
      </span>
      <button type="button" class="buy" translate={false} onClick={() => open("buy")}>
        <span>Buy</span> <b>{cents(outcome.implied_ask)}</b>
      </button>
      <button type="button" class="sell" translate={false} onClick={() => open("sell")}>
        <span>Sell</span> <b>{cents(outcome.implied_bid)}</b>
      </button>
    </div>
  );
}
