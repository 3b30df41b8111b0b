/**
 * The shapes of market data (markets, events, trades, books, candles) and of a market's lifecycle: proposals, operators'
 * changes, resolutions.
 */
import Type, { type Static } from "typebox";
import { CANDLE_MINUTES, MARKET_STATUSES, MATCH_TYPES } from "../../engine/constants.ts";
import {
  FULL_PRICE_BPS,
  MAX_OUTCOMES,
  MAX_PRICE_BPS,
  MAX_QUANTITY,
  MIN_OUTCOMES,
  MIN_PRICE_BPS,
} from "../../engine/limits.ts";
import { Approval } from "../accounts/schemas.ts";
import { about, closed, Id, names, nullable, PageQuery, page, pageOf, shares, span, Time } from "../http/schemas.ts";
import { line, note, optional, text } from "../http/text-schemas.ts";
import {
  DEFAULT_FEED_SIZE,
  MAX_CATEGORY_LENGTH,
  MAX_DESCRIPTION_LENGTH,
  MAX_FEED_SIZE,
  MAX_LISTED_IDS,
  MAX_OUTCOME_NAME_LENGTH,
  MAX_PICTURE_BYTES,
  MAX_PICTURE_SIDE,
  MAX_QUESTION_LENGTH,
  MAX_SEARCH_LENGTH,
  MAX_SLUG_LENGTH,
  MAX_WATCHED,
  MIN_QUESTION_LENGTH,
  PICTURE_SIDE,
} from "./limits.ts";
import { SLUG_PATTERN } from "./slugs.ts";

export const Price = Type.Integer({ minimum: MIN_PRICE_BPS, maximum: MAX_PRICE_BPS, description: "basis points" });

export const Quantity = Type.Integer({ minimum: 1, maximum: MAX_QUANTITY, description: "whole shares" });

export const SideSchema = Type.Integer({ minimum: 1, maximum: 2, description: "1 = buy, 2 = sell" });

export const OutcomeId = about(Id, "one of the market's outcomes; unique across all markets");

const LevelSchema = Type.Array(Type.Integer(), { minItems: 2, maxItems: 2, description: "[price BPS, shares]" });

export const Levels = Type.Array(LevelSchema);

export const TradesQuery = closed({
  ...page,
  ...span,
  outcome_id: Type.Optional(about(Id, "one of the market's outcomes: only trades whose taker's order was for it")),
});

const LIST_SORTS = ["created_at", "volume", "closes_at"] as const;

const sort = Type.Optional(
  names(LIST_SORTS, {
    description:
      "newest, largest or soonest first; a cursor belongs to one sort; while a client pages by volume, new trades may move items to earlier pages",
  }),
);

const listFilters = {
  category: Type.Optional(Type.String({ maxLength: 200, description: "exact match" })),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_SEARCH_LENGTH,
      description:
        "words that must all occur, each as a whole word or as the start of one; ignores case and diacritics",
    }),
  ),
};

const STATE = `(${MARKET_STATUSES.join("|")})`;

export const MarketsQuery = closed({
  ...page,
  ...listFilters,
  status: Type.Optional(
    Type.String({
      pattern: `^(all|${STATE}(,${STATE})*)$`,
      maxLength: 100,
      description: "open by default; one status, several separated by commas, or all",
    }),
  ),
  ids: Type.Optional(
    Type.String({
      pattern: "^[1-9][0-9]{0,14}(,[1-9][0-9]{0,14})*$",
      maxLength: 16 * MAX_LISTED_IDS,
      description: `only these markets, separated by commas, at most ${MAX_LISTED_IDS}; status still filters: use all to include every status`,
    }),
  ),
  event_id: Type.Optional(Id),
  sort,
});

export const MarketEventsQuery = closed({ ...page, ...listFilters, sort });

export const FEED_SORTS = ["volume", "movers", "created_at", "closes_at"] as const;

