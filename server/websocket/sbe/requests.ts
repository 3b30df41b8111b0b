/**
 * Requests of the binary protocol as commands of order entry, within the bounds of JSON's schemas. What is out of bounds is
 * spelled out as the JSON request that it would be, and that request's schema says what is wrong with it.
 */
import {
  ORDER_TYPES,
  OrderType,
  SELF_TRADE_PREVENTIONS,
  Side,
  TIMES_IN_FORCE,
  TimeInForce,
} from "../../../engine/constants.ts";
import { MAX_PRICE_BPS, MAX_QUANTITY, MIN_PRICE_BPS } from "../../../engine/limits.ts";
import type { ClientOrderId } from "../../../engine/ring/order-texts.ts";
import { FLAG_POST_ONLY, packTerms } from "../../../engine/ring/records.ts";
import { assert } from "../../../engine/util/assert.ts";
import { MAX_TOKEN_LENGTH } from "../../accounts/limits.ts";
import { badRequest } from "../../errors.ts";
import { creditedTo, DIRECT } from "../../http/dispatch.ts";
import { CLIENT_ORDER_ID } from "../../http/text-schemas.ts";
import { type Check, compileSchema } from "../../http/validate.ts";
import { MAX_BATCH_OPERATIONS, MAX_CANCEL_AFTER_MS, MAX_QUOTES } from "../../trading/limits.ts";
import type { NamedOrder } from "../../trading/order-requests.ts";
import type { QuotesRequest } from "../../trading/quotes.ts";
import * as S from "../../trading/schemas.ts";
import type { Amendment, OrderFilter, Origin, Placement, Quote } from "../../trading/types.ts";
import { PresentToken, Resume, Subscription as SubscriptionSchema } from "../schemas.ts";
import type { Subscription } from "../types.ts";
import { idOfWords } from "./client-order-id.ts";
import { BlockLength, Channel, EntryLength, OrderFlags } from "./codec/constants.ts";
import * as codec from "./codec/requests.ts";
import type { FrameReader } from "./frame-reader.ts";

const KNOWN_FLAGS = OrderFlags.postOnly | OrderFlags.timestamps;
const MAX_CODE = SELF_TRADE_PREVENTIONS.length - 1;
/** By the schema's Channel; the implied book is a book, too. */
const CHANNEL_WORDS = ["book", "book", "trades", "ticker", "markets"] as const;
/** What a required number of 32 bits has where its sender's version lacks it. */
const ABSENT = 2 ** 32 - 1;
const ABSENT_BYTE = 255;

const checkPlacement = compileSchema(S.PlaceOrder);
const checkCancel = compileSchema(S.CancelOrder);
const checkFilter = compileSchema(S.CancelQuery);
const checkTimeoutBody = compileSchema(S.CancelAfter);
const checkBatch = compileSchema(S.Batch);
const checkQuotes = compileSchema(S.Quotes);
const checkSubscription = compileSchema(SubscriptionSchema);
const checkResume = compileSchema(Resume);
const checkToken = compileSchema(PresentToken);
const checkAmendment = compileSchema(S.BatchOperations.amend);

/** All quotes of a user in a market, as a request has them. */
export type QuotesRead = Pick<QuotesRequest, "marketId" | "quotes" | "terms">;

export class SbeRequests {
  // Reused from request to request.
  private readonly place = new codec.PlaceOrder();
  private readonly cancelBlock = new codec.CancelOrder();
  private readonly amend = new codec.AmendOrder();
  private readonly all = new codec.CancelAll();
  private readonly after = new codec.CancelAfter();
  private readonly tie = new codec.CancelOnDisconnect();
  private readonly batch = new codec.Batch();
  private readonly resume = new codec.Resume();
  private readonly subscribe = new codec.Subscription();
  private readonly subscribedMarket = new codec.SubscribedMarket();
  private readonly replacement = new codec.ReplaceQuotes();
  /** Of the placement that was read last, with its builder code. */
  origin: Origin = DIRECT;

