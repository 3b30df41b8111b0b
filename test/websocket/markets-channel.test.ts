/**
 * The markets channel on channels of this process: connections to one market, several and all of them, in both
 * encodings, each topic with a sequence of its own. Needs no server.
 */
import type * as Uws from "uWebSockets.js";
import { expect, test } from "vitest";
import { Ledger } from "../../engine/ledger.ts";
import { type MarketRow, type OutcomeRow, UNDECIDED } from "../../engine/projection/load/markets.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { NO_ADDRESS } from "../../server/http/client-address.ts";
import { loadUws } from "../../server/http/uws.ts";
import { MarketRegistry } from "../../server/markets/registry.ts";
import { Traffic } from "../../server/util/counters.ts";
import { Timeline } from "../../server/util/timeline.ts";
import { Channels, subscribedJson } from "../../server/websocket/channels.ts";
import { SocketConnection, type SocketData } from "../../server/websocket/connection.ts";
import type { MarketJson } from "../support/client.ts";
import { Socket } from "../support/socket.ts";
import type { World } from "../support/world.ts";

function addMarket(registry: MarketRegistry, id: number): ReturnType<MarketRegistry["add"]> {
  const row: MarketRow = {
    ...{ id, slug: `m-${id}`, question: "?", description: null, category: null, eventId: null, status: 1, sets: 0 },
    ...{ opensAt: null, closesAt: null, createdAt: 1, firstOutcomeId: 2 * id - 1, outcomes: 2, proposedBy: null },
    ...UNDECIDED,
  };
  const outcomes = [0, 1].map((position): OutcomeRow => {
    const outcome = { id: 2 * id - 1 + position, marketId: id, position, name: "Yes" };
    return { ...outcome, lastPrice: null, volume: 0, payout: null };
  });
  return registry.add(row, outcomes);
}

/** Listens on a free port; the nth connection gets the nth subscription. */
async function serve(
  registry: MarketRegistry,
  subscriptions: readonly object[],
): Promise<{ app: Uws.TemplatedApp; channels: Channels; connections: SocketConnection[]; server: World["server"] }> {
  const uws = await loadUws();
  const app = uws.App();
  const traffic = new Traffic();
  const channels = new Channels(app, registry, new Ledger(), traffic, {
    timeline: new Timeline(0),
    clock: systemClock,
    startedAt: 1_000,
  });
  const connections: SocketConnection[] = [];
  app.ws<SocketData>("/*", {
    upgrade: (res, req, context) => {
      const packed = req.getHeader("sec-websocket-protocol") === "msgpack";
      const connection = new SocketConnection(null, NO_ADDRESS, packed ? "msgpack" : "json", 1, traffic);
      const key = req.getHeader("sec-websocket-key");
      res.upgrade({ connection }, key, packed ? "msgpack" : "", "", context);
    },
    open: (socket) => {
      const { connection } = socket.getUserData();
      connection.socket = socket;
      const topics = channels.subscribe(connection, { channel: "markets", ...subscriptions[connections.length] });
      for (const topic of topics) channels.start(connection, topic);
      connections.push(connection);
    },
    close: (socket) => {
      const { connection } = socket.getUserData();
      connection.closed();
      channels.closed(connection);
    },
  });
  const listening = await new Promise<Uws.us_listen_socket>((resolve, reject) => {
    app.listen("127.0.0.1", 0, (socket) => (socket ? resolve(socket) : reject(new Error("cannot listen"))));
  });
  const server = { root: `http://127.0.0.1:${uws.us_socket_local_port(listening)}` } as World["server"];
  return { app, channels, connections, server };
}

/** [market, status, sequence] of the updates, when there are `count`. */
async function updatesOf(socket: Socket, count: number): Promise<unknown[]> {
  await socket.until(() => (socket.frames.length >= count ? true : undefined), `${count} frames`);
  return socket.of<MarketJson>("market.updated").map(({ sequence, data }) => [data.id, data.status, sequence]);
}

test("a market's state goes to its subscribers and to those of all markets, each in a sequence of its own", async () => {
  const registry = new MarketRegistry(1, 0, systemClock);
  const markets = [1, 2].map((id) => addMarket(registry, id));
  // Both markets by id, all markets in MessagePack, the second market.
  const subscriptions = [{ market_ids: [1, 2] }, {}, { market_id: 2 }];
  const { app, channels, connections, server } = await serve(registry, subscriptions);
  const sockets: Socket[] = [];
  for (const protocols of [[], ["msgpack"], []]) sockets.push(await Socket.open(server, null, { protocols }));
  const change = (index: number, status: number): void => {
    registry.setStatus(markets[index]!, status);
    channels.marketChanged(markets[index]!);
  };
  change(0, 2);
  change(1, 3);
  change(1, 1);
  const [first, second, third] = [[1, "halted"], [2, "closed"], [2, "open"]] as const; // biome-ignore format: pairs
  const [byId, all, one] = sockets as [Socket, Socket, Socket];
  expect(await updatesOf(byId, 3)).toEqual([[...first, 1_001], [...second, 1_001], [...third, 1_002]]); // biome-ignore format: one list
  expect(await updatesOf(all, 3)).toEqual([[...first, 1_001], [...second, 1_002], [...third, 1_003]]); // biome-ignore format: one list
  expect(await updatesOf(one, 2)).toEqual([[...second, 1_001], [...third, 1_002]]); // biome-ignore format: one list
  const list = JSON.parse(subscribedJson(channels.list(connections[1]!.topics!))) as object[];
  expect(list).toEqual([{ channel: "markets", implied: false, market_id: null, outcome_id: null, sequence: 1_003 }]);
  // One of a topic's two subscribers leaves: the other still gets the updates.
  await byId.close();
  change(1, 2);
  expect((await updatesOf(one, 3)).at(-1)).toEqual([2, "halted", 1_003]);
  for (const socket of [all, one]) await socket.close();
  app.close();
});
