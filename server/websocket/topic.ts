/**
 * A topic: one channel of one outcome or market, as uWebSockets.js and lists of subscriptions name it, with the number of
 * its subscribers. Channels creates, numbers and publishes topics.
 */
import type { Market, Outcome } from "../markets/types.ts";

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
  /** Its name in uWebSockets.js for subscribers that speak JSON. */
  readonly textName: string;
  /** Its name in uWebSockets.js for subscribers that speak MessagePack. */
  readonly packedName: string;
  textSubscribers = 0;
  packedSubscribers = 0;
  /** Its entry in lists of subscriptions, up to its sequence. */
  readonly listed: string;
  /** The ticker that was sent last, also if only to its first subscriber, as JSON text. */
  lastTicker = "";

  constructor(subject: Subject) {
    const { kind, market, outcome } = subject;
    this.subject = subject;
    this.key = topicKey(subject);
    const marketId = market?.id ?? null;
    const outcomeId = outcome?.id ?? null;
    this.textName = `${kind}/${outcomeId ?? marketId ?? "all"}`;
    this.packedName = `${this.textName}/msgpack`;
    const named = `"channel":"${kind === "implied" ? "book" : kind}","implied":${kind === "implied"}`;
    this.listed = `{${named},"market_id":${marketId},"outcome_id":${outcomeId},"sequence":`;
  }
}
