/** What the list behind the bell has, and the price alerts that wait. */
import { alertPrice } from "../../../util/format.ts";
import { marketName, outcomeName, useMarkets } from "../../market-cache.ts";
import { href } from "../../router.ts";
import { request, user } from "../../session.ts";
import type { NotificationSettings, PriceAlert } from "../../types.ts";
import { useAction } from "../../ui/action.ts";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { Panel } from "./panel.tsx";

type Way = keyof NotificationSettings;
type Topic = keyof NotificationSettings["page"];

const TOPICS: readonly (readonly [topic: Topic, label: string])[] = [
  ["fills", "Fills of resting orders"],
  ["resolutions", "Resolved markets"],
  ["payments", "Deposits and withdrawals"],
  ["alerts", "Price alerts"],
];
const WAYS: readonly (readonly [way: Way, label: string])[] = [
  ["page", "Page"],
  ["mail", "Mail"],
];

export function NotificationsPanel() {
  const settings = useFetch<NotificationSettings>(
    (signal) => request("GET", "/me/notification-settings", { signal }),
    "notification-settings",
  );
  const { run, error } = useAction(async (way: Way, topic: Topic, isOn: boolean) => {
    // Shown at once: a box that answers late would be ticked twice.
    settings.set((before) => ({ ...before, [way]: { ...before[way], [topic]: isOn } }));
    try {
      const changed = await request<NotificationSettings>("PATCH", "/me/notification-settings", {
        body: { [way]: { [topic]: isOn } },
      });
      settings.set(() => changed);
    } catch (failure) {
      settings.reload();
      throw failure;
    }
  });
  const { data } = settings;
  return (
    <Panel id="notifications" title="Notifications">
      <ErrorNotice error={settings.error ?? error} retry={settings.reload} />
      {data === null && settings.error === null && <Loading />}
      {data !== null && (
        <table class="topics">
          <caption class="hidden">What you are told, and where</caption>
          <thead>
            <tr>
              <th scope="col">Topic</th>
              {WAYS.map(([way, label]) => (
                <th key={way} scope="col">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {TOPICS.map(([topic, label]) => (
              <tr key={topic}>
                <th scope="row">{label}</th>
                {WAYS.map(([way, name]) => (
                  <td key={way}>
                    <input
                      type="checkbox"
                      aria-label={`${label}: ${name}`}
                      checked={data[way][topic]}
                      onChange={({ currentTarget }) => void run(way, topic, currentTarget.checked)}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="faint">
        Mails go to <span class="break">{user.value?.email}</span>: one a minute at most, about fills one a quarter of
        an hour. Those about withdrawals come in any case.
      </p>
      <Alerts />
    </Panel>
  );
}

function Alerts() {
  const { data, error, reload } = useFetch<{ items: readonly PriceAlert[] }>(
    (signal) => request("GET", "/me/price-alerts", { signal }),
    "price-alerts",
  );
  const markets = useMarkets((data?.items ?? []).map(({ market_id }) => market_id));
  const {
    run,
    isBusy,
    error: failed,
  } = useAction(async (id: number) => {
    await request("DELETE", `/me/price-alerts/${id}`);
    reload();
  });
  return (
    <>
      <h3>Price alerts that wait</h3>
      <ErrorNotice error={error ?? failed} retry={reload} />
      {data?.items.length === 0 && <p class="faint">None. The bell beside a market's name sets one.</p>}
      <ul class="entries">
        {data?.items.map(({ id, market_id, outcome_id, direction, price }) => {
          const market = markets.get(market_id);
          const what = `${outcomeName(market, outcome_id)} at ${alertPrice(price, direction)}`;
          return (
            <li key={id}>
              <span translate={false}>
                {what}
                <small class="below">
                  <a href={href(`/markets/${market?.slug ?? market_id}?outcome=${outcome_id}`)}>
                    {marketName(market, market_id)}
                  </a>
                </small>
              </span>
              <button
                type="button"
                class="small"
                disabled={isBusy}
                aria-label={`Delete alert: ${what}`}
                onClick={() => void run(id)}
              >
                Delete
              </button>
            </li>
          );
        })}
      </ul>
    </>
  );
}
