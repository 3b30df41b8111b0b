/**
 * The shapes of requests and answers, written once: the server validates with them, the tests check answers against
 * them, and the API document is made of them. Money is in micro-USDC, prices in BPS, times in ms since the epoch.
 */
import Type, { type TProperties, type TSchema } from "typebox";
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
} from "../engine/constants.ts";
import {
  DEFAULT_FEED_SIZE,
  DEFAULT_PAGE_LIMIT,
  MAX_BATCH_OPERATIONS,
  MAX_EMAIL_LENGTH,
  MAX_FEED_SIZE,
  MAX_PAGE_LIMIT,
  MAX_PASSWORD_LENGTH,
  MAX_PRICE_BPS,
  MAX_QUANTITY,
  MAX_QUOTES,
  MAX_REDIRECT_URIS,
  MAX_RETURN_TO_LENGTH,
  MAX_SEARCH_LENGTH,
  MAX_TOKEN_LENGTH,
  MAX_WS_SUBSCRIPTIONS,
  MIN_PASSWORD_LENGTH,
  MIN_PRICE_BPS,
} from "../engine/limits.ts";
import { SCOPES } from "./accounts.ts";
import { CHANNELS } from "./channels.ts";

/** An object whose fields are all there is: anything else is refused. */
export const closed = <T extends TProperties>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const names = (values: readonly (string | null)[]) => Type.Enum(values.filter((value) => value !== null));

export const Id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
export const Time = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "ms since the Unix epoch",
});
const Sequence = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
export const Money = Type.Integer({ description: "micro-USDC" });
const Price = Type.Integer({ minimum: MIN_PRICE_BPS, maximum: MAX_PRICE_BPS, description: "basis points" });
const Quantity = Type.Integer({ minimum: 1, maximum: MAX_QUANTITY, description: "whole shares" });
const SideSchema = Type.Integer({ minimum: 1, maximum: 2, description: "1 = buy, 2 = sell" });
const ClientOrderId = Type.String({ pattern: "^[A-Za-z0-9._:-]{1,64}$" });
const LevelSchema = Type.Array(Type.Integer(), { minItems: 2, maxItems: 2, description: "[price BPS, shares]" });
const Levels = Type.Array(LevelSchema);

// ---------------------------------------------------------------- requests

export const PlaceOrder = closed({
  market_id: Id,
  outcome_id: Id,
  side: SideSchema,
  price: Type.Optional(nullable(Price)),
  quantity: Quantity,
  type: Type.Optional(names(ORDER_TYPES)),
  time_in_force: Type.Optional(names(TIMES_IN_FORCE)),
  post_only: Type.Optional(Type.Boolean()),
  client_order_id: Type.Optional(nullable(ClientOrderId)),
  self_trade_prevention: Type.Optional(names(SELF_TRADE_PREVENTIONS)),
  expires_at: Type.Optional(nullable(Time)),
  valid_until: Type.Optional(nullable(Time)),
});

export const PlaceQuery = closed({
  timestamps: Type.Optional(
    Type.Boolean({
      description: "the answer and the order's updates carry when they were received, matched, durable, sent",
    }),
  ),
});

/** The new price, the new total quantity (what is filled included), or both. */
const amendment = {
  price: Type.Optional(nullable(Price)),
  quantity: Type.Optional(nullable(Quantity)),
  valid_until: Type.Optional(nullable(Time)),
};
export const AmendOrder = closed(amendment);
export const Quotes = closed({
  quotes: Type.Array(closed({ outcome_id: Id, side: SideSchema, price: Price, quantity: Quantity }), {
    maxItems: MAX_QUOTES,
  }),
});
/** Each operation is checked by its own schema when its turn comes, so that one that is wrong doesn't spoil the others. */
export const Batch = closed({
  operations: Type.Array(Type.Object({}), { minItems: 1, maxItems: MAX_BATCH_OPERATIONS }),
});
/** Names an order by `id` or by `client_order_id`. */
export const CancelOrder = closed({ id: Type.Optional(Id), client_order_id: Type.Optional(ClientOrderId) });
/** By `op`. */
export const BatchOperations = {
  place: closed({ op: Type.String(), ...PlaceOrder.properties }),
  cancel: closed({ op: Type.String(), ...CancelOrder.properties }),
  amend: closed({ op: Type.String(), id: Id, ...amendment }),
};

