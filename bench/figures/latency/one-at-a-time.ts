/**
 * One connection, one order at a time: the exchange's response time, durable at FULL, beside the minimum: the bare
 * handler's response over the same connection and one commit of SQLite, all three in turn. Then the same orders with
 * `?timestamps=true`: the time spent in each stage.
 */
import { join } from "node:path";
import type { ExchangeProcess } from "../../support/exchange-process.ts";
import { HttpConnection, requestBytes } from "../../support/http-connection.ts";
import { itemAt } from "../../support/item-at.ts";
import { median } from "../../support/report.ts";
import { Baseline } from "../http/baseline.ts";
import type { OrderRequest } from "../http/workload.ts";
import { Commits } from "./commits.ts";

const PATH = "/api/v1/orders";
const WARM_UP_ORDERS = 300;

interface Percentiles {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface OneAtATime {
  readonly exchange: Percentiles;
  readonly bare: Percentiles;
  readonly commit: Percentiles;
  /** By round, p50 of the exchange over the sum of the other two's. */
  readonly ratios: readonly number[];
  /** Medians in µs; `elsewhere`: the rest of the round trip, in both kernels and in the client. */
  readonly stages: Readonly<Record<"matched" | "durable" | "sent" | "elsewhere", number>>;
}

interface Setup {
  readonly exchange: ExchangeProcess;
  readonly requests: readonly OrderRequest[];
  readonly answerBytes: number;
  readonly folder: string;
  readonly rounds: number;
  readonly ordersEach: number;
}

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]!;
const percentiles = (values: readonly number[]): Percentiles => ({
  p50Ms: percentile(values, 0.5),
  p99Ms: percentile(values, 0.99),
});

/** The stages of an order, µs. */
type Timestamps = Record<"received" | "matched" | "durable" | "sent", number>;

/** One connection that sends the orders in turn. */
export class Sender {
  private readonly connection: HttpConnection;
  private readonly bytes: readonly Buffer[];
  private next = 0;

  constructor(url: string, path: string, requests: readonly OrderRequest[]) {
    const root = new URL(url);
    this.connection = new HttpConnection(root);
    this.bytes = requests.map(({ token, body }) => requestBytes(root, "POST", path, token, body));
  }

  /** @param observe receives each response and its time, ms */
  async send(count: number, observe: (body: Buffer, ms: number) => void): Promise<void> {
    for (let i = 0; i < count; i++) {
      const request = itemAt(this.bytes, this.next++ % this.bytes.length);
      const start = performance.now();
      const { status, body } = await this.connection.send(request);
      const ms = performance.now() - start;
      if (status !== 202) throw new Error(`an order was answered with ${status}: ${body}`);
      observe(body, ms);
    }
  }

  async time(count: number): Promise<number[]> {
    const times: number[] = [];
    await this.send(count, (_, ms) => times.push(ms));
    return times;
  }

  /** The time of these orders by stage; the path must request timestamps. */
  async stages(count: number): Promise<OneAtATime["stages"]> {
    const stages = {
      matched: [] as number[],
      durable: [] as number[],
      sent: [] as number[],
      elsewhere: [] as number[],
    };
    await this.send(count, (body, ms) => {
      const { timestamps } = (JSON.parse(body.toString()) as { data: { timestamps: Timestamps } }).data;
      const { received, matched, durable, sent } = timestamps;
      stages.matched.push(matched - received);
      stages.durable.push(durable - matched);
      stages.sent.push(sent - durable);
      stages.elsewhere.push(ms * 1_000 - (sent - received));
    });
    const medians = Object.entries(stages).map(([stage, micros]) => [stage, Math.round(median(micros))]);
    return Object.fromEntries(medians) as OneAtATime["stages"];
  }

  close(): void {
    this.connection.close();
  }
}

export async function measureOneAtATime(setup: Setup): Promise<OneAtATime> {
  const { exchange, requests, answerBytes, folder, rounds, ordersEach } = setup;
  const bare = await Baseline.bareHandler(answerBytes);
  const [ours, theirs] = [new Sender(exchange.url, PATH, requests), new Sender(bare.url, PATH, requests)];
  const warmUp = Math.min(WARM_UP_ORDERS, ordersEach);
  await ours.time(warmUp);
  await theirs.time(warmUp);
  await exchange.quiet();
  const commits = new Commits(join(folder, "journal.db"), join(folder, "commits.db"));
  commits.time(warmUp);
  const all = { exchange: [] as number[], bare: [] as number[], commit: [] as number[] };
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const times = { exchange: await ours.time(ordersEach), bare: await theirs.time(ordersEach) };
    const commit = commits.time(ordersEach);
    ratios.push(median(times.exchange) / (median(times.bare) + median(commit)));
    all.exchange.push(...times.exchange);
    all.bare.push(...times.bare);
    all.commit.push(...commit);
  }
  const stamped = new Sender(exchange.url, `${PATH}?timestamps=true`, requests);
  const stages = await stamped.stages(ordersEach);
  stamped.close();
  commits.close();
  ours.close();
  theirs.close();
  await bare.stop();
  const [exchangeMs, bareMs, commitMs] = [all.exchange, all.bare, all.commit].map(percentiles) as Percentiles[];
  return { exchange: exchangeMs!, bare: bareMs!, commit: commitMs!, ratios, stages };
}