export const FeedQuery = closed({
  ...listFilters,
  sort: Type.Optional(
    about(
      names(FEED_SORTS),
      "volume of the last 24 hours by default; movers: the largest change of a price in 24 hours; created_at: newest first; " +
        "closes_at: the next to close first",
    ),
  ),
  grouped: Type.Optional(
    Type.Boolean({ description: "true: markets of an event that is in the list appear in it only, not by themselves" }),
  ),
  sparklines: Type.Optional(Type.Boolean({ description: "true: outcomes have their `sparkline`" })),
  kind: Type.Optional(about(names(["market", "event"]), "both by default")),
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1 })),
  size: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_FEED_SIZE, default: DEFAULT_FEED_SIZE })),
});

export const BookQuery = closed({
  depth: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_PRICE_BPS, description: "levels per side; all if missing" }),
  ),
  implied: Type.Optional(Type.Boolean({ description: "true: include the liquidity of mint and merge" })),
});

const CANDLE_INTERVALS = Object.keys(CANDLE_MINUTES) as (keyof typeof CANDLE_MINUTES)[];

export const CandlesQuery = closed({
  outcome_id: Type.Optional(about(Id, "the market's first outcome if missing")),
  interval: Type.Optional(about(names(CANDLE_INTERVALS), "1m by default")),
  from: Type.Optional(about(Time, "ms since the Unix epoch; 500 intervals before `to` if missing, at most 1500")),
  to: Type.Optional(about(Time, "ms since the Unix epoch; now if missing")),
});

export const MatchTypeSchema = about(
  names(MATCH_TYPES),
  "direct: a buy matches a sell of the same outcome; mint: buys of all outcomes create complete sets; merge: sells of all outcomes redeem them",
);

export const ImpliedBid = about(
  nullable(Price),
  "basis points: the best price for a seller, merge included; never below best_bid",
);

export const ImpliedAsk = about(
  nullable(Price),
  "basis points: the best price for a buyer, mint included; never above best_ask",
);

export const OutcomeSchema = closed({
  id: Id,
  name: Type.String(),
  index: Type.Integer({ minimum: 0, description: "position among the market's outcomes, from 0" }),
  last_price: about(nullable(Price), "basis points: price of its last trade"),
  price_24h_ago: about(
    nullable(Price),
    "basis points: its last price 24 hours ago, to the hour; null if it had not been traded, and once the market has ended",
  ),
  best_bid: about(nullable(Price), "basis points: highest buy price"),
  best_ask: about(nullable(Price), "basis points: lowest sell price"),
  implied_bid: ImpliedBid,
  implied_ask: ImpliedAsk,
  volume: shares("traded so far"),
  sparkline: Type.Optional(
    Type.Array(Price, {
      description:
        "in the feed with ?sparklines=true: prices every four hours of the last week, in basis points, the oldest first and the last " +
        "price at the end; shorter where it has been traded for less time",
    }),
  ),
});

const Volume = Type.Integer({ minimum: 0, description: "shares" });

const DayVolume = Type.Integer({ minimum: 0, description: "shares in the last 24 hours, to the hour" });

export const MarketResolution = closed({
  payouts: Type.Array(Type.Integer({ minimum: 0, maximum: 10_000 }), {
    description:
      "what a share of each outcome pays, in basis points of 1 USDC, in the order of the outcomes; they add up to 10000",
  }),
  outcome_id: about(nullable(Id), "the outcome that pays in full; null if the payout is shared"),
  note: nullable(Type.String()),
  resolved_at: Time,
});

const market = {
  id: Id,
  slug: Type.String({ description: "usable in paths instead of the id" }),
  question: Type.String(),
  description: nullable(Type.String()),
  category: nullable(Type.String()),
  status: about(
    names(MARKET_STATUSES),
    "proposed, open, halted (no matching), closed, and finally resolved or voided; rejected: a rejected proposal",
  ),
  outcomes: Type.Array(OutcomeSchema, { description: "2 to 32; exactly one pays" }),
  event_id: about(nullable(Id), "the event that the market belongs to"),
  opens_at: about(nullable(Time), "ms since the Unix epoch: when trading began"),
  closes_at: about(
    nullable(Time),
    "ms since the Unix epoch: when trading ends; null: when an operator closes the market",
  ),
  picture: nullable(
    Type.String({ description: `the path of a WebP file, ${PICTURE_SIDE} pixels a side; it changes with the picture` }),
  ),
  resolution: nullable(MarketResolution),
  volume: Volume,
  volume_24h: DayVolume,
  open_interest: shares("complete sets outstanding"),
  created_at: Time,
};

