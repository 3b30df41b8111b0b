/** The samples of a metric, as prom-client's registry takes them. */
import type { Histogram } from "../../engine/util/histogram.ts";

/** What each name begins with. */
export const PREFIX = "exchange_";
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

export const plain = (value: number): Sample[] => [{ labels: {}, value }];
