/** What each kind of engine event is: the log's numbering, its openings and the readers of order updates go by it. */
import { assert } from "../util/assert.ts";
import { EventKind } from "./records.ts";

/** When an event of a kind is an order update of its user, with the next number. */
export const UpdateRule = {
  never: 0,
  always: 1,
  /** A queued order's update comes with its fills or its end. */
  unlessQueued: 2,
  /** A taker's update comes with what follows. */
  maker: 3,
  /** A taker's fills are reported by the last of them. */
  makerOrUpdateEnd: 4,
} as const;

export interface EventTraits {
  /** It changes state: the log keeps it. Others are kept beside those that do. */
  readonly isDurable: boolean;
  /** It changes an order: slot, user, order id, remaining quantity and status are the order's. */
  readonly changesOrder: boolean;
  /** Its time is part of the record: the log raises it to that of the event before. */
  readonly isTimed: boolean;
  /** Ledger entries, a fill's included, that it creates; a merge's fee is one more. */
  readonly entries: 0 | 1;
  readonly update: (typeof UpdateRule)[keyof typeof UpdateRule];
}

const NOTHING: EventTraits = {
  isDurable: false,
  changesOrder: false,
  isTimed: false,
  entries: 0,
  update: UpdateRule.never,
};
const ORDER: EventTraits = { ...NOTHING, isDurable: true, changesOrder: true, isTimed: true };
const SETS: EventTraits = { ...NOTHING, isDurable: true, isTimed: true, entries: 1 };

const TRAITS: Readonly<Record<keyof typeof EventKind, EventTraits>> = {
  orderPlaced: { ...ORDER, update: UpdateRule.unlessQueued },
  orderFilled: { ...ORDER, update: UpdateRule.makerOrUpdateEnd, entries: 1 },
  orderCanceled: { ...ORDER, update: UpdateRule.always },
  orderReduced: { ...ORDER, update: UpdateRule.maker },
  orderAmended: { ...ORDER, update: UpdateRule.always },
  cancelRejected: NOTHING,
  amendRejected: NOTHING,
  levelChanged: NOTHING,
  marketChanged: { ...NOTHING, isDurable: true },
  setsSplit: SETS,
  setsMerged: SETS,
  stopped: NOTHING,
  batchMatched: NOTHING,
};

const BY_KIND: (EventTraits | undefined)[] = [];
for (const [name, traits] of Object.entries(TRAITS)) BY_KIND[EventKind[name as keyof typeof EventKind]] = traits;

/** What events of a kind are. A record of the log or a ring that claims another kind is a fault of ours. */
export function traitsOf(kind: EventKind): EventTraits {
  const traits = BY_KIND[kind];
  assert(traits !== undefined, "there is no other kind of event");
  return traits;
}
