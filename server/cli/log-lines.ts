/**
 * The events and writes of a batch as objects with named fields, as `admin log` prints them: money and prices are
 * integers (micro-USDC, BPS), times are ms. Secrets are left out unless they are asked for. Reads no file.
 */
import {
  MARKET_STATUSES,
  MATCH_TYPES,
  ORDER_STATUSES,
  ORDER_TYPES,
  REASONS,
  ROLES,
  SELF_TRADE_PREVENTIONS,
  Side,
  TIMES_IN_FORCE,
} from "../../engine/constants.ts";
import {
  type BatchHeader,
  FLAG_STARTED,
  readHeader,
  recordsOf,
  requestsOf,
  TextReader,
} from "../../engine/log/batch-format.ts";
import { unpackRequest } from "../../engine/log/request.ts";
import type { Write } from "../../engine/log/writes.ts";
import * as R from "../../engine/ring/records.ts";

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

const KIND_NAMES = new Map<number, string>(Object.entries(R.EventKind).map(([name, code]) => [code, name]));
/** Columns and fields with hashes of passwords and tokens, sealed secrets, and numbers of documents. */
const SECRETS = /^(passwordHash|tokenHash|refreshHash|secretHash|codeHash|family|secret|documentNumber|request)$/;
const REDACTED = "(redacted)";

/** The batch's lines: its requests' writes, then its events. @param secrets whether secrets are shown */
export function* linesOf(body: Buffer, secrets: boolean): Generator<LoggedItem> {
  const header = readHeader(body);
  const { number: batch, at } = header;
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
  const { words, doubles } = recordsOf(body, header);
  const texts = new TextReader(body, header);
  for (let w = 0; w < words.length; w += R.RECORD_WORDS) yield eventItem(words, doubles, w, texts);
}

function eventItem(words: Int32Array, doubles: Float64Array, w: number, texts: TextReader): Item {
  const packed = words[w] ?? 0;
  const kind = R.kindOf(packed);
  const word = (index: number): number => words[w + index] ?? 0;
  const double = (index: number): number => doubles[(w >> 1) + index] ?? 0;
  const order = { order: double(R.D_ORDER_ID), slot: word(R.W_SLOT), user: word(R.W_USER), at: double(R.D_AT) };
  const about = { ...ABOUT_NOTHING, order: order.order, user: order.user, outcome: word(R.W_OUTCOME) };
  const name = KIND_NAMES.get(kind) ?? `kind ${kind}`;
  switch (kind) {
    case R.EventKind.batchMatched:
      // `durable` is written after the batch is committed.
      return { ...ABOUT_NOTHING, kind: name, fields: { matched_us: Math.floor(double(R.D_MATCHED)) } };
    case R.EventKind.levelChanged: {
      const fields = {
        outcome: word(R.W_OUTCOME),
        side: sideOf(packed),
        price: word(R.W_PRICE),
        quantity: double(R.D_DETAIL),
      };
      return { ...ABOUT_NOTHING, outcome: fields.outcome, kind: name, fields };
    }
    case R.EventKind.marketChanged: {
      const market = word(R.W_SLOT);
      const status = MARKET_STATUSES[R.statusOf(packed)] ?? null;
      return {
        ...ABOUT_NOTHING,
        market,
        kind: name,
        fields: { market, status, reference: word(R.W_REFERENCE), at: double(R.D_AT) },
      };
    }
    case R.EventKind.setsSplit:
    case R.EventKind.setsMerged: {
      const [market, user] = [word(R.W_SLOT), word(R.W_USER)];
      const amounts = { quantity: word(R.W_QUANTITY), fee_bps: word(R.W_PRICE), entry: double(R.D_FILL_ID) };
      const fields = { market, user, ...amounts, reference: word(R.W_REFERENCE), at: double(R.D_AT) };
      return { ...ABOUT_NOTHING, market, user, kind: name, fields };
    }
    case R.EventKind.stopped:
      return { ...ABOUT_NOTHING, kind: name, fields: {} };
    default:
      return {
        ...about,
        kind: name,
        fields: { ...order, ...orderFields(kind, packed, word, double, () => texts.next(words, w)) },
      };
  }
}

