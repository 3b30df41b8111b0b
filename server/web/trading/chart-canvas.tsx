/** Draws candles with lightweight-charts: a line for each outcome, or one outcome's candles. Loads the library when it is shown. */
import type { IChartApi, ISeriesApi, MouseEventParams, SeriesType, UTCTimestamp } from "lightweight-charts";
import { useEffect, useRef, useState } from "preact/hooks";
import { chanceText } from "../../util/format.ts";
import { dateText, dateTime, shortDate } from "../dates.ts";
import { ErrorNotice } from "../ui/notices.tsx";
import { type Candle, DAY_MS } from "./candles.ts";

export interface Drawing {
  readonly id: number;
  readonly name: string;
  /** Name of a colour token. */
  readonly color: string;
  readonly isDashed: boolean;
  /** It repeats another line, mirrored: drawn thin, without a value at its end. */
  readonly isMirror: boolean;
  readonly candles: readonly Candle[];
}

interface CanvasProps {
  /** The first one has the area under its line, or is drawn as candles. */
  readonly drawings: readonly Drawing[];
  readonly shape: "line" | "candles";
  /** The length of a candle, ms. */
  readonly step: number;
}

interface Drawn {
  readonly chart: IChartApi;
  readonly prices: readonly ISeriesApi<SeriesType>[];
  readonly volumes: ISeriesApi<"Histogram">;
}

/** What the pointer is at. */
interface Pointed {
  readonly at: number;
  /** Pixels from the left, and whether the text stands left of that. */
  readonly x: number;
  readonly isLeft: boolean;
  readonly values: readonly (readonly [Drawing, number])[];
}

export function ChartCanvas({ drawings, shape, step }: CanvasProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const shown = useRef(new Map<number, readonly Candle[]>());
  const latest = useRef(drawings);
  latest.current = drawings;
  const isDaily = step === DAY_MS;
  useEffect(() => {
    let drawing: Drawn | null = null;
    let isGone = false;
    const stopWatching = watchColors(() => drawing !== null && paint(drawing, latest.current, shape));
    makeChart(() => (isGone ? null : frame.current), latest.current, shape, isDaily).then((made) => {
      drawing = made;
      made?.chart.subscribeCrosshairMove((event) =>
        setPointed(pointedAt(event, made, latest.current, frame.current?.clientWidth ?? 0)),
      );
      setDrawn(made);
    }, setError);
    return () => {
      isGone = true;
      stopWatching();
      drawing?.chart.remove();
    };
  }, []);
  useEffect(() => {
    if (drawn === null) return;
    const isFirst = shown.current.size === 0;
    drawings.forEach(({ id, candles }, i) => {
      const series = drawn.prices[i];
      if (series === undefined) return;
      const before = shown.current.get(id);
      if (before === undefined || before[0]?.[0] !== candles[0]?.[0]) {
        series.setData(candles.map((candle) => priceOf(candle, shape)) as never[]);
      } else {
        for (const candle of candles.slice(Math.max(0, before.length - 1)))
          series.update(priceOf(candle, shape) as never);
      }
      shown.current.set(id, candles);
    });
    drawn.volumes.setData(volumesOf(drawings, shape));
    if (isFirst) drawn.chart.timeScale().fitContent();
  }, [drawn, drawings]);
  return (
    <>
      <ErrorNotice error={error} />
      <div class="canvas" aria-hidden="true">
        <div ref={frame} />
        {pointed !== null && (
          <div
            class="crosshair"
            translate={false}
            style={pointed.isLeft ? { right: `calc(100% - ${pointed.x - 12}px)` } : { left: `${pointed.x + 12}px` }}
          >
            <p>{timeOf(pointed.at, isDaily)}</p>
            <dl>
              {pointed.values.map(([{ id, name, color }, value]) => (
                <div key={id}>
                  <dt>
                    <i class="dot" style={{ "--color": `var(--${color})` }} />
                    {name}
                  </dt>
                  <dd>{(value / 100).toFixed(1)}%</dd>
                </div>
              ))}
            </dl>
          </div>
        )}
      </div>
    </>
  );
}

