/**
 * The events and writes of a batch as objects with named fields, as `admin log` prints them: money and prices are
 * integers (micro-USDC, BPS), times are ms. Secrets are left out unless they are asked for. Reads no file.
 */
import { MARKET_STATUSES, MATCH_TYPES, ORDER_STATUSES, REASONS, ROLES, Side } from "../../engine/constants.ts";
import {
  type BatchHeader,
  FLAG_STARTED,
  type OrderText,
  readHeader,
  recordsOf,
  requestsOf,
  TextReader,
} from "../../engine/log/batch-format.ts";
import { unpackRequest } from "../../engine/log/request.ts";
import type { Write } from "../../engine/log/writes.ts";
import { EngineEvent } from "../../engine/ring/engine-event.ts";
import { ORDER_TERMS, termValue } from "../../engine/ring/order-terms.ts";
import { EventKind, feeOf, rebateOf } from "../../engine/ring/records.ts";
import { unreachable } from "../../engine/util/assert.ts";

type Value = string | number | boolean | null | object;

/** One event or write. Its kind, and the batch's number and time, come first. */
export interface LogLine {
  readonly batch: number;
  /** When the batch was committed, ms. */
  readonly committed_at: number;
  readonly kind: string;
  readonly [field: string]: Value;
}

/** What filters compare; null where the line is about none. */
export interface LoggedItem {
  readonly line: LogLine;
  readonly user: number | null;
  readonly order: number | null;
  readonly market: number | null;
  readonly outcome: number | null;
}

type Fields = Record<string, Value>;
type Item = Omit<LoggedItem, "line"> & { readonly kind: string; readonly fields: Fields };

const KIND_NAMES = Object.fromEntries(Object.entries(EventKind).map(([name, code]) => [code, name])) as Record<
  EventKind,
  keyof typeof EventKind
>;
/** Columns and fields with hashes of passwords and tokens, sealed secrets, and numbers of documents. */
const SECRETS = /^(passwordHash|tokenHash|refreshHash|secretHash|codeHash|family|secret|documentNumber|request)$/;
const REDACTED = "(redacted)";

/** The batch's lines: its requests' writes, then its events. @param secrets whether secrets are shown */
export function* linesOf(body: Buffer, secrets: boolean): Generator<LoggedItem> {
  const header = readHeader(body);
  const { batch, at } = header;
  const line = ({ kind, fields, ...about }: Item): LoggedItem => {
    return { line: { batch, committed_at: at, kind, ...fields }, ...about };
  };
  if ((header.flags & FLAG_STARTED) !== 0) yield line({ ...ABOUT_NOTHING, kind: "exchangeStarted", fields: {} });
  for (const payload of requestsOf(body, header)) {
    const request = unpackRequest(payload);
    for (const write of request.writes) yield line(writeItem(write, secrets));
    for (const audit of request.audits) {
      const user = typeof audit.userId === "number" ? audit.userId : null;
      yield line({ ...ABOUT_NOTHING, user, kind: "audit", fields: { ...audit } });
    }
    const { kept } = request;
    if (kept !== null) {
      const fields = redacted({ ...kept }, secrets);
      yield line({ ...ABOUT_NOTHING, user: kept.userId, kind: "idempotencyKey", fields });
    }
  }
  for (const item of eventsOf(body, header)) yield line(item);
}

const ABOUT_NOTHING = { user: null, order: null, market: null, outcome: null };

function redacted(fields: object, secrets: boolean): Fields {
  const shown = Object.entries(fields).map(([name, value]) => {
    return [name, !secrets && SECRETS.test(name) && value !== null ? REDACTED : value];
  });
  return Object.fromEntries(shown) as Fields;
}

function writeItem(write: Write, secrets: boolean): Item {
  const { kind, ...rest } = write;
  const all = write as { [field: string]: Value | undefined };
  const idOf = (value: unknown): number | null => (typeof value === "number" ? value : null);
  if (write.kind === "insert" || write.kind === "update") {
    const { table } = write;
    const row = (write.kind === "insert" ? write.row : write.set) as Fields;
    const columns = redacted(row, secrets);
    const id = idOf(write.kind === "insert" ? row["id"] : write.id);
    const user = table === "users" ? id : idOf(row["userId"]);
    const about = {
      ...ABOUT_NOTHING,
      user,
      order: table === "orders" ? id : null,
      market: table === "markets" ? id : null,
    };
    return { ...about, kind: `${kind}.${table}`, fields: { id: id ?? 0, ...columns } };
  }
  const user = kind === "createUser" ? idOf(all["id"]) : idOf(all["userId"] ?? all["proposedBy"]);
  const market = kind === "createMarket" ? idOf(all["id"]) : idOf(all["marketId"]);
  return { ...ABOUT_NOTHING, user, market, kind, fields: redacted(rest, secrets) };
}