  /** @param own the connection's origin @throws ApiError 40000 */
  placement(reader: FrameReader, own: Origin): Placement {
    const { place: block } = this;
    reader.openBlock(BlockLength.placeOrder);
    codec.readPlaceOrder(reader.words, reader.blockAt, block);
    const text = reader.text8("client_order_id");
    const builderCode = reader.text8("builder_code");
    this.origin = builderCode === null ? own : creditedTo(own, builderCode, "builder_code");
    const { orderType, timeInForce, selfTradePrevention, flags } = block;
    const clientOrderId = clientOrderIdOf(block.clientOrderIdLow, block.clientOrderIdHigh, text);
    const isValid =
      block.marketId !== 0 &&
      block.marketId !== ABSENT &&
      block.outcomeId !== 0 &&
      block.outcomeId !== ABSENT &&
      (block.side === Side.buy || block.side === Side.sell) &&
      isQuantity(block.quantity) &&
      (block.price === -1 || isPrice(block.price)) &&
      orderType <= OrderType.market &&
      timeInForce <= TimeInForce.fok &&
      selfTradePrevention <= MAX_CODE &&
      isOptionalTime(block.expiresAt) &&
      isOptionalTime(block.validUntil) &&
      isClientOrderId(clientOrderId);
    if (!isValid) reject(checkPlacement, placementJson(block, clientOrderId));
    if ((flags & ~KNOWN_FLAGS) !== 0)
      throw badRequest(`flags: must be a sum of ${Object.values(OrderFlags).join(", ")}`);
    return {
      marketId: block.marketId,
      outcomeId: block.outcomeId,
      terms: termsOf(block),
      price: orNull(block.price),
      quantity: block.quantity,
      clientOrderId,
      expiresAt: orNull(block.expiresAt),
      validUntil: orNull(block.validUntil),
      timestamps: (flags & OrderFlags.timestamps) !== 0,
    };
  }

  /** @throws ApiError 40000 */
  canceled(reader: FrameReader): NamedOrder {
    const { cancelBlock: block } = this;
    reader.openBlock(BlockLength.cancelOrder);
    codec.readCancelOrder(reader.words, reader.blockAt, block);
    const text = reader.text8("client_order_id");
    const clientOrderId = clientOrderIdOf(block.clientOrderIdLow, block.clientOrderIdHigh, text);
    const { orderId } = block;
    const isValid = (orderId === -1 || isId(orderId)) && isClientOrderId(clientOrderId);
    if (!isValid) reject(checkCancel, { ...given("id", orderId), ...namedJson(clientOrderId) });
    return { id: orUndefined(orderId), clientOrderId: clientOrderId ?? undefined };
  }

  /** @throws ApiError 40000 */
  amendment(reader: FrameReader): Amendment {
    const { amend: block } = this;
    reader.openBlock(BlockLength.amendOrder);
    codec.readAmendOrder(reader.words, reader.blockAt, block);
    const { orderId, price, quantity, validUntil } = block;
    const isValid =
      isId(orderId) &&
      (price === -1 || isPrice(price)) &&
      (quantity === -1 || isQuantity(quantity)) &&
      isOptionalTime(validUntil);
    if (!isValid) {
      const json = { ...given("id", orderId), ...given("price", price), ...given("quantity", quantity) };
      reject(checkAmendment, { op: "amend", ...json, ...given("valid_until", validUntil) });
    }
    return {
      orderId,
      price: orNull(price),
      quantity: orNull(quantity),
      validUntil: orNull(validUntil),
    };
  }

  /** The operations that a batch says it has. */
  batchCount(reader: FrameReader): number {
    reader.openBlock(BlockLength.batch);
    codec.readBatch(reader.words, reader.blockAt, this.batch);
    return this.batch.count;
  }

