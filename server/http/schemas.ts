/**
 * The shapes of requests and answers, written once: the server validates with them, the tests check answers against
 * them, and the API document is made of them. Money is in micro-USDC, prices in BPS, times in ms since the epoch.
 */
import Type, { type TProperties, type TSchema, type TSchemaOptions } from "typebox";
import {
  CANDLE_MINUTES,
  MARKET_STATUSES,
  MATCH_TYPES,
  ORDER_STATUSES,
  ORDER_TYPES,
  REASONS,
  ROLES,
  SELF_TRADE_PREVENTIONS,
  TIMES_IN_FORCE,
} from "../../engine/constants.ts";
import { MAX_PRICE_BPS, MAX_QUANTITY, MIN_PRICE_BPS } from "../../engine/limits.ts";
import {
  MAX_PASSWORD_LENGTH,
  MAX_RETURN_TO_LENGTH,
  MAX_TOKEN_LENGTH,
  MIN_PASSWORD_LENGTH,
} from "../accounts/limits.ts";
import { SCOPES } from "../accounts/types.ts";
import { DEFAULT_FEED_SIZE, MAX_FEED_SIZE, MAX_LISTED_IDS, MAX_SEARCH_LENGTH } from "../markets/limits.ts";
import { MAX_REDIRECT_URIS } from "../oauth/limits.ts";
import { MAX_BATCH_OPERATIONS, MAX_CANCEL_AFTER_MS, MAX_QUOTES, MIN_CANCEL_AFTER_MS } from "../trading/limits.ts";
import { MAX_WS_SUBSCRIPTIONS } from "../websocket/limits.ts";
import { CHANNELS } from "../websocket/types.ts";
import { DEFAULT_PAGE_LIMIT, MAX_EMAIL_LENGTH, MAX_PAGE_LIMIT } from "./limits.ts";

/** An object whose fields are all there is: anything else is refused. */
export const closed = <T extends TProperties>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
/** The same schema in words of its own. */
function about<T extends TSchema>(schema: T, description: string): T {
  const clone = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema)) as T;
  return Object.assign(clone, { description });
}
/** One of these words. Generators of clients want the type as well. */
export const names = (values: readonly (string | null)[], options: TSchemaOptions = {}) =>
  Type.Enum(
    values.filter((value) => value !== null),
    { type: "string", ...options },
  );

export const Id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
export const Time = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "ms since the Unix epoch",
});
const Sequence = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
export const Money = Type.Integer({ description: "micro-USDC" });
const money = (description: string) => Type.Integer({ description: `micro-USDC: ${description}` });
const shares = (description: string) => Type.Integer({ minimum: 0, description: `shares: ${description}` });
const Price = Type.Integer({ minimum: MIN_PRICE_BPS, maximum: MAX_PRICE_BPS, description: "basis points" });
const Quantity = Type.Integer({ minimum: 1, maximum: MAX_QUANTITY, description: "whole shares" });
const SideSchema = Type.Integer({ minimum: 1, maximum: 2, description: "1 = buy, 2 = sell" });
export const CLIENT_ORDER_ID_PATTERN = "^[A-Za-z0-9._:-]{1,64}$";
const ClientOrderId = Type.String({
  pattern: CLIENT_ORDER_ID_PATTERN,
  description: "the caller's own name of the order",
});
const OutcomeId = about(Id, "of the market's outcomes; unique over all markets");
const ORDER_TYPE_WORDS = "a market order never rests; without a price its bound is 9999 to buy, 1 to sell";
const OrderTypeSchema = about(names([...new Set(ORDER_TYPES)]), ORDER_TYPE_WORDS);
const TIME_IN_FORCE_WORDS =
  "gtc: rests until it is canceled; gtd: until expires_at; ioc: what doesn't match at once is canceled; fok: all at once or nothing";
