/**
 * The cost of an order by setup and by the exchange's size: durability, engine threads, markets, live orders. The
 * exchanges of one series run side by side and alternate with the same operations over one WebSocket. The figures are
 * operations per second and the server's processor time, which other processes disturb less. The cost must stay flat
 * over markets and over live orders.
 */
import { ExchangeProcess } from "../support/exchange-process.ts";
import { makeFolder, removeFolder } from "../support/folder.ts";
import { itemAt } from "../support/item-at.ts";
import { fail, type Goal, goal, grouped, median, printHead, printResult } from "../support/report.ts";
import { MatrixWorkload, PLACEMENTS_SHARE, type Size, seedOf } from "./matrix/workload.ts";

const smoke = process.argv.includes("--smoke");
const ROUNDS = smoke ? 1 : 3;
const OPERATIONS = smoke ? 2_000 : 150_000;
const WARM_UP_OPERATIONS = smoke ? 0 : 100_000;
const WINDOW = 256;
/** The largest cost of a series over its smallest. */
const NEEDED_SPREAD = 1.3;
const USUAL: Size = { markets: 100, live: 1_000 };

interface Point {
  readonly name: string;
  readonly size: Size;
  readonly settings?: ExchangeSettings;
}
type ExchangeSettings = NonNullable<Parameters<typeof ExchangeProcess.start>[0]["settings"]>;

interface Series {
  readonly title: string;
  readonly points: readonly Point[];
  /** True if the cost must be the same at every point. */
  readonly isFlat: boolean;
}

const sizes = (counts: readonly number[], word: string, sizeOf: (count: number) => Size): Point[] =>
  counts.map((count) => ({ name: `${grouped(count)} ${word}`, size: sizeOf(count) }));

const SERIES: readonly Series[] = [
  {
    title: "durability",
    points: ["full", "normal", "off"].map((name) => ({ name, size: USUAL, settings: { DURABILITY: name } })),
    isFlat: false,
  },
  {
    title: "engine threads",
    points: ["1", "2", "4"].map((name) => ({ name, size: USUAL, settings: { ENGINE_THREADS: name } })),
    isFlat: false,
  },
  {
    title: "markets",
    points: sizes([1, 100, 10_000], "markets", (markets) => ({ markets, live: markets * 2 + 1_000 })),
    isFlat: true,
  },
  {
    title: "live orders",
    points: sizes(smoke ? [1_000] : [1e3, 1e4, 1e5, 1e6], "live orders", (live) => ({ ...USUAL, live })),
    isFlat: true,
  },
];

interface Turn {
  readonly perSecond: number;
  /** Of the server, an order: its share of the cancels is in it. */
  readonly micros: number;
}

/** An exchange of one point, full and warm. */
class Runner {
  readonly turns: Turn[] = [];
  private readonly exchange: ExchangeProcess;
  private readonly workload: MatrixWorkload;
  private readonly folder: string;

  private constructor(exchange: ExchangeProcess, workload: MatrixWorkload, folder: string) {
    this.exchange = exchange;
    this.workload = workload;
    this.folder = folder;
  }

  static async start({ size, settings }: Point): Promise<Runner> {
    const folder = makeFolder("bench-matrix");
    const exchange = await ExchangeProcess.start({
      dataDir: folder,
      seed: seedOf(size),
      settings: { ENGINE_THREADS: "1", ...settings },
    });
    const workload = await MatrixWorkload.prepare(exchange, size);
    if (WARM_UP_OPERATIONS > 0) await workload.send(workload.operations(WARM_UP_OPERATIONS), WINDOW);
    await exchange.quiet();
    return new Runner(exchange, workload, folder);
  }

  /** Deferred background work counts, too. */
  async turn(): Promise<void> {
    const operations = this.workload.operations(OPERATIONS);
    const before = this.exchange.processorSeconds();
    const seconds = await this.workload.send(operations, WINDOW);
    await this.exchange.quiet();
    const used = this.exchange.processorSeconds() - before;
    const { count } = operations.frames;
    this.turns.push({ perSecond: count / seconds, micros: (used * 1e6) / (count * PLACEMENTS_SHARE) });
  }

  async stop(): Promise<void> {
    await this.exchange.stop();
    removeFolder(this.folder);
  }
}

async function measure({
  title,
  points,
  isFlat,
}: Series): Promise<{ rows: object[]; spread: number; goal: Goal | null }> {
  const runners: Runner[] = [];
  for (const point of points) runners.push(await Runner.start(point));
  for (let round = 0; round < ROUNDS; round++) for (const runner of runners) await runner.turn();
  for (const runner of runners) await runner.stop();
  console.log(`  ${title}:`);
  const rows = runners.map(({ turns }, i) => {
    const perSecond = median(turns.map((turn) => turn.perSecond));
    const micros = median(turns.map((turn) => turn.micros));
    const { name } = itemAt(points, i);
    console.log(
      `    ${name.padEnd(22)} ${grouped(perSecond).padStart(8)} operations/s, ${micros.toFixed(1)} µs an order`,
    );
    return {
      name,
      ...itemAt(points, i).size,
      operations_per_s: Math.round(perSecond),
      us_per_order: Number(micros.toFixed(2)),
    };
  });
  const costs = rows.map(({ us_per_order }) => us_per_order);
  const spread = Math.max(...costs) / Math.min(...costs);
  if (!isFlat) return { rows, spread, goal: null };
  const verdict = goal(`cost of an order by ${title}, largest over smallest`, NEEDED_SPREAD, spread, true);
  console.log(
    `    the largest is ${spread.toFixed(2)} times the smallest, needed at most ${NEEDED_SPREAD}: ` +
      (verdict.reached ? "flat" : "not flat"),
  );
  return { rows, spread, goal: verdict };
}

printHead(
  "matrix",
  `of eleven operations 5 rest, 1 takes, 5 cancel; one WebSocket, ${WINDOW} outstanding; FULL, one engine thread, ` +
    `${USUAL.markets} markets, ${grouped(USUAL.live)} live orders unless stated otherwise`,
);
console.log("  processor time of the whole server, user and system, including deferred work; medians of turns");
try {
  const results: Record<string, unknown> = {};
  const goals: Goal[] = [];
  // Series differ only in their points.
  for (const series of smoke ? SERIES.slice(3) : SERIES) {
    const measured = await measure(series);
    results[series.title.replace(" ", "_")] = measured.rows;
    if (measured.goal !== null) goals.push(measured.goal);
  }
  printResult({ bench: "matrix", rounds: ROUNDS, operations: OPERATIONS, ...results, goals });
} catch (error) {
  fail(`matrix: ${(error as Error).message}`);
}
