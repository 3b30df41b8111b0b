/**
 * The command behind an event of the log: what the engine must have been told to do. Every placement, amend, cancel and
 * market change is an event, so that the log has all commands that changed anything. Knows no book.
 */
import { MarketStatus, Reason } from "../../../engine/constants.ts";
import * as R from "../../../engine/ring/records.ts";
import { unreachable } from "../../../engine/util/assert.ts";

/** Reasons for which a command cancels an order. All others follow from another order's command, or a market's. */
const COMMAND_REASONS: ReadonlySet<number> = new Set([
  Reason.user,
  Reason.cancelOnDisconnect,
  Reason.operator,
  Reason.expired,
  Reason.cancelAfter,
]);

/** One command record, overwritten by each derivation. */
export class DerivedCommand {
  readonly words = new Int32Array(R.RECORD_WORDS);
  readonly doubles = new Float64Array(this.words.buffer);

  /**
   * Derives the command whose first event is at word `w`. Returns false if no command begins with such an event.
   * @param slot the order's in the matcher @param market the event's @param placedAt when a placed order was placed, ms
   */
  derive(words: Int32Array, doubles: Float64Array, w: number, slot: number, market: number, placedAt: number): boolean {
    const d = w >> 1;
    this.words.fill(0);
    this.words[R.W_SLOT] = slot;
    this.words[R.W_MARKET] = market;
    this.words[R.W_CORRELATION] = words[w + R.W_CORRELATION]!;
    this.doubles[R.D_ORDER_ID] = doubles[d + R.D_ORDER_ID]!;
    this.doubles[R.D_AT] = doubles[d + R.D_AT]!;
    const kind = R.kindOf(words[w]!);
    switch (kind) {
      case R.EventKind.orderPlaced:
        return this.place(words, doubles, w, placedAt);
      case R.EventKind.orderCanceled:
        return this.cancel(R.reasonOf(words[w]!));
      case R.EventKind.orderAmended:
        return this.amend(words, doubles, w);
      case R.EventKind.marketChanged:
        this.words[0] = changeTo(R.statusOf(words[w]!));
        return true;
      case R.EventKind.setsSplit:
        return this.sets(R.CommandKind.splitSets, words, w);
      case R.EventKind.setsMerged:
        return this.sets(R.CommandKind.mergeSets, words, w);
      case R.EventKind.orderFilled:
      case R.EventKind.orderReduced:
      case R.EventKind.cancelRejected:
      case R.EventKind.amendRejected:
      case R.EventKind.levelChanged:
      case R.EventKind.stopped:
      case R.EventKind.batchMatched:
        return false;
      default:
        return unreachable(kind, "kind of event");
    }
  }

  /** A replacement is a placement of what it kept of its quantity. Rejected as too late, it was valid until just before. */
  private place(words: Int32Array, doubles: Float64Array, w: number, placedAt: number): true {
    const packed = words[w]!;
    const terms = R.placedTerms(packed, words[w + R.W_CORRELATION]!);
    this.words[0] = R.packCommand(R.CommandKind.placeOrder, terms);
    this.words[R.W_USER] = words[w + R.W_USER]!;
    this.words[R.W_OUTCOME] = words[w + R.W_OUTCOME]!;
    this.words[R.W_PRICE] = words[w + R.W_PRICE]!;
    this.words[R.W_QUANTITY] = words[w + R.W_QUANTITY]!;
    this.words[R.W_CORRELATION] = 0;
    this.doubles[R.D_AT] = placedAt;
    this.doubles[R.D_EXPIRES_AT] = doubles[(w >> 1) + R.D_DETAIL]!;
    this.doubles[R.D_VALID_UNTIL] = validUntilOf(packed, placedAt, doubles[(w >> 1) + R.D_DETAIL]!);
    return true;
  }

  /** A market's close cancels its orders before its own event. */
  private cancel(reason: number): boolean {
    this.words[0] = reason === Reason.marketClosed ? R.CommandKind.closeMarket : R.packCancel(reason);
    return reason === Reason.marketClosed || COMMAND_REASONS.has(reason);
  }

  private amend(words: Int32Array, doubles: Float64Array, w: number): true {
    const extends_ = words[w]! & R.FLAG_EXTENDS;
    this.words[0] = R.CommandKind.amendOrder | extends_;
    this.doubles[R.D_PRIORITY] = doubles[(w >> 1) + R.D_DETAIL]!;
    if (extends_ !== 0) return true;
    this.words[R.W_PRICE] = words[w + R.W_PRICE]!;
    this.words[R.W_QUANTITY] = words[w + R.W_QUANTITY]!;
    return true;
  }

  private sets(kind: number, words: Int32Array, w: number): true {
    this.words[0] = kind;
    this.words[R.W_USER] = words[w + R.W_USER]!;
    this.words[R.W_PRICE] = words[w + R.W_PRICE]!;
    this.words[R.W_QUANTITY] = words[w + R.W_QUANTITY]!;
    return true;
  }
}

/** The command that leaves a market with a status. A market that can't change keeps its own, whatever the command. */
function changeTo(status: number): number {
  if (status === MarketStatus.open) return R.CommandKind.resumeMarket;
  return status === MarketStatus.closed ? R.CommandKind.closeMarket : R.CommandKind.haltMarket;
}

/** An order that was accepted although its end lies before its stamp: the machine's clock was behind the stamps. */
function validUntilOf(packed: number, placedAt: number, expiresAt: number): number {
  const reason = R.reasonOf(packed);
  if (reason === Reason.tooLate) return placedAt - 1;
  return expiresAt !== 0 && expiresAt <= placedAt && reason !== Reason.expired ? Number.MAX_SAFE_INTEGER : 0;
}