const TimeInForceSchema = about(names(TIMES_IN_FORCE), TIME_IN_FORCE_WORDS);
const SELF_TRADE_WORDS = "what becomes of an order that would meet another one of its owner: the taker's choice rules";
const SelfTradeSchema = about(names(SELF_TRADE_PREVENTIONS), SELF_TRADE_WORDS);
const PostOnly = Type.Boolean({ description: "true: rejected (post_only_would_cross) where it would match at once" });
const ValidUntil = about(
  Time,
  "ms since the Unix epoch: what reaches the engine later is rejected as too_late, so that a slow request cannot act any more",
);
const LevelSchema = Type.Array(Type.Integer(), { minItems: 2, maxItems: 2, description: "[price BPS, shares]" });
const Levels = Type.Array(LevelSchema);

// ---------------------------------------------------------------- requests

export const PlaceOrder = closed({
  market_id: Id,
  outcome_id: OutcomeId,
  side: SideSchema,
  price: Type.Optional(about(nullable(Price), "basis points; required for limit orders, the bound of market orders")),
  quantity: Quantity,
  type: Type.Optional(about(OrderTypeSchema, `limit by default; ${ORDER_TYPE_WORDS}`)),
  time_in_force: Type.Optional(
    about(TimeInForceSchema, `gtc by default, ioc for market orders; ${TIME_IN_FORCE_WORDS}`),
  ),
  post_only: Type.Optional(PostOnly),
  client_order_id: Type.Optional(
    about(
      nullable(ClientOrderId),
      "unique among the caller's live orders and those of the last 24 hours: the same body again is answered as at first and places nothing, another body is 40900",
    ),
  ),
  self_trade_prevention: Type.Optional(about(SelfTradeSchema, `cancel_taker by default; ${SELF_TRADE_WORDS}`)),
  expires_at: Type.Optional(about(nullable(Time), "ms since the Unix epoch; required for gtd, and for it alone")),
  valid_until: Type.Optional(nullable(ValidUntil)),
});

const TIMESTAMPS_WORDS = "the answer and the order's updates carry when they were received, matched, durable, sent";
export const PlaceQuery = closed({ timestamps: Type.Optional(Type.Boolean({ description: TIMESTAMPS_WORDS })) });

/** The new price, the new total quantity (what is filled included), or both. */
const amendment = {
  price: Type.Optional(about(nullable(Price), "basis points; as it is where missing")),
  quantity: Type.Optional(
    about(nullable(Quantity), "whole shares: the new total, what is filled included; as it is where missing"),
  ),
  valid_until: Type.Optional(nullable(ValidUntil)),
};
export const AmendOrder = closed(amendment);
export const Quotes = closed({
  quotes: Type.Array(closed({ outcome_id: Id, side: SideSchema, price: Price, quantity: Quantity }), {
    maxItems: MAX_QUOTES,
  }),
  expires_at: Type.Optional(
    about(
      nullable(Time),
      "ms since the Unix epoch: when all of them end; one that stays keeps its place and ends then too",
    ),
  ),
  valid_until: Type.Optional(
    about(
      nullable(Time),
      "ms since the Unix epoch: of what reaches the engine later the new quotes are rejected as too_late, and those that stand stay",
    ),
  ),
});
/** Each is checked by its own schema when its turn comes, so that one that is wrong doesn't spoil the others. */
export const BatchOperation = Type.Object({});
export const Batch = closed({
  operations: Type.Array(BatchOperation, { minItems: 1, maxItems: MAX_BATCH_OPERATIONS }),
});
/** Names an order by `id` or by `client_order_id`. */
export const CancelOrder = closed({ id: Type.Optional(Id), client_order_id: Type.Optional(ClientOrderId) });
/** By `op`. */
export const BatchOperations = {
  place: closed({ op: Type.String(), ...PlaceOrder.properties }),
  cancel: closed({ op: Type.String(), ...CancelOrder.properties }),
  amend: closed({ op: Type.String(), id: Id, ...amendment }),
};

export const CancelAfter = closed({
  timeout_ms: Type.Integer({
    minimum: 0,
    maximum: MAX_CANCEL_AFTER_MS,
    description: `ms from now, ${MIN_CANCEL_AFTER_MS} or more; 0 ends the timer`,
  }),
});

