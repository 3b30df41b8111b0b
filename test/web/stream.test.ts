/**
 * The page's stream against a real server: what a lost connection must not lose. Stubs the parts of a browser that the
 * modules use: location, storage, and sockets that the test can cut and delay.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import type { Client, OrderJson } from "../support/client.ts";
import { BUY, post } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

const PASSWORD = "a-long-enough-password";
const sockets: HoldingSocket[] = [];
/** Outgoing messages that contain this text are held until released. */
let heldText = "";
let held: (() => void)[] = [];
/** Of the page's modules and of the test. */
const timers = new Set<NodeJS.Timeout>();

class HoldingSocket extends WebSocket {
  /** Received messages. */
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

function release(): void {
  heldText = "";
  for (const send of held) send();
  held = [];
}

/** Replaces the responses to the next orders: a rejection before they reach the exchange, or a lost response. */
const replacedResponses: Response[] = [];
const LOST = Response.error();
let positionsReleased = Promise.resolve();

let world: World;
let client: Client;
let market: TestMarket;
/** The parts of the page's modules that the tests use. */
let sending: {
  newOrder(body: object): { client_order_id: string };
  sendOrder(body: object): Promise<boolean>;
  readonly placedOrders: { peek(): ReadonlyMap<number, { order: OrderJson }> };
  readonly pendingOrders: { peek(): ReadonlyMap<number, { isBusy: boolean }> };
};
let session: { signIn(email: string, password: string): Promise<unknown>; signOut(): Promise<void> };
let account: {
  startAccountState(): void;
  onOrderUpdate(listener: (order: OrderJson) => void): () => void;
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
  vi.stubGlobal("navigator", {});
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
    removeItem: (key: string) => stored.delete(key),
  });
  vi.stubGlobal("WebSocket", HoldingSocket);
  for (const name of ["setTimeout", "setInterval"] as const) {
    const start: (task: () => void, ms?: number, ...rest: []) => NodeJS.Timeout = globalThis[name];
    // Node's own fetch passes an argument to its timers' callbacks.
    vi.stubGlobal(name, (...given: Parameters<typeof start>) => {
      const timer = start(...given);
      timers.add(timer);
      return timer;
    });
  }
  vi.stubGlobal("fetch", async (path: string, options: RequestInit) => {
    if (options.method !== "POST" || !path.endsWith("/orders")) {
      const read = await fetch(new URL(path, address), options);
      if (path.includes("/me/positions")) await positionsReleased;
      return read;
    }
    const replacement = replacedResponses.shift();
    if (replacement?.status === 429) return replacement;
    const response = await fetch(new URL(path, address), options);
    if (replacement !== undefined) throw new TypeError("the connection broke");
    return response;
  });
  const load = (name: string) => import(new URL(`../../server/web/${name}.ts`, import.meta.url).href);
  session = await load("session");
  account = await load("account-state");
  sending = await load("trading/send-order");
  const stream: { startStream(): void } = await load("stream");
  account.startAccountState();
  stream.startStream();
});

afterAll(async () => {
  await session.signOut();
  await endPage();
  await world.stop();
});

/** Ends the page's endless activities, such as reconnecting, because its stubs end with this file. */
async function endPage(): Promise<void> {
  const clearTimers = (): void => {
    for (const timer of timers) clearTimeout(timer);
    timers.clear();
  };
  while (sockets.some(({ readyState }) => readyState !== WebSocket.CLOSED)) {
    clearTimers();
    const open = sockets.filter(({ readyState }) => readyState !== WebSocket.CLOSED);
    const closed = open.map((socket) => new Promise((resolve) => socket.once("close", resolve)));
    for (const socket of open) socket.on("error", () => {}).terminate();
    await Promise.all(closed);
  }
  clearTimers();
}

const bid = () => ({ market_id: market.id, outcome_id: market.outcomes[0]!, side: BUY, price: 100, quantity: 1 });
const place = async (by: Client): Promise<number> => (await post(by, bid())).data.id;
const openIds = (): number[] | undefined => account.openOrders.peek()?.map(({ id }) => id);