export const ChangeSets = closed({ market_id: Id, quantity: Quantity });

export const page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE_LIMIT, default: DEFAULT_PAGE_LIMIT })),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
};

export const NoQuery = closed({});
export const PageQuery = closed(page);
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
  status: Type.Optional(names(["active", "all"])),
});
export const FillsQuery = closed({ ...page, market_id: Type.Optional(Id), order_id: Type.Optional(Id) });
export const EventsQuery = closed({ ...page, after: Type.Optional(Sequence) });
const TRANSACTION_TYPES = ["deposit", "withdrawal", "trade", "fee", "rebate", "split", "merge", "settlement"] as const;
export const TransactionsQuery = closed({
  ...page,
  type: Type.Optional(names(TRANSACTION_TYPES)),
  from: Type.Optional(Time),
  to: Type.Optional(Time),
});
export const PositionsQuery = closed({ ...page, market_id: Type.Optional(Id) });
const LIST_SORTS = ["created_at", "volume", "closes_at"] as const;
const sort = Type.Optional(
  Type.Enum([...LIST_SORTS], {
    description:
      "newest, largest or soonest first; a cursor is of one sort; what is traded while one pages by volume may rise past the page",
  }),
);
const listFilters = {
  category: Type.Optional(Type.String({ maxLength: 200 })),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_SEARCH_LENGTH,
      description: "words that must all occur, each whole or as the start of one; case and diacritics don't count",
    }),
  ),
};
export const MarketsQuery = closed({
  ...page,
  ...listFilters,
  status: Type.Optional(names(MARKET_STATUSES)),
  event_id: Type.Optional(Id),
  sort,
});
export const MarketEventsQuery = closed({ ...page, ...listFilters, sort });
export const FeedQuery = closed({
  ...listFilters,
  kind: Type.Optional(names(["market", "event"])),
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1 })),
  size: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_FEED_SIZE, default: DEFAULT_FEED_SIZE })),
});
export const BookQuery = closed({
  depth: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PRICE_BPS })),
  implied: Type.Optional(Type.Boolean()),
});
const CANDLE_INTERVALS = Object.keys(CANDLE_MINUTES) as (keyof typeof CANDLE_MINUTES)[];
export const CandlesQuery = closed({
  outcome_id: Type.Optional(Id),
  interval: Type.Optional(names(CANDLE_INTERVALS)),
  from: Type.Optional(Time),
  to: Type.Optional(Time),
});

// ---------------------------------------------------------------- accounts

