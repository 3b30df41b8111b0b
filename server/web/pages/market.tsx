/** One market: its outcomes, order book, prices, trades, and what the caller has and does in it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import "./market.css";
import { openOrders, positions } from "../account-state.ts";
import { ApiError } from "../api.ts";
import { compact, dateTime, percent, shares, words } from "../format.ts";
import { learnMarkets } from "../market-cache.ts";
import { chance, useLiveMarket } from "../market-tickers.ts";
import { href, search, setSearch } from "../router.ts";
import { request, sessionState } from "../session.ts";
import { subscribe } from "../stream.ts";
import { useBooks } from "../trading/books.ts";
import { EMPTY_LADDER, impliedLadder } from "../trading/depth.ts";
import { OwnOrders, priceText } from "../trading/open-orders.tsx";
import { OrderBook } from "../trading/order-book.tsx";
import { type Draft, EMPTY_DRAFT } from "../trading/order-preview.ts";
import { PositionsTable, valuePosition } from "../trading/positions.tsx";
import { PriceChart } from "../trading/price-chart.tsx";
import { RecentTrades } from "../trading/recent-trades.tsx";
import { closedReason, Ticket, type TicketProps } from "../trading/ticket.tsx";
import type { Limits, Market, MarketEvent, Outcome, Trade } from "../types.ts";
import { Badge } from "../ui/badge.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNotice, Loading, Missing, Notice } from "../ui/notices.tsx";
import { useTogether } from "../ui/throttle.ts";
import { useLoaded } from "../ui/use-data.ts";

/** From this width on the ticket stands beside the rest; below it is opened by a bar at the bottom. */
const WIDE = "(min-width: 900px)";

export default function MarketPage({ param }: { param: string }) {
  const loaded = useLoaded(
    (signal) => request<Market>("GET", `/markets/${encodeURIComponent(param)}`, { signal }),
    param,
  );
  const { data, error, reload, set } = loaded;
  useEffect(() => {
    if (data === null) return;
    document.title = data.question;
    learnMarkets([data]);
  }, [data?.id]);
  const add = useTogether((news: readonly News[]) => set((market) => news.reduce(withNews, market)));
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
  if (error instanceof ApiError && error.status === 404) return <Missing what="market" />;
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading what="Loading the market" />}
      {data !== null && <MarketView key={data.id} market={data} />}
    </>
  );
}

type News = { readonly market: Market } | { readonly trade: Trade };

