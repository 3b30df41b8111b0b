/** The first place where a log isn't what the engine makes of its commands, with both events in words. */
import { AssertionError } from "node:assert";
import * as C from "../../../engine/constants.ts";
import * as R from "../../../engine/ring/records.ts";

const KINDS = Object.fromEntries(Object.entries(R.EventKind).map(([name, kind]) => [kind, name]));

export class Difference extends Error {
  readonly batch: number;
  /** The record's index in the batch, or null: the batch as a whole. */
  readonly record: number | null;
  /** What the log has and what the engine makes, as far as there is an event. */
  readonly logged: string | null;
  readonly replayed: string | null;

  constructor(
    batch: number,
    record: number | null,
    message: string,
    logged: string | null = null,
    replayed: string | null = null,
  ) {
    super(message);
    this.batch = batch;
    this.record = record;
    this.logged = logged;
    this.replayed = replayed;
  }
}

/** True for what reading or executing a damaged batch throws: it can be anything. */
export const isDamage = (error: unknown): error is RangeError | AssertionError =>
  error instanceof RangeError || error instanceof AssertionError;

/** The event record at word `w` as one line. */
export function describeEvent(words: Int32Array, doubles: Float64Array, w: number): string {
  const packed = words[w]!;
  const isMarket = R.kindOf(packed) === R.EventKind.marketChanged;
  const statuses = isMarket ? C.MARKET_STATUSES : C.ORDER_STATUSES;
  const d = w >> 1;
  const fields: Record<string, string | number | null | undefined> = {
    slot: words[w + R.W_SLOT],
    order: doubles[d + R.D_ORDER_ID],
    user: words[w + R.W_USER],
    outcome: words[w + R.W_OUTCOME],
    side: R.sideOf(packed),
    price: words[w + R.W_PRICE],
    quantity: words[w + R.W_QUANTITY],
    remaining: words[w + R.W_REMAINING],
    status: statuses[R.statusOf(packed)] ?? R.statusOf(packed),
    reason: C.REASONS[R.reasonOf(packed)] ?? R.reasonOf(packed),
    match: R.matchTypeOf(packed),
    role: C.ROLES[R.roleOf(packed)],
    flags: `0x${(packed >>> 24).toString(16)}`,
    word7: words[w + R.W_CORRELATION],
    at: doubles[d + R.D_AT],
    detail: doubles[d + R.D_DETAIL],
    sequence: doubles[d + R.D_USER_SEQUENCE],
  };
  const text = Object.entries(fields).map(([name, value]) => `${name} ${value}`);
  return `${KINDS[R.kindOf(packed)] ?? `kind ${R.kindOf(packed)}`}: ${text.join(", ")}`;
}