type Read = (index: number) => number;

const sideOf = (packed: number): string => (R.sideOf(packed) === Side.buy ? "buy" : "sell");
const statusOf = (packed: number): string | null => ORDER_STATUSES[R.statusOf(packed)] ?? null;
const reasonOf = (packed: number): string | null => REASONS[R.reasonOf(packed)] ?? null;

/** The fields of one kind of event about an order. */
function orderFields(
  kind: number,
  packed: number,
  word: Read,
  double: Read,
  text: () => ReturnType<TextReader["next"]>,
): Fields {
  const flag = (bit: number): boolean => (packed & bit) !== 0;
  const reference = word(R.W_REFERENCE);
  const reason = reasonOf(packed);
  if (kind === R.EventKind.cancelRefused || kind === R.EventKind.amendRefused) return { reason, reference };
  const update = double(R.D_USER_SEQUENCE);
  const state = { status: statusOf(packed), remaining: word(R.W_REMAINING) };
  const terms = {
    outcome: word(R.W_OUTCOME),
    side: sideOf(packed),
    price: word(R.W_PRICE),
    quantity: word(R.W_QUANTITY),
  };
  if (kind === R.EventKind.orderPlaced) {
    const codes = R.termsOf(reference);
    const { placedAt, clientOrderId, builderCode } = text();
    return {
      ...terms,
      ...state,
      reason,
      type: ORDER_TYPES[R.termsType(codes)] ?? null,
      time_in_force: TIMES_IN_FORCE[R.termsTimeInForce(codes)] ?? null,
      self_trade_prevention: SELF_TRADE_PREVENTIONS[R.termsSelfTradePrevention(codes)] ?? null,
      post_only: flag(R.FLAG_POST_ONLY),
      pat: flag(R.FLAG_PAT),
      quote: flag(R.FLAG_QUOTE),
      cancel_on_disconnect: flag(R.FLAG_CANCEL_ON_DISCONNECT),
      expires_at: double(R.D_EXPIRES_AT) || null,
      placed_at: placedAt ?? double(R.D_AT),
      client_order_id: clientOrderId,
      builder: builderCode,
      // The update of a queued order comes with its first fill or its end.
      update: R.statusOf(packed) === QUEUED ? null : update,
    };
  }
  if (kind === R.EventKind.orderFilled) {
    const rates = R.ratesOf(reference);
    return {
      fill: double(R.D_FILL_ID),
      ...terms,
      ...state,
      role: ROLES[R.roleOf(packed)] ?? null,
      match_type: MATCH_TYPES[R.matchTypeOf(packed)] ?? null,
      match_end: flag(R.FLAG_MATCH_END),
      pat: flag(R.FLAG_PAT),
      fee_bps: rates === 0 ? null : R.feeOf(rates),
      rebate_bps: rates === 0 ? null : R.rebateOf(rates),
      update: update || null,
    };
  }
  if (kind === R.EventKind.orderAmended) {
    const detail = double(R.D_DETAIL);
    const priority = flag(R.FLAG_LOST_PRIORITY) ? detail : null;
    const extended = flag(R.FLAG_EXTENDS);
    return { ...terms, ...state, priority, extended, expires_at: extended ? detail || null : null, reference, update };
  }
  return { ...terms, ...state, reason, role: ROLES[R.roleOf(packed)] ?? null, update: update || null };
}

const QUEUED = ORDER_STATUSES.indexOf("queued");

/** A line for people: the batch, its time, the kind, then the fields that say something. */
export function textOf({ batch, committed_at, kind, ...fields }: LogLine): string {
  const shown = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== false);
  const texts = shown.map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : value}`);
  return [String(batch), new Date(committed_at).toISOString(), kind, ...texts].join(" ");
}