  /** @throws ApiError 40000 */
  filter(reader: FrameReader): OrderFilter {
    const { all: block } = this;
    reader.openBlock(BlockLength.cancelAll);
    codec.readCancelAll(reader.words, reader.blockAt, block);
    const text = reader.text8("client_order_id");
    const clientOrderId = clientOrderIdOf(block.clientOrderIdLow, block.clientOrderIdHigh, text);
    const { marketId, outcomeId, side } = block;
    const isValid =
      marketId !== 0 &&
      outcomeId !== 0 &&
      (side === -1 || side === Side.buy || side === Side.sell) &&
      isClientOrderId(clientOrderId);
    if (!isValid) {
      const json = { ...given("market_id", marketId), ...given("outcome_id", outcomeId), ...given("side", side) };
      reject(checkFilter, { ...json, ...namedJson(clientOrderId) });
    }
    return {
      marketId: orUndefined(marketId),
      outcomeId: orUndefined(outcomeId),
      side: orUndefined(side),
      clientOrderId: clientOrderId ?? undefined,
    };
  }

  /** ms. @throws ApiError 40000 */
  timeout(reader: FrameReader): number {
    reader.openBlock(BlockLength.cancelAfter);
    codec.readCancelAfter(reader.words, reader.blockAt, this.after);
    const { timeout } = this.after;
    if (timeout > MAX_CANCEL_AFTER_MS) reject(checkTimeoutBody, given("timeout_ms", timeout));
    return timeout;
  }

  /** @throws ApiError 40000 */
  enabled(reader: FrameReader): boolean {
    reader.openBlock(BlockLength.cancelOnDisconnect);
    codec.readCancelOnDisconnect(reader.words, reader.blockAt, this.tie);
    const { enabled } = this.tie;
    if (enabled > 1) throw badRequest("enabled: must be boolean");
    return enabled === 1;
  }

  /** @throws ApiError 40000 */
  token(reader: FrameReader): string {
    const token = reader.text16("token") ?? "";
    if (token === "" || token.length > MAX_TOKEN_LENGTH) reject(checkToken, { op: "auth", token });
    return token;
  }

  /** @throws ApiError 40000 */
  sequence(reader: FrameReader): number {
    reader.openBlock(BlockLength.resume);
    codec.readResume(reader.words, reader.blockAt, this.resume);
    const { sequence } = this.resume;
    if (sequence < 0 || sequence > Number.MAX_SAFE_INTEGER)
      reject(checkResume, { op: "resume", ...given("sequence", sequence) });
    return sequence;
  }

  /** @param op the operation that JSON has for it @throws ApiError 40000 */
  subscription(reader: FrameReader, op: string): Subscription {
    const { subscribe: block } = this;
    reader.openBlock(BlockLength.subscribe);
    codec.readSubscription(reader.words, reader.blockAt, block);
    const count = reader.openGroup("market_ids", EntryLength.subscribedMarket);
    const ids: number[] = [];
    for (let i = 0, at = reader.groupAt; i < count; i++, at += reader.groupStride) {
      codec.readSubscribedMarket(reader.words, at, this.subscribedMarket);
      ids.push(this.subscribedMarket.marketId);
    }
    const isImplied = block.channel === Channel.impliedBook;
    const channel = CHANNEL_WORDS[block.channel] ?? String(block.channel);
    return checkSubscription({
      ...{ op, channel, ...(isImplied && { implied: true }), ...given("outcome_id", block.outcomeId) },
      ...(ids.length === 1 ? { market_id: ids[0]! } : ids.length > 1 ? { market_ids: ids } : {}),
    });
  }

  /** @param own the connection's origin; `origin` gets it with the builder code @throws ApiError 40000 */
  quotes(reader: FrameReader, own: Origin): QuotesRead {
    const { replacement: block } = this;
    reader.openBlock(BlockLength.replaceQuotes);
    codec.readReplaceQuotes(reader.words, reader.blockAt, block);
    const { marketId, expiresAt, validUntil } = block;
    const count = reader.openGroup("quotes", EntryLength.quote);
    let isValid = count <= MAX_QUOTES && isOptionalTime(expiresAt) && isOptionalTime(validUntil);
    const quotes: Quote[] = [];
    for (let i = 0, at = reader.groupAt; i < count; i++, at += reader.groupStride) {
      const quote = new codec.Quote();
      codec.readQuote(reader.words, at, quote);
      isValid &&= quote.outcomeId !== 0 && isPrice(quote.price) && isQuantity(quote.quantity);
      isValid &&= quote.side === Side.buy || quote.side === Side.sell;
      quotes.push(quote);
    }
    const builderCode = reader.text8("builder_code");
    if (marketId === ABSENT) throw badRequest("market_id: required");
    if (marketId === 0) throw badRequest("market_id: must be >= 1");
    this.origin = builderCode === null ? own : creditedTo(own, builderCode, "builder_code");
    if (!isValid) {
      const each = quotes.map((quote) => {
        return { outcome_id: quote.outcomeId, side: quote.side, price: quote.price, quantity: quote.quantity };
      });
      reject(checkQuotes, { quotes: each, ...given("expires_at", expiresAt), ...given("valid_until", validUntil) });
    }
    const terms = { expiresAt: orNull(expiresAt), validUntil: orNull(validUntil) };
    return { marketId, quotes, terms };
  }
}

