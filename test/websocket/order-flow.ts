/** Random orders and cancels over REST, for sockets to follow. */
import type { Client, OrderJson } from "../support/client.ts";
import type { Random } from "../support/random.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import type { TestMarket, World } from "../support/world.ts";

/** Random orders and cancels of all the users at once, each on a connection of its own. */
export async function randomFlow(
  users: readonly Client[],
  market: TestMarket,
  random: Random,
  steps: number,
): Promise<void> {
  const even = Math.floor(10_000 / market.outcomes.length);
  const one = async (user: Client): Promise<void> => {
    const placed: number[] = [];
    for (let n = 0; n < steps; n++) {
      if (placed.length > 0 && random.chance(0.3)) {
        const at = random.integer(0, placed.length - 1);
        await user.request("DELETE", `/orders/${placed.splice(at, 1)[0]}`);
        continue;
      }
      const outcome = random.integer(0, market.outcomes.length - 1);
      const price = even + 10 * random.integer(-6, 6);
      const body = terms(market, outcome, random.pick([BUY, SELL]), price, random.integer(1, 8), {
        self_trade_prevention: random.pick(["cancel_taker", "cancel_maker", "cancel_both", "decrement"]),
        time_in_force: random.pick(["gtc", "gtc", "gtc", "ioc"]),
      });
      const { status, data } = await user.request<OrderJson>("POST", "/orders", { body });
      if (status === 202) placed.push(data.id);
    }
  };
  await Promise.all(users.map(one));
}

/** Returns new users, each with 200 shares of every outcome. */
export async function tradersIn(world: World, market: TestMarket, count: number): Promise<Client[]> {
  const users = Array.from({ length: count }, () => world.user());
  for (const user of users) await world.split(user, market, 200);
  return users;
}
