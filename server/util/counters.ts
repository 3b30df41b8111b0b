/** The gateway's counters: plain numbers, which cost nothing to raise. metrics.ts reads them when they are scraped. */
import { ORDER_STATUSES } from "../../engine/constants.ts";
import { type ApiError, ErrorKind } from "../errors.ts";

/** The traffic of one transport, in bytes of bodies and messages, without headers and frames. */
export class Traffic {
  requests = 0;
  receivedBytes = 0;
  sentBytes = 0;

  /** @param receivers the number of clients that it went to */
  sent(message: string | Uint8Array, receivers = 1): void {
    this.sentBytes += receivers * Buffer.byteLength(message);
  }
}

export class Counters {
  readonly http = new Traffic();
  readonly webSocket = new Traffic();
  /** Placements, sides of matches, and matches that are durable. */
  orders = 0;
  fills = 0;
  trades = 0;
  /** By status code: how many orders reached the status. */
  readonly orderUpdates: number[] = ORDER_STATUSES.map(() => 0);
  /** By code of the envelope: requests, and operations of a batch, that got an error. */
  readonly rejections = new Map<number, number>(Object.values(ErrorKind).map(({ code }) => [code, 0]));

  rejected({ kind }: ApiError): void {
    this.rejections.set(kind.code, (this.rejections.get(kind.code) ?? 0) + 1);
  }
}
