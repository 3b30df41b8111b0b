/** Writes what clients are sent into their frames: orders, rejections, accounts, heartbeats. Decides nothing. */
import { OrderType, type TimeInForce } from "../../../engine/constants.ts";
import { FLAG_POST_ONLY, selfTradePreventionOf, sideOf, timeInForceOf, typeOf } from "../../../engine/ring/records.ts";
import type { Principal } from "../../accounts/types.ts";
import type { ApiError } from "../../errors.ts";
import type { RateState } from "../../http/rate-limiter.ts";
import type { BalanceView, PositionView } from "../../markets/views.ts";
import type { OrderReport, Timestamps } from "../../orders/order-json.ts";
import type { Shutdown } from "../schemas.ts";
import { ClientOrderIdWords } from "./client-order-id.ts";
import { BlockLength, EntryLength, NULL_MONEY, OrderFlags, ShutdownReason, Template } from "./codec/constants.ts";
import * as codec from "./codec/responses.ts";
import { type Addressee, DIMENSION_BYTES, type FrameWriter } from "./frame-writer.ts";

/** Bytes that the two texts of an order take at most. */
const ORDER_TEXTS_BYTES = 2 * (1 + 64);
/** Fills of one message: their number has 16 bits. */
const MAX_FILLS = 60_000;
/** Orders of one message about a cancel-all. */
const MAX_CANCELED = 60_000;
/** Of a rejection: longer words are cut off. */
const MAX_WORDS_BYTES = 4_096;
const TRACE_ID_BYTES = 65;

export class SbeMessages {
  // Reused from message to message.
  private readonly order = new codec.Order();
  private readonly fill = new codec.Fill();
  private readonly times = new codec.OrderTimestamps();
  private readonly rejection = new codec.Rejected();
  private readonly balance = new codec.BalanceUpdated();
  private readonly position = new codec.PositionUpdated();
  private readonly result = new codec.Done();
  private readonly canceledOrder = new codec.CanceledOrder();
  private readonly timer = new codec.CancelAfterSet();
  private readonly tie = new codec.CancelOnDisconnectSet();
  private readonly holder = new codec.Authenticated();
  private readonly replay = new codec.Resumed();
  private readonly echo = new codec.Pong();
  private readonly end = new codec.Shutdown();
  private readonly clientOrderId = new ClientOrderIdWords();

  // ---------------------------------------------------------------- responses

  accepted(frame: FrameWriter, to: Addressee, report: OrderReport): void {
    const at = frame.beginResponse(Template.orderAccepted, BlockLength.orderAccepted, ORDER_TEXTS_BYTES, to);
    this.writeOrder(frame, at, report);
    this.addTexts(frame, report);
    frame.endMessage();
    if (report.timestamps === null) return;
    const times = frame.beginResponse(Template.orderTimestamps, BlockLength.orderTimestamps, 0, to);
    this.writeTimes(frame, times, report.id, report.timestamps);
  }

  /** @param rate of a request that the limits rejected, otherwise null @param traceId of the errors that have one */
  rejected(frame: FrameWriter, to: Addressee, error: ApiError, rate: RateState | null, traceId: string | null): void {
    const room = 2 + MAX_WORDS_BYTES + TRACE_ID_BYTES;
    const at = frame.beginResponse(Template.rejected, BlockLength.rejected, room, to);
    const { rejection } = this;
    rejection.code = error.kind.code;
    rejection.retryAfter = error.retryAfter ?? -1;
    rejection.rateLimit = rate === null ? -1 : rate.limit;
    rejection.rateReset = rate === null ? -1 : rate.reset;
    codec.writeRejected(frame.words, at, rejection);
    frame.addText16(error.message, MAX_WORDS_BYTES);
    frame.addText8(traceId);
    frame.endMessage();
  }

  /** The last response to a batch or to quotes. */
  done(frame: FrameWriter, to: Addressee, count: number, rejected: number): void {
    const at = frame.beginResponse(Template.done, BlockLength.done, 0, to);
    this.result.count = count;
    this.result.rejected = rejected;
    codec.writeDone(frame.words, at, this.result);
    frame.endMessage();
  }

