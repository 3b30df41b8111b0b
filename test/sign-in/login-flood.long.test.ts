/**
 * A flood of sign-ins with wrong passwords must neither slow down trading nor lock out other users. The test sends
 * 10,000 sign-ins, or the number in TEST_LOGINS. It runs for a long time: the server sends at most 2,000 rejections a
 * second (100,000 take a minute and a half), and the test pauses the flood repeatedly to measure calm and flooded
 * windows side by side. It prints its figures.
 *
 * The test compares the p99 latency of placements, sent at 200 a second over one WebSocket, in windows of WINDOW_MS.
 * For each kind of window it takes the lower quartile. The cost of a flood shows in every flooded window. Other work
 * on a small shared machine makes some windows worse and none better. The flood runs in a process of the lowest
 * priority, so that the load generator does not compete with the trading threads.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { eventually, expectEndsWell } from "../support/checks.ts";
import { type Answer, API_BASE, Client } from "../support/client.ts";
import { PASSWORD, type SignInJson } from "../support/identity.ts";
import { expectRetryAfter } from "../support/rates.ts";
import { BUY, terms } from "../support/terms.ts";
import { type TestMarket, World } from "../support/world.ts";

const TOTAL = Number(process.env["TEST_LOGINS"] ?? 10_000);
const VICTIMS = 40;
const PEOPLE = 8;
const PLACEMENTS_PER_SECOND = 200;
const WINDOW_MS = 1_000;
/** On a busy machine, a second can have fewer: two responses at least determine the p99. */
const WINDOW_RESPONSES = 100;
/** How long a flood runs before the measurement starts. */
const RISE_MS = 500;
const OWN_ADDRESS = "198.51.100.7";
/**
 * The test attributes a smaller difference to the machine, not to the flood: two placements of a window determine its
 * p99. In the full suite this noise is high. With TEST_LOGINS set, this test runs alone and the bound is tight.
 */
const NOISE_MS = process.env["TEST_LOGINS"] === undefined ? 150 : 3;
/** A user at a crowded address gives up after this number of attempts. */
const MAX_ATTEMPTS = 6;
/** The number of addresses that each have a sign-in in flight. */
const CROWDED_ADDRESSES = 2_500;
/** Time for two hashes on a busy machine. */
const KNOWN_SIGN_IN_MS = 3_000;
/** The longest time that a correct password may take during a flood: "a few seconds". */
const SIGN_IN_MS = 5_000;

interface FloodPlan {
  readonly port: number;
  readonly path: string;
  readonly connections: number;
  /** The target accounts: a single account, unknown e-mails, or many accounts. */
  readonly at: "one" | "unknown" | "many";
  readonly victims: number;
  /** Null: each request has a different address. */
  readonly from: string | null;
  /** A unique prefix for the e-mails of this flood. */
  readonly name: string;
}

/**
 * Runs in the flooding process, so it must not reference anything outside its body. Stops on the "stop" message;
 * replies to each message with response counts by status.
 */
