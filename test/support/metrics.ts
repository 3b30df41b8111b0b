/**
 * A strict parser of Prometheus' text format, version 0.0.4: every line is valid, every sample belongs to a metric declared
 * before it, no sample is repeated, and histograms add up.
 */
import { expect } from "vitest";
import type { TestServer } from "./server.ts";

const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)/gy;

function fail(line: string, what: string): never {
  throw new Error(`${what}: ${line}`);
}

function readLabels(text: string, line: string): [string, string][] {
  const found: [string, string][] = [];
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name, value] = LABEL.exec(text) ?? fail(line, "labels");
    found.push([name!, value!]);
  }
  return found;
}

function readValue(text: string, line: string): number {
  if (text === "+Inf") return Number.POSITIVE_INFINITY;
  const value = text === "NaN" ? Number.NaN : Number(text);
  return Number.isNaN(value) && text !== "NaN" ? fail(line, "a value") : value;
}

/** One scrape. A series is named as the text names it, its labels in the order of their names: `name{a="1",b="2"}`. */
export class Scrape {
  readonly types = new Map<string, string>();
  readonly series = new Map<string, number>();
  readonly bytes: number;

  constructor(text: string) {
    this.bytes = Buffer.byteLength(text);
    if (!text.endsWith("\n")) fail(text.slice(-80), "the last line ends");
    for (const line of text.slice(0, -1).split("\n")) this.read(line);
    for (const [name, type] of this.types) if (type === "histogram") this.checkHistogram(name);
  }

  /** The value of a series, which must exist. */
  value(name: string): number {
    return this.series.get(name) ?? fail(name, "no such series");
  }

  /** The changes of the exchange's series since an earlier scrape. */
  since(before: Scrape, names: RegExp): Record<string, number> {
    expect([...this.series.keys()].filter((name) => name.startsWith("exchange_"))).toEqual(
      [...before.series.keys()].filter((name) => name.startsWith("exchange_")),
    );
    const changed = [...this.series].filter(([name, value]) => names.test(name) && value !== before.value(name));
    return Object.fromEntries(changed.map(([name, value]) => [name, value - before.value(name)]));
  }

  private read(line: string): void {
    if (line === "") return;
    const declared = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line);
    if (declared !== null) {
      const [, what, name, text] = declared;
      if (what === "HELP") return;
      if (this.types.has(name!) || !/^(counter|gauge|histogram|summary)$/.test(text!)) fail(line, "a type");
      this.types.set(name!, text!);
      return;
    }
    const [, name, labels = "", value] = SAMPLE.exec(line) ?? fail(line, "a line of the format");
    const family = this.types.has(name!) ? name! : name!.replace(/_(bucket|sum|count)$/, "");
    const type = this.types.get(family) ?? fail(line, "declared before");
    if (family !== name && type !== "histogram" && type !== "summary") fail(line, "a part of a histogram");
    const sorted = readLabels(labels, line).sort(([a], [b]) => (a < b ? -1 : 1));
    const shown = sorted.length === 0 ? "" : `{${sorted.map(([label, text]) => `${label}="${text}"`).join()}}`;
    if (this.series.has(name! + shown)) fail(line, "comes once");
    this.series.set(name! + shown, readValue(value!, line));
  }

  /** Buckets rise to the count. */
  private checkHistogram(name: string): void {
    const groups = new Map<string, [bound: number, count: number][]>();
    for (const [series, count] of this.series) {
      const found = /^(\w+)_bucket\{(.*)\}$/.exec(series);
      if (found?.[1] !== name) continue;
      const labels = readLabels(found[2]!, series);
      const bound = readValue(labels.find(([label]) => label === "le")![1], series);
      const others = labels.filter(([label]) => label !== "le").map(([label, text]) => `${label}="${text}"`);
      const group = others.length === 0 ? "" : `{${others.join()}}`;
      groups.set(group, [...(groups.get(group) ?? []), [bound, count]]);
    }
    for (const [group, buckets] of groups) {
      const rising = buckets.toSorted(([a], [b]) => a - b);
      expect(buckets).toEqual(rising);
      expect(rising.map(([, count]) => count)).toEqual(rising.map(([, count]) => count).toSorted((a, b) => a - b));
      expect(rising.at(-1)).toEqual([Number.POSITIVE_INFINITY, this.value(`${name}_count${group}`)]);
      this.value(`${name}_sum${group}`);
    }
  }
}

/** Requests the metrics, without a token. */
export async function scrape(server: TestServer, headers: Record<string, string> = {}): Promise<Scrape> {
  const answer = await fetch(`${server.root}/metrics`, { headers });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, METRICS_TYPE]);
  return new Scrape(await answer.text());
}
