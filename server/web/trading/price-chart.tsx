/** An outcome's price chart, live, with a text summary and a table for screen readers. */

import { useState } from "preact/hooks";
import { exchangeTime } from "../clock.ts";
import { chanceText, date, priceNumber, shares } from "../format.ts";
import { required } from "../required.ts";
import type { Market, Outcome } from "../types.ts";
import { SegmentedControl } from "../ui/fields.tsx";
import { Empty, ErrorNotice, Loading } from "../ui/notices.tsx";
import { Scrollable } from "../ui/table.tsx";
import { type Candle, INTERVAL_MS, type Interval, useCandles } from "./candles.ts";
import { ChartCanvas, type Shape, timeOf } from "./chart-canvas.tsx";

const TABLE_ROWS = 24;

/** The fewest candles that make a useful chart. */
const MIN_CANDLES = 24;

/** The longest interval that yields enough candles for the market's age. */
function defaultInterval({ created_at, opens_at }: Market): Interval {
  const age = exchangeTime() - (opens_at ?? created_at);
  return (["1d", "1h", "5m"] as const).find((interval) => age > MIN_CANDLES * INTERVAL_MS[interval]) ?? "1m";
}

export function PriceChart({ market, outcome }: { market: Market; outcome: Outcome }) {
  const [interval, setInterval] = useState<Interval>(() => defaultInterval(market));
  const [shape, setShape] = useState<Shape>("line");
  const candles = useCandles(market.id, outcome.id, interval);
  const { data, error, reload } = candles;
  return (
    <section class="panel chart" aria-labelledby="chart-title">
      <div class="panel-head">
        <h2 id="chart-title">
          Price: <span translate={false}>{outcome.name}</span>
        </h2>
        <SegmentedControl
          label="Chart type"
          value={shape}
          options={[
            ["line", "Line"],
            ["candles", "Candles"],
          ]}
          onChange={setShape}
        />
        <SegmentedControl
          label="Interval"
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
      {data !== null && data.length === 0 && <Empty>No trades yet.</Empty>}
      {data !== null && data.length > 0 && (
        <>
          <ChartCanvas
            key={`${outcome.id} ${interval} ${shape}`}
            candles={data}
            shape={shape}
            isDaily={interval === "1d"}
          />
          <PriceTable candles={data} isDaily={interval === "1d"} />
        </>
      )}
    </section>
  );
}

function PriceTable({ candles, isDaily }: { candles: readonly Candle[]; isDaily: boolean }) {
  const [first, last] = [required(candles[0], "a candle"), required(candles.at(-1), "a candle")];
  const high = Math.max(...candles.map((candle) => candle[2]));
  const low = Math.min(...candles.map((candle) => candle[3]));
  const rows = candles.filter((candle) => candle[5] > 0).slice(-TABLE_ROWS);
  return (
    <>
      <p class="hint">
        Since {date(first[0])}: from {chanceText(first[1])} to {chanceText(last[4])}, low {chanceText(low)}, high{" "}
        {chanceText(high)}.{isDaily && " Days in UTC."} Chart by{" "}
        <a href="https://www.tradingview.com/" target="_blank" rel="noreferrer">
          TradingView
        </a>
        .
      </p>
      <details class="as-table">
        <summary>Show as table</summary>
        <Scrollable label="Price table">
          <table>
            <caption class="hidden">The last {rows.length} intervals with trades, newest first</caption>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {["Open, ¢", "High, ¢", "Low, ¢", "Close, ¢", "Shares"].map((title) => (
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
        </Scrollable>
      </details>
    </>
  );
}