function floodProcess(plan: FloodPlan): void {
  const { connect } = process.getBuiltinModule("node:net");
  const { setPriority } = process.getBuiltinModule("node:os");
  setPriority(19);
  const counts: Record<string, number> = {};
  let sent = 0;
  let isOver = false;
  const emailOf = (n: number): string => {
    if (plan.at === "one") return "target@example.com";
    if (plan.at === "many") return `victim${n % plan.victims}@example.com`;
    return `${plan.name}-${n}@example.com`;
  };
  const request = (): string => {
    const n = sent++;
    const body = JSON.stringify({ email: emailOf(n), password: `wrong ${plan.name} ${n}` });
    const from = plan.from ?? `10.${(n >> 14) & 127}.${(n >> 7) & 127}.${n & 127}`;
    return `POST ${plan.path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${from}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const open = (): void => {
    const socket = connect(plan.port, "127.0.0.1");
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    let text = "";
    const next = (): void => {
      text = "";
      if (isOver) socket.destroy();
      else socket.write(request());
    };
    socket.on("connect", next);
    socket.on("error", () => {});
    socket.on("close", () => {
      if (!isOver) open();
    });
    socket.on("data", (chunk) => {
      text += chunk;
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = /content-length: (\d+)/i.exec(text);
      if (length === null || text.length < end + 4 + Number(length[1])) return;
      const status = text.slice(9, 12);
      counts[status] = (counts[status] ?? 0) + 1;
      next();
    });
  };
  for (let n = 0; n < plan.connections; n++) open();
  process.on("message", (message) => {
    if (message === "stop") isOver = true;
    process.send!(counts, () => {
      if (isOver) process.exit();
    });
  });
}

const floods = new Set<ChildProcess>();
class Flood {
  private readonly child: ChildProcess;

  constructor(plan: FloodPlan) {
    const script = `(${floodProcess.toString()})(${JSON.stringify(plan)})`;
    this.child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    floods.add(this.child);
  }

  /** Response counts so far, by status. */
  async counts(word = "count"): Promise<Record<string, number>> {
    this.child.send(word);
    const [counts] = (await once(this.child, "message")) as [Record<string, number>];
    return counts;
  }

  async stop(): Promise<Record<string, number>> {
    const exited = once(this.child, "exit");
    const counts = await this.counts("stop");
    await exited;
    floods.delete(this.child);
    return counts;
  }
}

/** Places orders at a steady rate without waiting for responses, and records the latency of each. */
class Maker {
  private readonly socket: WebSocket;
  private readonly data: object;
  private readonly sentAt = new Map<number, number>();
  private taken: number[] = [];
  private timer: NodeJS.Timeout | null = null;
  private lastId = 0;
  private startedAt = 0;

  private constructor(socket: WebSocket, data: object) {
    this.socket = socket;
    this.data = data;
    socket.on("message", (bytes: Buffer) => {
      const now = performance.now();
      const message = JSON.parse(bytes.toString()) as { id?: number; code?: number; msg?: string };
      if (message.id === undefined) return;
      if (message.code !== 0) throw new Error(`a placement was refused: ${message.code} ${message.msg}`);
      this.taken.push(now - this.sentAt.get(message.id)!);
      this.sentAt.delete(message.id);
    });
  }

  static async connect(world: World, market: TestMarket): Promise<Maker> {
    const { server } = world;
    const url = `${server.root.replace("http", "ws")}${API_BASE}/ws?token=${world.user().token}`;
    const socket = new WebSocket(url, { perMessageDeflate: false });
    await once(socket, "open");
    // Orders that rested would reach the limit of live orders where a busy machine makes the test long.
    return new Maker(socket, terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" }));
  }

  start(): void {
    this.startedAt = performance.now();
    const first = this.lastId;
    this.timer = setInterval(() => {
      // After a late timer, send all overdue orders to keep the rate.
      const due = first + Math.floor(((performance.now() - this.startedAt) * PLACEMENTS_PER_SECOND) / 1_000);
      while (this.lastId < due) this.place();
    }, 2);
  }

  private place(): void {
    const id = ++this.lastId;
    this.sentAt.set(id, performance.now());
    this.socket.send(JSON.stringify({ op: "order.place", id, data: this.data }));
  }

  /** Discards the measurements so far. */
  reset(): void {
    this.taken = [];
  }

  /** Returns the p99 latency in ms of the responses since the last call. */
  private p99(): number {
    const sorted = this.taken.sort((a, b) => a - b);
    this.reset();
    return sorted[Math.ceil(sorted.length * 0.99) - 1]!;
  }

  /** Measures windows until `isEnough` returns true. A window is longer where it would have too few responses. */
  async measure(isEnough: () => boolean): Promise<number[]> {
    const windows: number[] = [];
    this.reset();
    do {
      await sleep(WINDOW_MS);
      await eventually(async () => expect(this.taken.length).toBeGreaterThan(WINDOW_RESPONSES));
      windows.push(this.p99());
    } while (!isEnough());
    return windows;
  }

  /** Stops placing orders and waits for the outstanding responses. */
  async stop(): Promise<void> {
    clearInterval(this.timer!);
    await eventually(async () => expect(this.sentAt.size).toBe(0));
  }

  close(): void {
    this.socket.close();
  }
}

const round = (ms: number): number => Math.round(ms * 10) / 10;
function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)]!;
}

let world: World;
let maker: Maker;
let client: Client;
beforeAll(async () => {
  const person = { password: PASSWORD };
  const names = [
    "target",
    ...Array.from({ length: VICTIMS }, (_, n) => `victim${n}`),
    ...Array.from({ length: PEOPLE }, (_, n) => `person${n}`),
  ];
  const named = Object.fromEntries(names.map((name) => [name, person]));
  // Lift the limits on trading; keep the default limits on sign-ins.
  const limits = { order_user: 1_000_000_000, order_address: 1_000_000_000 };
  const env = { RATE_LIMITS: JSON.stringify(limits), TRUSTED_PROXIES: "127.0.0.1" };
  world = await World.start({ users: 1, named, env });
  maker = await Maker.connect(world, world.market());
  client = new Client(world.server, null, 4);
});
afterAll(async () => {
  for (const child of floods) child.kill("SIGKILL");
  maker.close();
  client.close();
  await expectEndsWell(world);
});

function login(email: string, password: string, from: string): Promise<Answer<SignInJson>> {
  return client.request("POST", "/auth/login", { body: { email, password }, headers: { "X-Forwarded-For": from } });
}

let people = 0;
/** Signs in a user whom the flood does not target, and retries when the server requests it. Returns the elapsed ms. */
async function signIn(from: string): Promise<{ ms: number; attempts: number }> {
  // Rotate through the users: none of them reaches ten sign-ins a minute.
  const email = `person${people++ % PEOPLE}@example.com`;
  const began = performance.now();
  for (let attempts = 1; ; attempts++) {
    const { status, headers } = await login(email, PASSWORD, from);
    const ms = performance.now() - began;
    if (status === 200) return { ms, attempts };
    expect([status, attempts]).toEqual([503, attempts]);
    if (attempts === MAX_ATTEMPTS) return { ms: Number.POSITIVE_INFINITY, attempts };
    await sleep(1_000 * Number(headers["retry-after"]));
  }
}

interface Wave {
  readonly what: string;
  readonly at: FloodPlan["at"];
  readonly from: "one" | "many";
  readonly connections: number;
  /** Ends the wave at this number of responses, or after `maxMs`. */
  readonly requests: number;
  readonly maxMs: number;
}

/** The rate limit rejects these at 2,000 a second: four waves reach TOTAL in one lap. */
const FAST = { connections: 64, requests: Math.ceil(TOTAL * 0.25), maxMs: 20_000 };
/** Each of these costs a hash, so the server responds to few of them in time. */
const SLOW = { connections: 64, requests: 5_000, maxMs: 2_500 };
const WAVES: readonly Wave[] = [
  { what: "one account, many addresses", at: "one", from: "many", ...FAST },
  { what: "one account, one address", at: "one", from: "one", ...FAST },
  { what: "unknown, many addresses", at: "unknown", from: "many", ...SLOW },
  { what: "unknown, one address", at: "unknown", from: "one", ...SLOW },
  { what: "unknown, one address, 512 connections", at: "unknown", from: "one", ...SLOW, connections: 512 },
  { what: "many accounts, many addresses", at: "many", from: "many", ...FAST },
  { what: "many accounts, one address", at: "many", from: "one", ...FAST },
];

test("trading goes on and others sign in", { timeout: 240_000 }, async () => {
  const calm: number[] = [];
  const flooded = new Map<Wave["at"], number[]>();
  const counts: Record<string, number> = {};
  let answered = 0;
  let lastHashMs = 0;
  maker.start();
  // Warm up: the first requests run code that is not compiled yet.
  await sleep(WINDOW_MS);
  await signIn(OWN_ADDRESS);
  expect((await login("target@example.com", PASSWORD, homeOf(0))).status).toBe(200);
  for (let lap = 0; answered < TOTAL; lap++) {
    for (const [n, { what, at, connections, requests, maxMs, ...wave }] of WAVES.entries()) {
      if (lap > 0 && (at === "unknown" || answered >= TOTAL)) continue;
      const from = wave.from === "one" ? freshAddress() : null;
      const before = await maker.measure(() => true);
      calm.push(...before);

      const { port } = world.server;
      const path = `${API_BASE}/auth/login`;
      const flood = new Flood({ port, path, connections, at, victims: VICTIMS, from, name: `wave-${lap}-${n}` });
      const began = performance.now();
      await sleep(RISE_MS);
      let sum = 0;
      const counting = (async () => {
        while (sum < requests && performance.now() - began < maxMs) {
          await sleep(100);
          sum = total(await flood.counts());
        }
        sum = Number.POSITIVE_INFINITY;
      })();
      const measuring = maker.measure(() => sum >= requests);
      // What fails is reported where it is awaited, after the sign-ins.
      measuring.catch(() => {});
      const elsewhere = await signIn(OWN_ADDRESS);
      // This user shares the limit of a hundred a minute with the flood from the same address.
      const beside = from !== null && at === "unknown" ? await login("person0@example.com", PASSWORD, from) : null;
      if (at === "one") {
        // Wait until the account has used its ten sign-ins.
        await eventually(async () => expect(total(await flood.counts())).toBeGreaterThan(20));
        await expectShortWait();
      }
      await counting;
      const during = await measuring;
      const found = await flood.stop();
      const seconds = (performance.now() - began) / 1_000;

      flooded.set(at, [...(flooded.get(at) ?? []), ...during]);
      for (const [status, count] of Object.entries(found)) counts[status] = (counts[status] ?? 0) + count;
      answered += total(found);
      const figures = [
        `${what}: ${total(found)} answers in ${round(seconds)} s ${JSON.stringify(found)}`,
        `p99 ${before.map(round)} ms calm, ${during.map(round).join(" ")} ms flooded`,
        `sign-in from elsewhere ${round(elsewhere.ms)} ms in ${elsewhere.attempts}`,
        ...(beside === null ? [] : [`from the flooding address ${beside.status}`]),
      ];
      process.stdout.write(`${figures.join("; ")}\n`);
      // The sign-in waits for at most one hash for each queued address of this wave or the previous one.
      const hashMs = at === "one" || from !== null ? 0 : (1_000 * seconds) / (found["401"] ?? 1);
      const bound = Math.max(SIGN_IN_MS, 1.5 * SLOW.connections * Math.max(hashMs, lastHashMs));
      lastHashMs = hashMs;
      expect.soft([what, elsewhere.ms < bound, elsewhere, bound]).toEqual([what, true, elsewhere, bound]);
      if (beside !== null) expect.soft([what, [200, 429, 503].includes(beside.status)]).toEqual([what, true]);
      expect.soft([what, found["200"] ?? 0, found["500"] ?? 0]).toEqual([what, 0, 0]);
    }
  }
  await maker.stop();
  const idle = lowerQuartile(calm);
  const bound = Math.max(2 * idle, idle + NOISE_MS);
  const found = [...flooded].map(([at, windows]) => [at, lowerQuartile(windows)] as const);
  const text = found.map(([at, p99]) => `${at} ${round(p99)} ms`).join(", ");
  process.stdout.write(`${answered} answers ${JSON.stringify(counts)}; p99 ${round(idle)} ms calm; flooded: ${text}\n`);
  expect(answered).toBeGreaterThanOrEqual(TOTAL);
  for (const [at, p99] of found) expect([at, p99 <= bound, p99, bound]).toEqual([at, true, p99, bound]);
});

test("an owner signs in from a known address beside thousands of addresses that try passwords", {
  timeout: 120_000,
}, async () => {
  const { port } = world.server;
  const path = `${API_BASE}/auth/login`;
  const from = (address: string, who = "target", password = PASSWORD): Promise<Answer<SignInJson>> =>
    login(`${who}@example.com`, password, address);
  const timed = async (ask: () => Promise<Answer>): Promise<[status: number, ms: number]> => {
    const began = performance.now();
    const { status } = await ask();
    return [status, performance.now() - began];
  };
  for (const host of [1, 2, 3, 4, 5]) expect((await from(homeOf(host), `person${host}`)).status).toBe(200);
  const flood = new Flood({
    port,
    path,
    connections: CROWDED_ADDRESSES,
    at: "unknown",
    victims: 0,
    from: null,
    name: "crowd",
  });
  // The queue of strangers exceeds the longest wait, so the server rejects the oldest requests.
  await eventually(async () => expect((await flood.counts())["503"] ?? 0).toBeGreaterThan(0));
  const stranger = timed(() => from("198.51.100.99", "person7"));
  const owners: [number, number][] = [];
  for (const host of [1, 2, 3, 4, 5]) owners.push(await timed(() => from(homeOf(host), `person${host}`)));
  // The server reports a mistyped password just as fast.
  const wrong = await timed(() => from(homeOf(1), "person1", "not the password"));
  const [status, strangerMs] = await stranger;
  const counts = await flood.stop();
  const times = owners.map(([, ms]) => round(ms)).join(" ");
  process.stdout.write(
    `${CROWDED_ADDRESSES} addresses at one time ${JSON.stringify(counts)}: owners ${times} ms, wrong password ${round(wrong[1])} ms; a stranger ${status} after ${round(strangerMs)} ms\n`,
  );
  expect(owners.map(([each]) => each)).toEqual([200, 200, 200, 200, 200]);
  expect(wrong[0]).toBe(401);
  for (const [, ms] of [...owners, wrong]) expect(ms).toBeLessThan(KNOWN_SIGN_IN_MS);
});

let floodedFrom = 0;
/** An address whose hundred sign-ins a minute no earlier wave has used. */
const freshAddress = (): string => `203.0.113.${++floodedFrom}`;

/** An address from which a user signed in before. */
const homeOf = (host: number): string => `198.51.100.${100 + host}`;

const total = (counts: Record<string, number>): number => Object.values(counts).reduce((a, b) => a + b, 0);

/**
 * The flood locks the owner of its target account out for a minute at most at a new address, and never at a known one.
 */
async function expectShortWait(): Promise<void> {
  const answer = await login("target@example.com", PASSWORD, OWN_ADDRESS);
  expect(answer.status).toBe(429);
  expectRetryAfter(answer);
  expect((await login("target@example.com", PASSWORD, homeOf(0))).status).toBe(200);
}
