/** An exchange with a trader, who has a password, and a market whose first outcome is offered. */
import type { Client } from "../../support/client.ts";
import { PASSWORD } from "../../support/identity.ts";
import { SELL, terms } from "../../support/terms.ts";
import { type TestMarket, World } from "../../support/world.ts";

export interface Offers {
  readonly world: World;
  /** Offers 2,500 shares each at 50 and 53 %, and has 100 more of each outcome. */
  readonly maker: Client;
  readonly market: TestMarket;
}

export async function startWithOffers(): Promise<Offers> {
  const world = await World.start({ users: 1, named: { trader: { password: PASSWORD } } });
  const [maker, market] = [world.user(), world.market()];
  await world.split(maker, market, 5_100);
  for (const price of [5_000, 5_300]) await maker.place(terms(market, 0, SELL, price, 2_500));
  return { world, maker, market };
}
