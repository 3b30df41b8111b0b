/**
 * Draws the plots of docs/figures from the benches' results, as SVG, without a browser. Lettering and axes take the colour
 * of the reader's scheme, light or dark; lines have colours that both show. What was left out of a result isn't drawn.
 * Arguments: the file of results and the folder for the plots.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as echarts from "echarts";

const [file, folder] = process.argv.slice(2);
const results = JSON.parse(readFileSync(file, "utf8"));
const SIZE = { width: 860, height: 480 };
/** By rank; each stands out from white and from near black. */
const COLORS = ["#2f81f7", "#2da44e", "#d4820a", "#e5534b", "#a371f7"];
const STYLE = "<style>svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>";
const INK = "currentColor";
const short = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : String(value));

function axis(name, more = {}) {
  return {
    name,
    nameLocation: "middle",
    nameGap: 32,
    nameTextStyle: { color: INK, fontSize: 13 },
    axisLabel: { color: INK, formatter: short },
    axisLine: { show: true, lineStyle: { color: INK } },
    splitLine: { show: true, lineStyle: { color: INK, opacity: 0.15 } },
    ...more,
  };
}

function line(name, data, more = {}) {
  return { name, type: "line", data, symbol: "circle", symbolSize: 7, lineStyle: { width: 2.5 }, ...more };
}

/** @param caption lines below: where the figures come from */
function draw(name, { title, caption, xAxis, yAxis, series }) {
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, ...SIZE });
  const small = { color: INK, fontSize: 11, lineHeight: 15 };
  chart.setOption({
    animation: false,
    color: COLORS,
    title: [
      { text: title, left: "center", top: 8, textStyle: { color: INK, fontSize: 16 } },
      { text: caption.join("\n"), left: "center", bottom: 6, textStyle: { ...small, fontWeight: "normal" } },
    ],
    legend: { top: 36, itemGap: 32, textStyle: { color: INK }, data: series.map((one) => one.name) },
    grid: { left: 80, right: 32, top: 76, bottom: 96 },
    xAxis,
    yAxis,
    series,
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  writeFileSync(join(folder, `${name}.svg`), `${svg.replace(/(<svg[^>]*>)/, `$1\n${STYLE}`)}\n`);
}

function drawLoads({ machine, open_loop }) {
  const points = open_loop.points.filter(({ left_out }) => left_out === null);
  if (points.length < 2) {
    console.log("plots: too few points of latency are left to draw");
    return;
  }
  const caption = [
    `POST /orders, durable at FULL, ${open_loop.connections} connections, open loop: orders leave at a fixed rate,`,
    `latency counts from when each was to be sent. ${machine}`,
  ];
  const offered = axis("offered, orders/s", { type: "value", min: 0 });
  const most = Math.max(...points.map(({ offered_per_s }) => offered_per_s));
  draw("throughput", {
    title: "Throughput against load",
    caption,
    xAxis: offered,
    yAxis: axis("answered, orders/s", { type: "value", min: 0, nameGap: 48 }),
    series: [
      line(
        "answered with 202",
        points.map((point) => [point.offered_per_s, point.achieved_per_s]),
      ),
      line(
        "as many as offered",
        [
          [0, 0],
          [most, most],
        ],
        { symbol: "none", lineStyle: { type: "dashed", width: 1.5 } },
      ),
    ],
  });
  const percentiles = { p50: "p50_ms", p90: "p90_ms", p99: "p99_ms", "p99.9": "p999_ms", max: "max_ms" };
  draw("latency", {
    title: "Latency against load",
    caption,
    xAxis: offered,
    yAxis: axis("latency, ms (log)", { type: "log", nameGap: 48 }),
    series: Object.entries(percentiles).map(([name, field]) =>
      line(
        name,
        points.map((point) => [point.offered_per_s, point[field]]),
      ),
    ),
  });
}

function drawCosts({ machine, markets, live_orders }) {
  const costs = (rows, field) => rows.map((row) => [row[field], row.us_per_order]);
  draw("cost", {
    title: "Processor time of an order against what the exchange holds",
    caption: [
      "Whole server, user and system time, an order with its cancels; one WebSocket, 256 outstanding; durable at FULL.",
      machine,
    ],
    xAxis: axis("live orders, or markets (log)", { type: "log" }),
    yAxis: axis("µs an order", { type: "value", min: 0, nameGap: 48 }),
    series: [line("by live orders", costs(live_orders, "live")), line("by markets", costs(markets, "markets"))],
  });
}

if (results.latency !== undefined) drawLoads(results.latency);
if (results.matrix !== undefined) drawCosts(results.matrix);
