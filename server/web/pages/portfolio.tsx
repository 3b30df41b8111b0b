/** What the caller has: money, positions, orders, and what became of them. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "./market.css";
import "./portfolio.css";
import { MAX_QUANTITY, MICRO_PER_SHARE } from "../../../engine/limits.ts";
import { mergeFeeMicro } from "../../../engine/money.ts";
import { balance, onOrder, openOrders, positions } from "../account-state.ts";
import type { Query } from "../api.ts";
import { reason } from "../error-messages.ts";
import { dateTime, money, percent, shares, words } from "../format.ts";
import { useRetryKey } from "../idempotency-key.ts";
import { marketName, outcomeName, useMarkets } from "../market-cache.ts";
import { href } from "../router.ts";
import { request } from "../session.ts";
import { OrderName, OwnOrders, terms } from "../trading/open-orders.tsx";
import { freeShares, readQuantity } from "../trading/order-preview.ts";
import { PositionsTable, useLiveMarkets, valuePosition } from "../trading/positions.tsx";
import type { Limits, Market, Order, OwnFill, Position, Settlement } from "../types.ts";
import { Money, Profit } from "../ui/amounts.tsx";
import { Badge } from "../ui/badge.tsx";
import { Choice, Field, Select } from "../ui/fields.tsx";
import { ErrorNotice, Loading, Notice } from "../ui/notices.tsx";
import { type Column, More, Table } from "../ui/table.tsx";
import { useSections } from "../ui/tabs.tsx";
import { useTogether } from "../ui/throttle.ts";
import { toast } from "../ui/toast.tsx";
import { type Pages, useAction, useLoaded, usePages } from "../ui/use-data.ts";

const SECTIONS = [
  ["positions", "Positions"],
  ["orders", "Open orders"],
  ["history", "Order history"],
  ["fills", "Fills"],
  ["settlements", "Settlements"],
  ["sets", "Split and merge"],
] as const;

export default function PortfolioPage() {
  useEffect(() => {
    document.title = "Portfolio";
  }, []);
  const { section, tabs } = useSections("/portfolio", "Parts of the portfolio", SECTIONS);
  return (
    <>
      <h1>Portfolio</h1>
      <Totals />
      {tabs}
      {section === "positions" && <Positions />}
      {section === "orders" && <Orders />}
      {section === "history" && <History />}
      {section === "fills" && <Fills />}
      {section === "settlements" && <Settlements />}
      {section === "sets" && <Sets />}
    </>
  );
}

/** The caller's positions with their worth by the last prices, and the markets that they are in. */
function useValued() {
  const all = [...(positions.value?.values() ?? [])];
  const markets = useMarkets(all.filter(({ quantity }) => quantity > 0).map(({ market_id }) => market_id));
  const held = new Set(all.filter(({ quantity }) => quantity > 0).map(({ market_id }) => market_id));
  const live = useLiveMarkets([...held].map((id) => markets.get(id)).filter((market) => market !== undefined));
  const valued = all.map((position) => valuePosition(position, live.get(position.market_id)));
  return { valued, markets: live };
}

const sumOf = (values: readonly (number | null)[]): number =>
  values.reduce<number>((sum, value) => sum + (value ?? 0), 0);

function Totals() {
  const { valued } = useValued();
  if (balance.value === null || positions.value === null) return <Loading what="Loading your portfolio" />;
  const { available, held, total } = balance.value;
  const worth = sumOf(valued.map(({ market_value }) => market_value));
  const hasUnknown = valued.some(({ market_value }) => market_value === null);
  return (
    <dl class="totals">
      <div>
        <dt>Total value</dt>
        <dd class="large">
          {money(total + worth)} <small>USDC</small>
        </dd>
      </div>
      <div>
        <dt>Available</dt>
        <dd>{money(available)}</dd>
      </div>
      <div>
        <dt>Held by orders and withdrawals</dt>
        <dd>{money(held)}</dd>
      </div>
      <div>
        <dt>Positions{hasUnknown && ", those with a price"}</dt>
        <dd>{money(worth)}</dd>
      </div>
      <div>
        <dt>Open profit</dt>
        <dd>
          <Profit micro={sumOf(valued.map(({ unrealized_pnl }) => unrealized_pnl))} />
        </dd>
      </div>
      <div>
        <dt>Realized profit</dt>
        <dd>
          <Profit micro={sumOf(valued.map(({ realized_pnl }) => realized_pnl))} />
        </dd>
      </div>
    </dl>
  );
}

