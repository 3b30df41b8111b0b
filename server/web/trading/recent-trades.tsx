/** The latest trades in a market, live. Holds still under the pointer. */

import { useEffect, useRef, useState } from "preact/hooks";
import { priceNumber, shares } from "../../util/format.ts";
import { exchangeTime } from "../clock.ts";
import { clock, date } from "../dates.ts";
import { request } from "../session.ts";
import { subscribe } from "../stream.ts";
import type { Market, Outcome, Page, Trade } from "../types.ts";
import { Empty, ErrorNotice, Loading } from "../ui/notices.tsx";
import { Scrollable } from "../ui/table.tsx";
import { useThrottled } from "../ui/throttle.ts";
import { useFetch } from "../ui/use-data.ts";

const SHOWN = 30;
const DAY_MS = 86_400_000;

export function RecentTrades({ market, outcome }: { market: Market; outcome: Outcome }) {
  const { id, outcomes } = market;
  const [isAll, setAll] = useState(true);
  const only = isAll ? null : outcome.id;
  const { data, error, reload } = useFetch(
    (signal) =>
      request<Page<Trade>>("GET", `/markets/${id}/trades`, { query: { limit: SHOWN, outcome_id: only }, signal }),
    `${id} ${only}`,
  );
  const received = useRef<readonly Trade[]>([]);
  const [live, setLive] = useState<readonly Trade[]>([]);
  const isHeld = useRef(false);
  const show = useThrottled(() => !isHeld.current && setLive(received.current));
  useEffect(() => {
    const addTrade = ({ data: trade }: { data: Trade }): void => {
      received.current = [trade, ...received.current].slice(0, SHOWN);
      show();
    };
    return subscribe("trades", id, null, addTrade, reload);
  }, [id]);
  const hold = (isOver: boolean): void => {
    isHeld.current = isOver;
    if (!isOver) show();
  };
  const byId = new Map([...(data?.items ?? []), ...live].map((trade) => [trade.id, trade]));
  const trades = [...byId.values()]
    .filter(({ outcome_id }) => only === null || outcome_id === only)
    .sort((a, b) => b.id - a.id)
    .slice(0, SHOWN);
  return (
    <section class="panel trades" aria-labelledby="trades-title">
      <div class="panel-head">
        <h2 id="trades-title">Trades</h2>
        <button type="button" class="toggle" aria-pressed={isAll} onClick={() => setAll(!isAll)}>
          All outcomes
        </button>
      </div>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && trades.length === 0 && <Empty>No trades yet.</Empty>}
      {trades.length > 0 && (
        // biome-ignore lint/a11y/noStaticElementInteractions: only holds still
        <div class="trades-list" onMouseEnter={() => hold(true)} onMouseLeave={() => hold(false)}>
          <Scrollable label="Latest trades">
            <table>
              <thead>
                <tr>
                  <th scope="col">Price, ¢</th>
                  {isAll && <th scope="col">Outcome</th>}
                  <th scope="col" class="right">
                    Shares
                  </th>
                  <th scope="col" class="right">
                    Time
                  </th>
                </tr>
              </thead>
              <tbody>
                {trades.map((trade) => (
                  <tr key={trade.id} translate={false}>
                    <td class={trade.side === 1 ? "up number" : "down number"}>
                      <span class="hidden">{trade.side === 1 ? "Buy" : "Sell"} at </span>
                      {priceNumber(trade.price)}
                    </td>
                    {isAll && <td>{outcomes.find(({ id: of }) => of === trade.outcome_id)?.name}</td>}
                    <td class="right number">{shares(trade.quantity)}</td>
                    <td class="right number faint">{timeOf(trade.created_at)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scrollable>
        </div>
      )}
    </section>
  );
}

const timeOf = (at: number): string => (exchangeTime() - at < DAY_MS ? clock(at) : date(at));