/** The values under the pointer, largest first. */
function pointedAt(event: MouseEventParams, drawn: Drawn, drawings: readonly Drawing[], width: number): Pointed | null {
  const { time, point, seriesData } = event;
  if (time === undefined || point === undefined) return null;
  const values: [Drawing, number][] = [];
  drawings.forEach((drawing, i) => {
    const series = drawn.prices[i];
    const data = series === undefined ? undefined : (seriesData.get(series) as { value?: number; close?: number });
    const value = data?.value ?? data?.close;
    if (value !== undefined) values.push([drawing, value]);
  });
  if (values.length === 0) return null;
  values.sort(([, a], [, b]) => b - a);
  return { at: (time as number) * 1_000, x: point.x, isLeft: point.x > width / 2, values };
}

const secondsOf = (ms: number): UTCTimestamp => (ms / 1_000) as UTCTimestamp;

function priceOf([at, open, high, low, close]: Candle, shape: CanvasProps["shape"]) {
  const time = secondsOf(at);
  return shape === "candles" ? { time, open, high, low, close } : { time, value: close };
}

/** The volume of all drawn outcomes; of candles, in their direction's colour. */
function volumesOf(drawings: readonly Drawing[], shape: CanvasProps["shape"]) {
  if (shape === "candles") {
    const [up, down] = [faded(colorOf("buy"), 0.28), faded(colorOf("sell"), 0.28)];
    return (drawings[0]?.candles ?? []).map(([at, open, , , close, volume]) => ({
      time: secondsOf(at),
      value: volume,
      color: close >= open ? up : down,
    }));
  }
  const sums = new Map<number, number>();
  for (const { candles } of drawings)
    for (const [at, , , , , volume] of candles) sums.set(at, (sums.get(at) ?? 0) + volume);
  return [...sums].sort(([a], [b]) => a - b).map(([at, value]) => ({ time: secondsOf(at), value }));
}

const FULL_BPS = 10_000;
/** Room below the lowest value, of the range, for the volume. */
const FLOOR_SHARE = 0.25;
const CEILING_SHARE = 0.08;
/** The smallest range of an axis, BPS: what hardly moves is drawn flat. */
const MIN_RANGE = 400;

/** The axis reaches from below the lowest value to above the highest, within 0 to 100 %. */
function axisOf(drawings: readonly Drawing[], original: { minValue: number; maxValue: number } | undefined) {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  if (original !== undefined) [low, high] = [original.minValue, original.maxValue];
  if (drawings.length === 0 || low > high) return { minValue: 0, maxValue: FULL_BPS };
  const range = Math.max(MIN_RANGE, high - low);
  return {
    minValue: Math.max(0, low - FLOOR_SHARE * range),
    maxValue: Math.min(FULL_BPS, high + CEILING_SHARE * range),
  };
}

/** Creates the chart. @param frameNow returns null once the chart is no longer needed */
async function makeChart(
  frameNow: () => HTMLElement | null,
  drawings: readonly Drawing[],
  shape: CanvasProps["shape"],
  isDaily: boolean,
): Promise<Drawn | null> {
  const library = await import("lightweight-charts");
  const frame = frameNow();
  if (frame === null) return null;
  const chart = library.createChart(frame, {
    autoSize: true,
    // The library's logo needs an inline style, which our Content-Security-Policy forbids: a link below names TradingView.
    layout: { attributionLogo: false, fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 11 },
    localization: { priceFormatter: chanceText, timeFormatter: (time: number) => timeOf(time * 1_000, isDaily) },
    timeScale: {
      timeVisible: !isDaily,
      secondsVisible: false,
      borderVisible: false,
      allowBoldLabels: false,
      fixLeftEdge: true,
      fixRightEdge: true,
      tickMarkFormatter: (time: number, kind: number) => tickText(time * 1_000, kind, isDaily),
    },
    rightPriceScale: { scaleMargins: { top: 0.02, bottom: 0 }, borderVisible: false, tickMarkDensity: 5 },
    crosshair: { horzLine: { visible: false, labelVisible: false }, vertLine: { labelVisible: false } },
    handleScroll: { mouseWheel: false, vertTouchDrag: false },
    handleScale: { mouseWheel: false },
  });
  const tickmarksFormatter = (prices: readonly number[]): string[] => prices.map((bps) => `${bps / 100}%`);
  const priceFormat = { type: "custom", minMove: 1, formatter: chanceText, tickmarksFormatter } as const;
  const priceLineVisible = shape === "candles";
  const autoscaleInfoProvider = (
    original: () => { priceRange: { minValue: number; maxValue: number } | null } | null,
  ) => {
    const found = original();
    return found === null ? null : { priceRange: axisOf(drawings, found.priceRange ?? undefined) };
  };
  const options = { priceFormat, priceLineVisible, autoscaleInfoProvider };
  const prices = drawings
    .slice(0, shape === "candles" ? 1 : drawings.length)
    .map((_, i) =>
      chart.addSeries(
        shape === "candles" ? library.CandlestickSeries : i === 0 ? library.AreaSeries : library.LineSeries,
        options,
      ),
    );
  const volumes = chart.addSeries(library.HistogramSeries, {
    priceFormat: { type: "volume" },
    priceScaleId: "",
    lastValueVisible: false,
    priceLineVisible: false,
  });
  volumes.priceScale().applyOptions({ scaleMargins: { top: 0.86, bottom: 0 } });
  const drawn = { chart, prices, volumes } as Drawn;
  paint(drawn, drawings, shape);
  return drawn;
}

