/**
 * A crash in the middle of an order's matching: the event ring was full, so that part of it was committed separately.
 * The order's remainder must not be restored at a price that crosses resting orders, and everything already reported
 * stays.
 */
import { expect, test } from "vitest";
import { OrderStatus, Reason, SelfTradePrevention, Side } from "../../engine/constants.ts";
import { verify } from "./checks.ts";
import { Crash } from "./disk.ts";
import { SmallWorld } from "./small-world.ts";

const MAKERS = 300;

/** A world whose first life ends when its event ring is full. User 1 has shares. */
async function begin(users: number): Promise<SmallWorld> {
  const world = new SmallWorld();
  await world.begin(() => {
    world.life.commit();
    throw new Crash("in the middle of a command");
  });
  await world.found(users);
  await world.split(1, MAKERS);
  return world;
}

async function placeMakers(world: SmallWorld, outcomeId: number, side: number, price: (i: number) => number) {
  for (let i = 0; i < MAKERS; i++) {
    world.place(1, { outcomeId, side, price: price(i), quantity: 1 });
    if (i % 50 === 0) await world.life.becomeQuiet();
  }
  await world.life.becomeQuiet();
}

test.for([
  ["a buy that mints", 2],
  ["a buy that takes asks", 1],
] as const)("%s is ended by the recovery", async ([, outcomeId]) => {
  const world = await begin(2);
  const { record } = world;
  // 300 orders of one share: bids for Yes, which make No available, or asks for Yes.
  if (outcomeId === 2) await placeMakers(world, 1, Side.buy, (i) => 5_000 - (i % 20));
  else await placeMakers(world, 1, Side.sell, (i) => 5_000 + (i % 20));
  world.place(2, { outcomeId, side: Side.buy, price: 9_000, quantity: MAKERS });
  await expect(world.life.becomeQuiet()).rejects.toThrow(Crash);
  const id = record.lastOrder;
  const { remaining } = record.live.get(id)!;
  expect(remaining).toBeGreaterThan(0);
  expect(remaining).toBeLessThan(MAKERS);

  world.crash();
  await world.begin();
  expect(record.orders.get(id)).toMatchObject({ status: OrderStatus.canceled, reason: Reason.operator, remaining });
  expect(record.live.size).toBe(remaining);
  world.compareAll();
});

test.for([
  ["cancels its owner's asks", SelfTradePrevention.cancelMaker],
  ["takes from its owner's asks", SelfTradePrevention.decrement],
] as const)(
  "everything reported before an order that %s was interrupted outlasts the crash",
  async ([, prevention]) => {
    const world = await begin(1);
    await placeMakers(world, 1, Side.sell, (i) => 5_000 + i);
    const wish = { outcomeId: 1, side: Side.buy, price: 9_000, quantity: MAKERS };
    world.place(1, { ...wish, selfTradePrevention: prevention });
    await expect(world.life.becomeQuiet()).rejects.toThrow(Crash);
    const canceled = [...world.record.orders.values()].filter(({ status }) => status === OrderStatus.canceled).length;
    expect(canceled).toBeGreaterThan(10);
    verify(world.life.database);

    world.crash();
    await world.begin();
    world.compareAll();
  },
);