function Positions() {
  const { valued, markets } = useValued();
  if (positions.value === null) return <Loading />;
  const open = valued.filter(({ quantity }) => quantity > 0);
  open.sort((a, b) => (b.market_value ?? 0) - (a.market_value ?? 0) || a.outcome_id - b.outcome_id);
  return (
    <section class="panel" aria-labelledby="positions-title">
      <h2 id="positions-title">Positions</h2>
      <PositionsTable
        caption="Your positions"
        positions={open}
        markets={markets}
        empty="You have no shares yet: choose a market and buy some."
      />
      <p class="hint">
        Worth is by the last prices and changes with them. A sale brings what the book offers, less the fee.
      </p>
    </section>
  );
}

function Orders() {
  const orders = openOrders.value;
  const markets = useMarkets((orders ?? []).map(({ market_id }) => market_id));
  if (orders === null) return <Loading />;
  return <OwnOrders title="Open orders" orders={orders} markets={markets} />;
}

const STATUS_TONES: Readonly<Record<string, "" | "good" | "bad" | "warn">> = {
  open: "good",
  filled: "good",
  partially_filled: "good",
  rejected: "bad",
};

/** So many are added to a list by themselves: a bot's would make it endless. */
const MAX_ADDED = 200;

/**
 * A list by cursor, the newest first, that goes on with what updates of orders tell. From so many new ones on it only
 * says that there are newer ones.
 */
function useGrowing<T extends { readonly id: number }>(
  path: string,
  query: Query,
  itemsOf: (order: Order) => readonly T[],
): Pages<T> & { readonly newer: ComponentChildren } {
  const pages = usePages<T>(path, query);
  const added = useRef(0);
  const [hasNewer, setNewer] = useState(false);
  const add = useTogether((orders: readonly Order[]) =>
    pages.set((before) => {
      const byId = new Map(before.map((item) => [item.id, item]));
      // What is older than all that is shown comes with its own page.
      const oldest = pages.more === null ? 0 : before.at(-1)!.id;
      for (const item of orders.flatMap(itemsOf)) {
        if (item.id < oldest) continue;
        if (!byId.has(item.id) && added.current++ >= MAX_ADDED) setNewer(true);
        else byId.set(item.id, item);
      }
      return [...byId.values()].sort((a, b) => b.id - a.id);
    }),
  );
  useEffect(() => onOrder(add), []);
  const reload = (): void => {
    added.current = 0;
    setNewer(false);
    pages.reload();
  };
  const newer = hasNewer && (
    <Notice>
      There are newer ones.{" "}
      <button type="button" class="small" onClick={reload}>
        Show them
      </button>
    </Notice>
  );
  return { ...pages, reload, newer };
}

const ALL = { status: "all" } as const;

const itself = (order: Order): readonly Order[] => [order];

function History() {
  const { items, error, more, reload, newer } = useGrowing("/orders", ALL, itself);
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id));
  const columns: Column<Order>[] = [
    {
      title: "Order",
      show: (order) => <OrderName order={order} market={markets.get(order.market_id)} isAlone={false} />,
    },
    { title: "Price", isNumber: true, show: (order) => <PriceOf {...order} /> },
    { title: "Filled", isNumber: true, show: ({ filled, quantity }) => `${shares(filled)} of ${shares(quantity)}` },
    { title: "Terms", show: terms },
    {
      title: "State",
      show: ({ status, reason: why }) => (
        <span>
          <Badge text={words(status as string)} tone={STATUS_TONES[status as string] ?? ""} />
          {why !== null && <small class="below faint">{reason(why as string)}</small>}
        </span>
      ),
    },
    { title: "Placed", isNumber: true, show: ({ created_at }) => dateTime(created_at) },
  ];
  return (
    <section class="panel" aria-labelledby="history-title">
      <h2 id="history-title">Order history</h2>
      {newer}
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table
          caption="All your orders"
          columns={columns}
          rows={items}
          keyOf={({ id }) => id}
          empty="You have placed no orders yet."
        />
      )}
      <More more={more} />
    </section>
  );
}