  canceled(frame: FrameWriter, to: Addressee, orderIds: readonly number[]): void {
    let first = 0;
    do {
      const ids = orderIds.slice(first, first + MAX_CANCELED);
      const room = DIMENSION_BYTES + ids.length * EntryLength.canceledOrder;
      frame.beginResponse(Template.ordersCanceled, BlockLength.ordersCanceled, room, to);
      let at = frame.addGroup(EntryLength.canceledOrder, ids.length);
      for (const id of ids) {
        this.canceledOrder.orderId = id;
        codec.writeCanceledOrder(frame.words, at, this.canceledOrder);
        at += EntryLength.canceledOrder / 4;
      }
      frame.endMessage();
      first += ids.length;
    } while (first < orderIds.length);
  }

  /** @param firesAt ms; null where the timer has ended */
  cancelAfterSet(frame: FrameWriter, to: Addressee, timeoutMs: number, firesAt: number | null): void {
    const at = frame.beginResponse(Template.cancelAfterSet, BlockLength.cancelAfterSet, 0, to);
    this.timer.timeout = timeoutMs;
    this.timer.firesAt = firesAt ?? -1;
    codec.writeCancelAfterSet(frame.words, at, this.timer);
    frame.endMessage();
  }

  cancelOnDisconnectSet(frame: FrameWriter, to: Addressee, enabled: boolean): void {
    const template = Template.cancelOnDisconnectSet;
    const at = frame.beginResponse(template, BlockLength.cancelOnDisconnectSet, 0, to);
    this.tie.enabled = Number(enabled);
    codec.writeCancelOnDisconnectSet(frame.words, at, this.tie);
    frame.endMessage();
  }

  authenticated(frame: FrameWriter, to: Addressee, { userId, expiresAt }: Principal): void {
    const at = frame.beginResponse(Template.authenticated, BlockLength.authenticated, 0, to);
    this.holder.userId = userId;
    this.holder.expiresAt = expiresAt ?? -1;
    codec.writeAuthenticated(frame.words, at, this.holder);
    frame.endMessage();
  }

  resumed(frame: FrameWriter, to: Addressee, after: number, last: number): void {
    const at = frame.beginResponse(Template.resumed, BlockLength.resumed, 0, to);
    this.replay.after = after;
    this.replay.last = last;
    codec.writeResumed(frame.words, at, this.replay);
    frame.endMessage();
  }

  pong(frame: FrameWriter, to: Addressee, now: number): void {
    const at = frame.beginResponse(Template.pong, BlockLength.pong, 0, to);
    this.echo.now = now;
    codec.writePong(frame.words, at, this.echo);
    frame.endMessage();
  }

  // ---------------------------------------------------------------- the private stream

  /** An update with more fills than a group may have comes in several messages, all with its sequence. */
  orderUpdated(frame: FrameWriter, sequence: number, report: OrderReport): void {
    const { trades } = report;
    if (trades.length <= MAX_FILLS) this.updatedWith(frame, sequence, report, trades);
    else {
      for (let first = 0; first < trades.length; first += MAX_FILLS) {
        this.updatedWith(frame, sequence, report, trades.slice(first, first + MAX_FILLS));
      }
    }
    if (report.timestamps === null) return;
    const times = frame.beginEvent(Template.orderTimestamps, BlockLength.orderTimestamps, 0, sequence);
    this.writeTimes(frame, times, report.id, report.timestamps);
  }

  private updatedWith(frame: FrameWriter, sequence: number, report: OrderReport, fills: OrderReport["trades"]): void {
    const room = DIMENSION_BYTES + fills.length * EntryLength.fill + ORDER_TEXTS_BYTES;
    const block = frame.beginEvent(Template.orderUpdated, BlockLength.orderUpdated, room, sequence);
    this.writeOrder(frame, block, report);
    let at = frame.addGroup(EntryLength.fill, fills.length);
    const { fill } = this;
    for (const { id, matchId, price, quantity, role, matchType, fee, rebate, createdAt } of fills) {
      fill.fillId = id;
      fill.matchId = matchId;
      fill.fee = fee;
      fill.rebate = rebate;
      fill.createdAt = createdAt;
      fill.quantity = quantity;
      fill.price = price;
      fill.role = role;
      fill.matchType = matchType;
      codec.writeFill(frame.words, at, fill);
      at += EntryLength.fill / 4;
    }
    this.addTexts(frame, report);
    frame.endMessage();
  }