export const ChangeSets = closed({ market_id: Id, quantity: about(Quantity, "complete sets, of 1 USDC each") });

export const page = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_PAGE_LIMIT, default: DEFAULT_PAGE_LIMIT, description: "items of a page" }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: "next_cursor of the page before, as it was given" }),
  ),
};

export const NoQuery = closed({});
export const PageQuery = closed(page);
const span = {
  from: Type.Optional(about(Time, "ms since the Unix epoch: made at that time or later")),
  to: Type.Optional(about(Time, "ms since the Unix epoch: made at that time or before")),
};
const orderFilters = {
  market_id: Type.Optional(Id),
  outcome_id: Type.Optional(Id),
  side: Type.Optional(SideSchema),
  client_order_id: Type.Optional(ClientOrderId),
};
export const CancelQuery = closed(orderFilters);
export const OrdersQuery = closed({
  ...page,
  ...orderFilters,
  ...span,
  status: Type.Optional(
    about(names(["active", "all", ...ORDER_STATUSES]), "active by default; all: finished ones too; or a single state"),
  ),
});
export const FillsQuery = closed({ ...page, ...span, market_id: Type.Optional(Id), order_id: Type.Optional(Id) });
export const TradesQuery = closed({
  ...page,
  ...span,
  outcome_id: Type.Optional(about(Id, "of the market's outcomes: trades whose taker's order was of it")),
});
export const EventsQuery = closed({
  ...page,
  after: Type.Optional(about(Sequence, "the sequence to go on behind; all that is kept where missing")),
});
const TRANSACTION_TYPES = ["deposit", "withdrawal", "trade", "fee", "rebate", "split", "merge", "settlement"] as const;
export const TransactionsQuery = closed({
  ...page,
  type: Type.Optional(names(TRANSACTION_TYPES)),
  ...span,
});
export const PositionsQuery = closed({ ...page, market_id: Type.Optional(Id) });
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

// ---------------------------------------------------------------- accounts

const Scopes = Type.Array(names(SCOPES), {
  minItems: 1,
  maxItems: SCOPES.length,
  description: "what the token may do",
});
/** ASCII, so that upper and lower case have one meaning; one mailbox, as mail programs understand it. */
export const Email = Type.String({
  pattern:
    "^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$",
  maxLength: MAX_EMAIL_LENGTH,
  description: "e-mail address; upper and lower case are the same",
});
const NewPassword = Type.String({
  minLength: MIN_PASSWORD_LENGTH,
  maxLength: MAX_PASSWORD_LENGTH,
  description: "hard to guess: one that is common or made of the address is refused",
});
/** One that exists may have been made under other rules. */
const GivenPassword = Type.String({ minLength: 1, maxLength: 1_024 });
const MailedToken = Type.String({ minLength: 1, maxLength: 200, description: "of the mailed link" });
const Country = Type.String({ pattern: "^[A-Z]{2}$", description: "ISO 3166-1 alpha-2" });
const DOCUMENT_TYPES = ["passport", "id_card", "driving_license", "residence_permit"] as const;
export const APPLICATION_STATUSES = ["pending", "approved", "refused"] as const;
export const ROLES_OF_USERS = ["user", "operator"] as const;
export const Nothing = Type.Null();

