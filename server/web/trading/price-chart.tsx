/** The chance of a market's outcomes: now, and over time; with a text summary and a table for screen readers. */

import { useMemo, useRef, useState } from "preact/hooks";
import { chanceText, priceNumber, shares } from "../../util/format.ts";
import { date } from "../dates.ts";
import { dayChanges, endOf, isBinary, isRunning, winnerOf } from "../market-facts.ts";
import { byChance, chances, wholePercent } from "../market-tickers.ts";
import { required } from "../required.ts";
import { href } from "../router.ts";
import { Dot, seriesOf } from "../series.tsx";
import type { Market, Outcome } from "../types.ts";
import { BigChance, Change } from "../ui/chance.tsx";
import { PathIcon } from "../ui/icon.tsx";
import { Empty, ErrorNotice, Loading } from "../ui/notices.tsx";
import { SegmentedControl } from "../ui/segmented-control.tsx";
import { Scrollable } from "../ui/table.tsx";
import { type Candle, DAY_MS, withOpposite } from "./candles.ts";
import { ChartCanvas, type Drawing, timeOf } from "./chart-canvas.tsx";
import { defaultRange, MAX_DRAWN, RANGE_NAMES, type Range, useChartData } from "./chart-data.ts";
import type { Depth } from "./depth.ts";
import { DepthChart } from "./depth-chart.tsx";

const TABLE_ROWS = 24;

type View = "line" | "candles" | "depth";

/** Lines of the chart's icons. */
const ICONS = {
  line: "m2 11 4-4 3 2.500L14 4",
  candles: "M5 2v2M5 10v4M11 3v3M11 11v2M3.300 4h3.400v6H3.300zM9.300 6h3.400v5H9.300z",
  depth: "M2 13V4l2.500 3 2 1.500V13M14 13V3l-2.500 4-2 1.500V13",
  full: "M6 2.500H2.500V6M10 2.500h3.500V6M6 13.500H2.500V10M10 13.500h3.500V10",
} as const;

const icon = (name: keyof typeof ICONS, text: string) => (
  <>
    <PathIcon path={ICONS[name]} />
    <span class="hidden">{text}</span>
  </>
);

interface ChartProps {
  market: Market;
  outcome: Outcome;
  /** Of the outcome; null until all books are known. */
  depth: Depth | null;
  /** Its head names the market, on a page of several. */
  isNamed?: boolean;
}

export function PriceChart({ market, outcome, depth, isNamed = false }: ChartProps) {
  const [range, setRange] = useState<Range>(() => defaultRange(market));
  const [view, setView] = useState<View>("line");
  const panel = useRef<HTMLElement>(null);
  const drawn = useMemo(() => drawnOutcomes(market, outcome), [market.id, outcome.id]);
  const { data, error, reload } = useChartData(market, drawn, range);
  const whole = useMemo(() => (data === null ? null : withOpposite(market.outcomes, data)), [data, market.id]);
  // As they are shown, in whole percent: not again for every tick.
  const now = view === "line" && isRunning(market) ? chances(market).map((bps) => bps && wholePercent(bps)) : null;
  const drawings = useMemo(
    () => (whole === null ? [] : drawingsOf(market, drawn, whole.candles, now)),
    [whole, market.id, drawn, now?.join()],
  );
  const hasTrades = drawings.length > 0;
  const isEnded = endOf(market) !== null;
  // The library draws itself: not again for every tick of the market.
  const canvas = useMemo(
    () =>
      whole !== null && hasTrades && view !== "depth" ? (
        <ChartCanvas
          key={`${outcome.id} ${range} ${view} ${drawings.map(({ id }) => id).join()}`}
          drawings={drawings}
          shape={view}
          step={whole.step}
        />
      ) : null,
    [drawings, view, range, outcome.id],
  );
  return (
    <section class="panel chart" aria-labelledby="chart-title" ref={panel}>
      <h2 class={isNamed ? "chart-market" : "hidden"} id="chart-title">
        {isNamed ? <a href={href(`/markets/${market.slug}`)}>{market.question}</a> : "Chance"}
      </h2>
      <ChartHead market={market} outcome={outcome} drawn={drawn} />
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && view !== "depth" && <div class="canvas loading" role="status" />}
      {whole !== null && !hasTrades && view !== "depth" && (
        <div class="canvas blank">
          <Empty>No trades yet.</Empty>
        </div>
      )}
      {canvas}
      {view === "depth" && (depth === null ? <Loading what="Loading order book" /> : <DepthChart {...depth} />)}
      <div class="chart-tools">
        <SegmentedControl
          label="Range"
          value={range}
          options={RANGE_NAMES.map((each) => [each, each] as const)}
          onChange={setRange}
        />
        <span class="row">
          <SegmentedControl
            label="Chart"
            value={view}
            options={[
              ["line", icon("line", "Line")],
              ["candles", icon("candles", "Candles")],
              ...(isEnded ? [] : [["depth", icon("depth", "Depth")] as const]),
            ]}
            onChange={setView}
          />
          {document.fullscreenEnabled && (
            <button
              type="button"
              class="quiet"
              aria-label="Full screen"
              onClick={() => toggleFullScreen(panel.current)}
            >
              <PathIcon path={ICONS.full} />
            </button>
          )}
        </span>
      </div>
      {whole !== null && hasTrades && view !== "depth" && <AsTable drawings={drawings} step={whole.step} view={view} />}
      {data === null && view !== "depth" && <div class="chart-foot" />}
    </section>
  );
}

