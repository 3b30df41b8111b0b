/** The portfolio's value or profit over time. */
import { useEffect, useRef, useState } from "preact/hooks";
import { money, signedMoney } from "../../../util/format.ts";
import { exchangeTime } from "../../clock.ts";
import { dateTime, shortDate } from "../../dates.ts";
import { request } from "../../session.ts";
import type { PortfolioHistory } from "../../types.ts";
import { ErrorNotice } from "../../ui/notices.tsx";
import { SegmentedControl } from "../../ui/segmented-control.tsx";
import { type Fetched, useFetch, useOnLive } from "../../ui/use-data.ts";
import { heightOf, nearest, type Point, pathOf, scaleOf, tickText } from "./value-scale.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const AFTER_HOUR_MS = 2_000;
/** By range: the interval of the API, and how far it reaches back. */
const RANGES = {
  "1D": ["1h", DAY_MS],
  "1W": ["1h", 7 * DAY_MS],
  "1M": ["1h", 30 * DAY_MS],
  All: ["1d", 1_400 * DAY_MS],
} as const;
type Range = keyof typeof RANGES;
type Kind = "value" | "profit";
/** Rows of the table that screen readers read. */
const MAX_TOLD = 30;

interface ValueHistory {
  readonly range: Range;
  readonly setRange: (range: Range) => void;
  readonly history: Fetched<PortfolioHistory>;
  /** When the user first had money, ms; null: never, or unknown. */
  readonly firstAt: number | null;
  /** A range has been read, or can't be. */
  readonly isRead: boolean;
}

/** The portfolio's history over a range that the user chooses. */
export function useValueHistory(): ValueHistory {
  const [range, setRange] = useState<Range>("1M");
  const [interval, span] = RANGES[range];
  const history = useFetch<PortfolioHistory>(
    (signal) =>
      request("GET", "/me/portfolio/history", { query: { interval, from: Math.floor(exchangeTime() - span) }, signal }),
    range,
  );
  const { data, error, reload } = history;
  useOnLive(reload);
  // Another point comes with each hour.
  useEffect(() => {
    const timer = setTimeout(reload, HOUR_MS - (exchangeTime() % HOUR_MS) + AFTER_HOUR_MS);
    return () => clearTimeout(timer);
  }, [data]);
  const firstAt = useRef<number | null>(null);
  firstAt.current = data?.first_at ?? firstAt.current;
  const isRead = useRef(false);
  isRead.current ||= data !== null || error !== null;
  return { range, setRange, history, firstAt: firstAt.current, isRead: isRead.current };
}

/** @param value @param profit now, micro-USDC */
export function ValueChart({
  value,
  profit,
  range,
  setRange,
  history: { data, error, reload },
}: ValueHistory & { value: number; profit: number }) {
  const [kind, setKind] = useState<Kind>("value");
  const past = (data?.items ?? []).map((item): Point => [item[0] ?? 0, item[kind === "value" ? 1 : 2] ?? 0]);
  const line: Point[] = [...past, [exchangeTime(), kind === "value" ? value : profit]];
  return (
    <div class="value-chart">
      <ErrorNotice error={error} retry={reload} />
      {data !== null && line.length > 1 ? (
        <Plot line={line} kind={kind} />
      ) : (
        <div class="plot-space" aria-busy={data === null && error === null}>
          {data !== null && <p class="faint">The line begins an hour after your first deposit.</p>}
        </div>
      )}
      <div class="row ends">
        <SegmentedControl
          label="Range"
          value={range}
          options={(Object.keys(RANGES) as Range[]).map((each) => [each, each] as const)}
          onChange={setRange}
        />
        <SegmentedControl
          label="Show"
          value={kind}
          options={[
            ["value", "Value"],
            ["profit", "Profit"],
          ]}
          onChange={setKind}
        />
      </div>
    </div>
  );
}

function Plot({ line, kind }: { line: readonly Point[]; kind: Kind }) {
  const [hovered, setHovered] = useState<number | null>(null);
  const scale = scaleOf(line);
  const path = pathOf(line, scale);
  const [first, last] = [line[0]?.[0] ?? 0, line.at(-1)?.[0] ?? 0];
  const now = line.at(-1)?.[1] ?? 0;
  const shown = hovered === null ? null : (line[Math.min(hovered, line.length - 1)] ?? null);
  const text = kind === "value" ? money : signedMoney;
  const every = Math.ceil(line.length / MAX_TOLD);
  const leftOf = (at: number): string => `${(100 * (at - first)) / Math.max(last - first, 1)}%`;
  const point = (event: PointerEvent): void => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    setHovered(nearest(line, (event.clientX - box.left) / box.width));
  };
  return (
    <figure class="value-plot" translate={false}>
      <div class="area" aria-hidden="true">
        {scale.ticks.map((tick) => (
          <span key={tick} class="rule" style={{ bottom: `${heightOf(scale, tick)}%` }}>
            <i>{Math.abs(heightOf(scale, tick) - heightOf(scale, now)) < 7 ? "" : tickText(tick, scale)}</i>
          </span>
        ))}
        <div class="line" onPointerMove={point} onPointerLeave={() => setHovered(null)}>
          <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
            <path class="ground" d={`${path}L100 100L0 100Z`} />
            <path d={path} />
          </svg>
          {shown !== null && (
            <>
              <span class="cross" style={{ left: leftOf(shown[0]) }} />
              <span class="spot" style={{ left: leftOf(shown[0]), bottom: `${heightOf(scale, shown[1])}%` }} />
              <span class="tip" style={{ [(shown[0] - first) * 2 > last - first ? "left" : "right"]: "8px" }}>
                {dateTime(shown[0])} <strong>{text(shown[1])}</strong>
              </span>
            </>
          )}
        </div>
        <b style={{ bottom: `${heightOf(scale, now)}%` }}>{tickText(now, scale)}</b>
      </div>
      <p aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <span key={share}>{axisTime(first + share * (last - first), last - first)}</span>
        ))}
      </p>
      <table class="hidden">
        <caption>{kind === "value" ? "Portfolio value" : "Profit"} over time, USDC</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">{kind === "value" ? "Value" : "Profit"}</th>
          </tr>
        </thead>
        <tbody>
          {line
            .filter((_, i) => i % every === 0 || i === line.length - 1)
            .map(([at, amount]) => (
              <tr key={at}>
                <td>{dateTime(at)}</td>
                <td>{text(amount)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </figure>
  );
}

const HOURS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const axisTime = (at: number, span: number): string => (span <= 2 * DAY_MS ? HOURS.format(at) : shortDate(at));