export const Credentials = closed({
  email: Email,
  password: GivenPassword,
  cookie: Type.Optional(Type.Boolean({ description: "true: the refresh token comes in an HttpOnly cookie" })),
});
export const Registration = closed({ email: Email, password: NewPassword });
export const EmailOnly = closed({ email: Email });
export const EmailVerification = closed({
  token: MailedToken,
  password: Type.Optional(GivenPassword),
});
export const PasswordReset = closed({ token: MailedToken, password: NewPassword });
export const PasswordChange = closed({ current: GivenPassword, new: NewPassword });
export const RefreshToken = closed({
  refresh_token: Type.Optional(
    Type.String({ minLength: 1, maxLength: MAX_TOKEN_LENGTH, description: "missing: that of the cookie" }),
  ),
});
const jurisdiction = { jurisdiction: Type.Optional(Country) };
export const JurisdictionQuery = closed(jurisdiction);
/** A path of the same host whichever way a browser reads it: of `//host` and `/\host` it makes another host. */
const PagePath = Type.String({
  maxLength: MAX_RETURN_TO_LENGTH,
  pattern: "^/(?![/\\\\])[^\\p{Cc}]*$",
  description: "path on the web page where the user goes after the sign-in; without it the callback answers JSON",
});
export const SocialStartQuery = closed({ ...jurisdiction, return_to: Type.Optional(PagePath) });
/** What a provider adds is its own matter. */
export const CallbackQuery = Type.Object(
  {
    code: Type.Optional(Type.String()),
    state: Type.Optional(Type.String()),
    error: Type.Optional(Type.String()),
  },
  { additionalProperties: Type.String() },
);
export const PhoneNumber = closed({ phone: Type.String({ minLength: 1, maxLength: 32, description: "E.164" }) });
export const PhoneCode = closed({
  code: Type.String({ pattern: "^\\d{6}$", description: "six digits, of the message" }),
});
export const IdentityDocument = closed({
  document_type: names(DOCUMENT_TYPES),
  document_number: Type.String({ minLength: 1, maxLength: 64, pattern: "^[A-Za-z0-9 ./-]+$" }),
  country: Country,
});
const Name = Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\p{Cc}\\p{Cs}]*$" });
export const NewPat = closed({
  name: Name,
  scopes: Scopes,
  expires_at: Type.Optional(about(nullable(Time), "ms since the Unix epoch; never where it is missing or null")),
  allowed_ips: Type.Optional(
    nullable(
      Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
        minItems: 1,
        maxItems: 20,
        description: "IP addresses and CIDR ranges that the token may be used from",
      }),
    ),
  ),
});
/** Users decide by it: nothing that can't be seen, turns the text around, or stacks marks over what stands beside it. */
const ClientName = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: "^(?!\\s)(?!.*\\p{M}{4})[^\\p{C}\\p{Zl}\\p{Zp}]{1,100}(?<!\\s)$",
});
export const NewOAuthClient = closed({
  name: ClientName,
  redirect_uris: Type.Array(Type.String({ minLength: 1, maxLength: 2_000 }), {
    minItems: 1,
    maxItems: MAX_REDIRECT_URIS,
    description: "https, http on the user's own machine, or a scheme of an app's own; compared exactly",
  }),
  confidential: Type.Boolean({ description: "true: it can keep a secret, and gets one" }),
});

const DailyActivity = closed({
  used: money("notional of this UTC day's buy fills and of live buys, and 1 USDC per set split today"),
  limit: money("what used may come to"),
});
export const user = {
  id: Id,
  email: Type.String(),
  email_verified: Type.Boolean(),
  phone: nullable(Type.String()),
  phone_verified: Type.Boolean(),
  kyc_tier: Type.Integer({ minimum: 0, maximum: 2, description: "1: may trade; 2: may withdraw" }),
  role: names(ROLES_OF_USERS),
  daily_activity: DailyActivity,
  created_at: Time,
};
export const User = closed(user);
/** As whoever asks may see it. */
export const Account = closed({ ...user, email: nullable(Type.String()) });
const tokens = {
  access_token: Type.String(),
  refresh_token: nullable(Type.String({ description: "null where it is in the cookie" })),
};
export const Tokens = closed(tokens);
export const SignIn = closed({ ...tokens, user: User });
export const SocialProviders = closed({
  providers: Type.Array(Type.String()),
  jurisdictions: Type.Array(Country, { description: "those in which more are offered than everywhere" }),
});
export const IdentityApplication = closed({
  id: Id,
  document_type: names(DOCUMENT_TYPES),
  country: Type.String(),
  status: names(APPLICATION_STATUSES),
  note: nullable(Type.String({ description: "what the operator noted" })),
  created_at: Time,
  decided_at: nullable(Time),
});
const pat = {
  id: Id,
  name: Type.String(),
  scopes: Scopes,
  prefix: Type.String({ description: "how the token begins" }),
  allowed_ips: nullable(Type.Array(Type.String())),
  created_at: Time,
  last_used_at: nullable(Time),
  expires_at: nullable(Time),
};
export const Pat = closed(pat);
export const CreatedPat = closed({ ...pat, token: Type.String({ description: "shown once" }) });
export const Session = closed({
  id: Id,
  method: Type.String({ description: "password, or social: and the provider" }),
  current: Type.Boolean({ description: "the one that asks" }),
  second_factor: Type.Boolean({ description: "the sign-in took a second factor" }),
  user_agent: nullable(Type.String()),
  address: nullable(Type.String()),
  created_at: Time,
  last_used_at: Time,
  expires_at: Time,
});
const oauthClient = {
  id: Id,
  client_id: Type.String(),
  name: Type.String(),
  redirect_uris: Type.Array(Type.String()),
  confidential: Type.Boolean(),
  created_at: Time,
};
export const OAuthClient = closed(oauthClient);
export const CreatedOAuthClient = closed({
  ...oauthClient,
  client_secret: nullable(Type.String({ description: "shown once; null of a public client" })),
});
/** What anybody who is asked for consent may know of a client. */
export const AskingClient = closed({
  client_id: Type.String(),
  name: Type.String(),
  redirect_uris: Type.Array(Type.String()),
  created_at: Time,
});
export const OAuthGrant = closed({
  id: Id,
  client_id: Type.String(),
  client_name: Type.String(),
  scopes: Scopes,
  created_at: Time,
  last_used_at: nullable(Time),
});

