/** What an outcome's price was, as a chart that goes on live; in words and as a table for who doesn't see it. */
import type { IChartApi, ISeriesApi, UTCTimestamp } from "lightweight-charts";
import { useEffect, useRef, useState } from "preact/hooks";
import { date, dateTime, fullPercent, percent, shares } from "../format.ts";
import { request } from "../session.ts";
import { subscribe } from "../stream.ts";
import type { Candles, Market, Outcome, Trade } from "../types.ts";
import { Choice } from "../ui/fields.tsx";
import { Empty, ErrorNotice, Loading } from "../ui/notices.tsx";
import { Scrolled } from "../ui/table.tsx";
import { useTogether } from "../ui/throttle.ts";
import { type Loaded, useLoaded } from "../ui/use-data.ts";

type Interval = "1m" | "5m" | "1h" | "1d";
type Shape = "line" | "candles";
/** [open time, ms; open, high, low, close, BPS; shares] */
type Candle = readonly [at: number, open: number, high: number, low: number, close: number, volume: number];

const LENGTH_MS: Readonly<Record<Interval, number>> = {
  "1m": 60_000,
  "5m": 300_000,
  "1h": 3_600_000,
  "1d": 86_400_000,
};
const COUNT = 500;
const TABLE_ROWS = 24;
/** So many candles at least make a picture. */
const FEW = 24;

/** The longest candles that a market's age gives enough of. */
function fittingInterval({ created_at, opens_at }: Market): Interval {
  const age = Date.now() - (opens_at ?? created_at);
  return (["1d", "1h", "5m"] as const).find((interval) => age > FEW * LENGTH_MS[interval]) ?? "1m";
}

export function PriceChart({ market, outcome }: { market: Market; outcome: Outcome }) {
  const [interval, setInterval] = useState<Interval>(() => fittingInterval(market));
  const [shape, setShape] = useState<Shape>("line");
  const candles = useCandles(market.id, outcome.id, interval);
  const { data, error, reload } = candles;
  return (
    <section class="panel chart" aria-labelledby="chart-title">
      <div class="chart-head">
        <h2 id="chart-title">Price of {outcome.name}</h2>
        <Choice
          label="Shape of the chart"
          value={shape}
          options={[
            ["line", "Line"],
            ["candles", "Candles"],
          ]}
          onChange={setShape}
        />
        <Choice
          label="Time of a candle"
          value={interval}
          options={[
            ["1m", "1 min"],
            ["5m", "5 min"],
            ["1h", "1 h"],
            ["1d", "1 d"],
          ]}
          onChange={setInterval}
        />
      </div>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && data.length === 0 && <Empty>{outcome.name} was never traded yet.</Empty>}
      {data !== null && data.length > 0 && (
        <>
          <Canvas key={`${outcome.id} ${interval} ${shape}`} candles={data} shape={shape} isDaily={interval === "1d"} />
          <AsText candles={data} isDaily={interval === "1d"} />
        </>
      )}
    </section>
  );
}

/** The candles, carried on by the trades that happen. */
function useCandles(marketId: number, outcomeId: number, interval: Interval): Loaded<readonly Candle[]> {
  const loaded = useLoaded<readonly Candle[]>(async (signal) => {
    const query = { outcome_id: outcomeId, interval, from: Date.now() - COUNT * LENGTH_MS[interval] };
    const { items } = await request<Candles>("GET", `/markets/${marketId}/candles`, { query, signal });
    return items as unknown as Candle[];
  }, `${outcomeId} ${interval}`);
  const { set, reload } = loaded;
  const add = useTogether((trades: readonly Trade[]) => {
    const own = trades.filter(({ outcome_id }) => outcome_id === outcomeId);
    if (own.length === 0) return;
    set((before) => own.reduce((candles, trade) => withTrade(candles, trade, LENGTH_MS[interval]), before));
  });
  useEffect(
    () => subscribe("trades", marketId, null, ({ data }) => add(data), reload),
    [marketId, outcomeId, interval],
  );
  return loaded;
}

/** @param length of a candle, ms */
function withTrade(
  candles: readonly Candle[],
  { price, quantity, created_at }: Trade,
  length: number,
): readonly Candle[] {
  const at = created_at - (created_at % length);
  const last = candles.at(-1);
  if (last === undefined || at > last[0]) {
    const between: Candle[] = [];
    // Where nothing was traded the price stands.
    const first = Math.max((last?.[0] ?? at) + length, at - COUNT * length);
    for (let gap = first; gap < at && last !== undefined; gap += length) {
      between.push([gap, last[4], last[4], last[4], last[4], 0]);
    }
    return [...candles, ...between, [at, price, price, price, price, quantity] as const].slice(-COUNT);
  }
  if (at < last[0]) return candles;
  const [, open, high, low, , volume] = last;
  const changed: Candle = [at, open, Math.max(high, price), Math.min(low, price), price, volume + quantity];
  return [...candles.slice(0, -1), changed];
}

interface Drawn {
  readonly chart: IChartApi;
  readonly prices: ISeriesApi<"Area"> | ISeriesApi<"Candlestick">;
  readonly volumes: ISeriesApi<"Histogram">;
}

