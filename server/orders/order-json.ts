/**
 * Orders and fills as JSON texts, as every reply, event, list and export shows them. Written field by field: the hot
 * replies consist of these texts, never of objects.
 */
import { MATCH_TYPES, ORDER_STATUSES, OrderStatus, OrderType, REASONS, Reason, ROLES } from "../../engine/constants.ts";
import { SHOWN_TERMS, termValue } from "../../engine/ring/order-terms.ts";
import type { ClientOrderId } from "../../engine/ring/order-texts.ts";
import { sideOf, typeOf } from "../../engine/ring/records.ts";

/** What the API shows of an order beside its trades; codes are those of constants.ts. */
export interface OrderView {
  readonly id: number;
  readonly clientOrderId: ClientOrderId | null;
  readonly market: number;
  readonly outcome: number;
  /** engine/ring/order-terms.ts */
  readonly terms: number;
  /** BPS */
  readonly price: number;
  readonly quantity: number;
  readonly remaining: number;
  /** ms; 0 or null for never */
  readonly expiresAt: number | null;
  readonly status: number;
  readonly reason: number;
  readonly builderCode: string | null;
  /** ms */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** One side of a match, among the trades of its order. Fee and rebate are micro-USDC. */
export interface FillView {
  readonly id: number;
  readonly matchId: number;
  readonly price: number;
  readonly quantity: number;
  readonly role: number;
  readonly matchType: number;
  readonly fee: number;
  readonly rebate: number;
  /** ms */
  readonly createdAt: number;
}

/** When an order's event passed each stage: µs since the Unix epoch, never falling. */
export interface Timestamps {
  readonly received: number;
  readonly matched: number;
  readonly durable: number;
  readonly sent: number;
}

/** An order as a reply or an update reports it. */
export interface OrderReport extends OrderView {
  /** What the event filled. */
  readonly trades: readonly FillView[];
  /** Null unless its sender asked for them. */
  readonly timestamps: Timestamps | null;
}

/** A report that outlives its call; its trades never change. Spelled out: several engines copy each update, and a spread is slow. */
export function copyReport(report: OrderReport, timestamps = report.timestamps): OrderReport {
  return {
    id: report.id,
    clientOrderId: report.clientOrderId,
    market: report.market,
    outcome: report.outcome,
    terms: report.terms,
    price: report.price,
    quantity: report.quantity,
    remaining: report.remaining,
    expiresAt: report.expiresAt,
    status: report.status,
    reason: report.reason,
    builderCode: report.builderCode,
    createdAt: report.createdAt,
    updatedAt: report.updatedAt,
    trades: report.trades,
    timestamps,
  };
}

const quoted = (names: readonly (string | null)[]): readonly string[] => names.map((name) => JSON.stringify(name));
const STATUS_JSON = quoted(ORDER_STATUSES);
const REASON_JSON = quoted(REASONS);
const MATCH_TYPE_JSON = quoted(MATCH_TYPES);
const ROLE_JSON = quoted(ROLES);

/** Client order ids, of which numbers stand for their digits, and builder codes contain nothing that JSON would escape. */
const textJson = (text: ClientOrderId | null): string => (text === null ? "null" : `"${text}"`);

const SHOWN_BITS = SHOWN_TERMS.reduce((bits, { mask }) => bits | mask, 0);
/** By the bits that are shown. */
const termTexts = new Map<number, string>();

/** The fields of the terms that the API shows, without braces. */
function termsJson(terms: number): string {
  const known = termTexts.get(terms & SHOWN_BITS);
  if (known !== undefined) return known;
  const text = SHOWN_TERMS.map((term) => `"${term.name}":${JSON.stringify(termValue(term, terms))}`).join(",");
  termTexts.set(terms & SHOWN_BITS, text);
  return text;
}

/** @param trades JSON texts of its fills, joined by commas */
export function orderJson(order: OrderView, trades: string): string {
  const { terms, quantity, remaining } = order;
  return `{"id":${order.id},"client_order_id":${textJson(order.clientOrderId)},"market_id":${
    order.market
  },"outcome_id":${order.outcome},"side":${sideOf(terms)},"price":${
    // A market order whose owner set no bound has no price, whatever price bounds it in the book.
    typeOf(terms) === OrderType.unboundMarket ? "null" : order.price
  },"quantity":${quantity},"remaining":${remaining},"filled":${quantity - remaining},${termsJson(terms)},"expires_at":${
    order.expiresAt || "null"
  },"status":${STATUS_JSON[order.status]},"reason":${REASON_JSON[order.reason]},"builder_code":${textJson(
    order.builderCode,
  )},"created_at":${order.createdAt},"updated_at":${order.updatedAt},"trades":[${trades}]}`;
}

const NO_ORDER: OrderView = {
  ...{ id: 0, clientOrderId: null, market: 0, outcome: 0, terms: 0, price: 0, quantity: 0, remaining: 0, expiresAt: 0 },
  ...{ status: OrderStatus.queued, reason: Reason.none, builderCode: null, createdAt: 0, updatedAt: 0 },
};
/** The names of an order's fields, less its trades, in their order. */
export const ORDER_FIELDS = Object.keys(JSON.parse(orderJson(NO_ORDER, ""))).filter((name) => name !== "trades");

function fillJson(fill: FillView): string {
  const { id, matchId, price, quantity, role, matchType, fee, rebate, createdAt } = fill;
  return `{"id":${id},"match_id":${matchId},"price":${price},"quantity":${quantity},"role":${ROLE_JSON[role]},"match_type":${MATCH_TYPE_JSON[matchType]},"fee":${fee},"rebate":${rebate},"created_at":${createdAt}}`;
}

/** What a list of fills shows of each besides. */
export interface ListedFillView extends FillView {
  readonly order: number;
  readonly market: number;
  readonly outcome: number;
  readonly side: number;
  readonly builderCode: string | null;
}

export function listedFillJson(fill: ListedFillView): string {
  const { order, market, outcome, side, builderCode } = fill;
  const more = `"order_id":${order},"market_id":${market},"outcome_id":${outcome},"side":${side}`;
  return withFields(fillJson(fill), `${more},"builder_code":${textJson(builderCode)}`);
}

export function reportJson(report: OrderReport): string {
  const { trades, timestamps } = report;
  const json = orderJson(report, trades.length === 0 ? "" : trades.map(fillJson).join(","));
  return timestamps === null ? json : withFields(json, `"timestamps":${JSON.stringify(timestamps)}`);
}

const withFields = (object: string, fields: string): string => `${object.slice(0, -1)},${fields}}`;
