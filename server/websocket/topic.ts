/**
 * A topic: one channel of one outcome or market, as uWebSockets.js and lists of subscriptions name it, with the number of
 * its subscribers. Channels creates, numbers and publishes topics.
 */
import type { Market, Outcome } from "../markets/types.ts";
import type { Channel } from "./types.ts";

/** A channel as topics have it: the book with implied liquidity is a kind of its own. */
export type TopicKind = Channel | "implied";

/** The key of all markets: no id is 0. */
export const ALL_MARKETS = 0;

/** Among the topics of one kind. */
export function topicKey(market: Market | null, outcome: Outcome | null): number {
  return outcome?.id ?? market?.id ?? ALL_MARKETS;
}

/** Of one outcome (book, ticker) or market (trades, markets); of all markets where it has neither. */
export class Topic {
  readonly kind: TopicKind;
  readonly market: Market | null;
  readonly outcome: Outcome | null;
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

  constructor(kind: TopicKind, market: Market | null, outcome: Outcome | null) {
    this.kind = kind;
    this.market = market;
    this.outcome = outcome;
    this.key = topicKey(market, outcome);
    const marketId = market?.id ?? null;
    const outcomeId = outcome?.id ?? null;
    this.textName = `${kind}/${outcomeId ?? marketId ?? "all"}`;
    this.packedName = `${this.textName}/msgpack`;
    const named = `"channel":"${kind === "implied" ? "book" : kind}","implied":${kind === "implied"}`;
    this.listed = `{${named},"market_id":${marketId},"outcome_id":${outcomeId},"sequence":`;
  }
}