/** What there is new of a market, or of the one that was shown before it. */
function withNews(market: Market, news: News): Market {
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
  const limits = useLoaded<Limits>(isIn ? (signal) => request("GET", "/me/limits", { signal }) : null, "limits");
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
      <Head market={market} />
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
              change({ price: priceText(price), ...(draft.kind === "market" ? { kind: "limit" as const } : {}) });
              toTicket();
            }}
          />
          {trades}
        </div>
        <div class="own-part">
          {isIn && (
            <Own
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

const TONES = {
  open: "good",
  halted: "warn",
  closed: "warn",
  resolved: "",
  voided: "",
  proposed: "",
  rejected: "bad",
} as const;

function Head({ market }: { market: Market }) {
  const { event_id, resolution, outcomes } = market;
  const event = useLoaded<MarketEvent>(
    event_id === null ? null : (signal) => request("GET", `/events/${event_id}`, { signal }),
    String(event_id),
  ).data;
  const status = market.status as keyof typeof TONES;
  const isRunning = status === "open" || status === "halted";
  const volume = outcomes.reduce((sum, each) => sum + each.volume, 0);
  return (
    <header class="market-head">
      <p class="crumbs">
        <a href={href("/")}>Markets</a>
        {market.category !== null && (
          <>
            <span aria-hidden="true">›</span>
            <a href={href(`/?category=${encodeURIComponent(market.category)}`)}>{market.category}</a>
          </>
        )}
        {event !== null && (
          <>
            <span aria-hidden="true">›</span>
            <a href={href(`/events/${event.slug}`)}>{event.title}</a>
          </>
        )}
      </p>
      <h1>{market.question}</h1>
      <p class="facts">
        <Badge text={words(status)} tone={TONES[status]} />
        {market.closes_at !== null && isRunning && <span>Closes {dateTime(market.closes_at)}</span>}
        <span>
          <b class="number">{compact(volume)}</b> shares traded
        </span>
        <span>
          <b class="number">{compact(market.open_interest)}</b> sets outstanding
        </span>
      </p>
      {resolution !== null && (
        <Notice kind="good">
          <b>
            {status === "voided"
              ? "Voided: every outcome pays the same."
              : resolution.outcome_id !== null
                ? `Resolved: ${outcomes.find(({ id }) => id === resolution.outcome_id)?.name}.`
                : "Resolved."}
          </b>{" "}
          {outcomes.map(({ name }, i) => `${name} pays ${percent(resolution.payouts[i] ?? 0)}`).join(", ")} of 1 USDC a
          share, since {dateTime(resolution.resolved_at)}.{resolution.note !== null && ` ${resolution.note}`}
        </Notice>
      )}
    </header>
  );
}

function Outcomes({ market, chosen, onChoose }: { market: Market; chosen: number; onChoose: (id: number) => void }) {
  const { outcomes, resolution } = market;
  return (
    <section class="panel" aria-labelledby="outcomes-title">
      <h2 id="outcomes-title">Outcomes</h2>
      <table class="outcomes">
        <caption class="hidden">Outcomes with their chances and best prices; choose one to see its book</caption>
        <thead>
          <tr>
            <th scope="col">Outcome</th>
            <th scope="col" class="right">
              {resolution === null ? "Chance" : "Pays"}
            </th>
            <th scope="col" class="right">
              Bid
            </th>
            <th scope="col" class="right">
              Ask
            </th>
            <th scope="col" class="right volume">
              Volume
            </th>
          </tr>
        </thead>
        <tbody>
          {outcomes.map((outcome) => (
            <tr key={outcome.id} class={outcome.id === chosen ? "chosen" : ""}>
              <th scope="row">
                <button
                  type="button"
                  class="outcome"
                  aria-pressed={outcome.id === chosen}
                  onClick={() => onChoose(outcome.id)}
                >
                  {outcome.name}
                </button>
              </th>
              <td class="right number">
                <ChanceOf outcome={outcome} payout={resolution?.payouts[outcome.index] ?? null} />
              </td>
              <td class="right number up">{percent(outcome.implied_bid)}</td>
              <td class="right number down">{percent(outcome.implied_ask)}</td>
              <td class="right number volume" title={`${shares(outcome.volume)} shares`}>
                {compact(outcome.volume)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function ChanceOf({ outcome, payout }: { outcome: Outcome; payout: number | null }) {
  const bps = payout ?? chance(outcome);
  return (
    <span class="chance">
      <meter min={0} max={10_000} value={bps ?? 0} aria-hidden="true" />
      <b>{percent(bps)}</b>
    </span>
  );
}

function Own({
  market,
  orders,
  onSell,
}: {
  market: Market;
  orders: NonNullable<typeof openOrders.value>;
  onSell: (outcomeId: number) => void;
}) {
  const markets = new Map([[market.id, market]]);
  const list = useMemo(
    () => <OwnOrders title="Your open orders" orders={orders} markets={markets} marketId={market.id} />,
    [orders, market.id],
  );
  const held = [...(positions.value?.values() ?? [])].filter(({ market_id }) => market_id === market.id);
  const valued = held.map((position) => valuePosition(position, market)).sort((a, b) => a.outcome_id - b.outcome_id);
  return (
    <>
      <section class="panel" aria-labelledby="position-title">
        <h2 id="position-title">Your position</h2>
        {positions.value === null ? (
          <Loading />
        ) : (
          <PositionsTable
            caption="Your shares of each outcome"
            positions={valued}
            markets={markets}
            isAlone
            onSell={onSell}
            empty="You have no shares in this market."
          />
        )}
      </section>
      {openOrders.value === null ? <Loading /> : list}
    </>
  );
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