test("orders placed and canceled during the initial load are shown correctly", async () => {
  const initial = await place(client);
  let releasePositions = (): void => {};
  positionsReleased = new Promise((resolve) => {
    releasePositions = resolve;
  });
  const received: number[] = [];
  const end = account.onOrderUpdate(({ id }) => received.push(id));
  await session.signIn("ann@example.com", PASSWORD);
  await vi.waitFor(() => expect(sockets.at(-1)!.texts.some((text) => text.includes('"user_id"'))).toBe(true));
  await client.data("DELETE", `/orders/${initial}`);
  const first = await place(client);
  await vi.waitFor(() => expect(received).toContain(first));
  end();
  expect(openIds()).toBeUndefined();
  releasePositions();
  await vi.waitFor(() => expect(openIds()).toEqual([first]));
});

test("missed order updates are delivered before later ones after a reconnect", async () => {
  const first = openIds()![0]!;
  const received: number[] = [];
  const stop = account.onOrderUpdate(({ id }) => received.push(id));
  heldText = '"resume"';
  sockets.at(-1)!.terminate();
  const missed = await place(client);
  await vi.waitFor(() => expect(held).toHaveLength(1), 10_000);
  // It arrives on the new connection before the missed updates.
  const later = await place(client);
  const isLater = (text: string): boolean => text.includes('"order.updated"') && text.includes(`"id":${later},`);
  await vi.waitFor(() => expect(sockets.at(-1)!.texts.some(isLater)).toBe(true));
  release();
  await vi.waitFor(() => expect(openIds()).toEqual([later, missed, first]));
  expect([...new Set(received)]).toEqual([missed, later]);
  stop();
});

test("an order whose response is lost is retried despite rate limits, and placed once", async () => {
  const before = openIds()!;
  // No order update arrives in the meantime.
  heldText = '"auth"';
  sockets.at(-1)!.terminate();
  await vi.waitFor(() => expect(held).toHaveLength(1), 10_000);
  const refused = (): Response => new Response(JSON.stringify({ code: 42900, msg: "too often" }), { status: 429 });
  replacedResponses.push(LOST, refused(), refused());
  const body = sending.newOrder(bid());
  expect(await sending.sendOrder(body)).toBe(false);
  expect(sending.pendingOrders.peek().get(market.id)).toMatchObject({ isBusy: false, body });
  expect(await sending.sendOrder(body)).toBe(true);
  expect(sending.pendingOrders.peek().size).toBe(0);
  const { order } = sending.placedOrders.peek().get(market.id)!;
  release();
  await vi.waitFor(() => expect(openIds()).toEqual([order.id, ...before]));
});

test("an order whose responses are all lost is looked up once the connection is back", async () => {
  const before = openIds()!;
  heldText = '"auth"';
  sockets.at(-1)!.terminate();
  await vi.waitFor(() => expect(held).toHaveLength(1), 10_000);
  replacedResponses.push(LOST, LOST, LOST);
  const body = sending.newOrder(bid());
  expect(await sending.sendOrder(body)).toBe(false);
  release();
  await vi.waitFor(() => expect(sending.pendingOrders.peek().size).toBe(0));
  const { order } = sending.placedOrders.peek().get(market.id)!;
  expect(order.client_order_id).toBe(body.client_order_id);
  await vi.waitFor(() => expect(openIds()).toEqual([order.id, ...before]));
});

test("a connection serves a single user, even if the first signs out before authentication completes", async () => {
  heldText = '"auth"';
  sockets.at(-1)!.terminate();
  await vi.waitFor(() => expect(held).toHaveLength(1), 10_000);
  const old = sockets.at(-1)!;
  await session.signOut();
  release();
  await session.signIn("ben@example.com", PASSWORD);
  const ben = world.client("ben");
  await vi.waitFor(() => expect(openIds()).toEqual([]));
  const order = await place(ben);
  await vi.waitFor(() => expect(openIds()).toEqual([order]));
  expect(sockets.at(-1)).not.toBe(old);
});
