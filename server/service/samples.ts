/** The samples of a metric, as prom-client's registry takes them. */
import type { Metric, MetricType, Registry } from "prom-client";
import type { Histogram } from "../../engine/util/histogram.ts";

/** What each name begins with. */
const PREFIX = "exchange_";
/** A histogram's µs per second of its metric. */
export const MICROSECONDS = 1e6;

type Labels = Readonly<Record<string, string | number>>;
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
  readonly metricName?: string;
}

/** @param scale the histogram's units per unit of the metric */
export function samplesOf(name: string, histogram: Histogram, scale: number, labels: Labels = {}): Sample[] {
  const buckets = histogram.cumulated();
  const metricName = PREFIX + name;
  return [
    ...buckets.map(({ bound, count }) => ({
      metricName: `${metricName}_bucket`,
      labels: { ...labels, le: bound === Number.POSITIVE_INFINITY ? "+Inf" : bound / scale },
      value: count,
    })),
    { metricName: `${metricName}_sum`, labels, value: histogram.sum / scale },
    { metricName: `${metricName}_count`, labels, value: buckets.at(-1)?.count ?? 0 },
  ];
}

/**
 * One metric as prom-client's registry reads it, which calls `get` and nothing else. The library's own classes keep values
 * of their own by a hash of the labels, which costs a microsecond each.
 */
export class Figure {
  readonly name: string;
  private readonly help: string;
  private readonly type: `${MetricType}`;
  private readonly read: () => readonly Sample[] | Promise<readonly Sample[]>;

  constructor(type: `${MetricType}`, name: string, help: string, read: Figure["read"]) {
    this.type = type;
    this.name = PREFIX + name;
    this.help = help;
    this.read = read;
  }

  async get() {
    const { name, help, type } = this;
    return { name, help, type, values: await this.read() };
  }

  /** Adds it to a registry. */
  addTo(registry: Registry): void {
    registry.registerMetric(this as unknown as Metric<string>);
  }
}

export const plain = (value: number): Sample[] => [{ labels: {}, value }];