export const MarketSchema = closed(market);

export const Picture = Type.String({ format: "binary", description: "a WebP file" });

const event = {
  id: Id,
  slug: Type.String(),
  title: Type.String(),
  category: nullable(Type.String()),
  closes_at: nullable(Time),
  created_at: Time,
  volume: Volume,
  volume_24h: DayVolume,
  market_count: Type.Integer({ minimum: 0, description: "number of markets; `markets` shows at most 100" }),
  markets: Type.Array(MarketSchema),
};

export const EventSchema = closed(event);

export const FeedMarket = closed({ kind: Type.Literal("market"), ...market });

export const FeedEvent = closed({ kind: Type.Literal("event"), ...event });

export const Feed = closed({
  items: Type.Array(Type.Union([FeedMarket, FeedEvent])),
  page: Type.Integer({ description: "from 1" }),
  size: Type.Integer({ description: "items per page" }),
  total: Type.Integer({ description: "items on all pages" }),
});

const Watched = closed({ kind: names(["market", "event"]), id: Id });

export const Watchlist = closed({ items: Type.Array(Watched, { description: "the latest first" }) });

export const WatchlistChange = closed({
  add: Type.Optional(
    Type.Array(Watched, {
      maxItems: MAX_WATCHED,
      description: "put in front, in this order; what is there already stays where it is",
    }),
  ),
  remove: Type.Optional(Type.Array(Watched, { maxItems: MAX_WATCHED, description: "removed before others are added" })),
});

export const Categories = closed({
  items: Type.Array(
    closed({
      category: Type.String(),
      open: Type.Integer({ minimum: 0, description: "open markets of the category" }),
    }),
    { description: "in alphabetical order" },
  ),
});

export const Trade = closed({
  id: about(Id, "id of the match: the match_id of its fills"),
  market_id: Id,
  outcome_id: about(Id, "outcome of the taker's order"),
  side: about(SideSchema, "the taker's side: 1 = buy, 2 = sell"),
  price: about(Price, "basis points: price of the taker's fill"),
  quantity: Quantity,
  match_type: MatchTypeSchema,
  created_at: Time,
});

const implied = Type.Optional(
  Type.Object(
    { bids: Levels, asks: Levels },
    {
      additionalProperties: false,
      description: "with ?implied=true: the part of the bids that merge provides, and of the asks that mint provides",
    },
  ),
);

const BookSequence = Type.Integer({
  description:
    "rises by 1 with each committed batch that changed the book; book.updated numbers the same changes. With " +
    "?implied=true, the sequence of the channel `book` with `implied`, which is numbered separately",
});

const BookTime = Type.Integer({
  minimum: 0,
  description:
    "ms since the Unix epoch: when the server applied this state, not when it received the request; unchanged until a book changes",
});

export const Candles = closed({
  market_id: Id,
  outcome_id: Id,
  interval: names(CANDLE_INTERVALS),
  items: Type.Array(
    Type.Array(Type.Integer({ minimum: 0 }), {
      minItems: 6,
      maxItems: 6,
      description: "[open_time, open, high, low, close, volume]: ms, basis points, shares; ascending, without gaps",
    }),
  ),
});

export const OutcomeBook = closed({
  market_id: Id,
  outcome_id: Id,
  sequence: BookSequence,
  ts: BookTime,
  bids: Levels,
  asks: Levels,
  implied,
});

export const MarketBook = closed({
  market_id: Id,
  ts: BookTime,
  outcomes: Type.Array(closed({ outcome_id: Id, sequence: BookSequence, bids: Levels, asks: Levels, implied })),
});

