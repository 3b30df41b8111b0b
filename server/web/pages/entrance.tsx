/** The frame of the pages that let people in: the form, and beside it, where there is room, what the exchange is about. */
import "./account.css";
import { cents, chanceText } from "../../util/format.ts";
import { SOLVENCY } from "../api.ts";
import { isBinary } from "../market-facts.ts";
import { chances } from "../market-tickers.ts";
import { request } from "../session.ts";
import type { Feed, Market } from "../types.ts";
import { Icon } from "../ui/icon.tsx";
import { type Children, useFetch } from "../ui/use-data.ts";
import { useMedia, WIDE } from "../ui/use-media.ts";
import { MarketCards } from "./feed/cards.tsx";

export function Entrance({ children }: { children: Children }) {
  const isWide = useMedia(WIDE);
  return (
    <div class="entrance">
      <section class="narrow">{children}</section>
      {isWide && <About />}
    </div>
  );
}

const isMarket = (item: Feed["items"][number]): item is Feed["items"][number] & { kind: "market" } =>
  item.kind === "market";

function About() {
  const { data, error } = useFetch<Feed>(
    (signal) => request("GET", "/feed", { query: { kind: "market", size: 10, sparklines: true }, signal }),
    "about",
  );
  const market = data?.items.filter(isMarket).find(isBinary);
  return (
    <aside aria-label="About the exchange">
      {market !== undefined && <MarketCards markets={[market]} />}
      {data === null && error === null && <div class="feed" />}
      <ul class="points">
        <Point title="No fee to buy, none at resolution.">A fee is due only where you sell before it.</Point>
        <Point title="A share of the right outcome pays 1 USDC.">{priceText(market)}</Point>
        <Point title="Every balance is backed.">
          <a href={SOLVENCY}>See today's solvency</a>
        </Point>
      </ul>
    </aside>
  );
}

function priceText(market: Market | undefined): string {
  const bps = market === undefined ? null : (chances(market)[0] ?? null);
  return `A price of ${cents(bps ?? 5_000)} says that it is about ${chanceText(bps ?? 5_000)} likely.`;
}

function Point({ title, children }: { title: string; children: Children }) {
  return (
    <li>
      <Icon name="check" size={16} />
      <span>
        <b>{title}</b> {children}
      </span>
    </li>
  );
}
