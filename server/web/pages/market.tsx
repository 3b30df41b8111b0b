/** One market: its outcomes, order book, prices, trades, and what the caller has and does in it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import "./market.css";
import { openOrders } from "../account-state.ts";
import { ApiError } from "../api.ts";
import { dateTime, percent } from "../format.ts";
import { cacheMarkets } from "../market-cache.ts";
import { useLiveMarket } from "../market-tickers.ts";
import { search, setSearch } from "../router.ts";
import { request, sessionState } from "../session.ts";
import { subscribe } from "../stream.ts";
import { useBooks } from "../trading/books.ts";
import { EMPTY_LADDER, impliedLadder } from "../trading/depth.ts";
import { closedReason } from "../trading/market-status.ts";
import { OrderBook } from "../trading/order-book.tsx";
import { priceInput } from "../trading/order-name.tsx";
import { type Draft, EMPTY_DRAFT } from "../trading/order-preview.ts";
import { PriceChart } from "../trading/price-chart.tsx";
import { RecentTrades } from "../trading/recent-trades.tsx";
import { Ticket, type TicketProps } from "../trading/ticket.tsx";
import type { Limits, Market, Trade } from "../types.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNotice, Loading, NotFound } from "../ui/notices.tsx";
import { useBatched } from "../ui/throttle.ts";
import { useFetch } from "../ui/use-data.ts";
import { MarketHeader } from "./market/header.tsx";
import { Outcomes } from "./market/outcomes.tsx";
import { OwnTrading } from "./market/own-trading.tsx";

/** From this width on the ticket stands beside the rest; below it is opened by a bar at the bottom. */
const WIDE = "(min-width: 900px)";

export default function MarketPage({ param }: { param: string }) {
  const loaded = useFetch(
    (signal) => request<Market>("GET", `/markets/${encodeURIComponent(param)}`, { signal }),
    param,
  );
  const { data, error, reload, set } = loaded;
  useEffect(() => {
    if (data === null) return;
    document.title = data.question;
    cacheMarkets([data]);
  }, [data?.id]);
  const add = useBatched((news: readonly MarketUpdate[]) => set((market) => news.reduce(applyUpdate, market)));
  useEffect(() => {
    if (data === null) return;
    const ends = [
      subscribe("markets", data.id, null, ({ data: market }) => add({ market })),
      subscribe("trades", data.id, null, ({ data: trade }) => add({ trade }), reload),
    ];
    return () => {
      for (const end of ends) end();
    };
  }, [data?.id]);
  if (error instanceof ApiError && error.status === 404) return <NotFound what="market" />;
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading what="Loading the market" />}
      {data !== null && <MarketView key={data.id} market={data} />}
    </>
  );
}

type MarketUpdate = { readonly market: Market } | { readonly trade: Trade };

/** What there is new of a market, or of the one that was shown before it. */
function applyUpdate(market: Market, news: MarketUpdate): Market {
  if ("market" in news) return news.market.id === market.id ? news.market : market;
  const { market_id, match_type, quantity } = news.trade;
  // Sets are made by mint and dissolved by merge.
  if (market_id !== market.id || match_type === "direct") return market;
  return { ...market, open_interest: market.open_interest + (match_type === "mint" ? quantity : -quantity) };
}

