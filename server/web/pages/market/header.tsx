/** The header of a market's page: breadcrumbs, question, status and volume. */
import { useState } from "preact/hooks";
import { capitalized, compact, dateTime, humanize } from "../../format.ts";
import { isRunning } from "../../market-facts.ts";
import { href } from "../../router.ts";
import { request, sessionState } from "../../session.ts";
import type { Market, MarketEvent } from "../../types.ts";
import { Badge } from "../../ui/badge.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageFacts } from "../../ui/page-facts.tsx";
import { Tile } from "../../ui/tile.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { usePart } from "../../ui/use-part.ts";
import { WatchButton } from "../../ui/watch-button.tsx";

const TONES = {
  open: "good",
  halted: "warn",
  closed: "warn",
  resolved: "",
  voided: "",
  proposed: "",
  rejected: "bad",
} as const;

const loadDialog = () => import("./price-alert.tsx").then(({ PriceAlertDialog }) => PriceAlertDialog);

function AlertButton({ market }: { market: Market }) {
  const [isOpen, setOpen] = useState(false);
  const { part: PriceAlertDialog } = usePart(isOpen ? loadDialog : null);
  return (
    <>
      <button
        type="button"
        class="quiet"
        title="Price alert"
        aria-label={`Set a price alert: ${market.question}`}
        onClick={() => setOpen(true)}
      >
        <Icon name="bell" size={18} />
      </button>
      {PriceAlertDialog !== null && <PriceAlertDialog market={market} onClose={() => setOpen(false)} />}
    </>
  );
}

export function MarketHeader({ market }: { market: Market }) {
  const { event_id, outcomes } = market;
  const event = useFetch<MarketEvent>(
    event_id === null ? null : (signal) => request("GET", `/events/${event_id}`, { signal }),
    String(event_id),
  ).data;
  const status = market.status as keyof typeof TONES;
  const volume = outcomes.reduce((sum, each) => sum + each.volume, 0);
  return (
    <header class="page-head">
      <Tile slug={market.slug} size="large" />
      <div>
        <p class="crumbs">
          <a href={href("/")}>Markets</a>
          {market.category !== null && (
            <>
              <span aria-hidden="true">/</span>
              <a href={href(`/?category=${encodeURIComponent(market.category)}`)}>{capitalized(market.category)}</a>
            </>
          )}
          {event !== null && (
            <>
              <span aria-hidden="true">/</span>
              <a href={href(`/events/${event.slug}`)}>{event.title}</a>
            </>
          )}
        </p>
        <div class="watched-name">
          <h1>{market.question}</h1>
          <WatchButton kind="market" id={market.id} name={market.question} />
          {isRunning(market) && sessionState.value === "in" && <AlertButton market={market} />}
        </div>
        {status !== "open" && <Badge text={humanize(status)} tone={TONES[status]} />}
      </div>
      <PageFacts
        facts={[
          ["24 h volume", `${compact(market.volume_24h)} shares`],
          ["Volume", `${compact(volume)} shares`],
          ["Open interest", `${compact(market.open_interest)} sets`],
          ["Closes", market.closes_at !== null && isRunning(market) ? dateTime(market.closes_at) : null],
        ]}
      />
    </header>
  );
}