/** @throws ApiError 40000 for a number of operations that no batch has */
export function checkBatchCount(count: number): void {
  if (count === 0 || count > MAX_BATCH_OPERATIONS) reject(checkBatch, { operations: Array(count).fill({}) });
}

const orNull = (value: number): number | null => (value === -1 ? null : value);
const orUndefined = (value: number): number | undefined => (value === -1 ? undefined : value);

const isId = (id: number): boolean => id >= 1 && id <= Number.MAX_SAFE_INTEGER;
const isPrice = (price: number): boolean => price >= MIN_PRICE_BPS && price <= MAX_PRICE_BPS;
const isQuantity = (quantity: number): boolean => quantity >= 1 && quantity <= MAX_QUANTITY;
const isOptionalTime = (time: number): boolean => time >= -1 && time <= Number.MAX_SAFE_INTEGER;

const isClientOrderId = (id: ClientOrderId | null): boolean => typeof id !== "string" || CLIENT_ORDER_ID.accepts(id);

/** @throws ApiError 40000 where both forms are given */
function clientOrderIdOf(low: number, high: number, text: string | null): ClientOrderId | null {
  const number = idOfWords(low, high);
  if (number !== null && text !== null) throw badRequest("client_order_id: give it as a number or as a text");
  return number ?? text;
}

/** The defaults are JSON's. */
function termsOf({ side, orderType, timeInForce, selfTradePrevention, flags, price }: codec.PlaceOrder): number {
  const isMarket = orderType === OrderType.market;
  const missing = isMarket ? TimeInForce.ioc : TimeInForce.gtc;
  const type = !isMarket ? OrderType.limit : price === -1 ? OrderType.unboundMarket : OrderType.market;
  const prevention = selfTradePrevention === -1 ? 0 : selfTradePrevention;
  const postOnly = (flags & OrderFlags.postOnly) === 0 ? 0 : FLAG_POST_ONLY;
  return packTerms(side, type, timeInForce === -1 ? missing : timeInForce, prevention, postOnly);
}

/** @throws ApiError 40000 */
function reject(check: Check<unknown>, json: object): never {
  check(json);
  assert(false, "the bounds of the binary protocol are those of JSON");
}

/** A field of a JSON request, left out where it is null. */
const given = (name: string, value: number): object => (value === -1 || value === ABSENT ? {} : { [name]: value });

const namedJson = (id: ClientOrderId | null): object => (id === null ? {} : { client_order_id: String(id) });

/** A code as its word; one without a word as itself. */
const word = (name: string, words: readonly string[], code: number): object =>
  code === -1 ? {} : { [name]: words[code] ?? String(code) };

function placementJson(block: codec.PlaceOrder, clientOrderId: ClientOrderId | null): object {
  return {
    ...given("market_id", block.marketId),
    ...given("outcome_id", block.outcomeId),
    ...(block.side !== ABSENT_BYTE && { side: block.side }),
    ...given("price", block.price),
    ...given("quantity", block.quantity),
    ...word("type", ORDER_TYPES.slice(0, OrderType.unboundMarket), block.orderType),
    ...word("time_in_force", TIMES_IN_FORCE, block.timeInForce),
    ...word("self_trade_prevention", SELF_TRADE_PREVENTIONS, block.selfTradePrevention),
    ...namedJson(clientOrderId),
    ...given("expires_at", block.expiresAt),
    ...given("valid_until", block.validUntil),
  };
}