/** The library's line styles. */
const SOLID = 0;
const DASHED = 2;

/** Applies the page's current colors. */
function paint({ chart, prices, volumes }: Drawn, drawings: readonly Drawing[], shape: CanvasProps["shape"]): void {
  const color = colorOf;
  chart.applyOptions({
    layout: { background: { color: "transparent" }, textColor: color("text-3") },
    grid: { vertLines: { visible: false }, horzLines: { color: color("line") } },
    crosshair: { vertLine: { color: color("line-strong"), style: 3 } },
  });
  const [up, down] = [color("buy"), color("sell")];
  prices.forEach((series, i) => {
    const drawing = drawings[i];
    if (drawing === undefined) return;
    if (shape === "candles") {
      const candles = { upColor: up, downColor: down, wickUpColor: up, wickDownColor: down, borderVisible: false };
      series.applyOptions({ ...candles, priceLineColor: color("text-2") } as never);
      return;
    }
    const line = color(drawing.color);
    const { isDashed, isMirror } = drawing;
    const style = { lineWidth: isMirror ? 1 : 2, lineStyle: isDashed ? DASHED : SOLID, lastValueVisible: !isMirror };
    if (i === 0) {
      // Of several outcomes, none owns what is below it.
      const isAlone = drawings.every((each) => each === drawing || each.isMirror);
      const area = { lineColor: line, topColor: faded(line, isAlone ? 0.16 : 0), bottomColor: faded(line, 0) };
      series.applyOptions({ ...style, ...area } as never);
    } else series.applyOptions({ ...style, color: line } as never);
  });
  volumes.applyOptions({ color: faded(color("text-3"), 0.3) });
}

/** The current value of a token, as the library reads it: it knows no CSS functions. */
function colorOf(name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** @param color "rgb(1, 2, 3)" */
const faded = (color: string, opacity: number): string => color.replace("rgb(", "rgba(").replace(")", `, ${opacity})`);

/** Calls back when the color scheme changes. Returns a function that stops watching. */
function watchColors(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    dark.removeEventListener("change", changed);
  };
}

const UTC_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

const SHORT_TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

const MIDNIGHT = "00:00";

/** Tick mark types of the library: year, month and day come first. */
const LAST_KIND_OF_DAY = 2;

/** Daily candles are labeled in UTC, whatever the browser's time zone. */
export const timeOf = (at: number, isDaily: boolean): string => (isDaily ? dateText(UTC_DAY, at) : dateTime(at));

function tickText(at: number, kind: number, isDaily: boolean): string {
  if (isDaily) return dateText(UTC_DAY, at).replace(/ \d{4}$/, "");
  const time = SHORT_TIME.format(at);
  if (kind > LAST_KIND_OF_DAY) return time;
  // The library's days start at midnight UTC.
  return time === MIDNIGHT ? shortDate(at) : `${shortDate(at)} ${time}`;
}
