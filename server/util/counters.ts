/** What the gateway counts on its way, in plain numbers that cost nothing: metrics.ts reads them when it is asked. */
import { ORDER_STATUSES } from "../../engine/constants.ts";
import { type ApiError, ErrorKind } from "../errors.ts";

/** What went over one transport; bytes of bodies and messages, without headers and frames. */
export class Traffic {
  requests = 0;
  receivedBytes = 0;
  sentBytes = 0;

  /** @param receivers how many it went to */
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
  /** By status code: states that orders came to. */
  readonly orderUpdates: number[] = ORDER_STATUSES.map(() => 0);
  /** By code of the envelope: requests, and operations of a batch, that were answered with an error. */
  readonly refusals = new Map<number, number>(Object.values(ErrorKind).map(({ code }) => [code, 0]));

  refused({ kind }: ApiError): void {
    this.refusals.set(kind.code, this.refusals.get(kind.code)! + 1);
  }
}