// ---------------------------------------------------------------- OAuth 2.0

const param = Type.Optional(Type.String({ maxLength: 2_048 }));
const authorization = {
  client_id: param,
  redirect_uri: param,
  response_type: param,
  scope: param,
  state: param,
  code_challenge: param,
  code_challenge_method: param,
};
/** Other parameters are ignored: RFC 6749, section 3.1. */
export const AuthorizeQuery = Type.Object(authorization, { additionalProperties: Type.String() });
export const AuthorizeDecision = closed({ ...authorization, decision: names(["approve", "deny"]) });
export const RedirectTo = closed({ redirect_to: Type.String() });
const form = (properties: TProperties) => Type.Object(properties, { additionalProperties: Type.String() });
const clientAuthentication = { client_id: param, client_secret: param };
export const TokenForm = form({
  ...clientAuthentication,
  grant_type: param,
  code: param,
  redirect_uri: param,
  code_verifier: param,
  refresh_token: param,
  scope: param,
});
export const TokenOnlyForm = form({
  ...clientAuthentication,
  token: Type.Optional(Type.String({ maxLength: 8_192 })),
  token_type_hint: param,
});
export const TokenAnswer = Type.Object({
  access_token: Type.String(),
  token_type: Type.Literal("Bearer"),
  expires_in: Type.Integer({ description: "seconds" }),
  refresh_token: Type.String({ description: "good once: the answer has the next one" }),
  scope: Type.String({ description: "scopes with spaces between" }),
});
/** Of a token that is not active, or not this client's, nothing more is told. */
export const Introspection = Type.Object({
  active: Type.Boolean(),
  scope: Type.Optional(Type.String()),
  client_id: Type.Optional(Type.String()),
  token_type: Type.Optional(Type.String()),
  sub: Type.Optional(Type.String({ description: "the user's id" })),
  exp: Type.Optional(Type.Integer({ description: "seconds since the Unix epoch" })),
});
export const Empty = closed({});
export const Jwks = closed({
  keys: Type.Array(
    closed({
      kty: Type.Literal("RSA"),
      n: Type.String(),
      e: Type.String(),
      kid: Type.String(),
      alg: Type.Literal("RS256"),
      use: Type.Literal("sig"),
    }),
  ),
});
export const ServerMetadata = Type.Object({
  issuer: Type.String(),
  authorization_endpoint: Type.String(),
  token_endpoint: Type.String(),
  revocation_endpoint: Type.String(),
  introspection_endpoint: Type.String(),
  jwks_uri: Type.String(),
  scopes_supported: Type.Array(Type.String()),
  response_types_supported: Type.Array(Type.String()),
  grant_types_supported: Type.Array(Type.String()),
  code_challenge_methods_supported: Type.Array(Type.String()),
});

