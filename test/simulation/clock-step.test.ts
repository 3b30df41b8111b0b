/** A clock that was two days back for a while: ids of live orders are keys all the same, also after a restart. */
import { expect, test } from "vitest";
import { Side } from "../../engine/constants.ts";
import { SmallWorld } from "./small-world.ts";

const HOUR_MS = 3_600_000;

test("a live order's client order id identifies it after a restart, whatever the clock did", async () => {
  const world = new SmallWorld();
  const { clock, record } = world;
  await world.begin();
  await world.found(1);
  const place = async (clientOrderId: string): Promise<void> => {
    world.place(1, { outcomeId: 1, side: Side.buy, price: 10, quantity: 1, clientOrderId });
    await world.life.becomeQuiet();
  };
  await place("first");
  clock.now -= 48 * HOUR_MS;
  for (let i = 0; i < 10; i++) await place(`back-${i}`);
  clock.now += 49 * HOUR_MS;
  await place("last");
  world.crash();
  await world.begin();
  for (const id of ["first", "back-5", "last"]) {
    expect(world.life.exchange.clientOrderIds.find(1, id), id).not.toBe(0);
  }
  const count = record.live.size;
  await place("first");
  expect(record.live.size).toBe(count);
});
