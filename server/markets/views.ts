/** JSON objects of the API built from the gateway's memory: markets, events, balances and positions. */
import { MarketStatus } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import { isBalanced } from "../../engine/ledger.ts";
import { FULL_PRICE_BPS, MICRO_PER_BPS } from "../../engine/limits.ts";
import { markPrice, notionalMicro } from "../../engine/money.ts";
import type { EventRow } from "../../engine/projection/load/markets.ts";
import { API_BASE } from "../http/route.ts";
import type { ExchangeTotals } from "../trading/types.ts";
import type { EventTexts, MarketTexts } from "./catalog.ts";
import { tradablePrices } from "./implied-books.ts";
import { MAX_EVENT_MARKETS } from "./limits.ts";
import { type MarketRegistry, marketStatusName } from "./registry.ts";
import type { Market } from "./types.ts";

/** @param now for the figures of the last 24 hours @param hasSparklines adds each outcome's prices of the last week */
export function marketView(
  market: Market,
  registry: MarketRegistry,
  ledger: Ledger,
  now: number,
  hasSparklines = false,
): object {
  const tradable = tradablePrices(market);
  return {
    id: market.id,
    slug: market.slug,
    question: market.question,
    description: market.description,
    category: market.category,
    status: marketStatusName(market),
    outcomes: market.outcomes.map((outcome, index) => ({
      id: outcome.id,
      name: outcome.name,
      index,
      last_price: outcome.lastPrice,
      price_24h_ago: registry.dayAgoPrice(market, outcome, now),
      best_bid: outcome.book?.bestBid ?? null,
      best_ask: outcome.book?.bestAsk ?? null,
      implied_bid: tradable[index]?.bid ?? null,
      implied_ask: tradable[index]?.ask ?? null,
      volume: outcome.volume,
      ...(hasSparklines ? { sparkline: registry.sparkline(outcome, now) } : {}),
    })),
    event_id: market.eventId,
    opens_at: market.opensAt,
    closes_at: market.closesAt,
    picture: market.picture === null ? null : `${API_BASE}/markets/${market.id}/pictures/${market.picture}`,
    resolution: resolutionView(market),
    volume: marketVolume(market),
    volume_24h: registry.dayVolume(market, now),
    open_interest: ledger.outstandingSets(market.id),
    created_at: market.createdAt,
  };
}

/** A market as it was made, whatever has happened to it since. */
export function newMarketView({ id, slug, outcomes, proposedBy, createdAt }: Market, texts: MarketTexts): object {
  const untraded = {
    last_price: null,
    price_24h_ago: null,
    best_bid: null,
    best_ask: null,
    implied_bid: null,
    implied_ask: null,
    volume: 0,
  };
  return {
    id,
    slug,
    question: texts.question,
    description: texts.description,
    category: texts.category,
    status: proposedBy === null ? "open" : "proposed",
    outcomes: outcomes.map((outcome, index) => ({ id: outcome.id, name: outcome.name, index, ...untraded })),
    event_id: texts.eventId,
    opens_at: proposedBy === null ? createdAt : null,
    closes_at: texts.closesAt,
    picture: null,
    resolution: null,
    volume: 0,
    volume_24h: 0,
    open_interest: 0,
    created_at: createdAt,
  };
}

/** Names the outcome if it alone pays. */
function resolutionView({ resolution, outcomes }: Market): object | null {
  if (resolution === null) return null;
  const winner = resolution.payouts.indexOf(FULL_PRICE_BPS);
  return {
    payouts: resolution.payouts,
    outcome_id: outcomes[winner]?.id ?? null,
    note: resolution.note,
    resolved_at: resolution.at,
  };
}

/** How a proposal was decided; null while it is pending, and for markets that were never proposals. */
export function decisionView({ decision }: Market): object | null {
  return decision === null ? null : { note: decision.note, decided_at: decision.at };
}

export function marketVolume(market: Market): number {
  let volume = 0;
  for (const outcome of market.outcomes) volume += outcome.volume;
  return volume;
}

/** An event with at most `most` of its markets; excludes proposals. @param now ms */
export function eventView(
  event: EventRow,
  registry: MarketRegistry,
  ledger: Ledger,
  now: number,
  {
    most = MAX_EVENT_MARKETS,
    hasSparklines = false,
  }: { readonly most?: number; readonly hasSparklines?: boolean } = {},
): object {
  const markets = registry.marketsOf(event.id).filter(isListed);
  let volume = 0;
  let dayVolume = 0;
  for (const market of markets) {
    volume += marketVolume(market);
    dayVolume += registry.dayVolume(market, now);
  }
  return {
    id: event.id,
    slug: event.slug,
    title: event.title,
    category: event.category,
    closes_at: event.closesAt,
    created_at: event.createdAt,
    volume,
    volume_24h: dayVolume,
    market_count: markets.length,
    markets: selectMarkets(markets, most).map((market) => marketView(market, registry, ledger, now, hasSparklines)),
  };
}

