/** What a file of book history consists of. The names and numbers are the API's (docs/history.md). */

export const RowKind = { snapshot: 0, level: 1, trade: 2, status: 3 } as const;
export type RowKind = (typeof RowKind)[keyof typeof RowKind];
export const ROW_KINDS = ["snapshot", "level", "trade", "status"] as const;

/** One row; 0 stands for a field that rows of its kind lack. */
export interface HistoryRow {
  /** µs since the epoch. All rows of a commit have the same, and each commit of a market a later one. */
  at: number;
  kind: RowKind;
  outcome: number;
  /** 1: bids, or a taker that bought; 2: asks, or one that sold. */
  side: number;
  /** BPS; of a status the outcome's payout. */
  price: number;
  /** Shares: at the level now (0: it is gone), or traded. */
  quantity: number;
  matchId: number;
  /** A MatchType. */
  matchType: number;
  /** ms since the epoch: the trade's time in REST. */
  createdAt: number;
  /** A MarketStatus. */
  status: number;
}

const NO_FIELDS = { outcome: 0, side: 0, price: 0, quantity: 0, matchId: 0, matchType: 0, createdAt: 0, status: 0 };

/** A row with these fields alone, and without a time. */
export const rowOf = (kind: RowKind, fields: Partial<HistoryRow>): HistoryRow => ({
  at: 0,
  ...NO_FIELDS,
  ...fields,
  kind,
});

/** Gets the rows of all markets, in the order of commits. */
export interface RowSink {
  add(market: number, row: HistoryRow): void;
}

/** One file of a day. */
export interface HistoryFile {
  /** Its name in the day's folder. */
  readonly name: string;
  readonly bytes: number;
  /** In hex. */
  readonly sha256: string;
}

/** A market's files of a day. */
export interface MarketDay {
  readonly date: string;
  readonly market: number;
  readonly rows: number;
  /** µs */
  readonly firstAt: number;
  readonly lastAt: number;
  /** False while hours are missing at its end. */
  readonly isComplete: boolean;
  readonly parquet: HistoryFile;
  readonly jsonLines: HistoryFile;
}

/** A day that was made. */
export interface HistoryDay {
  readonly date: string;
  /** The exchange's random number in the log. */
  readonly exchange: number;
  readonly isComplete: boolean;
  /** The last batch of the log that the files include. */
  readonly lastBatch: number;
  /** Those that changed, in ascending order. */
  readonly markets: readonly number[];
}