// ---------------------------------------------------------------- answers

const MatchTypeSchema = about(
  names(MATCH_TYPES),
  "direct: a buy and a sell of one outcome; mint: buys of all outcomes make sets; merge: sells of all outcomes dissolve them",
);
export const Fill = closed({
  id: Id,
  match_id: about(Id, "one a match, shared by all of its fills: the id of its trade"),
  price: about(Price, "basis points: what this order paid or got"),
  quantity: Quantity,
  role: about(names(ROLES), "maker: it rested; taker: it came in and matched"),
  match_type: MatchTypeSchema,
  fee: money("taken from a seller's proceeds"),
  rebate: money("given to the maker"),
  created_at: Time,
});

const Microseconds = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "µs since the Unix epoch",
});
/** When the order was received, and what is told of it was matched, durable and sent. */
const Timestamps = closed({
  received: Microseconds,
  matched: Microseconds,
  durable: Microseconds,
  sent: Microseconds,
});

export const Order = closed({
  id: Id,
  client_order_id: nullable(ClientOrderId),
  market_id: Id,
  outcome_id: OutcomeId,
  side: SideSchema,
  price: about(nullable(Price), "basis points; null for a market order without a bound"),
  quantity: Quantity,
  remaining: shares("not filled yet"),
  filled: shares("filled so far"),
  type: OrderTypeSchema,
  time_in_force: TimeInForceSchema,
  post_only: PostOnly,
  self_trade_prevention: SelfTradeSchema,
  expires_at: nullable(Time),
  status: about(
    names(ORDER_STATUSES),
    "queued, open, partially_filled, and in the end one of filled, canceled, expired, rejected",
  ),
  reason: about(nullable(names(REASONS)), "of canceled, expired and rejected, null otherwise"),
  builder_code: about(nullable(Type.String()), "the integration that its fills are credited to"),
  created_at: Time,
  updated_at: Time,
  trades: Type.Array(Fill, {
    description: "its fills; in order.updated those that the event reports; in the answer to a placement none, always",
  }),
  timestamps: Type.Optional(
    about(Timestamps, "in the answer to a placement that asked for it, and in what is told of the order then"),
  ),
});

/** One page of `item`, newest first. */
export function pageOf<T extends TSchema>(item: T) {
  const NextCursor = Type.String({ description: "of the next page; null at the end" });
  return closed({ items: Type.Array(item), next_cursor: nullable(NextCursor) });
}

/** What each operation of a batch, or each quote, came to. */
export const Results = closed({
  results: Type.Array(
    closed({ code: Type.Integer(), msg: Type.String(), data: nullable(Order), trace_id: Type.Optional(Type.String()) }),
    { description: "one for each operation or quote, in their order, each as the answer to it alone would be" },
  ),
});
export const CancelTimer = closed({
  timeout_ms: Type.Integer({ minimum: 0, description: "as asked for" }),
  fires_at: about(nullable(Time), "ms since the Unix epoch: when all live orders are canceled; null: never"),
});
export const Canceled = closed({ order_ids: Type.Array(Id, { description: "of the orders that it ended" }) });
const rateState = {
  limit: Type.Integer({ minimum: 1, description: "requests a minute" }),
  remaining: Type.Integer({ minimum: 0 }),
  reset: Type.Integer({ minimum: 0, description: "seconds until the whole limit is free again" }),
};
export const Rate = closed(rateState);
export const Limits = closed({
  kyc_tier: Type.Integer({ minimum: 0, maximum: 2 }),
  daily_activity: DailyActivity,
  live_orders: closed({
    used: Type.Integer({ minimum: 0, description: "orders accepted and not yet final" }),
    limit: Type.Integer({ minimum: 0, description: "what used may come to; one more order is refused with 42204" }),
  }),
  fees: closed({
    trading_fee: Type.Integer({ minimum: 0, description: "BPS of the notional, of a seller" }),
    maker_rebate: Type.Integer({ minimum: 0, description: "BPS of the notional, of orders placed with this token" }),
    merge_fee: Type.Integer({ minimum: 0, description: "BPS of 1 USDC for each complete set that is merged" }),
  }),
  rate_limits: Type.Array(
    closed({
      route: Type.String({ description: "method and path" }),
      scope: names(["user", "address", "identifier", "known_address"]),
      ...rateState,
    }),
  ),
});
export const BuilderStats = closed({
  code: Type.String(),
  orders: Type.Integer({ minimum: 0 }),
  fills: Type.Integer({ minimum: 0 }),
  volume: Type.Integer({ minimum: 0, description: "shares" }),
  notional: Money,
  fees: Type.Integer({ minimum: 0, description: "trading fees of these fills, micro-USDC" }),
});

