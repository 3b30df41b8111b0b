/** The frames that the server sends unasked. */

/** @param ts ms @param dataJson JSON text */
export function frame(event: string, sequence: number, ts: number, dataJson: string): string {
  return `{"event":"${event}","sequence":${sequence},"ts":${ts},"data":${dataJson}}`;
}

/** An order update, told as it happens or again. @param at ms, of the update */
export function orderFrame(sequence: number, at: number, orderJson: string): string {
  return frame("order.updated", sequence, at, orderJson);
}
