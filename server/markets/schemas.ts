/** Shapes of the life of a market: proposals, what operators make and decide, resolutions. */
import Type from "typebox";
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
import { about, closed, Id, names, nullable, page, pageOf, shares, span, Time } from "../http/schemas.ts";
import { line, note, optional, text } from "../http/text-schemas.ts";
import {
  DEFAULT_FEED_SIZE,
  MAX_CATEGORY_LENGTH,
  MAX_DESCRIPTION_LENGTH,
  MAX_FEED_SIZE,
  MAX_LISTED_IDS,
  MAX_OUTCOME_NAME_LENGTH,
  MAX_QUESTION_LENGTH,
  MAX_SEARCH_LENGTH,
  MAX_SLUG_LENGTH,
  MIN_QUESTION_LENGTH,
} from "./limits.ts";
import { SLUG_PATTERN } from "./slugs.ts";

export const Price = Type.Integer({ minimum: MIN_PRICE_BPS, maximum: MAX_PRICE_BPS, description: "basis points" });

export const Quantity = Type.Integer({ minimum: 1, maximum: MAX_QUANTITY, description: "whole shares" });

export const SideSchema = Type.Integer({ minimum: 1, maximum: 2, description: "1 = buy, 2 = sell" });

export const OutcomeId = about(Id, "of the market's outcomes; unique over all markets");

const LevelSchema = Type.Array(Type.Integer(), { minItems: 2, maxItems: 2, description: "[price BPS, shares]" });

export const Levels = Type.Array(LevelSchema);

export const TradesQuery = closed({
  ...page,
  ...span,
  outcome_id: Type.Optional(about(Id, "of the market's outcomes: trades whose taker's order was of it")),
});

const LIST_SORTS = ["created_at", "volume", "closes_at"] as const;

const sort = Type.Optional(
  names(LIST_SORTS, {
    description:
      "newest, largest or soonest first; a cursor is of one sort; what is traded while one pages by volume may rise past the page",
  }),
);

const listFilters = {
  category: Type.Optional(Type.String({ maxLength: 200, description: "exactly this one" })),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_SEARCH_LENGTH,
      description: "words that must all occur, each whole or as the start of one; case and diacritics don't count",
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
      description: "open by default; a state, several with commas between, or all",
    }),
  ),
  ids: Type.Optional(
    Type.String({
      pattern: "^[1-9][0-9]{0,14}(,[1-9][0-9]{0,14})*$",
      maxLength: 16 * MAX_LISTED_IDS,
      description: `of these alone, with commas between, ${MAX_LISTED_IDS} at most; status still counts: with all, whatever state they are in`,
    }),
  ),
  event_id: Type.Optional(Id),
  sort,
});

export const MarketEventsQuery = closed({ ...page, ...listFilters, sort });

export const FeedQuery = closed({
  ...listFilters,
  kind: Type.Optional(about(names(["market", "event"]), "both by default")),
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1 })),
  size: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_FEED_SIZE, default: DEFAULT_FEED_SIZE })),
});

export const BookQuery = closed({
  depth: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_PRICE_BPS, description: "levels a side; all where missing" }),
  ),
  implied: Type.Optional(Type.Boolean({ description: "true: with what mint and merge offer beside the book's own" })),
});

const CANDLE_INTERVALS = Object.keys(CANDLE_MINUTES) as (keyof typeof CANDLE_MINUTES)[];

export const CandlesQuery = closed({
  outcome_id: Type.Optional(about(Id, "the market's first outcome where missing")),
  interval: Type.Optional(about(names(CANDLE_INTERVALS), "1m by default")),
  from: Type.Optional(about(Time, "ms since the Unix epoch; 500 intervals before `to` where missing, at most 1500")),
  to: Type.Optional(about(Time, "ms since the Unix epoch; now where missing")),
});

export const MatchTypeSchema = about(
  names(MATCH_TYPES),
  "direct: a buy and a sell of one outcome; mint: buys of all outcomes make sets; merge: sells of all outcomes dissolve them",
);

export const ImpliedBid = about(
  nullable(Price),
  "basis points: what a seller gets at best, merge included; never below best_bid",
);

export const ImpliedAsk = about(
  nullable(Price),
  "basis points: what a buyer pays at best, mint included; never above best_ask",
);

const OutcomeSchema = closed({
  id: Id,
  name: Type.String(),
  index: Type.Integer({ minimum: 0, description: "its place among the market's outcomes, from 0" }),
  last_price: about(nullable(Price), "basis points: of its last trade"),
  best_bid: about(nullable(Price), "basis points: the highest buy order's"),
  best_ask: about(nullable(Price), "basis points: the lowest sell order's"),
  implied_bid: ImpliedBid,
  implied_ask: ImpliedAsk,
  volume: shares("traded so far"),
});

const Volume = Type.Integer({ minimum: 0, description: "shares" });

const DayVolume = Type.Integer({ minimum: 0, description: "shares in the last 24 hours, to the hour" });

