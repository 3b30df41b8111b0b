/** cancel_on_disconnect when the server ends: tied orders end with a stop, or at the start after a kill; no others do. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectSoundDatabase } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { variants } from "../support/projects.ts";
import type { Socket } from "../support/socket.ts";
import { BUY, quote, terms } from "../support/terms.ts";
import { type TestMarket, World } from "../support/world.ts";
import { expectLive, placeAll, REASON, type Results } from "./tied-orders.ts";

/** A tied connection's orders and other orders of the same user. */
interface Scene {
  readonly user: Client;
  readonly markets: readonly TestMarket[];
  readonly tied: Socket;
  readonly listener: Socket;
  readonly own: number[];
  readonly others: readonly number[];
}

async function prepareScene(world: World): Promise<Scene> {
  const user = world.user();
  const markets = [world.market(), world.market(), world.market()];
  await world.split(user, markets[0]!, 20);
  const [tied, listener] = [await world.socket(user), await world.socket(user)];
  await tied.tie();
  const own = await placeAll(tied, markets[0]!, 100);
  const byRest = await user.place(terms(markets[0]!, 0, BUY, 90, 1));
  const untied = await listener.data<OrderJson>("order.place", terms(markets[1]!, 0, BUY, 90, 1));
  user.close();
  return { user, markets, tied, listener, own, others: [byRest.id, untied.id] };
}

/** After a restart: the tied orders ended, and the others are live. */
async function expectKept(world: World, { user, own, others }: Pick<Scene, "user" | "own" | "others">): Promise<void> {
  const again = new Client(world.server, user.token);
  await expectLive(again, others);
  for (const id of own) expect(await again.order(id)).toMatchObject({ status: "canceled", reason: REASON });
  const all = await again.all<OrderJson>("/orders?status=all");
  expect(all.filter(({ id }) => !others.includes(id)).map(({ reason }) => reason)).toEqual(
    Array(all.length - others.length).fill(REASON),
  );
  again.close();
}

interface QuoteScene {
  readonly user: Client;
  readonly other: Client;
  /** The user's quotes, sent last by its tied connection. */
  readonly ends: number[];
  /** The other user's quotes, sent last by its untied connection. */
  readonly stay: number[];
}

/** Quotes that several connections send unchanged. */
async function prepareQuotes(world: World): Promise<QuoteScene> {
  const [user, other] = [world.user(), world.user()];
  const [tied, loose] = [await world.socket(user), await world.socket(user)];
  const [otherTied, otherLoose] = [await world.socket(other), await world.socket(other)];
  await tied.tie();
  await otherTied.tie();
  const sent = (market: TestMarket): { market_id: number; quotes: unknown[] } => ({
    market_id: market.id,
    quotes: [100, 200, 300].map((price) => quote(market, 0, BUY, price, 1)),
  });
  const [first, second] = [world.market(), world.market()];
  const ids = ({ results }: Results): number[] => results.map(({ data }) => data!.id);
  const byRest = ids(await user.data<Results>("PUT", `/quotes/${first.id}`, { quotes: sent(first).quotes }));
  const ends = ids(await tied.data<Results>("quotes.replace", sent(first)));
  expect(ends).toEqual(byRest);
  // Back to back: the second request keeps quotes whose placement is still in flight.
  loose.post({ op: "quotes.replace", data: sent(second) });
  const inFlight = ids(await tied.data<Results>("quotes.replace", sent(second)));
  const stay = ids(await otherTied.data<Results>("quotes.replace", sent(first)));
  expect(ids(await otherLoose.data<Results>("quotes.replace", sent(first)))).toEqual(stay);
  otherTied.post({ op: "quotes.replace", data: sent(second) });
  const alsoStay = ids(await otherLoose.data<Results>("quotes.replace", sent(second)));
  // Back and forth: the last sender counts.
  for (const socket of [tied, loose, tied]) expect(ids(await socket.data("quotes.replace", sent(first)))).toEqual(ends);
  for (const client of [user, other]) client.close();
  return { user, other, ends: [...ends, ...inFlight], stay: [...stay, ...alsoStay] };
}

describe.each(variants([1], [3]))("the server ends, with ENGINE_THREADS=%i", (threads) => {
  let world: World;
  let killed: Scene;
  let quoted: QuoteScene;
  beforeAll(async () => {
    world = await World.start({
      users: 4,
      markets: Array<number>(8).fill(2),
      env: { ENGINE_THREADS: String(threads) },
    });
    killed = await prepareScene(world);
    quoted = await prepareQuotes(world);
    // More orders are in flight at the kill.
    const { tied, markets, own } = killed;
    const count = tied.acknowledgements.length;
    for (let n = 0; n < 300; n++) tied.post({ op: "order.place", data: terms(markets[n % 3]!, 0, BUY, 20, 1) });
    await tied.until(() => tied.acknowledgements[count + 20], "some acknowledgements");
    await world.server.kill();
    await tied.closed;
    own.push(...tied.acknowledgements.slice(count).map(({ data }) => (data as OrderJson).id));
    expectSoundDatabase(world.server.dataDir);
    world.server = await world.server.restart();
  });
  afterAll(async () => {
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  });

  test("tied orders end at the start after a kill -9", () => expectKept(world, killed));

  test("quotes that stayed as they were end, at a kill -9 too, with the last connection that sent them", async () => {
    const { user, other, ends, stay } = quoted;
    await expectKept(world, { user, own: ends, others: [] });
    await expectKept(world, { user: other, own: [], others: stay });
  });

  describe("after SIGTERM", () => {
    let stopped: Scene;
    beforeAll(async () => {
      stopped = await prepareScene(world);
      const { tied, markets } = stopped;
      // More orders are in flight: each is placed or rejected, and none stays live.
      const count = tied.acknowledgements.length;
      for (let n = 0; n < 400; n++) tied.post({ op: "order.place", data: terms(markets[n % 3]!, 0, BUY, 20, 1) });
      await tied.until(() => tied.acknowledgements[count + 20], "some acknowledgements");
      await world.server.stop();
      const late = tied.acknowledgements.slice(count);
      expect(late.filter(({ code }) => code !== 0 && code !== 50300)).toEqual([]);
      stopped.own.push(...late.filter(({ code }) => code === 0).map(({ data }) => (data as OrderJson).id));
      expectSoundDatabase(world.server.dataDir);
      world.server = await world.server.restart();
    });

    test("a stop by SIGTERM sends clients the ends of tied orders before system.shutdown", async () => {
      const { tied, listener, own } = stopped;
      for (const socket of [tied, listener]) {
        expect(await socket.closed).toBe(1001);
        expect(socket.frames.at(-1)!.event).toBe("system.shutdown");
        const ends = socket.of<OrderJson>("order.updated").filter(({ data }) => data.reason === REASON);
        expect(ends.map(({ data }) => data.id).sort()).toEqual([...own].sort());
      }
    });

    test("tied orders ended with a server that SIGTERM stopped, and other orders live on", () =>
      expectKept(world, stopped));

    test("tied orders that ended at the start after kill -9 stay ended at the next start", async () => {
      await expectKept(world, killed);
    });
  });
});