function MarketView({ market: given }: { market: Market }) {
  const market = useLiveMarket(given);
  const books = useBooks(given);
  const { outcomes } = market;
  const outcome = outcomes.find(({ id }) => id === Number(search.value.get("outcome"))) ?? outcomes[0]!;
  const ids = outcomes.map(({ id }) => id);
  const implied = useMemo(() => impliedLadder(books, ids, outcome.id), [books, outcome.id]);
  const [draft, setDraft] = useState<Draft>(() => ({
    ...EMPTY_DRAFT,
    side: search.peek().get("side") === "sell" ? "sell" : "buy",
  }));
  const change = (changes: Partial<Draft>): void => setDraft((before) => ({ ...before, ...changes }));
  const choose = (id: number): void => setSearch({ outcome: String(id) });
  const isWide = useIsWide();
  const [isOpen, setOpen] = useState(false);
  const isIn = sessionState.value === "in";
  const limits = useFetch<Limits>(isIn ? (signal) => request("GET", "/me/limits", { signal }) : null, "limits");
  const open = openOrders.value;
  const own = useMemo(() => (open ?? []).filter(({ market_id }) => market_id === market.id), [open, market.id]);
  const ownOfOutcome = useMemo(() => own.filter(({ outcome_id }) => outcome_id === outcome.id), [own, outcome.id]);
  // What hears of its changes itself isn't drawn anew with each price.
  const chart = useMemo(() => <PriceChart market={given} outcome={outcome} />, [given.id, outcome.id]);
  const trades = useMemo(() => <RecentTrades market={given} />, [given.id]);
  const ticket: TicketProps = { market, outcome, books, limits, draft, change, onOutcome: choose };
  const aside = useRef<HTMLElement>(null);
  /** To the ticket, wherever it is. */
  const toTicket = (): void => {
    if (isWide) aside.current?.scrollIntoView({ block: "nearest" });
    else setOpen(true);
  };
  return (
    <div class="market">
      <MarketHeader market={market} />
      <div class="market-columns">
        <div class="top-part">
          <Outcomes market={market} chosen={outcome.id} onChoose={choose} />
          {chart}
        </div>
        <div class="book-part">
          <OrderBook
            name={outcome.name}
            ladder={books.get(outcome.id) ?? null}
            implied={books.size === outcomes.length ? implied : EMPTY_LADDER}
            ownOrders={ownOfOutcome}
            onPick={(price) => {
              change({ price: priceInput(price), ...(draft.kind === "market" ? { kind: "limit" as const } : {}) });
              toTicket();
            }}
          />
          {trades}
        </div>
        <div class="own-part">
          {isIn && (
            <OwnTrading
              market={market}
              orders={own}
              onSell={(id) => {
                choose(id);
                change({ side: "sell" });
                toTicket();
              }}
            />
          )}
          <About market={market} />
        </div>
        {isWide && (
          <aside class="panel ticket-part" aria-labelledby="ticket-title" ref={aside}>
            <h2 id="ticket-title">Order ticket</h2>
            <Ticket {...ticket} />
          </aside>
        )}
      </div>
      {!isWide && closedReason(market) === null && (
        <div class="ticket-bar">
          <span class="ticket-bar-name">{outcome.name}</span>
          <button
            type="button"
            class="buy"
            onClick={() => {
              change({ side: "buy" });
              setOpen(true);
            }}
          >
            Buy {percent(outcome.implied_ask)}
          </button>
          <button
            type="button"
            class="sell"
            onClick={() => {
              change({ side: "sell" });
              setOpen(true);
            }}
          >
            Sell {percent(outcome.implied_bid)}
          </button>
        </div>
      )}
      {!isWide && isOpen && (
        <Dialog title="Order ticket" onClose={() => setOpen(false)}>
          <Ticket {...ticket} />
        </Dialog>
      )}
    </div>
  );
}

function useIsWide(): boolean {
  const [isWide, setWide] = useState(() => matchMedia(WIDE).matches);
  useEffect(() => {
    const query = matchMedia(WIDE);
    const changed = (): void => setWide(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return isWide;
}

function About({ market }: { market: Market }) {
  return (
    <section class="panel" aria-labelledby="about-title">
      <h2 id="about-title">About this market</h2>
      <p class="description">{market.description ?? "Nothing more was said than the question itself."}</p>
      <p class="hint">
        Exactly one outcome pays 1 USDC a share. Buying costs no fee. Created {dateTime(market.created_at)}; id{" "}
        {market.id}.
      </p>
    </section>
  );
}