/** A frame of the private stream. */
const FrameSequence = about(
  Sequence,
  "rises by exactly 1 a message and key; of balances and positions the last order.updated that they reflect",
);
export const OrderEvent = closed({
  event: Type.Literal("order.updated"),
  sequence: FrameSequence,
  ts: Time,
  data: Order,
});
export const OwnFill = closed({
  ...Fill.properties,
  order_id: Id,
  market_id: Id,
  outcome_id: OutcomeId,
  side: SideSchema,
  builder_code: nullable(Type.String()),
});

export const Balance = closed({
  available: money("free to trade or to withdraw"),
  held: money("by live buy orders and pending withdrawals"),
  total: money("available + held"),
});
export const SetsChange = closed({
  market_id: Id,
  quantity: about(Quantity, "complete sets"),
  fee: money("of a merge: what the house kept of its 1 USDC a set"),
});
export const Transaction = closed({
  id: Id,
  type: names(TRANSACTION_TYPES),
  amount: money("what it changed the balance by, negative where it took"),
  balance_after: money("the whole balance after it"),
  market_id: nullable(Id),
  outcome_id: nullable(Id),
  order_id: nullable(Id),
  trade_id: about(nullable(Id), "of the fill"),
  created_at: Time,
});
export const Position = closed({
  market_id: Id,
  outcome_id: OutcomeId,
  quantity: shares("all that the caller has"),
  held: shares("of these, held by live sell orders"),
  cost: money("what the shares cost"),
  average_price: nullable(Type.Number({ description: "basis points a share, may be fractional; null without shares" })),
  realized_pnl: money("profit of the shares that were sold, merged or paid out, negative for a loss"),
  market_value: nullable(
    Type.Integer({ minimum: 0, description: "micro-USDC, at the last price; null where there is none" }),
  ),
  unrealized_pnl: nullable(Type.Integer({ description: "micro-USDC: market_value - cost" })),
});
const ImpliedBid = about(
  nullable(Price),
  "basis points: what a seller gets at best, merge included; never below best_bid",
);
const ImpliedAsk = about(
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
export const Now = closed({ now: Time });
export const Solvency = closed({
  deposits: money("all that came in"),
  withdrawals: money("all that was paid out"),
  users_total: money("of all users' balances"),
  collateral: money("of all markets: 1 USDC for each complete set outstanding"),
  house: money("of the house account"),
  balanced: Type.Boolean({ description: "deposits - withdrawals = users_total + collateral + house" }),
  sequence: Type.Integer({ description: "of the committed transaction that these sums are of" }),
  at: Time,
});
/** A body that is no JSON. */
export const Text = Type.String();
/** A document of another format that is JSON. */
export const JsonDocument = Type.Object({}, { additionalProperties: true });
export const Health = closed({ status: Type.String({ description: "ok, or why not" }) });
export const SocketTicket = closed({
  ticket: Type.String({ description: "good for one connection" }),
  expires_at: Time,
});

/** Every JSON answer: `data` on success, null on an error; trace_id on 5xx only. */
export function envelopeOf(data: TSchema) {
  return closed({ code: Type.Integer(), msg: Type.String(), data, trace_id: Type.Optional(Type.String()) });
}

// ---------------------------------------------------------------- WebSocket

const id = Type.Optional(
  about(nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })), "comes back with the answer"),
);
/** Without a market: of the channel markets, all of them. Without an outcome: all of the market's. */
export const Subscription = closed({
  op: Type.String(),
  channel: names(CHANNELS),
  market_id: Type.Optional(Id),
  market_ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: MAX_WS_SUBSCRIPTIONS })),
  outcome_id: Type.Optional(Id),
  implied: Type.Optional(
    about(
      Type.Boolean(),
      "of book: true for the book with mint and merge liquidity, a channel of its own with its own sequence",
    ),
  ),
  id,
});
/** A fresh token for the connection: of the same user, or of any where it had none. */
export const PresentToken = closed({
  op: Type.String(),
  token: Type.String({ minLength: 1, maxLength: MAX_TOKEN_LENGTH }),
  id,
});
const SubscriptionState = closed({
  channel: names(CHANNELS),
  implied: about(Type.Boolean(), "of book: the one with mint and merge liquidity"),
  market_id: nullable(Id),
  outcome_id: nullable(Id),
  sequence: Sequence,
});
/** Answers subscribe and unsubscribe. */
export const Subscriptions = closed({ subscriptions: Type.Array(SubscriptionState) });
/** orders: the number of the last order.updated, null where none are heard. */
export const Heartbeat = closed({ subscriptions: Type.Array(SubscriptionState), orders: nullable(Sequence) });
export const Ticker = closed({
  market_id: Id,
  outcome_id: Id,
  last_price: nullable(Price),
  best_bid: nullable(Price),
  best_ask: nullable(Price),
  implied_bid: ImpliedBid,
  implied_ask: ImpliedAsk,
  volume: Type.Integer({ minimum: 0, description: "shares" }),
});
/** Replays the order updates after a number. */
export const Resume = closed({ op: Type.String(), sequence: Sequence, id });
export const Ping = closed({ op: Type.String(), id });
export const CancelOnDisconnect = closed({ op: Type.String(), enabled: Type.Boolean(), id });
/** Answers to operations of the connection. */
export const Resumed = closed({
  after: about(Sequence, "as asked for: what is told begins behind it"),
  last: about(Sequence, "of the last order.updated so far"),
});
export const PresentedToken = closed({ user_id: Id, expires_at: about(nullable(Time), "of the token; null: never") });
export const Tied = closed({ enabled: Type.Boolean() });
/** What changed of a book. */
export const BookChange = closed({
  market_id: Id,
  outcome_id: Id,
  bids: about(Levels, "[price BPS, new quantity] of each level that changed; quantity 0: the level is gone"),
  asks: about(Levels, "as bids"),
  implied: Type.Optional(
    about(
      closed({ bids: Levels, asks: Levels }),
      "of the book with mint and merge alone: what changed of the part that they offer, as bids and asks",
    ),
  ),
});
export const Shutdown = Type.Null();
/** Every message that the server sends unasked. @param data of the event */
export function frameOf(event: string, data: TSchema) {
  return closed({ event: Type.Literal(event), sequence: FrameSequence, ts: Time, data });
}
/** The answer to an operation. @param data of its success */
export function acknowledgementOf(data: TSchema) {
  return closed({
    id: nullable(Type.Integer()),
    code: Type.Integer(),
    msg: Type.String({ minLength: 1 }),
    data: nullable(data),
    trace_id: Type.Optional(Type.String({ minLength: 1 })),
    rate_limit: Type.Optional(nullable(Rate)),
    retry_after: Type.Optional(
      about(Type.Integer({ minimum: 1 }), "of 42900, 42901 and 50300: seconds until the next will be accepted"),
    ),
  });
}
/** An operation of a route: `data` is checked by the route's own schemas. */
export const RouteOperation = closed({
  op: Type.String(),
  data: Type.Optional(Type.Object({})),
  builder_code: Type.Optional(about(nullable(Type.String()), "the integration that the fills are credited to")),
  timestamps: Type.Optional(about(Type.Boolean(), TIMESTAMPS_WORDS)),
  id,
});