const Slug = Type.String({ maxLength: MAX_SLUG_LENGTH, pattern: SLUG_PATTERN });
const Title = line(MIN_QUESTION_LENGTH, MAX_QUESTION_LENGTH);
const Category = line(1, MAX_CATEGORY_LENGTH);
const Description = text(MAX_DESCRIPTION_LENGTH);
const Payout = Type.Integer({ minimum: 0, maximum: FULL_PRICE_BPS, description: "basis points of 1 USDC per share" });

// ---------------------------------------------------------------- requests

/** Without a slug, the server derives one from the question. */
export const NewMarket = closed({
  question: Title,
  description: optional(Description),
  category: optional(Category),
  outcomes: Type.Array(line(1, MAX_OUTCOME_NAME_LENGTH), { minItems: MIN_OUTCOMES, maxItems: MAX_OUTCOMES }),
  closes_at: optional(Time),
  event_id: optional(Id),
  slug: optional(Slug),
});
export const NewEvent = closed({
  slug: Slug,
  title: Title,
  category: optional(Category),
  closes_at: optional(Time),
});
/** Missing fields stay unchanged; null clears. */
export const MarketChanges = closed({
  description: optional(Description),
  category: optional(Category),
  closes_at: optional(Time),
  picture: optional(
    Type.String({
      // Three bytes are four characters.
      maxLength: 4 * Math.ceil(MAX_PICTURE_BYTES / 3),
      pattern: "^[A-Za-z0-9+/]+={0,2}$",
      description:
        `a PNG, JPEG or WebP file in base64, up to ${MAX_PICTURE_BYTES} bytes and ${MAX_PICTURE_SIDE} pixels a side; ` +
        `the exchange keeps the square in its middle, ${PICTURE_SIDE} pixels wide`,
    }),
  ),
});
/** Either the payout of each outcome, or the one outcome that pays in full. */
export const Resolution = closed({
  payouts: Type.Optional(
    Type.Array(Payout, {
      minItems: MIN_OUTCOMES,
      maxItems: MAX_OUTCOMES,
      description: "one per outcome; they add up to 10000",
    }),
  ),
  outcome_id: Type.Optional(Id),
  note,
});
export const ProposalsQuery = closed({ ...page, status: Type.Optional(names(MARKET_STATUSES)) });

// ---------------------------------------------------------------- responses

const Decision = nullable(closed({ note: nullable(Type.String()), decided_at: Time }));

export const Proposals = pageOf(closed({ market: MarketSchema, decision: Decision }));
/** The operators' view. */
export const MarketRecord = closed({
  ...MarketSchema.properties,
  proposed_by: nullable(Id),
  decision: Decision,
  approval: nullable(Approval),
});
/** The market's current state, and the first approval while a second one is pending. */
export const Settlement = closed({ market: MarketSchema, approval: nullable(Approval) });

const Day = Type.String({ format: "date", description: "a day (UTC), such as 2026-11-24" });
const Sha256 = Type.String({ description: "SHA-256 of the file, in hex; also its ETag" });
const FileBytes = Type.Integer({ minimum: 0, description: "the file's size" });
const Micros = Type.Integer({ description: "microseconds since the Unix epoch, as in the file" });

export const HistoryQuery = PageQuery;

export const HistoryDay = closed({
  date: Day,
  rows: Type.Integer({ minimum: 1 }),
  bytes: FileBytes,
  sha256: Sha256,
  first_at: Micros,
  last_at: Micros,
  complete: about(Type.Boolean(), "false for the current day, whose files grow every hour"),
  jsonl: about(
    closed({ bytes: FileBytes, sha256: Sha256 }),
    "the same rows as JSON lines; the other fields are the Parquet file's",
  ),
});
export type HistoryDay = Static<typeof HistoryDay>;

export const HistoryDays = closed({
  items: Type.Array(HistoryDay),
  next_cursor: nullable(Type.String()),
  missing: about(
    Type.Array(closed({ from: Day, to: Day })),
    "days that have no file, and may have had changes: not made, not over, or no longer kept. A day that is neither listed nor missing had no change",
  ),
});

export const HistoryFile = Type.String({ format: "binary", description: "rows of docs/history.md" });
