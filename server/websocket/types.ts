/** Channels and what a connection holds of other parts: shapes that every room may name. */

export const CHANNELS = ["book", "trades", "ticker", "markets"] as const;
export type Channel = (typeof CHANNELS)[number];

/** What connections speak, as subprotocols name it: text frames of JSON, or binary frames. */
export const FORMATS = ["json", "msgpack", "sbe"] as const;
export type Format = (typeof FORMATS)[number];

/** What `subscribe` and `unsubscribe` name. */
export interface Subscription {
  channel: Channel;
  market_id?: number;
  market_ids?: number[];
  outcome_id?: number;
  /** Of `book`: include the liquidity that mint and merge imply. */
  implied?: boolean;
}

/** A connection's catch-up on order updates that it missed; replay.ts runs it. */
export interface ActiveReplay {
  /** Defers a new update until the missed ones are sent. */
  defer(sequence: number, message: string | Uint8Array): void;
  /** Balance or positions changed, and the connection was not sent the change. */
  deferAccount(): void;
  /** The peer took some of what was sent. */
  drained(): void;
  /** The connection closed, or no longer receives order updates: stops reading. */
  ended(): void;
}

/** Sends messages to the subscribers of topics. */
export interface Publisher {
  publish(topic: string, message: string | Uint8Array, isBinary: boolean): unknown;
}