function toggleFullScreen(element: HTMLElement | null): void {
  const done = document.fullscreenElement === null ? element?.requestFullscreen() : document.exitFullscreen();
  done?.catch(() => {});
}

/** The chosen outcome, then the likeliest others, as many as there are colours. */
function drawnOutcomes({ outcomes }: Market, chosen: Outcome): readonly Outcome[] {
  const others = byChance(outcomes).filter(({ id }) => id !== chosen.id);
  return [chosen, ...others].slice(0, MAX_DRAWN);
}

/** @param now the chance of each outcome, which a line ends with; null: the last trade's price */
function drawingsOf(
  market: Market,
  drawn: readonly Outcome[],
  candles: ReadonlyMap<number, readonly Candle[]>,
  now: readonly (number | null)[] | null,
): Drawing[] {
  return drawn
    .map(({ id, name, index }, i) => ({
      ...{ id, name, ...seriesOf(market, { index }) },
      isMirror: isBinary(market) && i > 0,
      candles: endingWith(candles.get(id) ?? [], now?.[index] ?? null),
    }))
    .filter((each) => each.candles.length > 0);
}

function endingWith(candles: readonly Candle[], close: number | null): readonly Candle[] {
  const last = candles.at(-1);
  if (last === undefined || close === null) return candles;
  const [at, open, high, low, , volume] = last;
  return [...candles.slice(0, -1), [at, open, high, low, close, volume]];
}

function ChartHead({ market, outcome, drawn }: { market: Market; outcome: Outcome; drawn: readonly Outcome[] }) {
  const { outcomes, resolution } = market;
  const isTwo = isBinary(market);
  const now = chances(market);
  const leader = byChance(outcomes)[0] ?? outcome;
  const shown = isTwo ? outcome : leader;
  const hasPrice = now.some((bps) => bps !== null);
  const winner = winnerOf(market);
  const change = dayChanges(market)[shown.index] ?? null;
  const byIndex = [...drawn].sort((a, b) => a.index - b.index);
  return (
    <div class="chart-head" translate={false}>
      {resolution === null ? (
        <>
          <BigChance bps={now[shown.index] ?? null} />
          <div class="chart-name">
            <b>{isTwo ? `chance of ${shown.name}` : hasPrice ? `${shown.name} leads` : "No price yet"}</b>
            {change !== null && (
              <small>
                <Change bps={change} /> in 24 h
              </small>
            )}
          </div>
        </>
      ) : (
        <div class="chart-name">
          <b class="ended">{winner === undefined ? "Voided" : winner.name}</b>
          <small>{winner === undefined ? "all outcomes pay the same" : "won"}</small>
        </div>
      )}
      <ul class={isTwo ? "legend of-two" : "legend"} aria-label="Lines of the chart">
        {byIndex.map((each) => (
          <li key={each.id}>
            <Dot market={market} outcome={each} />
            {each.name}
            {isTwo && resolution === null && <b>{chanceText(now[each.index] ?? null)}</b>}
          </li>
        ))}
        {outcomes.length > drawn.length && <li>and {outcomes.length - drawn.length} more</li>}
      </ul>
    </div>
  );
}