/** Of a market order: that it is one, and the worst price that its owner would take. */
function PriceOf({ price, type }: Order) {
  if (type !== "market") return percent(price);
  return (
    <span>
      market
      {price !== null && <small class="below faint">{percent(price)} at worst</small>}
    </span>
  );
}

function fillsOf({ id, market_id, outcome_id, side, builder_code, trades }: Order): OwnFill[] {
  return trades.map((fill) => ({ ...fill, order_id: id, market_id, outcome_id, side, builder_code }));
}

function Fills() {
  const { items, error, more, reload, newer } = useGrowing("/me/fills", {}, fillsOf);
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id));
  const columns: Column<OwnFill>[] = [
    { title: "Fill", show: (fill) => <OrderName order={fill} market={markets.get(fill.market_id)} isAlone={false} /> },
    { title: "Price", isNumber: true, show: ({ price }) => percent(price) },
    { title: "Shares", isNumber: true, show: ({ quantity }) => shares(quantity) },
    { title: "Kind", show: ({ match_type, role }) => `${words(match_type as string)}, ${words(role as string)}` },
    {
      title: "Fee and rebate",
      isNumber: true,
      show: ({ fee, rebate }) => (
        <span>
          {fee > 0 && <span>−{money(fee)}</span>}
          {rebate > 0 && <span class="up"> +{money(rebate)}</span>}
          {fee + rebate === 0 && "–"}
        </span>
      ),
    },
    { title: "Time", isNumber: true, show: ({ created_at }) => dateTime(created_at) },
  ];
  return (
    <section class="panel" aria-labelledby="fills-title">
      <h2 id="fills-title">Fills</h2>
      {newer}
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table
          caption="Your fills"
          columns={columns}
          rows={items}
          keyOf={({ id }) => id}
          empty="None of your orders was filled yet."
        />
      )}
      <More more={more} />
    </section>
  );
}

function Settlements() {
  const { items, error, more, reload } = usePages<Settlement>("/wallet/settlements");
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id));
  const columns: Column<Settlement>[] = [
    {
      title: "Outcome",
      show: ({ market_id, outcome_id }) => (
        <span class="order-name">
          <a href={href(`/markets/${markets.get(market_id)?.slug ?? market_id}`)}>
            {marketName(markets.get(market_id), market_id)}
          </a>
          <span>{outcomeName(markets.get(market_id), outcome_id)}</span>
        </span>
      ),
    },
    { title: "Shares", isNumber: true, show: ({ quantity }) => shares(quantity) },
    { title: "Paid a share", isNumber: true, show: ({ payout }) => percent(payout) },
    { title: "Received", isNumber: true, show: ({ amount }) => <Money micro={amount} /> },
    { title: "Cost", isNumber: true, show: ({ cost }) => <Money micro={cost} /> },
    { title: "Profit", isNumber: true, show: ({ realized_pnl }) => <Profit micro={realized_pnl} /> },
    { title: "Time", isNumber: true, show: ({ created_at }) => dateTime(created_at) },
  ];
  return (
    <section class="panel" aria-labelledby="settlements-title">
      <h2 id="settlements-title">Settlements</h2>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table
          caption="What resolved markets paid you"
          columns={columns}
          rows={items}
          keyOf={({ id }) => id}
          empty="None of your markets was resolved yet."
        />
      )}
      <More more={more} />
    </section>
  );
}

/** Sets that the caller could dissolve: what is free of each outcome. */
function setsOf(market: Market, held: ReadonlyMap<number, Position>): number {
  return Math.min(...market.outcomes.map(({ id }) => freeShares(held.get(id))));
}