function Canvas({ candles, shape, isDaily }: { candles: readonly Candle[]; shape: Shape; isDaily: boolean }) {
  const frame = useRef<HTMLDivElement>(null);
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [error, setError] = useState<unknown>(null);
  const shown = useRef<readonly Candle[]>([]);
  useEffect(() => {
    let made: Drawn | null = null;
    let isGone = false;
    const stopWatching = watchColours(() => made !== null && paint(made, shape));
    makeChart(() => (isGone ? null : frame.current), shape, isDaily).then((chart) => {
      made = chart;
      setDrawn(chart);
    }, setError);
    return () => {
      isGone = true;
      stopWatching();
      made?.chart.remove();
    };
  }, []);
  useEffect(() => {
    if (drawn === null) return;
    if (shown.current.length === 0 || shown.current[0]![0] !== candles[0]![0]) {
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

/** @param frameNow null: it isn't wanted any more */
async function makeChart(frameNow: () => HTMLElement | null, shape: Shape, isDaily: boolean): Promise<Drawn | null> {
  const library = await import("lightweight-charts");
  const frame = frameNow();
  if (frame === null) return null;
  const chart = library.createChart(frame, {
    autoSize: true,
    // Its logo brings a style of its own, which the page's policy forbids: a line below the chart names its maker.
    layout: { attributionLogo: false, fontFamily: getComputedStyle(document.body).fontFamily },
    localization: { priceFormatter: fullPercent, timeFormatter: (time: number) => timeOf(time * 1_000, isDaily) },
    timeScale: {
      timeVisible: !isDaily,
      secondsVisible: false,
      tickMarkFormatter: (time: number, kind: number) => tickText(time * 1_000, kind, isDaily),
    },
    rightPriceScale: { scaleMargins: { top: 0.08, bottom: 0.24 } },
    handleScroll: { mouseWheel: false, vertTouchDrag: false },
    handleScale: { mouseWheel: false },
  });
  const priceFormat = { type: "custom", minMove: 1, formatter: fullPercent } as const;
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

/** In the page's colours, as they are now. */
function paint({ chart, prices, volumes }: Drawn, shape: Shape): void {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  chart.applyOptions({
    layout: { background: { color: colour("surface") }, textColor: colour("faint") },
    grid: { vertLines: { color: colour("raised") }, horzLines: { color: colour("raised") } },
    rightPriceScale: { borderColor: colour("line") },
    timeScale: { borderColor: colour("line") },
  });
  const [up, down, accent] = [colour("up"), colour("down"), colour("accent")];
  if (shape === "candles") {
    const candles = { upColor: up, downColor: down, wickUpColor: up, wickDownColor: down, borderVisible: false };
    prices.applyOptions(candles);
  } else prices.applyOptions({ lineColor: accent, topColor: `${accent}44`, bottomColor: `${accent}00`, lineWidth: 2 });
  volumes.applyOptions({ color: colour("line") });
}

/** Calls back when the page's colours change, until the answer is called. */
function watchColours(changed: () => void): () => void {
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
/** Of the library's kinds of marks: year, month and day come first. */
const LAST_KIND_OF_DAY = 2;

/** Days are those of UTC, whatever the person's zone. */
const timeOf = (at: number, isDaily: boolean): string => (isDaily ? UTC_DAY.format(at) : dateTime(at));

function tickText(at: number, kind: number, isDaily: boolean): string {
  if (isDaily) return UTC_DAY.format(at).replace(/ \d{4}$/, "");
  const time = SHORT_TIME.format(at);
  if (kind > LAST_KIND_OF_DAY) return time;
  // The library's days begin at midnight UTC.
  return time === MIDNIGHT ? SHORT_DAY.format(at) : `${SHORT_DAY.format(at)} ${time}`;
}

function AsText({ candles, isDaily }: { candles: readonly Candle[]; isDaily: boolean }) {
  const [first, last] = [candles[0]!, candles.at(-1)!];
  const high = Math.max(...candles.map((candle) => candle[2]));
  const low = Math.min(...candles.map((candle) => candle[3]));
  const rows = candles.filter((candle) => candle[5] > 0).slice(-TABLE_ROWS);
  return (
    <>
      <p class="hint">
        Since {date(first[0])}: from {percent(first[1])} to {percent(last[4])}, lowest {percent(low)}, highest{" "}
        {percent(high)}.{isDaily && " Days are those of UTC."} Chart by{" "}
        <a href="https://www.tradingview.com/" target="_blank" rel="noreferrer">
          TradingView
        </a>
        .
      </p>
      <details class="as-table">
        <summary>As a table</summary>
        <Scrolled label="Prices as a table">
          <table>
            <caption class="hidden">The last {rows.length} times with trades, the newest first</caption>
            <thead>
              <tr>
                <th scope="col">From</th>
                {["Open", "High", "Low", "Close", "Shares"].map((title) => (
                  <th key={title} scope="col" class="right">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {[...rows].reverse().map(([at, open, high, low, close, volume]) => (
                <tr key={at}>
                  <td>{timeOf(at, isDaily)}</td>
                  {[open, high, low, close].map((price, i) => (
                    <td key={i} class="right number">
                      {percent(price)}
                    </td>
                  ))}
                  <td class="right number">{shares(volume)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolled>
      </details>
    </>
  );
}
