/** The latest trades in a market, live. */

import { useEffect, useRef, useState } from "preact/hooks";
import { exchangeTime } from "../clock.ts";
import { clock, date, priceNumber, shares } from "../format.ts";
import { request } from "../session.ts";
import { subscribe } from "../stream.ts";
import type { Market, Page, Trade } from "../types.ts";
import { Empty, ErrorNotice, Loading } from "../ui/notices.tsx";
import { Scrollable } from "../ui/table.tsx";
import { useThrottled } from "../ui/throttle.ts";
import { useFetch } from "../ui/use-data.ts";

const SHOWN = 30;
const DAY_MS = 86_400_000;

export function RecentTrades({ market }: { market: Market }) {
  const { id, outcomes } = market;
  const { data, error, reload } = useFetch(
    (signal) => request<Page<Trade>>("GET", `/markets/${id}/trades`, { query: { limit: SHOWN }, signal }),
    String(id),
  );
  const received = useRef<readonly Trade[]>([]);
  const [live, setLive] = useState<readonly Trade[]>([]);
  const show = useThrottled(() => setLive(received.current));
  useEffect(() => {
    const addTrade = ({ data: trade }: { data: Trade }): void => {
      received.current = [trade, ...received.current].slice(0, SHOWN);
      show();
    };
    return subscribe("trades", id, null, addTrade, reload);
  }, [id]);
  const byId = new Map([...(data?.items ?? []), ...live].map((trade) => [trade.id, trade]));
  const trades = [...byId.values()].sort((a, b) => b.id - a.id).slice(0, SHOWN);
  return (
    <section class="panel trades" aria-labelledby="trades-title">
      <h2 id="trades-title">Recent trades</h2>
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && trades.length === 0 && <Empty>No trades yet.</Empty>}
      {trades.length > 0 && (
        <Scrollable label="Trades">
          <table>
            <thead>
              <tr>
                <th scope="col">Outcome</th>
                <th scope="col" class="right">
                  Price, ¢
                </th>
                <th scope="col" class="right">
                  Shares
                </th>
              </tr>
            </thead>
            <tbody>
              {trades.map((trade) => (
                <tr key={trade.id}>
                  <td translate={false}>
                    <span class={trade.side === 1 ? "up" : "down"}>{trade.side === 1 ? "Buy" : "Sell"}</span>{" "}
                    {outcomes.find((outcome) => outcome.id === trade.outcome_id)?.name}
                    <small class="below faint number" translate={false}>
                      {timeOf(trade.created_at)}
                    </small>
                  </td>
                  <td class="right number" translate={false}>
                    {priceNumber(trade.price)}
                  </td>
                  <td class="right number" translate={false}>
                    {shares(trade.quantity)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrollable>
      )}
    </section>
  );
}

const timeOf = (at: number): string => (exchangeTime() - at < DAY_MS ? clock(at) : date(at));
