/** The header of a market's page: breadcrumbs, question, status and volume. */
import { useState } from "preact/hooks";
import { capitalized, compact, humanize } from "../../../util/format.ts";
import { dateTime } from "../../dates.ts";
import { isRunning } from "../../market-facts.ts";
import { href } from "../../router.ts";
import { request, sessionState } from "../../session.ts";
import type { Market, MarketEvent } from "../../types.ts";
import { Badge } from "../../ui/badge.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageFacts } from "../../ui/page-facts.tsx";
import { Tile } from "../../ui/tile.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { PHONE } from "../../ui/use-media.ts";
import { usePart } from "../../ui/use-part.ts";
import { WatchButton } from "../../ui/watch-button.tsx";
import { EventStrip } from "./other-markets.tsx";

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

/** On a phone, it is the way back; elsewhere it leads to the markets. */
function back(event: Event): void {
  // Entries that this site has made have a number; the page before the first may be of another site.
  const isFirst = (history.state as { entry?: number } | null)?.entry === undefined;
  if (isFirst || !matchMedia(PHONE).matches) return;
  event.preventDefault();
  history.back();
}

export function MarketHeader({ market }: { market: Market }) {
  const { event_id } = market;
  const event = useFetch<MarketEvent>(
    event_id === null ? null : (signal) => request("GET", `/events/${event_id}`, { signal }),
    String(event_id),
  ).data;
  const status = market.status as keyof typeof TONES;
  return (
    <>
      <header class="page-head market-head">
        <Tile slug={market.slug} picture={market.picture} size="large" />
        <div>
          <p class="crumbs">
            <a href={href("/")} aria-label="Markets" onClick={back}>
              <Icon name="back" size={20} />
              <span>Markets</span>
            </a>
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
          <h1>{market.question}</h1>
          {status !== "open" && <Badge text={humanize(status)} tone={TONES[status]} />}
        </div>
        <MarketFigures market={market} />
        <div class="head-actions">
          {isRunning(market) && sessionState.value === "in" && <AlertButton market={market} />}
          <WatchButton kind="market" id={market.id} name={market.question} />
        </div>
      </header>
      {event_id !== null && isRunning(market) && <EventStrip event={event} current={market.id} />}
    </>
  );
}

/** On a phone they stand below the rules instead. */
export function MarketFigures({ market, hasClose = true }: { market: Market; hasClose?: boolean }) {
  const volume = market.outcomes.reduce((sum, each) => sum + each.volume, 0);
  return (
    <PageFacts
      facts={[
        ["24 h volume", `${compact(market.volume_24h)} shares`],
        ["Volume", `${compact(volume)} shares`],
        ["Open interest", `${compact(market.open_interest)} sets`],
        ["Closes", hasClose && market.closes_at !== null && isRunning(market) ? dateTime(market.closes_at) : null],
      ]}
    />
  );
}