/** Pending and refused proposals appear only in requests for their status. */
export function isListed(market: Market): boolean {
  return market.status !== MarketStatus.proposed && market.status !== MarketStatus.rejected;
}

/** An event as it was made. */
export function newEventView({ id, createdAt }: EventRow, { slug, title, category, closesAt }: EventTexts): object {
  const empty = { volume: 0, volume_24h: 0, market_count: 0, markets: [] };
  return { id, slug, title, category, closes_at: closesAt, created_at: createdAt, ...empty };
}

/** All markets by id; if there are too many, the newest open ones first, then the newest others. */
function selectMarkets(markets: readonly Market[], most: number): readonly Market[] {
  if (markets.length <= most) return markets;
  const isOpen = (market: Market): boolean => market.status === MarketStatus.open;
  const open = markets.filter(isOpen).slice(-most);
  const others = markets.filter((market) => !isOpen(market)).slice(open.length - most);
  const selected = open.length === most ? open : [...open, ...others];
  return selected.sort((a, b) => a.id - b.id);
}

/** micro-USDC */
export interface BalanceView {
  readonly available: number;
  readonly held: number;
  readonly total: number;
}

export function balanceView(ledger: Ledger, userId: number): BalanceView {
  const total = ledger.balance(userId);
  const held = ledger.held(userId);
  return { available: total - held, held, total };
}

/** Written out: each order of a maker changes a balance, and JSON.stringify takes five times as long. */
export function balanceJson({ available, held, total }: BalanceView): string {
  return `{"available":${available},"held":${held},"total":${total}}`;
}

/** The user's positions, except empty ones without realized profit or loss. */
export function positionsOf(ledger: Ledger, userId: number): number[] {
  const found: number[] = [];
  for (let at = ledger.firstPositionOf(userId); at !== 0; at = ledger.nextPosition(at)) {
    if (ledger.quantity(at) !== 0 || ledger.realizedPnl(at) !== 0) found.push(at);
  }
  return found;
}

export const lastPrices = ({ outcomes }: Market): (number | null)[] => outcomes.map(({ lastPrice }) => lastPrice);

/** A position as the API shows it: whole shares, micro-USDC, and an average price in BPS. */
export type PositionView = {
  readonly market_id: number;
  readonly outcome_id: number;
  readonly quantity: number;
  readonly held: number;
  readonly cost: number;
  /** Null without shares. */
  readonly average_price: number | null;
  readonly realized_pnl: number;
  /** Null while the outcome has no price, as is the next. */
  readonly market_value: number | null;
  readonly unrealized_pnl: number | null;
};

export function positionView(ledger: Ledger, registry: MarketRegistry, position: number): PositionView {
  const outcomeId = ledger.outcomeOf(position);
  const quantity = ledger.quantity(position);
  const cost = ledger.cost(position);
  const market = registry.marketOf(outcomeId);
  const price = quantity === 0 ? 0 : markPrice(lastPrices(market), outcomeId - market.firstOutcomeId);
  const value = price === null ? null : notionalMicro(price, quantity);
  return {
    market_id: market.id,
    outcome_id: outcomeId,
    quantity,
    held: ledger.heldQuantity(position),
    cost,
    average_price: quantity === 0 ? null : cost / quantity / MICRO_PER_BPS,
    realized_pnl: ledger.realizedPnl(position),
    market_value: value,
    unrealized_pnl: value === null ? null : value - cost,
  };
}

/** As `balanceJson`. */
export function positionJson(view: PositionView): string {
  const { market_id, outcome_id, quantity, held, cost, average_price, realized_pnl } = view;
  const shares = `"market_id":${market_id},"outcome_id":${outcome_id},"quantity":${quantity},"held":${held}`;
  const paid = `"cost":${cost},"average_price":${average_price},"realized_pnl":${realized_pnl}`;
  return `{${shares},${paid},"market_value":${view.market_value},"unrealized_pnl":${view.unrealized_pnl}}`;
}

export function solvencyView(totals: ExchangeTotals): object {
  return {
    deposits: totals.deposits,
    withdrawals: totals.withdrawals,
    users_total: totals.usersTotal,
    collateral: totals.collateral,
    house: totals.house,
    balanced: isBalanced(totals),
    sequence: totals.sequence,
    at: totals.at,
  };
}
