/** The bell in the head of every page: what happened to the user lately. */
import "./notifications.css";
import { useEffect, useState } from "preact/hooks";
import { happeningTexts } from "../../notifications/texts.ts";
import { exchangeTime } from "../clock.ts";
import { dateTime } from "../dates.ts";
import { marketName, outcomeName, useMarkets } from "../market-cache.ts";
import { winnerOf } from "../market-facts.ts";
import { here, href } from "../router.ts";
import { request } from "../session.ts";
import type { Market, Notification, Notifications } from "../types.ts";
import { Icon, type IconName } from "../ui/icon.tsx";
import { useFetch } from "../ui/use-data.ts";
import { useFresh, usePolled } from "../ui/use-fresh.ts";

/** Price alerts change nothing that the stream reports. */
const INTERVAL_MS = 20_000;
const MAX_SHOWN = 20;

export function NotificationBell() {
  const { data, reload, set } = useFetch<Notifications>(
    (signal) => request("GET", "/me/notifications", { signal }),
    "notifications",
  );
  useFresh(reload);
  usePolled(reload, INTERVAL_MS);
  const [isOpen, setOpen] = useState(false);
  /** What had been seen when the list was opened: what is newer stays marked. */
  const [seenBefore, setSeenBefore] = useState(0);
  const newest = data?.items[0]?.at ?? 0;
  useEffect(() => {
    if (!isOpen || data === null || data.unseen === 0) return;
    // Without a response, the count stays, and the next opening tries again.
    request<{ seen_at: number }>("PATCH", "/me/notifications", { body: { seen_at: newest } }).then(
      ({ seen_at }) => set((before) => ({ ...before, seen_at, unseen: 0 })),
      () => {},
    );
  }, [isOpen, newest]);
  const open = (isNow: boolean): void => {
    if (isNow && !isOpen) setSeenBefore(data?.seen_at ?? 0);
    setOpen(isNow);
  };
  const count = data?.unseen ?? 0;
  const label = count === 0 ? "Notifications" : `Notifications, ${count} new`;
  return (
    <details class="menu bell" key={here()} onToggle={({ currentTarget }) => open(currentTarget.open)}>
      <summary aria-label={label} title={label}>
        <Icon name="bell" size={18} />
        {count > 0 && <b aria-hidden="true">{count}</b>}
      </summary>
      <div>
        <div class="head">
          <b>Notifications</b>
          <a href={href("/account#notifications")}>Settings</a>
        </div>
        {isOpen && data !== null && <List items={data.items.slice(0, MAX_SHOWN)} seenBefore={seenBefore} />}
      </div>
    </details>
  );
}

function List({ items, seenBefore }: { items: readonly Notification[]; seenBefore: number }) {
  const markets = useMarkets(items.map(({ market_id }) => market_id).filter((id) => id !== null));
  if (items.length === 0)
    return <p>Nothing yet: fills of resting orders, payouts, payments and price alerts stand here.</p>;
  return (
    <ol>
      {items.map((item) => {
        const market = item.market_id === null ? undefined : markets.get(item.market_id);
        const { icon, title, detail, path } = textsOf(item, market);
        return (
          <li
            key={`${item.kind} ${item.at} ${item.order_id} ${item.outcome_id}`}
            class={item.at > seenBefore ? "new" : ""}
          >
            <a href={href(path)} translate={false}>
              <Icon name={icon} />
              <b>{title}</b>
              <time title={dateTime(item.at)}>{ago(item.at)}</time>
              <small>{detail}</small>
            </a>
          </li>
        );
      })}
    </ol>
  );
}

interface Texts {
  readonly icon: IconName;
  readonly title: string;
  readonly detail: string;
  /** What the notification leads to. */
  readonly path: string;
}

function textsOf(item: Notification, market: Market | undefined): Texts {
  const { kind, market_id, outcome_id } = item;
  const texts = happeningTexts(item, {
    market: market_id === null ? "" : marketName(market, market_id),
    outcome: outcome_id === null ? "" : outcomeName(market, outcome_id),
    winner: market === undefined ? undefined : winnerOf(market)?.name,
  });
  const marketPath = `/markets/${market?.slug ?? market_id}`;
  switch (kind) {
    case "fill":
      return { ...texts, icon: "check", path: "/portfolio?show=fills" };
    case "resolution":
      return { ...texts, icon: "check", path: marketPath };
    case "deposit":
      return { ...texts, icon: "download", path: "/wallet?show=deposits" };
    case "withdrawal":
      return { ...texts, icon: "swap", path: "/wallet?show=withdrawals" };
    case "alert":
      return { ...texts, icon: "bell", path: `${marketPath}?outcome=${outcome_id}` };
  }
}

const MINUTE_MS = 60_000;

/** "2 min", "3 h", "5 d". */
function ago(at: number): string {
  const minutes = Math.max(0, Math.floor((exchangeTime() - at) / MINUTE_MS));
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  return minutes < 24 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 60 / 24)} d`;
}
