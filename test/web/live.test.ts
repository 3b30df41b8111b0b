/**
 * The page's stream against a real server: what a break of the connection must not lose. A browser is only what the
 * modules take of it: its address, its storage, and sockets that can be cut and held up.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import type { Client, OrderJson } from "../server/support/client.ts";
import { BUY, post } from "../server/support/trading.ts";
import { type TestMarket, World } from "../server/support/world.ts";

const PASSWORD = "a-long-enough-password";
const sockets: HoldingSocket[] = [];
/** Sent texts that have it wait until they are let go. */
let heldText = "";
let held: (() => void)[] = [];

class HoldingSocket extends WebSocket {
  /** What came. */
  readonly texts: string[] = [];

  constructor(url: string) {
    super(url);
    sockets.push(this);
    this.on("message", (data) => this.texts.push(String(data)));
    this.on("error", () => {});
  }

  override send(text: string): void {
    const send = (): void => super.send(text);
    if (heldText !== "" && text.includes(heldText)) held.push(send);
    else send();
  }
}

function letGo(): void {
  heldText = "";
  for (const send of held) send();
  held = [];
}

let world: World;
let client: Client;
let market: TestMarket;
/** What is used of the page's modules, which are compiled for a browser. */
let session: { signIn(email: string, password: string): Promise<unknown>; signOut(): Promise<void> };
let account: {
  startAccountState(): void;
  onOrder(listener: (order: OrderJson) => void): () => void;
  readonly openOrders: { peek(): OrderJson[] | null };
};

beforeAll(async () => {
  const named = { ann: { password: PASSWORD }, ben: { password: PASSWORD } };
  world = await World.start({ users: 0, named, markets: [2] });
  client = world.client("ann");
  market = world.market();
  const address = `http://127.0.0.1:${world.server.port}/`;
  const stored = new Map<string, string>();
  const { fetch } = globalThis;
  vi.stubGlobal("window", Object.assign(new EventTarget(), { location: new URL(address) }));
  vi.stubGlobal("document", { baseURI: address });
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
    removeItem: (key: string) => stored.delete(key),
  });
  vi.stubGlobal("WebSocket", HoldingSocket);
  vi.stubGlobal("fetch", (path: string, options: RequestInit) => fetch(new URL(path, address), options));
  const load = (name: string) => import(`../../server/web/${name}.ts`);
  session = await load("session");
  account = await load("account-state");
  const live: { startLive(): void } = await load("live");
  account.startAccountState();
  live.startLive();
});

afterAll(async () => {
  await session.signOut();
  for (const socket of sockets) socket.terminate();
  await world.stop();
});

const place = async (by: Client): Promise<number> => {
  const body = { market_id: market.id, outcome_id: market.outcomes[0]!, side: BUY, price: 100, quantity: 1 };
  return (await post(by, body)).data.id;
};
const openIds = (): number[] | undefined => account.openOrders.peek()?.map(({ id }) => id);

test("what happened while the connection was away is told before what happens after", async () => {
  await session.signIn("ann@example.com", PASSWORD);
  const first = await place(client);
  await vi.waitFor(() => expect(openIds()).toEqual([first]));
  const heard: number[] = [];
  const stop = account.onOrder(({ id }) => heard.push(id));
  heldText = '"resume"';
  sockets.at(-1)!.terminate();
  const missed = await place(client);
  await vi.waitFor(() => expect(held).toHaveLength(1), 10_000);
  // It comes by the new connection, ahead of what was missed.
  const later = await place(client);
  const isLater = (text: string): boolean => text.includes('"order.updated"') && text.includes(`"id":${later},`);
  await vi.waitFor(() => expect(sockets.at(-1)!.texts.some(isLater)).toBe(true));
  letGo();
  await vi.waitFor(() => expect(openIds()).toEqual([later, missed, first]));
  expect([...new Set(heard)]).toEqual([missed, later]);
  stop();
});

test("a connection hears one user alone, also where the first one leaves before the exchange knew", async () => {
  heldText = '"auth"';
  sockets.at(-1)!.terminate();
  await vi.waitFor(() => expect(held).toHaveLength(1), 10_000);
  const old = sockets.at(-1)!;
  await session.signOut();
  letGo();
  await session.signIn("ben@example.com", PASSWORD);
  const ben = world.client("ben");
  await vi.waitFor(() => expect(openIds()).toEqual([]));
  const order = await place(ben);
  await vi.waitFor(() => expect(openIds()).toEqual([order]));
  expect(sockets.at(-1)).not.toBe(old);
});