const market = {
  id: Id,
  slug: Type.String({ description: "names it in paths as the id does" }),
  question: Type.String(),
  description: nullable(Type.String()),
  category: nullable(Type.String()),
  status: about(
    names(MARKET_STATUSES),
    "proposed, open, halted (nothing matches), closed, and in the end resolved or voided; rejected: a proposal that was refused",
  ),
  outcomes: Type.Array(OutcomeSchema, { description: "2 to 32, of which exactly one pays" }),
  event_id: about(nullable(Id), "of the event that groups it"),
  opens_at: about(nullable(Time), "ms since the Unix epoch: when it was opened"),
  closes_at: about(nullable(Time), "ms since the Unix epoch: when trading ends; null: when an operator ends it"),
  resolution: nullable(
    closed({
      payouts: Type.Array(Type.Integer({ minimum: 0, maximum: 10_000 }), {
        description:
          "basis points of 1 USDC that a share of each outcome pays, in the order of the outcomes: 10000 in all",
      }),
      outcome_id: about(nullable(Id), "of the one that pays all, null where there is none"),
      note: nullable(Type.String()),
      resolved_at: Time,
    }),
  ),
  volume: Volume,
  volume_24h: DayVolume,
  open_interest: shares("complete sets outstanding"),
  created_at: Time,
};

export const MarketSchema = closed(market);

const event = {
  id: Id,
  slug: Type.String(),
  title: Type.String(),
  category: nullable(Type.String()),
  closes_at: nullable(Time),
  created_at: Time,
  volume: Volume,
  volume_24h: DayVolume,
  market_count: Type.Integer({ minimum: 0, description: "how many there are; `markets` shows 100 at most" }),
  markets: Type.Array(MarketSchema),
};

export const EventSchema = closed(event);

export const FeedMarket = closed({ kind: Type.Literal("market"), ...market });

export const FeedEvent = closed({ kind: Type.Literal("event"), ...event });

export const Feed = closed({
  items: Type.Array(Type.Union([FeedMarket, FeedEvent])),
  page: Type.Integer({ description: "from 1" }),
  size: Type.Integer({ description: "items of a page" }),
  total: Type.Integer({ description: "items of all pages" }),
});

export const Trade = closed({
  id: about(Id, "of the match: the match_id of its fills"),
  market_id: Id,
  outcome_id: about(Id, "of the taker's order"),
  side: about(SideSchema, "of the taker: 1 = buy, 2 = sell"),
  price: about(Price, "basis points: of the taker's fill"),
  quantity: Quantity,
  match_type: MatchTypeSchema,
  created_at: Time,
});

const implied = Type.Optional(
  Type.Object(
    { bids: Levels, asks: Levels },
    {
      additionalProperties: false,
      description: "with ?implied=true: what of the bids merge offers, and of the asks mint",
    },
  ),
);

const BookSequence = Type.Integer({
  description:
    "rises by 1 with each committed batch that changed the book; book.updated numbers the same changes. With " +
    "?implied=true that of the other channel, `book` with `implied`, whose numbers have nothing to do with these",
});

const BookTime = Type.Integer({
  minimum: 0,
  description:
    "ms since the epoch at which the state that is shown was applied, not of the request: the same until a book changes",
});

export const Candles = closed({
  market_id: Id,
  outcome_id: Id,
  interval: names(CANDLE_INTERVALS),
  items: Type.Array(
    Type.Array(Type.Integer({ minimum: 0 }), {
      minItems: 6,
      maxItems: 6,
      description: "[open_time, open, high, low, close, volume]: ms, BPS, shares; ascending, without a gap",
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
const Payout = Type.Integer({ minimum: 0, maximum: FULL_PRICE_BPS, description: "basis points of 1 USDC a share" });

// ---------------------------------------------------------------- requests

/** Without a slug one is made of the question. */
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
/** What isn't given stays; null clears. */
export const MarketChanges = closed({
  description: optional(Description),
  category: optional(Category),
  closes_at: optional(Time),
});
/** By what each outcome pays, or by the one that pays all. */
export const Resolution = closed({
  payouts: Type.Optional(
    Type.Array(Payout, { minItems: MIN_OUTCOMES, maxItems: MAX_OUTCOMES, description: "one an outcome: 10000 in all" }),
  ),
  outcome_id: Type.Optional(Id),
  note,
});
export const ProposalsQuery = closed({ ...page, status: Type.Optional(names(MARKET_STATUSES)) });

// ---------------------------------------------------------------- answers

const Decision = nullable(closed({ note: nullable(Type.String()), decided_at: Time }));

export const Proposals = pageOf(closed({ market: MarketSchema, decision: Decision }));
/** As operators see it. */
export const MarketRecord = closed({
  ...MarketSchema.properties,
  proposed_by: nullable(Id),
  decision: Decision,
  approval: nullable(Approval),
});
/** The market as it is now, and the first approval where a second one is awaited. */
export const Settlement = closed({ market: MarketSchema, approval: nullable(Approval) });
