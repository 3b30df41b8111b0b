/** Sample objects for the examples of the API documents, in the shapes of the schemas; they are consistent with each other. */

import type { Static } from "typebox";
import { DEFAULT_TERMS } from "../../engine/log/user-terms.ts";
import type { Approval, IdentityApplication, Pat, Session, User } from "../accounts/schemas.ts";
import { termsView } from "../accounts/terms.ts";
import type { EventSchema, MarketRecord, MarketSchema, OutcomeBook, Trade, Watchlist } from "../markets/schemas.ts";
import type { Notification, NotificationSettings, PriceAlert } from "../notifications/schemas.ts";
import type { OAuthClient, OAuthGrant } from "../oauth/schemas.ts";
import type { OperatorApplication, OperatorUser } from "../operators/schemas.ts";
import type { Fill, Order, OwnFill } from "../trading/schemas.ts";
import type {
  Balance,
  Deposit,
  DepositInstructions,
  OwnDeposit,
  OwnWithdrawal,
  Portfolio,
  PortfolioHistory,
  Position,
  Settlement,
  Trail,
  Transaction,
  Withdrawal,
} from "../wallet/schemas.ts";

/** Of a file. */
export const SHA_256 = "3aa9fd23957481664eb4209c507f3a525b4b00aaed629e703924612c92a41c2d";
/** The time of the samples, and a time far in the future; ms. */
export const THEN = 1_763_769_600_000;
export const FAR_OFF = 4_070_908_800_000;
const MINUTE_MS = 60_000;

/** A single page with these items. */
export const pageOf = <T>(...items: T[]): { items: T[]; next_cursor: null } => ({ items, next_cursor: null });

export const market: Static<typeof MarketSchema> = {
  id: 1,
  slug: "fed-cut-by-june",
  question: "Will the Federal Reserve cut its target rate by 30 June?",
  description: "Pays on Yes if the upper bound of the target range is lower on 30 June than on 1 January.",
  category: "economics",
  status: "open",
  outcomes: [
    {
      id: 1,
      name: "Yes",
      index: 0,
      last_price: 4_200,
      price_24h_ago: 4_050,
      best_bid: 4_150,
      best_ask: 4_250,
      implied_bid: 4_150,
      implied_ask: 4_250,
      volume: 1_300,
    },
    {
      id: 2,
      name: "No",
      index: 1,
      last_price: 5_800,
      price_24h_ago: 5_950,
      best_bid: 5_750,
      best_ask: 5_850,
      implied_bid: 5_750,
      implied_ask: 5_850,
      volume: 700,
    },
  ],
  event_id: 1,
  opens_at: THEN,
  closes_at: FAR_OFF,
  picture: "/api/v1/markets/1/pictures/5f1c2d3e4a5b69788796a5b4c3d2e1f0",
  resolution: null,
  volume: 2_000,
  volume_24h: 450,
  open_interest: 1_000,
  created_at: THEN,
};
export const closedMarket = { ...market, status: "closed" };
export const resolvedMarket: Static<typeof MarketSchema> = {
  ...market,
  status: "resolved",
  outcomes: market.outcomes.map((outcome) => ({
    ...outcome,
    price_24h_ago: null,
    best_bid: null,
    best_ask: null,
    implied_bid: null,
    implied_ask: null,
  })),
  resolution: { payouts: [10_000, 0], outcome_id: 1, note: "The range was lowered on 17 March.", resolved_at: FAR_OFF },
  open_interest: 0,
};
export const proposedMarket: Static<typeof MarketSchema> = {
  ...market,
  id: 2,
  slug: "ecb-cut-by-june",
  question: "Will the ECB cut its deposit rate by 30 June?",
  description: null,
  status: "proposed",
  outcomes: [
    {
      id: 3,
      name: "Yes",
      index: 0,
      last_price: null,
      price_24h_ago: null,
      best_bid: null,
      best_ask: null,
      implied_bid: null,
      implied_ask: null,
      volume: 0,
    },
    {
      id: 4,
      name: "No",
      index: 1,
      last_price: null,
      price_24h_ago: null,
      best_bid: null,
      best_ask: null,
      implied_bid: null,
      implied_ask: null,
      volume: 0,
    },
  ],
  event_id: null,
  opens_at: null,
  picture: null,
  volume: 0,
  volume_24h: 0,
  open_interest: 0,
};
export const event: Static<typeof EventSchema> = {
  id: 1,
  slug: "fed-decisions",
  title: "Decisions of the Federal Reserve",
  category: "economics",
  closes_at: FAR_OFF,
  created_at: THEN,
  volume: 2_000,
  volume_24h: 450,
  market_count: 1,
  markets: [market],
};
export const notification: Static<typeof Notification> = {
  kind: "fill",
  at: THEN,
  market_id: 1,
  outcome_id: 1,
  order_id: 7_001,
  side: 1,
  quantity: 40,
  price: 4_200,
  amount: null,
  profit: null,
  status: null,
  direction: null,
};

