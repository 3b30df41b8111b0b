/** Draws candles with lightweight-charts. Loads the library when a chart is shown. */
import type { IChartApi, ISeriesApi, UTCTimestamp } from "lightweight-charts";
import { useEffect, useRef, useState } from "preact/hooks";
import { chanceText, dateTime } from "../format.ts";
import { ErrorNotice } from "../ui/notices.tsx";
import type { Candle } from "./candles.ts";

export type Shape = "line" | "candles";

interface Drawn {
  readonly chart: IChartApi;
  readonly prices: ISeriesApi<"Area"> | ISeriesApi<"Candlestick">;
  readonly volumes: ISeriesApi<"Histogram">;
}

export function ChartCanvas({
  candles,
  shape,
  isDaily,
}: {
  candles: readonly Candle[];
  shape: Shape;
  isDaily: boolean;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [error, setError] = useState<unknown>(null);
  const shown = useRef<readonly Candle[]>([]);
  useEffect(() => {
    let drawing: Drawn | null = null;
    let isGone = false;
    const stopWatching = watchColors(() => drawing !== null && paint(drawing, shape));
    makeChart(() => (isGone ? null : frame.current), shape, isDaily).then((chart) => {
      drawing = chart;
      setDrawn(chart);
    }, setError);
    return () => {
      isGone = true;
      stopWatching();
      drawing?.chart.remove();
    };
  }, []);
  useEffect(() => {
    if (drawn === null) return;
    if (shown.current.length === 0 || shown.current[0]?.[0] !== candles[0]?.[0]) {
      drawn.prices.setData(candles.map((candle) => priceOf(candle, shape)) as never[]);
      drawn.volumes.setData(candles.map(volumeOf));
      if (shown.current.length === 0) drawn.chart.timeScale().fitContent();
    } else {
      for (const candle of candles.slice(shown.current.length - 1)) {
        drawn.prices.update(priceOf(candle, shape) as never);
        drawn.volumes.update(volumeOf(candle));
      }
    }
    shown.current = candles;
  }, [drawn, candles]);
  return (
    <>
      <ErrorNotice error={error} />
      <div class="canvas" aria-hidden="true" ref={frame} />
    </>
  );
}

const secondsOf = (ms: number): UTCTimestamp => (ms / 1_000) as UTCTimestamp;

function priceOf([at, open, high, low, close]: Candle, shape: Shape) {
  const time = secondsOf(at);
  return shape === "candles" ? { time, open, high, low, close } : { time, value: close };
}

const volumeOf = ([at, , , , , volume]: Candle) => ({ time: secondsOf(at), value: volume });

/** Creates the chart. @param frameNow returns null once the chart is no longer needed */
async function makeChart(frameNow: () => HTMLElement | null, shape: Shape, isDaily: boolean): Promise<Drawn | null> {
  const library = await import("lightweight-charts");
  const frame = frameNow();
  if (frame === null) return null;
  const chart = library.createChart(frame, {
    autoSize: true,
    // The library's logo needs an inline style, which our Content-Security-Policy forbids: a link below names TradingView.
    layout: { attributionLogo: false, fontFamily: getComputedStyle(document.body).fontFamily },
    localization: { priceFormatter: chanceText, timeFormatter: (time: number) => timeOf(time * 1_000, isDaily) },
    timeScale: {
      timeVisible: !isDaily,
      secondsVisible: false,
      tickMarkFormatter: (time: number, kind: number) => tickText(time * 1_000, kind, isDaily),
    },
    rightPriceScale: { scaleMargins: { top: 0.08, bottom: 0.24 } },
    handleScroll: { mouseWheel: false, vertTouchDrag: false },
    handleScale: { mouseWheel: false },
  });
  const priceFormat = { type: "custom", minMove: 1, formatter: chanceText } as const;
  const prices = chart.addSeries(shape === "candles" ? library.CandlestickSeries : library.AreaSeries, { priceFormat });
  const volumes = chart.addSeries(library.HistogramSeries, {
    priceFormat: { type: "volume" },
    priceScaleId: "",
    lastValueVisible: false,
    priceLineVisible: false,
  });
  volumes.priceScale().applyOptions({ scaleMargins: { top: 0.84, bottom: 0 } });
  const drawn = { chart, prices, volumes } as Drawn;
  paint(drawn, shape);
  return drawn;
}

/** Applies the page's current colors. */
function paint({ chart, prices, volumes }: Drawn, shape: Shape): void {
  const color = colorOf;
  chart.applyOptions({
    layout: { background: { color: color("surface") }, textColor: color("text-3") },
    grid: { vertLines: { visible: false }, horzLines: { color: color("line") } },
    rightPriceScale: { borderColor: color("line") },
    timeScale: { borderColor: color("line") },
  });
  const [up, down, accent] = [color("buy"), color("sell"), color("series-1")];
  if (shape === "candles") {
    const candles = { upColor: up, downColor: down, wickUpColor: up, wickDownColor: down, borderVisible: false };
    prices.applyOptions(candles);
  } else
    prices.applyOptions({
      lineColor: accent,
      topColor: faded(accent, 0.16),
      bottomColor: faded(accent, 0),
      lineWidth: 2,
    });
  volumes.applyOptions({ color: faded(color("text-3"), 0.22) });
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

const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

const SHORT_TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

const MIDNIGHT = "00:00";

/** Tick mark types of the library: year, month and day come first. */
const LAST_KIND_OF_DAY = 2;

/** Daily candles are labeled in UTC, whatever the browser's time zone. */
export const timeOf = (at: number, isDaily: boolean): string => (isDaily ? UTC_DAY.format(at) : dateTime(at));

function tickText(at: number, kind: number, isDaily: boolean): string {
  if (isDaily) return UTC_DAY.format(at).replace(/ \d{4}$/, "");
  const time = SHORT_TIME.format(at);
  if (kind > LAST_KIND_OF_DAY) return time;
  // The library's days start at midnight UTC.
  return time === MIDNIGHT ? SHORT_DAY.format(at) : `${SHORT_DAY.format(at)} ${time}`;
}
