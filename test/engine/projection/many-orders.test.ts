/** A transaction that changes more orders than any before it: the projector's lists of them grow while it is applied. */
import { expect, test } from "vitest";
import { OrderStatus, Role, Side } from "../../../engine/constants.ts";
import { verifyDatabase } from "../../../engine/projection/verify.ts";
import * as R from "../../../engine/ring/records.ts";
import { type Fields, MemoryLog, record } from "../../support/log-bodies.ts";

const { EventKind } = R;

const MAKERS = 9_000;
const PLACED = { outcome: 1, price: 5_000, at: 10 } as const;

const placed = (side: number, status: number, fields: Fields): Int32Array =>
  record(R.packEvent(EventKind.orderPlaced, side, status, 0, 0), { ...PLACED, ...fields });

test("every order links to its last fill, at whichever of them the lists grow", () => {
  const log = new MemoryLog(2, [2]);
  const makers = Array.from({ length: MAKERS }, (_, i) => ({ slot: i + 1, user: 1, id: i + 1 }));
  const taker = { slot: MAKERS + 1, user: 2, id: MAKERS + 1 };
  log.append(makers.map((maker) => placed(Side.sell, OrderStatus.open, { ...maker, quantity: 2, remaining: 2 })));
  // The next projector's lists are short again.
  log.restart();
  const fills = makers.flatMap((maker, i) => {
    const left = MAKERS - i - 1;
    const end = left === 0 ? R.FLAG_UPDATE_END : 0;
    const status = left === 0 ? OrderStatus.filled : OrderStatus.partiallyFilled;
    return [
      record(R.packFill(Side.sell, OrderStatus.partiallyFilled, 0, Role.maker, 0), {
        ...{ ...PLACED, ...maker, quantity: 1, remaining: 1 },
      }),
      record(R.packFill(Side.buy, status, 0, Role.taker, R.FLAG_MATCH_END | end), {
        ...{ ...PLACED, ...taker, quantity: 1, remaining: left, reference: 1 },
      }),
    ];
  });
  log.append([placed(Side.buy, OrderStatus.queued, { ...taker, quantity: MAKERS, remaining: MAKERS }), ...fills]);
  expect(log.db.prepare("SELECT count(*) FROM fills").pluck().get()).toBe(2 * MAKERS);
  expect(verifyDatabase(log.db).filter(({ ok }) => !ok)).toEqual([]);
  log.db.close();
});