  balanceUpdated(frame: FrameWriter, sequence: number, at: number, view: BalanceView): void {
    const block = frame.beginEvent(Template.balanceUpdated, BlockLength.balanceUpdated, 0, sequence);
    const { balance } = this;
    balance.ts = at;
    balance.available = view.available;
    balance.held = view.held;
    balance.total = view.total;
    codec.writeBalanceUpdated(frame.words, block, balance);
    frame.endMessage();
  }

  positionUpdated(frame: FrameWriter, sequence: number, at: number, view: PositionView): void {
    const block = frame.beginEvent(Template.positionUpdated, BlockLength.positionUpdated, 0, sequence);
    const { position } = this;
    position.ts = at;
    position.cost = view.cost;
    position.realizedPnl = view.realized_pnl;
    position.marketValue = view.market_value ?? NULL_MONEY;
    position.quantity = view.quantity;
    position.held = view.held;
    position.marketId = view.market_id;
    position.outcomeId = view.outcome_id;
    codec.writePositionUpdated(frame.words, block, position);
    frame.endMessage();
  }

  // ---------------------------------------------------------------- the connection

  shutdown(frame: FrameWriter, at: number, { reason, url }: Shutdown): void {
    const room = 3 * (url?.length ?? 0);
    const block = frame.beginEvent(Template.shutdown, BlockLength.shutdown, 2 + room, 0);
    this.end.ts = at;
    this.end.reason = ShutdownReason[reason];
    codec.writeShutdown(frame.words, block, this.end);
    frame.addText16(url ?? "", room);
    frame.endMessage();
  }

  // ---------------------------------------------------------------- orders

  private writeOrder(frame: FrameWriter, at: number, report: OrderReport): void {
    const { order, clientOrderId } = this;
    const { terms } = report;
    const type = typeOf(terms);
    clientOrderId.set(report.clientOrderId);
    order.orderId = report.id;
    order.updatedAt = report.updatedAt;
    order.createdAt = report.createdAt;
    order.expiresAt = report.expiresAt || -1;
    order.clientOrderIdLow = clientOrderId.low;
    order.clientOrderIdHigh = clientOrderId.high;
    order.marketId = report.market;
    order.outcomeId = report.outcome;
    order.quantity = report.quantity;
    order.remaining = report.remaining;
    order.price = type === OrderType.unboundMarket ? -1 : report.price;
    order.side = sideOf(terms);
    order.orderTerms = orderTermsOf(type, timeInForceOf(terms));
    order.selfTradePrevention = selfTradePreventionOf(terms);
    order.status = report.status;
    order.reason = report.reason;
    order.flags =
      ((terms & FLAG_POST_ONLY) === 0 ? 0 : OrderFlags.postOnly) |
      (report.timestamps === null ? 0 : OrderFlags.timestamps);
    codec.writeOrder(frame.words, at, order);
  }

  /** Of the order that was written last. */
  private addTexts(frame: FrameWriter, report: OrderReport): void {
    frame.addText8(this.clientOrderId.text);
    frame.addText8(report.builderCode);
  }

  private writeTimes(frame: FrameWriter, at: number, orderId: number, timestamps: Timestamps): void {
    const { times } = this;
    times.orderId = orderId;
    times.received = timestamps.received;
    times.matched = timestamps.matched;
    times.durable = timestamps.durable;
    times.sent = timestamps.sent;
    codec.writeOrderTimestamps(frame.words, at, times);
    frame.endMessage();
  }
}

/** The schema's OrderTerms. */
const orderTermsOf = (type: OrderType | number, timeInForce: TimeInForce | number): number =>
  type === OrderType.limit ? timeInForce : OrderType.market * 16 + timeInForce;