export const notificationSettings: Static<typeof NotificationSettings> = {
  page: { fills: true, resolutions: true, payments: true, alerts: true },
  mail: { fills: false, resolutions: true, payments: true, alerts: true },
};

export const priceAlert: Static<typeof PriceAlert> = {
  id: 1,
  market_id: 1,
  outcome_id: 1,
  direction: "above",
  price: 9_900,
  created_at: THEN,
};

export const watchlist: Static<typeof Watchlist> = { items: [{ kind: "market", id: 1 }] };
export const trade: Static<typeof Trade> = {
  id: 501,
  market_id: 1,
  outcome_id: 1,
  side: 1,
  price: 4_200,
  quantity: 40,
  match_type: "direct",
  created_at: THEN + MINUTE_MS,
};
export const book: Static<typeof OutcomeBook> = {
  market_id: 1,
  outcome_id: 1,
  sequence: 88,
  ts: THEN + MINUTE_MS,
  bids: [
    [4_150, 300],
    [4_100, 1_000],
  ],
  asks: [[4_250, 250]],
};

export const order: Static<typeof Order> = {
  id: 7_001,
  client_order_id: "mm-1-0001",
  market_id: 1,
  outcome_id: 1,
  side: 1,
  price: 4_200,
  quantity: 100,
  remaining: 100,
  filled: 0,
  type: "limit",
  time_in_force: "gtc",
  post_only: false,
  self_trade_prevention: "cancel_taker",
  expires_at: null,
  status: "queued",
  reason: null,
  builder_code: null,
  created_at: THEN,
  updated_at: THEN,
  trades: [],
};
const fill: Static<typeof Fill> = {
  id: 9_001,
  match_id: 501,
  price: 4_200,
  quantity: 40,
  role: "maker",
  match_type: "direct",
  fee: 0,
  rebate: 16_800,
  created_at: THEN + MINUTE_MS,
};
export const filledOrder: Static<typeof Order> = {
  ...order,
  remaining: 60,
  filled: 40,
  status: "partially_filled",
  updated_at: fill.created_at,
  trades: [fill],
};
export const restingOrder: Static<typeof Order> = { ...order, status: "open" };
export const ownFill: Static<typeof OwnFill> = {
  ...fill,
  order_id: order.id,
  market_id: 1,
  outcome_id: 1,
  side: 1,
  builder_code: null,
};
export const balance: Static<typeof Balance> = { available: 9_958_000_000, held: 42_000_000, total: 10_000_000_000 };
export const position: Static<typeof Position> = {
  market_id: 1,
  outcome_id: 1,
  quantity: 40,
  held: 0,
  cost: 16_800_000,
  average_price: 4_200,
  realized_pnl: 0,
  market_value: 16_800_000,
  unrealized_pnl: 0,
};
export const portfolio: Static<typeof Portfolio> = {
  value: 10_001_200_000,
  available: 9_942_400_000,
  held: 42_000_000,
  in_positions: 16_800_000,
  cost: 16_000_000,
  net_deposits: 10_000_000_000,
  profit: 1_200_000,
  unrealized_pnl: 800_000,
  realized_pnl: 400_000,
  fees: 63_000,
  rebates: 4_200,
};
export const portfolioHistory: Static<typeof PortfolioHistory> = {
  interval: "1d",
  first_at: 1_763_683_260_000,
  items: [
    [1_763_683_200_000 + 86_400_000, 10_000_000_000, 0],
    [1_763_683_200_000 + 2 * 86_400_000, 10_001_200_000, 1_200_000],
  ],
};
export const transaction: Static<typeof Transaction> = {
  id: 12_001,
  type: "trade",
  amount: -16_800_000,
  balance_after: 9_983_200_000,
  market_id: 1,
  outcome_id: 1,
  order_id: order.id,
  trade_id: fill.id,
  match_id: fill.match_id,
  deposit_id: null,
  created_at: fill.created_at,
};