const Scopes = Type.Array(names(SCOPES), { minItems: 1, maxItems: SCOPES.length });
/** ASCII, so that upper and lower case have one meaning; one mailbox, as mail programs understand it. */
export const Email = Type.String({
  pattern:
    "^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$",
  maxLength: MAX_EMAIL_LENGTH,
  description: "e-mail address; upper and lower case are the same",
});
const NewPassword = Type.String({ minLength: MIN_PASSWORD_LENGTH, maxLength: MAX_PASSWORD_LENGTH });
/** One that exists may have been made under other rules. */
const GivenPassword = Type.String({ minLength: 1, maxLength: 1_024 });
const MailedToken = Type.String({ minLength: 1, maxLength: 200 });
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
export const MailedTokenOnly = closed({ token: MailedToken });
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
export const CallbackQuery = Type.Object({}, { additionalProperties: Type.String() });
export const PhoneNumber = closed({ phone: Type.String({ minLength: 1, maxLength: 32, description: "E.164" }) });
export const PhoneCode = closed({ code: Type.String({ pattern: "^\\d{6}$" }) });
export const IdentityDocument = closed({
  document_type: names(DOCUMENT_TYPES),
  document_number: Type.String({ minLength: 1, maxLength: 64, pattern: "^[A-Za-z0-9 ./-]+$" }),
  country: Country,
});
const Name = Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\p{Cc}\\p{Cs}]*$" });
export const NewPat = closed({
  name: Name,
  scopes: Scopes,
  expires_at: Type.Optional(nullable(Time)),
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
export const NewOAuthClient = closed({
  name: Name,
  redirect_uris: Type.Array(Type.String({ minLength: 1, maxLength: 2_000 }), {
    minItems: 1,
    maxItems: MAX_REDIRECT_URIS,
  }),
  confidential: Type.Boolean(),
});

export const user = {
  id: Id,
  email: Type.String(),
  email_verified: Type.Boolean(),
  phone: nullable(Type.String()),
  phone_verified: Type.Boolean(),
  kyc_tier: Type.Integer({ minimum: 0, maximum: 2 }),
  role: names(ROLES_OF_USERS),
  daily_activity: closed({ used: Money, limit: Money }),
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
export const SocialProviders = closed({ providers: Type.Array(Type.String()) });
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
  expires_in: Type.Integer(),
  refresh_token: Type.String(),
  scope: Type.String(),
});
export const Introspection = Type.Object({ active: Type.Boolean() });
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
export const ServerMetadata = Type.Object({ issuer: Type.String() });

// ---------------------------------------------------------------- answers

export const Fill = closed({
  id: Id,
  match_id: Id,
  price: Price,
  quantity: Quantity,
  role: names(ROLES),
  match_type: names(MATCH_TYPES),
  fee: Money,
  rebate: Money,
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
  outcome_id: Id,
  side: SideSchema,
  price: Price,
  quantity: Quantity,
  remaining: Type.Integer({ minimum: 0 }),
  filled: Type.Integer({ minimum: 0 }),
  type: names(ORDER_TYPES),
  time_in_force: names(TIMES_IN_FORCE),
  post_only: Type.Boolean(),
  self_trade_prevention: names(SELF_TRADE_PREVENTIONS),
  expires_at: nullable(Time),
  status: names(ORDER_STATUSES),
  reason: nullable(names(REASONS)),
  builder_code: nullable(Type.String()),
  created_at: Time,
  updated_at: Time,
  trades: Type.Array(Fill),
  /** In the answer to a placement that asked for it, and in what is told of the order then. */
  timestamps: Type.Optional(Timestamps),
});

/** One page of `item`, newest first. */
export function pageOf<T extends TSchema>(item: T) {
  return closed({ items: Type.Array(item), next_cursor: nullable(Type.String()) });
}

/** What each operation of a batch, or each quote, came to. */
export const Results = closed({
  results: Type.Array(
    closed({ code: Type.Integer(), msg: Type.String(), data: nullable(Order), trace_id: Type.Optional(Type.String()) }),
  ),
});
export const Canceled = closed({ order_ids: Type.Array(Id) });
const rateState = {
  limit: Type.Integer({ minimum: 1, description: "requests a minute" }),
  remaining: Type.Integer({ minimum: 0 }),
  reset: Type.Integer({ minimum: 0, description: "seconds until the whole limit is free again" }),
};
export const Rate = closed(rateState);
export const Limits = closed({
  kyc_tier: Type.Integer({ minimum: 0, maximum: 2 }),
  daily_activity: closed({ used: Money, limit: Money }),
  fees: closed({
    trading_fee: Type.Integer({ minimum: 0, description: "BPS of the notional, of a seller" }),
    maker_rebate: Type.Integer({ minimum: 0, description: "BPS of the notional, of orders placed with this token" }),
  }),
  rate_limits: Type.Array(
    closed({
      route: Type.String({ description: "method and path" }),
      scope: names(["user", "address", "identifier"]),
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
export const OrderEvent = closed({ event: Type.Literal("order.updated"), sequence: Sequence, ts: Time, data: Order });
export const OwnFill = closed({
  ...Fill.properties,
  order_id: Id,
  market_id: Id,
  outcome_id: Id,
  side: SideSchema,
  builder_code: nullable(Type.String()),
});

export const Balance = closed({ available: Money, held: Money, total: Money });
export const SetsChange = closed({ market_id: Id, quantity: Quantity });
export const Transaction = closed({
  id: Id,
  type: names(TRANSACTION_TYPES),
  amount: Money,
  balance_after: Money,
  market_id: nullable(Id),
  outcome_id: nullable(Id),
  order_id: nullable(Id),
  trade_id: nullable(Id),
  created_at: Time,
});
export const Position = closed({
  market_id: Id,
  outcome_id: Id,
  quantity: Type.Integer({ minimum: 0 }),
  held: Type.Integer({ minimum: 0 }),
  cost: Money,
  average_price: nullable(Type.Number()),
  realized_pnl: Money,
  market_value: nullable(
    Type.Integer({ minimum: 0, description: "micro-USDC, at the last price; null where there is none" }),
  ),
  unrealized_pnl: nullable(Type.Integer({ description: "micro-USDC: market_value - cost" })),
});
const OutcomeSchema = closed({
  id: Id,
  name: Type.String(),
  index: Type.Integer({ minimum: 0 }),
  last_price: nullable(Price),
  best_bid: nullable(Price),
  best_ask: nullable(Price),
  volume: Type.Integer({ minimum: 0 }),
});
const Volume = Type.Integer({ minimum: 0, description: "shares" });
const DayVolume = Type.Integer({ minimum: 0, description: "shares in the last 24 hours, to the hour" });
const market = {
  id: Id,
  slug: Type.String(),
  question: Type.String(),
  description: nullable(Type.String()),
  category: nullable(Type.String()),
  status: names(MARKET_STATUSES),
  outcomes: Type.Array(OutcomeSchema),
  event_id: nullable(Id),
  opens_at: nullable(Time),
  closes_at: nullable(Time),
  resolution: nullable(
    closed({
      payouts: Type.Array(Type.Integer({ minimum: 0, maximum: 10_000 })),
      outcome_id: nullable(Id),
      note: nullable(Type.String()),
      resolved_at: Time,
    }),
  ),
  volume: Volume,
  volume_24h: DayVolume,
  open_interest: Type.Integer({ minimum: 0 }),
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
export const Feed = closed({
  items: Type.Array(
    Type.Union([
      closed({ kind: Type.Literal("market"), ...market }),
      closed({ kind: Type.Literal("event"), ...event }),
    ]),
  ),
  page: Type.Integer(),
  size: Type.Integer(),
  total: Type.Integer(),
});
export const Trade = closed({
  id: Id,
  market_id: Id,
  outcome_id: Id,
  side: SideSchema,
  price: Price,
  quantity: Quantity,
  match_type: names(MATCH_TYPES),
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
  description: "rises by 1 with each committed batch that changed the book; book.updated numbers the same changes",
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
  deposits: Money,
  withdrawals: Money,
  users_total: Money,
  collateral: Money,
  house: Money,
  balanced: Type.Boolean(),
  sequence: Type.Integer(),
  at: Time,
});
/** A body that is no JSON. */
export const Text = Type.String();
export const Health = closed({ status: Type.String() });
export const SocketTicket = closed({
  ticket: Type.String({ description: "good for one connection" }),
  expires_at: Time,
});

/** Every JSON answer: `data` on success, null on an error; trace_id on 5xx only. */
export function envelopeOf(data: TSchema) {
  return closed({ code: Type.Integer(), msg: Type.String(), data, trace_id: Type.Optional(Type.String()) });
}

// ---------------------------------------------------------------- WebSocket

const id = Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })));
/** Without a market: of the channel markets, all of them. Without an outcome: all of the market's. */
export const Subscription = closed({
  op: Type.String(),
  channel: names(CHANNELS),
  market_id: Type.Optional(Id),
  market_ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: MAX_WS_SUBSCRIPTIONS })),
  outcome_id: Type.Optional(Id),
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
  volume: Type.Integer({ minimum: 0, description: "shares" }),
});
/** Replays the order updates after a number. */
export const Resume = closed({ op: Type.String(), sequence: Sequence, id });
export const Ping = closed({ op: Type.String(), id });
export const CancelOnDisconnect = closed({ op: Type.String(), enabled: Type.Boolean(), id });
/** An operation of a route: `data` is checked by the route's own schemas. */
export const RouteOperation = closed({
  op: Type.String(),
  data: Type.Optional(Type.Object({})),
  builder_code: Type.Optional(nullable(Type.String())),
  /** Of order.place: its query parameter of that name. */
  timestamps: Type.Optional(Type.Boolean()),
  id,
});