/** A text summary, and the latest values as a table. */
function AsTable({ drawings, step, view }: { drawings: readonly Drawing[]; step: number; view: "line" | "candles" }) {
  const { candles } = required(drawings[0], "a drawing");
  const [first, last] = [required(candles[0], "a candle"), required(candles.at(-1), "a candle")];
  const high = Math.max(...candles.map((candle) => candle[2]));
  const low = Math.min(...candles.map((candle) => candle[3]));
  const isDaily = step === DAY_MS;
  return (
    <div class="chart-foot">
      <p class="hidden" translate={false}>
        {drawings[0]?.name} since {date(first[0])}: from {chanceText(first[1])} to {chanceText(last[4])}, low{" "}
        {chanceText(low)}, high {chanceText(high)}.{isDaily && " Days in UTC."}
      </p>
      <p class="hint">
        Chart by{" "}
        <a href="https://www.tradingview.com/" target="_blank" rel="noreferrer">
          TradingView
        </a>
      </p>
      <details class="as-table">
        <summary>Show as table</summary>
        <Scrollable label="Price table">
          {view === "line" ? (
            <LineTable drawings={drawings} isDaily={isDaily} />
          ) : (
            <CandleTable candles={candles} isDaily={isDaily} />
          )}
        </Scrollable>
      </details>
    </div>
  );
}

const heads = (titles: readonly string[]) => (
  <thead>
    <tr>
      <th scope="col">Time</th>
      {titles.map((title) => (
        <th key={title} scope="col" class="right" translate={false}>
          {title}
        </th>
      ))}
    </tr>
  </thead>
);

/** The price of each outcome, newest first, where one of them traded. */
function LineTable({ drawings, isDaily }: { drawings: readonly Drawing[]; isDaily: boolean }) {
  const prices = drawings.map(({ candles }) => new Map(candles.map((each) => [each[0], each] as const)));
  const times = [
    ...new Set(drawings.flatMap(({ candles }) => candles.filter((each) => each[5] > 0).map(([at]) => at))),
  ];
  const rows = times.sort((a, b) => b - a).slice(0, TABLE_ROWS);
  return (
    <table>
      <caption class="hidden">The last {rows.length} intervals with trades, newest first</caption>
      {heads(drawings.map(({ name }) => `${name}, ¢`))}
      <tbody>
        {rows.map((at) => (
          <tr key={at}>
            <td>{timeOf(at, isDaily)}</td>
            {prices.map((of, i) => (
              <td key={i} class="right number" translate={false}>
                {priceNumber(of.get(at)?.[4] ?? null)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function CandleTable({ candles, isDaily }: { candles: readonly Candle[]; isDaily: boolean }) {
  const rows = candles
    .filter((candle) => candle[5] > 0)
    .slice(-TABLE_ROWS)
    .reverse();
  return (
    <table>
      <caption class="hidden">The last {rows.length} intervals with trades, newest first</caption>
      {heads(["Open, ¢", "High, ¢", "Low, ¢", "Close, ¢", "Shares"])}
      <tbody>
        {rows.map(([at, open, high, low, close, volume]) => (
          <tr key={at}>
            <td>{timeOf(at, isDaily)}</td>
            {[open, high, low, close].map((price, i) => (
              <td key={i} class="right number" translate={false}>
                {priceNumber(price)}
              </td>
            ))}
            <td class="right number" translate={false}>
              {shares(volume)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
