/** What a user watches: additions, removals, bounds, and what a restart keeps. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { MAX_WATCHED } from "../../server/markets/limits.ts";
import { expectEndsWell } from "../support/checks.ts";
import type { Answer, Client } from "../support/client.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { asOperator, newMarket, OPERATORS } from "../support/markets.ts";
import { World } from "../support/world.ts";

interface Watched {
  readonly kind: string;
  readonly id: number;
}
interface Watchlist {
  readonly items: readonly Watched[];
}

let world: World;
let user: Client;
const market = (id: number): Watched => ({ kind: "market", id });
const event = (id: number): Watched => ({ kind: "event", id });
const change = (body: object, client = user): Promise<Answer<Watchlist>> =>
  client.request("PATCH", "/me/watchlist", { body });
const list = async (client = user): Promise<readonly Watched[]> => (await client.get<Watchlist>("/me/watchlist")).items;

beforeAll(async () => {
  const named = { ...OPERATORS, watcher: { password: PASSWORD }, other: { password: PASSWORD } };
  world = await World.start({ users: 2, named, markets: Array.from({ length: MAX_WATCHED + 60 }, () => 2) });
  user = (await signIn(world.server, "watcher@example.com")).client;
  const operator = await asOperator(world);
  await operator.data("POST", "/admin/events", { slug: "watched", title: "An event to watch" });
  operator.close();
});
afterAll(async () => {
  user.close();
  await expectEndsWell(world);
});

test("the latest additions come first; what is there stays in its place", async () => {
  expect(await list()).toEqual([]);
  expect((await change({ add: [market(1)] })).data.items).toEqual([market(1)]);
  expect((await change({ add: [market(3), event(1)] })).data.items).toEqual([market(3), event(1), market(1)]);
  expect((await change({ add: [market(1), market(2), market(2)] })).data.items).toEqual([
    market(2),
    market(3),
    event(1),
    market(1),
  ]);
  expect((await change({ remove: [market(3), market(99)], add: [market(4)] })).data.items).toEqual([
    market(4),
    market(2),
    event(1),
    market(1),
  ]);
  // A market and an event of the same id are two entries.
  expect((await change({ remove: [market(1)] })).data.items).toEqual([market(4), market(2), event(1)]);
  expect(await list()).toEqual([market(4), market(2), event(1)]);
});

test("wrong requests change nothing", async () => {
  const before = await list();
  const pending = await world.user().request<{ id: number }>("POST", "/markets/proposals", { body: newMarket() });
  expect(pending.status).toBe(201);
  for (const [body, code] of [
    [{}, 40000],
    [{ add: [] }, 40000],
    [{ add: [market(0)] }, 40000],
    [{ add: [market(1.5)] }, 40000],
    [{ add: [{ kind: "user", id: 1 }] }, 40000],
    [{ add: [{ id: 1 }] }, 40000],
    [{ add: [{ ...market(1), name: "x" }] }, 40000],
    [{ add: market(1) }, 40000],
    [{ put: [market(1)] }, 40000],
    [{ add: [market(1), market(100_000)] }, 4040],
    [{ add: [event(7)] }, 4040],
    [{ add: [market(pending.data.id)] }, 4040],
    [{ add: Array.from({ length: MAX_WATCHED + 1 }, (_, i) => market(i + 1)) }, 40000],
    [{ add: Array.from({ length: MAX_WATCHED }, (_, i) => market(i + 1)) }, 40900],
  ] as const) {
    expect([JSON.stringify(body).slice(0, 80), (await change(body)).code]).toEqual([
      JSON.stringify(body).slice(0, 80),
      code,
    ]);
  }
  expect(await list()).toEqual(before);
});

test("only the user's own sign-in has it", async () => {
  expect((await world.anonymous().request("GET", "/me/watchlist")).code).toBe(40100);
  expect((await world.user().request("GET", "/me/watchlist")).code).toBe(40300);
  const other = (await signIn(world.server, "other@example.com")).client;
  expect(await list(other)).toEqual([]);
  other.close();
});

test("changes at one time all take effect, up to the bound, and a restart keeps them", {
  timeout: 120_000,
}, async () => {
  const kept = await list();
  const added = Array.from({ length: 50 }, (_, i) => market(10 + i));
  const answers = await Promise.all(added.map((each) => change({ add: [each] })));
  expect(answers.map(({ code }) => code)).toEqual(added.map(() => 0));
  expect(new Set((await list()).map(({ kind, id }) => `${kind} ${id}`))).toEqual(
    new Set([...added, ...kept].map(({ kind, id }) => `${kind} ${id}`)),
  );
  const rest = Array.from({ length: MAX_WATCHED - kept.length - added.length }, (_, i) => market(60 + i));
  expect((await change({ add: rest })).data.items).toHaveLength(MAX_WATCHED);
  expect((await change({ add: [market(MAX_WATCHED + 50)] })).code).toBe(40900);
  expect((await change({ add: [market(MAX_WATCHED + 50)], remove: [market(60)] })).code).toBe(0);
  const before = await list();
  user.close();
  await world.server.stop();
  world.server = await world.server.restart();
  user = (await signIn(world.server, "watcher@example.com")).client;
  expect(await list()).toEqual(before);
  expect((await change({ remove: before })).data.items).toEqual([]);
});