function Sets() {
  const held = positions.value ?? new Map<number, Position>();
  const markets = useMarkets(
    [...held.values()].filter(({ quantity }) => quantity > 0).map(({ market_id }) => market_id),
  );
  const found = usePages<Market>("/markets", { limit: 200 });
  const { data: limits } = useLoaded<Limits>((signal) => request("GET", "/me/limits", { signal }), "limits");
  const feeBps = limits?.fees.merge_fee ?? null;
  const [kind, setKind] = useState<"split" | "merge">("split");
  const [chosen, setChosen] = useState("");
  const [text, setText] = useState("");
  const [hasTried, setTried] = useState(false);
  const open = found.items ?? [];
  const choices =
    kind === "split"
      ? open
      : [...markets.values()].filter((market) => setsOf(market, held) > 0 && market.status === "open");
  const market = choices.find(({ id }) => String(id) === chosen);
  const quantity = readQuantity(text);
  const available = balance.value?.available ?? 0;
  const most =
    kind === "split"
      ? Math.min(MAX_QUANTITY, Math.floor(available / MICRO_PER_SHARE))
      : market === undefined
        ? null
        : setsOf(market, held);
  const problem =
    text === ""
      ? hasTried
        ? "Type how many sets."
        : null
      : quantity === null
        ? "A whole number of sets."
        : most !== null && quantity > most
          ? kind === "split"
            ? `Your available balance is enough for ${shares(most)} sets.`
            : `You have ${shares(most)} complete sets free.`
          : null;
  const marketProblem = hasTried && market === undefined ? "Choose a market." : null;
  const retryKey = useRetryKey();
  const { run, isBusy, error } = useAction(async () => {
    const body = { market_id: market!.id, quantity };
    const path = `/wallet/${kind}`;
    await retryKey.send({ path, ...body }, (idempotencyKey) => request("POST", path, { body, idempotencyKey }));
    toast(kind === "split" ? `${shares(quantity!)} sets split.` : `${shares(quantity!)} sets merged.`);
    setText("");
    setTried(false);
  });
  const isReady = market !== undefined && quantity !== null && problem === null;
  return (
    <section class="panel sets" aria-labelledby="sets-title">
      <h2 id="sets-title">Split and merge complete sets</h2>
      <p>
        A complete set is one share of every outcome of a market. Exactly one of them pays, so a set is always worth 1
        USDC: splitting turns 1 USDC into a set, merging turns a set back into 1 USDC. Splitting is free
        {feeBps === null ? "" : feeBps === 0 ? ", and so is merging" : `, merging costs ${percent(feeBps)}`}. Split to
        offer shares that nobody has yet; merge to free money before the market is resolved.
      </p>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          if (isReady) void run();
        }}
      >
        <Choice
          label="Split or merge"
          value={kind}
          options={[
            ["split", "Split USDC"],
            ["merge", "Merge sets"],
          ]}
          onChange={setKind}
        />
        <ErrorNotice error={found.error} retry={found.reload} />
        <MarketChoice markets={choices} value={chosen} onChange={setChosen} problem={marketProblem} kind={kind} />
        {kind === "split" && found.more !== null && (
          <button type="button" class="small" onClick={found.more}>
            More markets
          </button>
        )}
        <Field
          label="Number of sets"
          inputMode="numeric"
          autoComplete="off"
          value={text}
          onInput={setText}
          problem={problem}
          hint={
            most === null ? undefined : (
              <>
                {shares(most)} at most.{" "}
                <button type="button" class="link" onClick={() => setText(String(most))}>
                  All
                </button>
              </>
            )
          }
        />
        {isReady && (
          <p aria-live="polite">
            {kind === "split"
              ? `${money(quantity * MICRO_PER_SHARE)} USDC become ${shares(quantity)} shares of each of ${market.outcomes.map(({ name }) => name).join(", ")}.`
              : mergeText(quantity, feeBps ?? 0)}
          </p>
        )}
        <ErrorNotice error={error} />
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Working…" : kind === "split" ? "Split" : "Merge"}
        </button>
      </form>
    </section>
  );
}

/** What so many sets bring, and what of it the merge costs. */
function mergeText(quantity: number, feeBps: number): string {
  const fee = mergeFeeMicro(quantity, feeBps);
  const kept = fee === 0 ? "" : `, after a merge fee of ${money(fee)} USDC`;
  return `${shares(quantity)} shares of each outcome become ${money(quantity * MICRO_PER_SHARE - fee)} USDC${kept}.`;
}

function MarketChoice({
  markets,
  value,
  onChange,
  problem,
  kind,
}: {
  markets: readonly Market[];
  value: string;
  onChange: (id: string) => void;
  problem: string | null;
  kind: "split" | "merge";
}) {
  const first =
    markets.length > 0 ? "Choose a market" : kind === "split" ? "No market is open" : "You have no complete sets";
  return (
    <div>
      <Select
        label="Market"
        value={markets.some((market) => String(market.id) === value) ? value : ""}
        options={[["", first] as const, ...markets.map((market) => [String(market.id), market.question] as const)]}
        onChange={onChange}
      />
      {problem !== null && (
        <p class="hint bad" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}