export const user: Static<typeof User> = {
  id: 3,
  email: "maker@example.com",
  email_verified: true,
  phone: "+14155552671",
  phone_verified: true,
  kyc_tier: 1,
  role: "user",
  daily_activity: { used: 42_000_000, limit: 100_000_000 },
  created_at: THEN,
};
export const newUser: Static<typeof User> = {
  ...user,
  email_verified: false,
  phone: null,
  phone_verified: false,
  kyc_tier: 0,
  daily_activity: { used: 0, limit: 0 },
};
/** Truncated. */
export const ACCESS_TOKEN = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsxIn0.eyJzdWIiOiIzIn0.c2lnbmF0dXJl";
export const REFRESH_TOKEN = "pm_ref_3Jx0examplexx";
export const MAILED_TOKEN = "mK7Xexamplexx";
export const PASSWORD = "a quiet harbour at dawn";
export const NEW_PASSWORD = "a loud harbour at noon";
export const session: Static<typeof Session> = {
  id: 5,
  method: "password",
  current: true,
  second_factor: false,
  user_agent: "Mozilla/5.0",
  address: "203.0.113.7",
  created_at: THEN,
  last_used_at: THEN,
  expires_at: THEN + 30 * 86_400_000,
};
export const pat: Static<typeof Pat> = {
  id: 4,
  name: "quoting bot",
  scopes: ["orders:write", "portfolio:read"],
  prefix: "pm_pat_Zm9v",
  allowed_ips: ["203.0.113.7", "2001:db8::/32"],
  created_at: THEN,
  last_used_at: null,
  expires_at: FAR_OFF,
};
export const identityApplication: Static<typeof IdentityApplication> = {
  id: 2,
  document_type: "passport",
  country: "DE",
  status: "pending",
  note: null,
  created_at: THEN,
  decided_at: null,
};
export const oauthClient: Static<typeof OAuthClient> = {
  id: 6,
  client_id: "c1f0example",
  name: "Portfolio tracker",
  redirect_uris: ["https://client.example/callback"],
  confidential: true,
  created_at: THEN,
};
export const CLIENT_SECRET = "s3cretexample";
export const oauthGrant: Static<typeof OAuthGrant> = {
  id: 8,
  client_id: oauthClient.client_id,
  client_name: oauthClient.name,
  scopes: ["portfolio:read"],
  created_at: THEN,
  last_used_at: null,
};

export const ownDeposit: Static<typeof OwnDeposit> = {
  id: 10,
  amount: 250_000_000,
  reference: "wire 2026-11-22 0001",
  reverses: null,
  created_at: THEN,
};
export const depositInstructions: Static<typeof DepositInstructions> = {
  reference: "RF14PX1",
  instructions: "Bank: Example Bank\nIBAN: DE02120300000000202051\nReference: RF14PX1",
};
export const deposit: Static<typeof Deposit> = { ...ownDeposit, user_id: user.id };
export const ownWithdrawal: Static<typeof OwnWithdrawal> = {
  id: 11,
  amount: 25_000_000,
  address: "0x52908400098527886E0F7030069857D2E4169EE7",
  status: "pending",
  reference: null,
  note: null,
  created_at: THEN,
  decided_at: null,
};
export const withdrawal: Static<typeof Withdrawal> = { ...ownWithdrawal, user_id: user.id, email: user.email };
export const trail: Static<typeof Trail> = {
  deposits: [{ ...ownDeposit, credited_by: "operator 1", approved_by: "operator 2", approved_at: THEN }],
  terms: [{ set_at: THEN, set_by: "operator 1", changes: { maker_rebate: 10 }, approved_by: null, approved_at: null }],
  identity: [{ application_id: 4, status: "approved", decided_at: THEN, decided_by: "operator 2", note: null }],
  has_more: false,
};
export const approval: Static<typeof Approval> = {
  id: 9,
  action: "withdrawal.pay",
  subject: withdrawal.id,
  details: { reference: null, note: null },
  approved_by: "operator 1",
  created_at: THEN,
};
export const settlement: Static<typeof Settlement> = {
  id: 20,
  market_id: 1,
  outcome_id: 1,
  quantity: 40,
  payout: 10_000,
  amount: 40_000_000,
  cost: 16_800_000,
  realized_pnl: 23_200_000,
  created_at: FAR_OFF,
};
export const marketRecord: Static<typeof MarketRecord> = {
  ...proposedMarket,
  proposed_by: user.id,
  decision: null,
  approval: null,
};
export const operatorUser: Static<typeof OperatorUser> = {
  ...user,
  suspended_at: null,
  second_factors: 1,
  balance,
  terms: termsView(DEFAULT_TERMS),
  terms_approval: null,
};
export const operatorApplication: Static<typeof OperatorApplication> = {
  ...identityApplication,
  user_id: user.id,
  email: user.email,
  document_number: "C01X00T47",
};
