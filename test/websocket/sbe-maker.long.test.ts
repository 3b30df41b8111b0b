/**
 * Two market makers in C, with the generated header alone, trade with each other through a kill of the server: at the end
 * what each knows of its orders, money, positions and books equals REST. MAKER_SECONDS and MAKER_RATE (operations a second
 * of each) set how long, and how fast.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../bench/support/free-port.ts";
import { UNBOUNDED_TERMS } from "../../bench/support/terms.ts";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson, PositionJson } from "../support/client.ts";
import { scrape } from "../support/metrics.ts";
import { tokenOf, USDC, World } from "../support/world.ts";

const SECONDS = Number(process.env["MAKER_SECONDS"] ?? 12);
const RATE = Number(process.env["MAKER_RATE"] ?? 4_000);
const SETS = 1_000_000;
const NAMES = ["maker", "other"] as const;
const HAS_CC = spawnSync("cc", ["--version"]).error === undefined;
if (!HAS_CC) console.log("skipping the makers in C: cc is missing");

/** What a maker prints at its end. */
interface State {
  readonly accepted: number;
  readonly rejected: number;
  readonly fills: number;
  readonly connections: number;
  readonly available: number;
  readonly held: number;
  readonly total: number;
  readonly positions: [shares: number, cost: number][];
  readonly orders: [id: number, remaining: number][];
  readonly books: { sequence: number; levels: [side: number, price: number, quantity: number][] }[];
}

let folder: string;
let world: World;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sbe-maker-"));
  const maker = { deposit: 10 * SETS * USDC, terms: UNBOUNDED_TERMS };
  const env = { PORT: String(await freePort()), RATE_LIMITS: "off" };
  world = await World.start({ named: { maker, other: maker }, markets: [2], env });
});
afterAll(
  async () => {
    rmSync(folder, { recursive: true });
    await expectBalanced(world.anonymous());
    await expectEndsWell(world);
  },
  60_000 + 1_000 * SECONDS,
);

/** A maker at work: once it is done, it prints its state when asked. */
class Maker {
  readonly done: Promise<void>;
  private readonly child: ChildProcess;
  private readonly state: Promise<State>;
  private errors = "";

  constructor(program: string, seed: number) {
    const market = world.markets[0]!;
    const { hostname, port } = new URL(world.server.root);
    const numbers = [market.id, ...market.outcomes, SECONDS, RATE, seed].map(String);
    this.child = spawn(program, [hostname, port, tokenOf(NAMES[seed]!), ...numbers], { stdio: "pipe" });
    const exited = new Promise<never>((_, reject) => {
      this.child.on("exit", (code) => reject(new Error(`the maker ended with ${code}: ${this.errors}`)));
    });
    exited.catch(() => {});
    const done = new Promise<void>((resolve) => {
      this.child.stderr!.on("data", (text: Buffer) => {
        this.errors += text.toString();
        if (this.errors.includes("done\n")) resolve();
      });
    });
    this.done = Promise.race([done, exited]);
    this.done.catch(() => {});
    const printed = new Promise<State>((resolve) => {
      createInterface({ input: this.child.stdout! }).on("line", (line) => resolve(JSON.parse(line)));
    });
    this.state = Promise.race([printed, exited]);
    this.state.catch(() => {});
  }

  finish(): Promise<State> {
    this.child.stdin!.write("\n");
    return this.state;
  }
}

async function expectKnows(state: State, user: Client): Promise<void> {
  const market = world.markets[0]!;
  const { available, held, total } = await user.balance();
  expect([state.available, state.held, state.total]).toEqual([available, held, total]);
  const positions = await user.all<PositionJson>("/me/positions");
  const ours = market.outcomes.map((id) => positions.find(({ outcome_id }) => outcome_id === id)!);
  expect(state.positions).toEqual(ours.map(({ quantity, cost }) => [quantity, cost]));
  const orders = await user.all<OrderJson>("/orders");
  const live = orders.map(({ id, remaining }) => [id, remaining] as const);
  expect(state.orders).toEqual(live.sort(([a], [b]) => a - b));
  for (const [at, id] of market.outcomes.entries()) {
    const { data: book } = await user.request<Book>("GET", `/orderbook/${market.id}/${id}`);
    const levels = [book.bids.toReversed(), book.asks].flatMap((side, n) => side.map(([price, quantity]) => [n, price, quantity])); // biome-ignore format: one line
    expect(state.books[at]).toEqual({ sequence: book.sequence, levels });
  }
}

interface Book {
  readonly sequence: number;
  readonly bids: [number, number][];
  readonly asks: [number, number][];
}

test.skipIf(!HAS_CC)(
  "two makers know what REST has, after a kill in the middle",
  { timeout: 1_000 * SECONDS + 120_000 },
  async () => {
    const program = join(folder, "maker");
    const source = fileURLToPath(new URL("../sbe/maker.c", import.meta.url));
    const header = fileURLToPath(new URL("../../docs/sbe", import.meta.url));
    const compiled = spawnSync("cc", ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", `-I${header}`, source, "-o", program], { encoding: "utf8" }); // biome-ignore format: one line
    expect(compiled.stderr).toBe("");
    const market = world.markets[0]!;
    for (const name of NAMES) await world.split(world.client(name), market, SETS);
    const makers = NAMES.map((_, seed) => new Maker(program, seed));
    const placed = async (): Promise<number> => (await scrape(world.server)).value("exchange_orders_total");
    await expect.poll(placed, { timeout: 1_000 * SECONDS, interval: 200 }).toBeGreaterThan(0.4 * SECONDS * RATE);
    await world.server.kill();
    world.server = await world.server.restart();
    await Promise.all(makers.map(({ done }) => done));
    for (const [at, maker] of makers.entries()) {
      const state = await maker.finish();
      console.log(`${NAMES[at]}: ${state.accepted} accepted, ${state.rejected} rejected, ${state.fills} fills`);
      await expectKnows(state, world.client(NAMES[at]!));
      expect(state.connections).toBe(2);
      expect(state.fills).toBeGreaterThan(100);
      expect(state.accepted).toBeGreaterThan(SECONDS * RATE * 0.3);
    }
  },
);
