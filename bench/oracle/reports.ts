/**
 * The oracle's report stream, built from engine events: lines joined by line feeds without a final one, sorted by
 * (sequence, type), written to a file and hashed.
 *
 *   0,sequence,side,id,price,quantity                  accepted; side 0 buy, 1 sell
 *   1,sequence,makerPrice,quantity,makerId,takerId     trade
 *   2,sequence,side,id,price                           cancel done, and the remainder of an immediate-or-cancel
 *   3,sequence,side,id,price,quantity                  modify done
 *   4,sequence,id and 5,sequence,id                    cancel rejected, modify rejected
 *
 * An event's time is its message's sequence; its order id is the message's plus one (zero is no order's id).
 */
import { createHash, type Hash } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import { Reason } from "../../engine/constants.ts";
import * as R from "../../engine/ring/records.ts";
import { assert } from "../../engine/util/assert.ts";
import { MessageKind, type Messages } from "./messages.ts";
import type { PriceWindow } from "./prices.ts";

const ReportType = { accepted: 0, trade: 1, canceled: 2, modified: 3, cancelRejected: 4, modifyRejected: 5 } as const;

export class Reports {
  trades = 0;
  private readonly messages: Messages;
  private readonly onOrderEnd: (slot: number, id: number) => void;
  private readonly file: number;
  private readonly hash: Hash = createHash("sha256");
  private text = "";
  private separator = "";
  /** A modify's report follows its trades: it waits here for the next message's event. */
  private modified = "";
  private makerId = 0;

  /** @param onOrderEnd called when an order is filled or canceled for good */
  constructor(path: string, messages: Messages, onOrderEnd: (slot: number, id: number) => void) {
    this.messages = messages;
    this.onOrderEnd = onOrderEnd;
    this.file = openSync(path, "w");
  }

  /** Reports one event record; level changes and market events say nothing here. */
  add(words: Int32Array, doubles: Float64Array, base: number, window: PriceWindow): void {
    const packed = words[base]!;
    const kind = R.kindOf(packed);
    if (kind > R.EventKind.amendRejected) return;
    const slot = words[base + R.W_SLOT]!;
    const quantity = words[base + R.W_QUANTITY]!;
    const id = doubles[(base >> 1) + R.D_ORDER_ID]! - 1;
    const sequence = doubles[(base >> 1) + R.D_AT]!;
    const side = R.sideOf(packed) - 1;
    const price = window.price(words[base + R.W_PRICE]!);
    const modify = this.messages.kinds[sequence] === MessageKind.modify;
    switch (kind) {
      case R.EventKind.orderPlaced:
        if (modify) {
          this.endMessage();
          this.modified = `${ReportType.modified},${sequence},${side},${id},${price},${quantity}`;
        } else this.line(`${ReportType.accepted},${sequence},${side},${id},${price},${quantity}`);
        if (R.reasonOf(packed) === Reason.none) return;
        this.line(`${ReportType.canceled},${sequence},${side},${id},${price}`);
        return this.onOrderEnd(slot, id);
      case R.EventKind.orderFilled:
        if (words[base + R.W_REMAINING] === 0) this.onOrderEnd(slot, id);
        if ((packed & R.FLAG_MATCH_END) === 0) {
          this.makerId = id;
          return;
        }
        this.trades++;
        return this.line(`${ReportType.trade},${sequence},${price},${quantity},${this.makerId},${id}`, modify);
      case R.EventKind.orderCanceled:
        // The first half of a modify: the placement follows immediately.
        if (modify) return;
        this.line(`${ReportType.canceled},${sequence},${side},${id},${price}`);
        return this.onOrderEnd(slot, id);
      case R.EventKind.cancelRejected:
        return this.line(`${modify ? ReportType.modifyRejected : ReportType.cancelRejected},${sequence},${id}`);
      default:
        assert(false, `an oracle's flow has no event of kind ${kind}`);
    }
  }

  /** Writes pending lines. Called between messages or in the middle of one. */
  flush(): void {
    this.hash.update(this.text, "latin1");
    writeSync(this.file, this.text, null, "latin1");
    this.text = "";
  }

  /** Returns the SHA-256 of the whole stream. */
  end(): string {
    this.endMessage();
    this.flush();
    closeSync(this.file);
    return this.hash.digest("hex");
  }

  private endMessage(): void {
    const line = this.modified;
    if (line === "") return;
    this.modified = "";
    this.line(line);
  }

  private line(line: string, sameMessage = false): void {
    if (!sameMessage) this.endMessage();
    this.text += this.separator + line;
    this.separator = "\n";
  }
}