function* eventsOf(body: Buffer, header: BatchHeader): Generator<Item> {
  const { words, doubles, count } = recordsOf(body, header);
  const texts = new TextReader(body, header);
  const event = new EngineEvent().at(words, doubles, 0);
  for (let i = 0; i < count; i++, event.next()) yield { ...eventItem(event, texts), kind: KIND_NAMES[event.kind] };
}

function eventItem(event: EngineEvent, texts: TextReader): Omit<Item, "kind"> {
  const { kind, market, user, outcome, time: at, correlationId: reference } = event;
  switch (kind) {
    case EventKind.batchMatched:
      // `durable` is written after the batch is committed.
      return { ...ABOUT_NOTHING, fields: { matched_us: Math.floor(event.matchedAt) } };
    case EventKind.levelChanged: {
      const fields = { outcome, side: sideOf(event), price: event.price, quantity: event.levelQuantity };
      return { ...ABOUT_NOTHING, outcome, fields };
    }
    case EventKind.marketChanged: {
      const status = MARKET_STATUSES[event.status] ?? null;
      return { ...ABOUT_NOTHING, market, fields: { market, status, reference, at } };
    }
    case EventKind.setsSplit:
    case EventKind.setsMerged: {
      const amounts = { quantity: event.quantity, fee_bps: event.mergeFeeBps, entry: event.fillId };
      return { ...ABOUT_NOTHING, market, user, fields: { market, user, ...amounts, reference, at } };
    }
    case EventKind.stopped:
      return { ...ABOUT_NOTHING, fields: {} };
    case EventKind.orderPlaced:
      return orderItem(event, placementFields(event, texts.next(event)));
    case EventKind.orderFilled:
      return orderItem(event, fillFields(event));
    case EventKind.orderAmended:
      return orderItem(event, amendFields(event));
    case EventKind.orderCanceled:
    case EventKind.orderReduced: {
      const role = ROLES[event.role] ?? null;
      return orderItem(event, { ...stateFields(event), reason: reasonOf(event), role, update: updateOf(event) });
    }
    case EventKind.cancelRejected:
    case EventKind.amendRejected:
      return orderItem(event, { reason: reasonOf(event), reference });
    default:
      unreachable(kind, "kind of event");
  }
}

const sideOf = ({ side }: EngineEvent): string => (side === Side.buy ? "buy" : "sell");
const reasonOf = ({ reason }: EngineEvent): string | null => REASONS[reason] ?? null;
/** Null: the event is no order update. */
const updateOf = ({ userSequence }: EngineEvent): number | null => userSequence || null;

function orderItem({ orderId, slot, user, outcome, time }: EngineEvent, fields: Fields): Omit<Item, "kind"> {
  const order = { order: orderId, slot, user, at: time };
  return { ...ABOUT_NOTHING, order: orderId, user, outcome, fields: { ...order, ...fields } };
}

function stateFields(event: EngineEvent): Fields {
  const { outcome, price, quantity, remaining } = event;
  return { outcome, side: sideOf(event), price, quantity, status: ORDER_STATUSES[event.status] ?? null, remaining };
}

function placementFields(event: EngineEvent, { placedAt, clientOrderId, builderCode }: OrderText): Fields {
  return {
    ...stateFields(event),
    reason: reasonOf(event),
    ...termFields(event),
    expires_at: event.expiresAt || null,
    placed_at: placedAt ?? event.time,
    client_order_id: clientOrderId,
    builder: builderCode,
    update: event.isUpdate ? event.userSequence : null,
  };
}

/** The terms of a placement beside its side, which is among the fields of its state. */
const TERMS = ORDER_TERMS.filter(({ name }) => name !== "side");

const termFields = ({ terms }: EngineEvent): Fields =>
  Object.fromEntries(TERMS.map((term) => [term.name, termValue(term, terms)]));

function fillFields(event: EngineEvent): Fields {
  const { rates } = event;
  return {
    fill: event.fillId,
    ...stateFields(event),
    role: ROLES[event.role] ?? null,
    match_type: MATCH_TYPES[event.matchType] ?? null,
    match_end: event.endsMatch,
    pat: event.isPat,
    fee_bps: rates === 0 ? null : feeOf(rates),
    rebate_bps: rates === 0 ? null : rebateOf(rates),
    update: updateOf(event),
  };
}

function amendFields(event: EngineEvent): Fields {
  const { correlationId: reference, userSequence: update, isExtension: extended } = event;
  const priority = event.lostPriority ? event.priority : null;
  const expiresAt = extended ? event.expiresAt || null : null;
  return { ...stateFields(event), priority, extended, expires_at: expiresAt, reference, update };
}

/** A line for people: the batch, its time, the kind, then the fields that say something. */
export function textOf({ batch, committed_at, kind, ...fields }: LogLine): string {
  const shown = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== false);
  const texts = shown.map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : value}`);
  return [String(batch), new Date(committed_at).toISOString(), kind, ...texts].join(" ");
}
