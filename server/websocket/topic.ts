/**
 * A topic: one channel of one outcome or market, as uWebSockets.js and lists of subscriptions name it, with the number of
 * its subscribers. Channels creates, numbers and publishes topics.
 */
import type { Market, Outcome } from "../markets/types.ts";
import type { TickerView } from "./ticker.ts";
import type { Format } from "./types.ts";

/** What a topic is about. The book with implied liquidity is a kind of its own; market null: all markets. */
export type Subject =
  | { readonly kind: "book" | "implied" | "ticker"; readonly market: Market; readonly outcome: Outcome }
  | { readonly kind: "trades"; readonly market: Market; readonly outcome: null }
  | { readonly kind: "markets"; readonly market: Market | null; readonly outcome: null };

export type TopicKind = Subject["kind"];

/** The key of all markets: no id is 0. */
export const ALL_MARKETS = 0;

/** Among the topics of one kind. */
export function topicKey({ market, outcome }: Subject): number {
  return outcome?.id ?? market?.id ?? ALL_MARKETS;
}

export class Topic {
  readonly subject: Subject;
  readonly key: number;
  /** Its names in uWebSockets.js, by what subscribers speak, and their numbers. */
  readonly names: Readonly<Record<Format, string>>;
  readonly subscribers: Record<Format, number> = { json: 0, msgpack: 0, sbe: 0 };
  /** Its entry in lists of subscriptions, up to its sequence. */
  readonly listed: string;
  /** The ticker that was sent last, also if only to its first subscriber. */
  lastTicker: { readonly view: TickerView; readonly json: string } | null = null;

  constructor(subject: Subject) {
    const { kind, market, outcome } = subject;
    this.subject = subject;
    this.key = topicKey(subject);
    const marketId = market?.id ?? null;
    const outcomeId = outcome?.id ?? null;
    const name = `${kind}/${outcomeId ?? marketId ?? "all"}`;
    this.names = { json: name, msgpack: `${name}/msgpack`, sbe: `${name}/sbe` };
    const named = `"channel":"${kind === "implied" ? "book" : kind}","implied":${kind === "implied"}`;
    this.listed = `{${named},"market_id":${marketId},"outcome_id":${outcomeId},"sequence":`;
  }

  get isFollowed(): boolean {
    const { json, msgpack, sbe } = this.subscribers;
    return json + msgpack + sbe > 0;
  }
}
