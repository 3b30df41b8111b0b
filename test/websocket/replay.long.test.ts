/**
 * Replays of the private stream: `resume` and GET /me/events return exactly the live frames, over restarts and crashes,
 * during trading, to slow readers, and never with a silent gap.
 */
import type Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OrderStatus, Side } from "../../engine/constants.ts";
import * as R from "../../engine/ring/records.ts";
import { expectEndsWell, expectQuiet, expectSoundDatabase } from "../support/checks.ts";
import { Client, type OrderJson, type PositionJson } from "../support/client.ts";
import { rowsOf, withDatabase } from "../support/data-dir.ts";
import { appendEvents } from "../support/journal.ts";
import { record } from "../support/log-bodies.ts";
import { Random } from "../support/random.ts";
import { RandomTrading } from "../support/random-trading.ts";
import { resume, updatesAfter } from "../support/resume.ts";
import type { TestServer } from "../support/server.ts";
import { type Acknowledgement, type Frame, Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { expectRefused } from "../support/trading.ts";
import { tokenOf, World } from "../support/world.ts";

const MSGPACK = { protocols: ["msgpack"] };

/** The frames of one user's unbroken connection: texts by sequence. */
class Record {
  readonly texts: string[] = [];

  get last(): number {
    return this.texts.length;
  }

  /** Adds a socket's frames, which must continue this record or agree with it. */
  take(frames: readonly Frame[]): void {
    for (const frame of frames) {
      const { sequence } = frame;
      const text = JSON.stringify(frame);
      if (sequence > this.last + 1) throw new Error(`${sequence} follows ${this.last}`);
      if (sequence > this.last) this.texts.push(text);
      else if (text !== this.texts[sequence - 1]) expect(text).toBe(this.texts[sequence - 1]);
    }
  }

  expectAfter(sequence: number, frames: readonly Frame[]): void {
    // As one text: a comparison of long lists takes seconds.
    expect(frames.map((frame) => JSON.stringify(frame)).join("\n")).toBe(this.texts.slice(sequence).join("\n"));
  }
}

/** Replays and pages from some sequences equal the record, and end with the balance and each position once. */
async function expectReplayed(
  server: TestServer,
  token: string,
  record: Record,
  random: Random,
  times: number,
): Promise<void> {
  const client = new Client(server, token);
  for (const [n, sequence] of [
    0,
    record.last,
    ...Array.from({ length: times }, () => random.integer(0, record.last)),
  ].entries()) {
    const socket = await Socket.open(server, token, n % 2 === 0 ? {} : MSGPACK);
    const answer = await resume(socket, sequence);
    expect(answer.data).toEqual({ after: sequence, last: record.last });
    await socket.fence();
    record.expectAfter(sequence, updatesAfter(socket, answer));
    const rest = socket.frames.filter(({ event }) => event !== "order.updated");
    const positions = await client.all<PositionJson>("/me/positions");
    expect(rest.map(({ event, sequence }) => [event, sequence])).toEqual([
      ["balance.updated", record.last],
      ...positions.map(() => ["position.updated", record.last]),
    ]);
    expect(rest[0]!.data).toEqual(await client.balance());
    const told = rest.slice(1).map(({ data }) => data as PositionJson);
    expect(told.sort((a, b) => b.outcome_id - a.outcome_id)).toEqual(positions);
    await socket.close();
    const limit = random.pick([50, 63, 64, 65, 199, 200]);
    record.expectAfter(sequence, await client.all<Frame>(`/me/events?after=${sequence}`, limit));
  }
  record.expectAfter(0, await client.all<Frame>("/me/events"));
  const near = Math.max(0, record.last - 5);
  record.expectAfter(near, await client.all<Frame>(`/me/events?after=${near}`, 1));
  const { items } = await client.get<{ items: Frame[] }>(`/me/events?after=${near}`);
  record.expectAfter(near, items);
  client.close();
}

/** What an update shows: its status and reason, the match types of its trades, and whether they are many. */
function kindsOf({ status, reason, trades }: OrderJson): string[] {
  const kinds = [`${status} ${reason}`, ...trades.map(({ match_type }) => match_type)];
  return trades.length > 2 ? [...kinds, "many trades"] : kinds;
}

function expectManyKinds(kinds: ReadonlySet<string>): void {
  for (const kind of ["direct", "mint", "merge", "many trades", "filled null", "canceled user", "expired expired"]) {
    expect(kinds).toContain(kind);
  }
  for (const reason of ["post_only_would_cross", "fok_unfillable", "ioc_remainder", "self_trade"]) {
    expect([...kinds].some((kind) => kind.endsWith(reason))).toBe(true);
  }
}

describe.for([1, 3])("random trading, ENGINE_THREADS=%i", (threads) => {
  test("a replay of random trading equals the live frames byte by byte: during trading, after SIGTERM and after kill -9", async () => {
    const random = Random.printed(`replays, ${threads} engine threads`);
    const world = await World.start({ users: 3, markets: [2, 2, 3], env: { ENGINE_THREADS: String(threads) } });
    const tokens = [0, 1, 2].map((i) => tokenOf(`user${i}`));
    const records = tokens.map(() => new Record());
    const trading = new RandomTrading(random, world.markets, tokens);
    let recorders = await Promise.all(tokens.map((token) => Socket.open(world.server, token)));
    await trading.prepare(world.server);
    const kinds = new Set<string>();
    const takeIn = (): void => {
      for (const [i, record] of records.entries()) {
        const frames = recorders[i]!.of<OrderJson>("order.updated");
        record.take(frames);
        for (const { data } of frames) for (const kind of kindsOf(data)) kinds.add(kind);
      }
    };

    // Late connections resume from anywhere and stay.
    const late: { user: number; sequence: number; socket: Socket; answer: Acknowledgement }[] = [];
    trading.start(world.server);
    for (let n = 0; n < 10; n++) {
      await trading.more(60);
      const user = n % tokens.length;
      const socket = await Socket.open(world.server, tokens[user]!, n % 4 === 0 ? MSGPACK : {});
      const sequence = random.integer(0, recorders[user]!.of("order.updated").length);
      late.push({ user, sequence, socket, answer: await resume(socket, sequence) });
    }
    await trading.stop();
    await trading.expired(world.server);
    for (const recorder of recorders) await recorder.fence();
    takeIn();
    for (const { user, sequence, socket, answer } of late) {
      await socket.fence();
      records[user]!.expectAfter(sequence, updatesAfter(socket, answer));
      await socket.close();
    }
    expectManyKinds(kinds);
    for (const [i, token] of tokens.entries()) await expectReplayed(world.server, token, records[i]!, random, 4);

    // A restart takes long: one variant is enough.
    if (threads === 1) {
      await world.server.stop();
      expectSoundDatabase(world.server.dataDir);
      world.server = await world.server.restart();
      for (const [i, token] of tokens.entries()) await expectReplayed(world.server, token, records[i]!, random, 1);
      recorders = await Promise.all(tokens.map((token) => Socket.open(world.server, token)));
    }

    trading.start(world.server);
    await trading.more(150);
    await world.server.kill();
    await trading.stop();
    for (const recorder of recorders) await recorder.closed;
    takeIn();
    expectSoundDatabase(world.server.dataDir);
    world.server = await world.server.restart();
    await trading.expired(world.server);
    for (const [i, token] of tokens.entries()) {
      // The replay also has the commits whose frames the server didn't send before the kill.
      const socket = await Socket.open(world.server, token);
      const answer = await resume(socket, random.integer(0, records[i]!.last));
      records[i]!.take(updatesAfter(socket, answer));
      await socket.close();
      await expectReplayed(world.server, token, records[i]!, random, 1);
    }
    await expectEndsWell(world);
  });
});

describe("a long history", () => {
  const UPDATES = 30_000;
  let world: World;
  let user: Client;
  let socket: Socket;
  beforeAll(async () => {
    world = await World.start({ users: 2, markets: [2] });
    await new Client(world.server, tokenOf("user0")).place(terms(world.markets[0]!, 0, BUY, 10, 1));
    await world.server.stop();
    // Its order is amended many times over.
    const [order] = rowsOf<{ id: number; outcome: number }>(
      world.server.dataDir,
      "SELECT id, outcome_id AS outcome FROM orders",
    );
    const amend = record(R.packEvent(R.EventKind.orderAmended, Side.buy, OrderStatus.open, 0, 0), {
      ...{ slot: 1, user: 1, ...order, price: 10, quantity: 1, remaining: 1, at: Date.now() },
    });
    const amends = Array.from({ length: UPDATES - 1 }, () => amend.slice());
    appendEvents(world.server.dataDir, amends, 500);
    world.server = await world.server.restart();
    user = new Client(world.server, tokenOf("user0"), 4);
  });
  afterAll(async () => {
    user.close();
    await expectEndsWell(world);
  });

  /** Leaves the user's updates of the log's last block. */
  const forgetLog = (db: Database.Database): void =>
    void db.exec("DELETE FROM update_index WHERE user_id = 1 AND sequence < (SELECT max(sequence) FROM update_index)");
  const oldest = (): number =>
    rowsOf<{ oldest: number }>(
      world.server.dataDir,
      "SELECT min(sequence) AS oldest FROM update_index WHERE user_id = 1",
    )[0]!.oldest;
  const numbers = (frames: readonly Frame[]): number[] => frames.map(({ sequence }) => sequence);
  const from = (sequence: number, count: number): number[] => Array.from({ length: count }, (_, i) => sequence + 1 + i);
  /** Makes that many more updates of the user, as fast as possible. */
  async function trade(updates: number): Promise<void> {
    const order = terms(world.markets[0]!, 1, BUY, 20, 1);
    for (let done = 0; done < updates; done += 100) {
      const { results } = await user.data<{ results: { data: OrderJson }[] }>("POST", "/orders/batch", {
        operations: Array.from({ length: 50 }, () => ({ op: "place", ...order })),
      });
      const operations = results.map(({ data }) => ({ op: "cancel", id: data.id }));
      await user.data("POST", "/orders/batch", { operations });
    }
  }

  test("a slow reader of a replay gets everything, while more updates arrive than the server buffers for a connection", async () => {
    socket = await Socket.open(world.server, tokenOf("user0"));
    const answer = await socket.ask({ op: "resume", sequence: 0 });
    expect(answer).toMatchObject({ code: 0, data: { last: UPDATES } });
    socket.socket.pause();
    await trade(2_000);
    expect(socket.of("order.updated").length).toBeLessThan(UPDATES / 2);
    socket.socket.resume();
    await trade(500);
    await socket.frame("balance.updated");
    await trade(100);
    await socket.frame("order.updated", (_, { sequence }) => sequence === UPDATES + 2_600);
    expect(numbers(updatesAfter(socket, answer))).toEqual(from(0, UPDATES + 2_600));
    expect(socket.of("balance.updated").at(-1)!.data).toEqual(await user.balance());
    await socket.close();
  });

  test("a second resume is rejected during the first replay, and doesn't affect it", async () => {
    const last = UPDATES + 2_600;
    socket = await Socket.open(world.server, tokenOf("user0"));
    const [first, second] = [0, 5].map((sequence) => socket.post({ op: "resume", sequence }));
    expect(await socket.answer(second!)).toMatchObject({ code: 40900 });
    await socket.frame("balance.updated");
    const told = updatesAfter(socket, await socket.answer(first!));
    expect(numbers(told)).toEqual(from(0, last));
    expect(socket.of("balance.updated")).toHaveLength(1);
    await socket.close();
  });

  test("connections that vanish during a replay don't affect the others", async () => {
    const last = UPDATES + 2_600;
    const gone = await Promise.all(Array.from({ length: 10 }, () => Socket.open(world.server, tokenOf("user0"))));
    const steady = await Socket.open(world.server, tokenOf("user0"), MSGPACK);
    const answer = steady.ask({ op: "resume", sequence: last - 5_000 });
    for (const each of gone) {
      each.post({ op: "resume", sequence: 0 });
      await each.frame("order.updated");
      each.socket.terminate();
    }
    await steady.frame("balance.updated");
    expect(numbers(updatesAfter(steady, await answer))).toEqual(from(last - 5_000, 5_000));
    await steady.close();
    expectQuiet(world.server);
  });

  test("updates deleted under a slow reader close its connection: no gap is silent", async () => {
    socket = await Socket.open(world.server, tokenOf("user0"));
    const answer = await socket.ask({ op: "resume", sequence: 0 });
    socket.socket.pause();
    // Over a second database connection: the projector writes nothing now.
    withDatabase(world.server.dataDir, forgetLog);
    socket.socket.resume();
    expect(await socket.closed).toBe(1011);
    const told = numbers(updatesAfter(socket, answer));
    expect(told.length).toBeLessThan(oldest());
    expect(told).toEqual(from(0, told.length));
    expect(socket.of("balance.updated")).toEqual([]);
  });

  test("a resume from deleted updates is rejected with a message, and the connection loses no update meanwhile", async () => {
    const last = UPDATES + 2_600;
    await world.server.stop();
    withDatabase(world.server.dataDir, forgetLog);
    const first = oldest();
    expect(first).toBeGreaterThan(1);
    world.server = await world.server.restart();
    user = new Client(world.server, tokenOf("user0"), 4);
    const gone = new RegExp(`before ${first} are no longer kept, go on from ${first - 1};`);
    await expectRefused(user.request("GET", "/me/events?after=0"), 404, 4040, gone);
    await expectRefused(user.request("GET", `/me/events?after=${first - 2}`), 404, 4040, gone);
    // A page ends where the read has scanned enough of the log, so the first may have fewer than three.
    type Page = { items: Frame[]; next_cursor: string };
    const page = await user.get<Page>("/me/events?limit=3");
    expect(page.items.length).toBeGreaterThan(0);
    const rest = 4 - page.items.length;
    const { items } = await user.get<Page>(`/me/events?limit=${rest}&cursor=${page.next_cursor}`);
    expect(numbers([...page.items, ...items])).toEqual(from(first - 1, page.items.length + items.length));

    socket = await Socket.open(world.server, tokenOf("user0"));
    const trading = trade(600);
    for (let n = 0; n < 40; n++) {
      expect(await socket.ask({ op: "resume", sequence: 0 })).toMatchObject({
        code: 4040,
        msg: expect.stringMatching(gone),
      });
    }
    await trading;
    await socket.fence();
    expect(numbers(socket.of("order.updated"))).toEqual(from(last, 600));
    const answer = await resume(socket, first - 1);
    expect(numbers(updatesAfter(socket, answer))).toEqual(from(first - 1, last + 600 - first + 1));
    await socket.close();
    expect(oldest()).toBe(first);
  });
});
